"""``longtail explain``: which words spoke for a label."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from longtail.cli import options as opt
from longtail.cli.models import load_tagger
from longtail.cli.output import print_json

__all__ = ["command"]

_SHADES = (22, 28, 34)  # greens of a 256-colour terminal, faint to strong


def command(
    model: opt.ModelFolder,
    text: Annotated[str, typer.Argument(help="The text, or - to read it from standard input.")],
    label: Annotated[
        list[str] | None,
        typer.Option("--label", "-l", help="Label to explain (repeatable). [default: the best k]"),
    ] = None,
    k: Annotated[int, typer.Option("-k", "--k", help="How many of the best labels.", min=1)] = 3,
    words: Annotated[int, typer.Option(help="Words to list for each label.", min=1)] = 10,
    json: opt.Json = False,
) -> None:
    """Show which words of a text speak for its labels, or for one that you name."""
    tagger = load_tagger(model)
    if text == "-":
        text = sys.stdin.read()
    names = label or [name for name, _ in tagger.predict([text], k)[0]]
    found = tagger.explain(text, names, n_terms=words)
    if json:
        print_json([explanation.to_dict() for explanation in found])
        return
    texts = tagger.label_texts_
    for name, explanation in zip(names, found, strict=True):
        if texts is not None:
            print(texts[tagger.vocabulary_.id(str(name))])
        print(explanation)
        if sys.stdout.isatty():
            print(_coloured(explanation))
        print()


def _coloured(explanation: Any) -> str:
    """Return the text with its words shaded by what they contributed."""
    most = max((abs(weight) for _, _, weight in explanation.spans), default=1.0)
    parts, at = [], 0
    for start, end, weight in explanation.spans:
        parts.append(explanation.text[at:start])
        word = explanation.text[start:end]
        if weight > 0:
            shade = _SHADES[min(2, int(3 * weight / most))]
            word = f"\x1b[48;5;{shade}m{word}\x1b[0m"
        parts.append(word)
        at = end
    return "  " + "".join([*parts, explanation.text[at:]])
