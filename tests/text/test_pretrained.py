"""Where encoders come from, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import longtail as lt
from longtail import persist
from longtail._models import from_state
from longtail.deep.encoders.transformer import Transformer
from longtail.text import pretrained


def test_a_name_is_fetched_without_code_or_pickles(
    encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def snapshot(name: str, allow_patterns: list[str]) -> str:
        asked.append((name, allow_patterns))
        return str(encoder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    assert pretrained.fetched("someone/small-encoder") == encoder
    assert asked[0][0] == "someone/small-encoder"
    assert not any("bin" in p or "py" in p or p == "*" for p in asked[0][1])


def test_what_cannot_be_fetched_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(name: str, allow_patterns: list[str]) -> str:
        raise OSError("no network")

    monkeypatch.setattr("huggingface_hub.snapshot_download", offline)
    with pytest.raises(FileNotFoundError, match="no network"):
        pretrained.fetched("someone/small-encoder")


def test_pickled_weights_are_refused(encoder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pickled"
    shutil.copytree(encoder, folder)
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match="pickled weights may run code"):
        Transformer.pretrained(folder)


def test_code_of_a_model_is_not_run(encoder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "code"
    shutil.copytree(encoder, folder)
    config = json.loads((folder / "config.json").read_text())
    config["model_type"] = "mine"
    config["auto_map"] = {"AutoModel": "mine.Mine", "AutoConfig": "mine.Config"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "mine.py").write_text("raise SystemExit('this code was run')")
    with pytest.raises(ValueError, match="cannot be loaded"):
        Transformer.pretrained(folder)


def test_hostile_states_are_refused(fitted: Any, tmp_path: Path) -> None:
    def changed(change: Any) -> persist.State:
        state = fitted._get_state()
        change(state)
        return state

    def config(**values: Any) -> Any:
        return lambda s: s.meta.update(
            encoder={
                **s.meta["encoder"],
                "config": {
                    **s.meta["encoder"]["config"],
                    "model": {**s.meta["encoder"]["config"]["model"], **values},
                },
            }
        )

    for change, message in (
        (lambda s: s.meta.update(encoder={"kind": "os.system"}), "does not describe"),
        (
            lambda s: s.meta.update(encoder={**s.meta["encoder"], "kind": "pickle"}),
            "no encoder of the kind",
        ),
        (lambda s: s.meta.update(encoder={**s.meta["encoder"], "width": 10**9}), "cannot have"),
        (lambda s: s.arrays.update(tokenizer=np.frombuffer(b"{", np.uint8)), "cannot be read"),
        (lambda s: s.arrays.update(tokenizer=np.full(9, 255, np.uint8)), "cannot be read"),
        (lambda s: s.arrays.update(encoder=s.arrays["encoder"][:-5]), "cannot be read"),
        (lambda s: s.arrays.update(encoder=np.zeros(20, np.uint8)), "cannot be read"),
        (config(hidden_size=1 << 20), "not usable|do not fit"),
        (config(num_hidden_layers=3), "do not fit"),
        (config(model_type="no-such-model"), "not usable"),
        (lambda s: s.meta.update(loss="anything"), "no loss"),
        (lambda s: s.arrays.pop("output_bias"), "output_bias"),
    ):
        with pytest.raises(lt.exceptions.ModelFormatError, match=message):
            from_state(changed(change)).embed(["word1"])


def test_a_configuration_with_more_layers_than_weights(fitted: Any) -> None:
    """Even the outline of such an encoder would take minutes to make."""
    state = fitted._get_state()
    state.meta["encoder"]["config"]["model"]["num_hidden_layers"] = 2**31
    model = lt._models.from_state(state)
    with pytest.raises(lt.exceptions.ModelFormatError, match="num_hidden_layers"):
        model.predict_topk(["word1"], k=1)
