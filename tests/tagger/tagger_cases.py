"""Small corpora whose right answer is known by construction."""

from __future__ import annotations

import random

TOPICS = {
    "printer": "paper jam tray toner ink cartridge",
    "login": "password login account locked reset",
    "network": "wifi cable router internet slow",
    "mail": "outlook inbox attachment spam send",
    "phone": "phone headset call voice ringing",
}
FILLER = ["the", "is", "my", "please", "help", "with", "not", "it", "since", "today"]


def tickets(n: int = 200, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    """Texts made of the words of their one or two labels, and filler."""
    rng = random.Random(seed)
    texts, labels = [], []
    for i in range(n):
        names = sorted(rng.sample(list(TOPICS), 1 + i % 2))
        words = [w for name in names for w in rng.choices(TOPICS[name].split(), k=5)]
        words += rng.choices(FILLER, k=4)
        rng.shuffle(words)
        texts.append(" ".join(words))
        labels.append(names)
    return texts, labels
