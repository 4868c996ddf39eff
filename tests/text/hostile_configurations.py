"""Give encoders configurations with keys that ask ``transformers`` to run code; a script.

    python tests/text/hostile_configurations.py FOLDER N

FOLDER has a small encoder. A configuration either makes an encoder or is refused. Whatever else
happens (a module of FOLDER is read, a question on standard input, a process, a connection, another
error) is printed, and ends the script with 1.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from longtail.deep.encoders.transformer import Transformer
from longtail.deep.encoders.transformer_config import MODEL_TYPES
from longtail.exceptions import ModelFormatError

FORBIDDEN = ("builtins.input", "socket.connect", "subprocess.Popen", "os.system", "os.posix_spawn")
KEYS = [
    "auto_map", "attn_implementation", "_attn_implementation", "_attn_implementation_internal",
    "experts_implementation", "_experts_implementation", "_name_or_path", "name_or_path",
    "quantization_config", "custom_pipelines", "dtype", "torch_dtype", "num_labels", "id2label",
    "per_layer_config", "torchscript", "pruned_heads", "hidden_act", "model_type",
    "architectures", "sub_configs", "attribute_map", "to_dict", "__class__", "get_text_config",
    "rope_parameters", "num_hidden_layers", "vocab_size", "max_position_embeddings",
    "is_decoder", "tokenizer_class", "output_attentions", "use_return_dict",
    "base_model_tp_plan", "tie_word_embeddings",
]  # fmt: skip


def values(folder: Path, rng: random.Random) -> list[Any]:
    elsewhere = sorted(set(CONFIG_MAPPING_NAMES) - set(MODEL_TYPES))
    auto_map = dict.fromkeys(("AutoModel", "AutoConfig", "AutoTokenizer"), "mine.Mine")
    return [
        auto_map, {"AutoModel": f"{folder}--mine.Mine"}, str(folder), "mine.Mine",
        "someone/kernel", "kernels-community/flash-attn", "flash_attention_2",
        {"quant_method": "gptq", "bits": 4}, {"quant_method": "bitsandbytes"},
        rng.choice(elsewhere), "load", "Tensor", 10**9, -1, 1e308, True, None, "", [], {},
        {"0": {"auto_map": auto_map}},
    ]  # fmt: skip


def hostile(settings: dict[str, Any], folder: Path, rng: random.Random) -> dict[str, Any]:
    """Return a copy in which some keys, at any depth, have other values."""
    out = json.loads(json.dumps(settings))
    if rng.random() < 0.5:
        kinds = sorted(CONFIG_MAPPING_NAMES) + ["clap_text_model"] * 100
        out |= {"model_type": rng.choice(kinds), "name_or_path": str(folder)}
        out["auto_map"] = values(folder, rng)[0]
    for _ in range(rng.randrange(5)):
        place = out
        for _ in range(rng.choice((0, 0, 1, 3))):
            place = place.setdefault(rng.choice(("text_config", "rope_parameters", "inner")), {})
            if not isinstance(place, dict):
                place = out
        name = rng.choice(KEYS) if rng.random() < 0.8 else rng.choice(list(settings))
        place[name] = rng.choice(values(folder, rng))
    return out


def main() -> int:
    folder, n = Path(sys.argv[1]), int(sys.argv[2])
    (folder / "mine.py").write_text("raise SystemExit('this code was run')\n")
    plain = json.loads((folder / "config.json").read_text())
    encoder = Transformer.pretrained(folder)
    weights = encoder.state_dict()
    forbidden: list[str] = []

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        reads = event == "open" and str(arguments[0]).endswith("mine.py")
        if event in FORBIDDEN or reads:
            forbidden.append(f"{event}{arguments}"[:200])

    sys.addaudithook(watch)
    ends: Counter[str] = Counter()
    for seed in range(n):
        settings = hostile(plain, folder, random.Random(seed))
        (folder / "config.json").write_text(json.dumps(settings))
        saved = {"pooling": "mean", "model": settings}
        for refusal, make, what in (
            (ModelFormatError, Transformer.from_config, (saved, weights)),
            (ValueError, Transformer.pretrained, (folder,)),
        ):
            forbidden.clear()
            try:
                make(*what)
                ends["made"] += 1
            except refusal:
                ends["refused"] += 1
            except BaseException as error:
                forbidden.append(f"{type(error).__name__}: {error}"[:200])
            if forbidden:
                ends["faults"] += 1
                print(f"seed {seed}: {forbidden[0]}\n    {json.dumps(settings)[:1000]}")
    print(dict(ends))
    return 1 if ends["faults"] or min(ends["made"], ends["refused"]) < n / 10 else 0


if __name__ == "__main__":
    sys.exit(main())
