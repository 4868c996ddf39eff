"""The choices of Tfidf on the command line."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from cli_cases import run, write_tickets

import longtail as lt
from longtail.cli.text_options import TEXT_OPTIONS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text-options")
    write_tickets(folder / "tickets.jsonl")
    return folder


def test_every_choice_of_tfidf_is_an_option_of_the_same_name() -> None:
    assert set(TEXT_OPTIONS) == set(lt.Tfidf._defaults) - {"n_jobs"}
    for command in ("train", "compare", "tune"):
        shown = run(command, "--help").stdout
        for name in TEXT_OPTIONS:
            assert f"--{name.replace('_', '-')}" in shown, (command, name)


def test_train_takes_them_all(folder: Path) -> None:
    (folder / "stop.txt").write_text("paper\n\ntray\n")
    options = {
        "--ngram-range": "1,2",
        "--strip-accents": "unicode",
        "--min-word-length": 3,
        "--stop-words": folder / "stop.txt",
        "--min-df": 1,
        "--max-df": 0.9,
        "--max-features": 500,
        "--norm": "l1",
    }
    flags = ["--no-lowercase", "--binary", "--no-sublinear-tf", "--no-use-idf", "--no-smooth-idf"]
    given = [part for pair in options.items() for part in pair]
    run("train", folder / "tickets.jsonl", "-o", folder / "all", *given, *flags)
    made = lt.load(folder / "all").vectorizer_.get_params()
    del made["n_jobs"]
    assert made == {
        "analyzer": "word",
        "ngram_range": (1, 2),
        "lowercase": False,
        "strip_accents": "unicode",
        "min_word_length": 3,
        "stop_words": ["paper", "tray"],
        "min_df": 1,
        "max_df": 0.9,
        "max_features": 500,
        "n_features": None,
        "binary": True,
        "sublinear_tf": False,
        "use_idf": False,
        "smooth_idf": False,
        "norm": "l1",
    }


def test_what_is_not_given_is_chosen(folder: Path) -> None:
    data = folder / "tickets.jsonl"
    done = run("train", data, "-o", folder / "some", "--analyzer", "char_wb", "--norm", "none")
    assert "runs of 2 to 5 characters" in done.stderr
    made = lt.load(folder / "some").vectorizer_
    assert (made.analyzer, made.ngram_range, made.norm) == ("char_wb", (2, 5), None)
    run("train", data, "-o", folder / "hashed", "--n-features", 64, "--stop-words", "paper,tray")
    made = lt.load(folder / "hashed").vectorizer_
    assert (made.n_features, made.stop_words) == (64, ["paper", "tray"])


def test_compare_and_tune_use_them(folder: Path) -> None:
    data = folder / "tickets.jsonl"
    nothing = ("--stop-words", ",".join(sorted(set(vocabulary(data)))))
    refused = run("compare", data, "-m", "one-vs-all", *nothing, code=2)
    assert "no terms" in refused.stderr
    done = run("compare", data, "-m", "one-vs-all", "--analyzer", "char", "--ngram-range", "2,3")
    assert "over runs of 2 to 3 characters" in done.stderr
    options = ("--models", "one-vs-all", "--trials", 40, "--json", "--metric", "P@1")
    fixed = ("--min-df", 1, "--ngram-range", "1,1", "--min-word-length", 3)
    journal = ("--journal", folder / "journal.jsonl")
    found = json.loads(run("tune", data, *options, *fixed, *journal, "-o", folder / "t").stdout)
    assert {tuple(sorted(trial["setting"])) for trial in found["trials"]} == {("C", "model")}
    made = lt.load(folder / "t").vectorizer_
    assert (made.min_df, made.ngram_range, made.min_word_length) == (1, (1, 1), 3)
    again = run("tune", data, *options, *fixed, *journal)
    assert again.stderr == ""  # nothing was tried anew
    other = run("tune", data, *options[:3], 1, *options[4:], "--min-df", 1, *journal)
    assert other.stderr.count("P@1") == 1  # another question


def vocabulary(data: Path) -> list[str]:
    return [w for line in data.read_text().splitlines() for w in json.loads(line)["text"].split()]


def test_scripts_without_spaces_are_recognised(folder: Path) -> None:
    topics = {"login": ["ログイン", "パスワード"], "network": ["無線", "接続", "ルーター"]}
    rng, data = random.Random(0), folder / "japanese.jsonl"
    with open(data, "w") as file:
        for label in list(topics) * 120:
            words = ["今日", rng.choice(topics[label]), "できません", rng.choice(topics[label])]
            file.write(json.dumps({"text": "".join(words), "labels": [label]}) + "\n")
    done = run("train", data, "-o", folder / "japanese")
    assert "in scripts without spaces" in done.stderr
    answer = run("predict", folder / "japanese", "-k", 1, stdin="パスワードを忘れました\n")
    assert "login" in answer.stdout
    tuned = run("tune", data, "--trials", 1, "--models", "one-vs-all", "--metric", "P@1", "--json")
    assert json.loads(tuned.stdout)["score"] > 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--ngram-range", "two"), "expected two numbers"),
        (("--ngram-range", "2,1"), "ascend"),
        (("--analyzer", "words"), "analyzer must be one of"),
        (("--min-df", "many"), "a number of texts"),
        (("--min-df", "0"), "at least 1"),
        (("--max-df", "1.5"), "[0, 1]"),
        (("--norm", "l3"), "norm must be one of"),
        (("--stop-words", "no/such/file"), "there is no file"),
        (("--analyzer", "char", "--stop-words", "a,b"), "--stop-words are words"),
        (("--n-features", "4", "--max-features", "4"), "one of the two"),
    ],
)
def test_refused_before_the_data_is_read(options: tuple[str, ...], message: str) -> None:
    done = run("train", "no-such-file.csv", "-o", "nowhere", *options, code=2)
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_features_have_no_terms(folder: Path) -> None:
    data = lt.data.make_longtail(n=60, d=30, L=5)
    lt.write_xc(folder / "rows.txt", data.train.X, data.train.Y)
    done = run("train", folder / "rows.txt", "-o", folder / "x", "--min-df", 1, code=2)
    assert "--min-df is for texts" in done.stderr
