"""Configurations that ask to run code, and the model types that are taken."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import longtail as lt
from longtail._models import from_state
from longtail.deep.batches.token_rows import TokenBatch
from longtail.deep.encoders import transformer_config
from longtail.deep.encoders.transformer import Transformer

SOURCE = str(Path(lt.__file__).parents[1])
TWO = ("num_hidden_layers", "n_layers", "num_attention_heads", "n_heads", "num_key_value_heads")
WIDTHS = ("hidden_size", "embedding_size", "emb_dim", "dim")
SMALL = {
    **dict.fromkeys(TWO, 2),
    **dict.fromkeys(WIDTHS, 32),
    "head_dim": 16,
    "intermediate_size": 64,
    "vocab_size": 64,
    "max_position_embeddings": 64,
    "attention_window": 8,
    "pad_token_id": 0,
}


def run(*command: object, home: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with somebody at the keyboard who agrees to everything."""
    path = os.pathsep.join([SOURCE, *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, *map(str, command)],
        input="y\n" * 100,
        env={**os.environ, "PYTHONPATH": path, "HF_HOME": str(home), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_saved_model_cannot_run_code(fitted: Any, tmp_path: Path) -> None:
    """Its checksums are right: it was signed by whoever put the code there."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "mine.py").write_text(f"open({str(tmp_path / 'was run')!r}, 'w')")
    state = fitted._get_state()
    state.meta["encoder"]["config"]["model"] |= {
        "model_type": "clap_text_model",  # that AutoModel does not know
        "auto_map": {"AutoModel": "mine.Mine"},
        "name_or_path": str(code),
    }
    model = from_state(state)
    model.save(tmp_path / "model")
    load = f"import longtail as lt; lt.load({str(tmp_path / 'model')!r}).embed(['word1'])"
    done = run("-c", load, home=tmp_path)
    assert not (tmp_path / "was run").exists()
    assert done.returncode == 1 and "ModelFormatError" in done.stderr

    model.save_encoder(tmp_path / "encoder")
    exported = (tmp_path / "encoder" / "config.json").read_text()
    assert "mine" not in exported and "hidden_size" in exported


def test_no_configuration_runs_code_or_asks(encoder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(encoder, folder)
    script = Path(__file__).with_name("hostile_configurations.py")
    done = run(script, folder, 200, home=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


@pytest.mark.parametrize("depth", [0, 1, 5])
def test_keys_are_dropped_at_any_depth(depth: int) -> None:
    dropped = ("auto_map", "attn_implementation", "_attn_implementation", "quantization_config")
    settings: Any = {"hidden_size": 8, **dict.fromkeys(dropped, "mine")}
    for _ in range(depth):
        settings = {"inner": [settings], "auto_map": {}}
    text = str(transformer_config.safe_settings(settings))
    assert "hidden_size" in text and not any(name in text for name in dropped)


def test_standard_input_is_empty_while_an_encoder_is_made(
    encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asking(*_: Any, **__: Any) -> None:
        input("Do you wish to run the custom code?")

    monkeypatch.setattr(transformers.AutoModel, "from_pretrained", asking)
    before = sys.stdin
    with pytest.raises(ValueError, match="EOF"):
        Transformer.pretrained(encoder)
    assert sys.stdin is before


@pytest.mark.parametrize("kind", transformer_config.MODEL_TYPES)
def test_every_type_that_is_taken_encodes_and_comes_back(kind: str) -> None:
    if kind not in CONFIG_MAPPING:
        pytest.skip("this version of transformers does not have it")
    assert not CONFIG_MAPPING[kind].sub_configs  # whose types would not be checked
    torch.manual_seed(0)
    config = transformer_config.transformer_config({"model_type": kind, **SMALL})
    saved = {"pooling": "mean", "model": config.to_dict()}
    model = transformers.AutoModel.from_config(config)
    model.pooler = None
    encoder = Transformer(model).eval()
    back = Transformer.from_config(saved, encoder.state_dict()).eval()
    ids = torch.randint(5, 60, (2, 8))
    mask = torch.tensor([[True] * 8, [True] * 6 + [False] * 2])
    batch = TokenBatch(ids, mask, False)
    with torch.inference_mode():
        vectors = encoder(batch)
        assert vectors.shape == (2, encoder.width)
        torch.testing.assert_close(back(batch), vectors)


def test_other_types_are_refused() -> None:
    for kind in ("clap_text_model", "vit", "no-such-model", None, ["bert"], "BERT"):
        with pytest.raises(ValueError, match="not supported"):
            transformer_config.transformer_config({"model_type": kind})


@pytest.mark.parametrize(
    "name", ["max_position_embeddings", "vocab_size", "num_hidden_layers", "num_hidden_groups"]
)
def test_sizes_are_bounded_before_anything_is_made(fitted: Any, name: str) -> None:
    state = fitted._get_state()
    state.meta["encoder"]["config"]["model"][name] = 10**9
    with pytest.raises(lt.exceptions.ModelFormatError, match=name):
        from_state(state).embed(["word1"])
