"""Answers without torch: the ONNX file of an encoder."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from text_cases import text_network, worded

import longtail as lt

for package in ("onnx", "onnxruntime"):
    pytest.importorskip(package, reason=f"{package} is not installed")

WITHOUT_TORCH = """
import sys
for name in ("torch", "transformers", "safetensors"):
    sys.modules[name] = None
import numpy as np, longtail as lt
model = lt.load(sys.argv[1])
texts = open(sys.argv[2], encoding="utf-8").read().split("\\n")
top = model.predict_topk(texts, k=5)
np.savez(sys.argv[3], indices=top.indices, scores=top.scores)
"""


@pytest.mark.parametrize("kind", ["transformer", "average", "convolution"])
def test_the_same_answers_without_torch(kind: str, fitted: Any, data: Any, tmp_path: Path) -> None:
    model = text_network(kind).fit(*data) if kind != "transformer" else copy.copy(fitted)
    texts = [*worded(seed=3)[0], "", "word1", "words it has never seen"]
    expected = model.predict_topk(texts, k=5)
    model.set_params(onnx=True).save(tmp_path / "model")
    (tmp_path / "texts").write_text("\n".join(texts), encoding="utf-8")
    files = [str(tmp_path / name) for name in ("model", "texts", "answers.npz")]
    path = os.pathsep.join(p for p in sys.path if p)
    subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *files],
        env={**os.environ, "PYTHONPATH": path},
        check=True,
    )
    found = np.load(tmp_path / "answers.npz")
    np.testing.assert_allclose(found["scores"], expected.scores, rtol=1e-3, atol=1e-3)
    assert (found["indices"] == expected.indices).mean() > 0.99
    loaded = lt.load(tmp_path / "model").set_params(runtime="torch")
    assert loaded.predict_topk(texts, k=5) == expected


def test_eight_bits(fitted: Any, tmp_path: Path) -> None:
    texts = worded(seed=3)[0]
    model = fitted.fine_tuned(*worded())
    model.set_params(onnx=True).save(tmp_path / "float")
    model.set_params(onnx="int8").save(tmp_path / "int8")
    whole, small = (lt.load(tmp_path / name) for name in ("float", "int8"))
    assert len(small.encoder_.onnx) < len(whole.encoder_.onnx)  # the graph is most of it here
    first = [m.predict_topk(texts, k=1).indices for m in (whole, small)]
    assert (first[0] == first[1]).mean() > 0.8


def test_files_that_are_not_what_they_say(fitted: Any, tmp_path: Path) -> None:
    model = fitted.fine_tuned(*worded())
    model.encoder_ = model.encoder_.with_onnx(np.zeros(50, np.uint8))
    model.set_params(runtime="onnx")
    with pytest.raises(lt.exceptions.ModelFormatError, match="cannot be read"):
        model.embed(["word1"])
    model.set_params(onnx=False).save(tmp_path / "none")
    with pytest.raises(ValueError, match="without an ONNX file"):
        lt.load(tmp_path / "none").set_params(runtime="onnx").embed(["word1"])
    with pytest.raises(ValueError, match="onnx must be"):
        model.set_params(onnx="int4").save(tmp_path / "x")


@pytest.mark.parametrize("inside", [True, False])
def test_an_onnx_file_reads_no_other_file(
    inside: bool, fitted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger's model that asks for weights from a file of the machine is refused."""
    import onnx

    from longtail.text.encoding import OnnxEncoding
    from longtail.text.onnx_file import exported

    document = onnx.load_from_string(exported(fitted.encoder_).tobytes())
    weights = max(document.graph.initializer, key=lambda tensor: len(tensor.raw_data))
    (tmp_path / "secret").write_bytes(weights.raw_data)
    weights.ClearField("raw_data")
    weights.data_location = onnx.TensorProto.EXTERNAL
    place = weights.external_data.add(key="location")
    place.value = "secret" if inside else str(tmp_path / "secret")
    monkeypatch.chdir(tmp_path)
    raw = np.frombuffer(document.SerializeToString(), np.uint8)
    with pytest.raises(lt.exceptions.ModelFormatError, match="asks for weights in another file"):
        OnnxEncoding(fitted.encoder_.with_onnx(raw), 1)


def test_an_onnx_file_that_fails_when_it_is_used(fitted: Any) -> None:
    import onnx

    from longtail.text.encoding import OnnxEncoding
    from longtail.text.onnx_file import exported

    document = onnx.load_from_string(exported(fitted.encoder_).tobytes())
    for tensor in document.graph.initializer:
        if tensor.name.endswith("word_embeddings.weight"):  # too few rows for the ids
            tensor.dims[0] = 1
            tensor.raw_data = tensor.raw_data[: 4 * tensor.dims[1]]
    raw = np.frombuffer(document.SerializeToString(), np.uint8)
    with pytest.raises(lt.exceptions.ModelFormatError, match="ONNX file of the encoder fails"):
        OnnxEncoding(fitted.encoder_.with_onnx(raw), 1)(fitted.tokenize(["word1 word2"]))


def test_any_number_of_threads(fitted: Any, tmp_path: Path) -> None:
    """As many as there are processors are started, whatever a model says."""
    copy.copy(fitted).set_params(onnx=True).save(tmp_path / "model")
    loaded = lt.load(tmp_path / "model").set_params(n_jobs=2**63 - 1, runtime="onnx")
    assert len(loaded.predict_topk(["word1"], k=2)) == 1
