import gzip
import json
import math
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_cases import any_name, any_text, folder, with_files
from hypothesis import given
from hypothesis import strategies as st

from longtail.data import load_dataset
from longtail.data.cells import label_names, text_from
from longtail.data.tables import iter_table, read_table, write_table
from longtail.exceptions import DataFormatError, MissingDependencyError

rows = st.lists(st.tuples(any_text, st.lists(any_name, max_size=3)), max_size=4)
SUFFIXES = [".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz", ".tsv.gz", ".jsonl.gz"]


@with_files
@given(rows, st.sampled_from(SUFFIXES))
def test_every_format_survives_the_round_trip(rows, suffix):
    # Before Python 3.11 the csv module could not read NUL.
    texts, lists = [t.replace("\0", "") for t, _ in rows], [names for _, names in rows]
    lists = [[name.replace("\0", "0") for name in names] for names in lists]
    with folder() as place:
        write_table(place / f"a{suffix}", texts, lists)
        assert read_table(place / f"a{suffix}") == (texts, lists)


@with_files
@given(rows)
def test_tables_in_memory(rows):
    columns = {"text": [t for t, _ in rows], "labels": [names for _, names in rows]}
    expected = (columns["text"], columns["labels"])
    schema = pa.schema({"text": pa.string(), "labels": pa.list_(pa.string())})
    table = pa.table(columns, schema=schema)
    assert read_table(pd.DataFrame(columns)) == expected
    assert read_table(table) == expected
    assert read_table(pa.RecordBatch.from_pydict(columns, schema=schema)) == expected
    assert read_table(table.to_pandas()) == expected  # label cells are NumPy arrays


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_separated_labels(tmp_path, name):
    write_table(tmp_path / name, ["x", "y"], [["a b", "c"], []], label_separator="|")
    assert read_table(tmp_path / name, label_separator="|") == (["x", "y"], [["a b", "c"], []])
    for bad in ("a|b", " a", ""):
        with pytest.raises(ValueError, match="cannot be written"):
            write_table(tmp_path / name, ["x"], [[bad]], label_separator="|")


@pytest.mark.parametrize(
    ("cell", "separator", "expected"),
    [
        (["a", "b"], None, ["a", "b"]),
        (("a",), None, ["a"]),
        ({"b", "a"}, None, ["a", "b"]),
        (np.array(["a", "b"]), None, ["a", "b"]),
        (np.array([3, 4]), None, ["3", "4"]),
        ([3, "b"], None, ["3", "b"]),
        (7, None, ["7"]),
        (np.int64(7), None, ["7"]),
        (None, None, []),
        (math.nan, None, []),
        (pd.NA, None, []),
        (pd.NaT, None, []),
        ("", None, []),
        ("  ", None, []),
        ("plain label", None, ["plain label"]),
        ('["a", "b"]', None, ["a", "b"]),
        ("[3, 4]", None, ["3", "4"]),
        ("[]", None, []),
        ("['it\\'s', \"b\"]", None, ["it's", "b"]),
        ("['a', 'b',]", None, ["a", "b"]),
        ("a;b; ;c ", ";", ["a", "b", "c"]),
        ("[a;b]", ";", ["[a", "b]"]),
        ("a, b", ", ", ["a", "b"]),
        (["a;b"], ";", ["a;b"]),
        ("[tag", None, ["[tag"]),
    ],
)
def test_label_cells(cell, separator, expected):
    assert label_names(cell, separator) == expected


@pytest.mark.parametrize(
    "cell",
    [
        "['a' 'b']",  # NumPy's print: Python would glue the two together
        "[a, b]",
        "[1.5]",
        "[null]",
        '[["a"]]',
        "[__import__('os')]",
        "[" * 10_000 + "]" * 10_000,
        7.0,
        True,
        [True],
        [None],
        {"a": 1},
        b"a",
    ],
)
def test_label_cells_that_are_refused(cell):
    with pytest.raises(ValueError, match=r"expected a (list of )?label"):
        label_names(cell)


def test_a_long_malformed_list_is_refused_in_time():
    with pytest.raises(ValueError, match="expected a list of label names"):
        label_names("['a'" + " " * 200_000 + "!]")


def test_text_cells():
    assert text_from(["a"], " ") == "a"
    assert text_from(["a", None, math.nan, "", "b"], " / ") == "a / b"
    assert text_from([2012, "b"], " ") == "2012 b"
    assert text_from([None], " ") == ""
    for bad in (1.5, ["a"], b"a"):
        with pytest.raises(ValueError, match="expected a text"):
            text_from([bad], " ")


def test_several_text_columns(tmp_path):
    (tmp_path / "a.csv").write_text("id,title,body,tags\n1,T,B,x;y\n2,U,,\n")
    options = {"label_column": "tags", "label_separator": ";"}
    texts, lists = read_table(
        tmp_path / "a.csv", text_column=["title", "body"], text_joiner=". ", **options
    )
    assert (texts, lists) == (["T. B", "U"], [["x", "y"], []])
    assert read_table(tmp_path / "a.csv", text_column="title", label_column=None)[1] == [[], []]


def test_csv_by_the_book(tmp_path):
    path = tmp_path / "a.csv.gz"
    raw = '\ufefftext,labels\r\n"two\r\nlines, ""quoted""",a\r\n\r\nplain\u2028text,b\r\n'
    path.write_bytes(gzip.compress(raw.encode()))
    assert read_table(path) == (['two\r\nlines, "quoted"', "plain\u2028text"], [["a"], ["b"]])
    assert [record.place.line for record in iter_table(path)] == [2, 5]


def test_a_long_field_is_read_and_the_global_limit_is_put_back(tmp_path):
    import csv

    before = csv.field_size_limit()
    (tmp_path / "a.csv").write_text(f"text,labels\n{'x' * 200_000},a\n")
    stream = iter_table(tmp_path / "a.csv")
    assert len(next(stream).text) == 200_000
    assert csv.field_size_limit() == before


def test_another_delimiter(tmp_path):
    (tmp_path / "a.csv").write_text("text;labels\nx;a\n")
    with pytest.raises(DataFormatError, match="no column 'text': the columns are 'text;labels'"):
        read_table(tmp_path / "a.csv")
    with pytest.raises(DataFormatError, match="between ';': pass delimiter=';'"):
        read_table(tmp_path / "a.csv")
    assert read_table(tmp_path / "a.csv", delimiter=";") == (["x"], [["a"]])
    (tmp_path / "b.csv").write_text("words,tags\nx,a\n")  # other names, but the right delimiter
    with pytest.raises(DataFormatError) as caught:
        read_table(tmp_path / "b.csv")
    assert "delimiter=" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message", "line"),
    [
        ("a.csv", "", "header", 1),
        ("a.csv", "\n\n", "header", 1),
        ("a.csv", "text,tags\nx,a\n", "no column 'labels'", 1),
        ("a.csv", "text,labels,text\n", "more than one column 'text'", 1),
        ("a.csv", "text,labels\nx,a\ny\n", "expected 2 fields, as in the header, got 1", 3),
        ("a.csv", "text,labels\nx,a,b\n", "got 3", 2),
        ("a.csv", 'text,labels\n"x,a\ny,b\n', "begins here is never closed", 2),
        ("a.csv", 'text,labels\n"x"y,a\n', "begins here does not end well", 2),
        ("a.csv", 'text,labels\n"a ""b"" c\nd",e\n"x,a\ny,b\nz "q" r,b\n', "not end well", 4),
        ("a.csv", 'text,labels\n"a\nb","c\nd\n', "never closed", 3),
        ("a.csv", "t\0e\0,l\0\n", "seems to be UTF-16", 1),
        ("a.csv", 'text,labels\n"x\ny",[1.5]\n', "labels: expected a list of label", 2),
        ("a.jsonl", '{"text": "x"}\n', "no field 'labels': the fields are 'text'", 1),
        ("a.jsonl", '{"text": "x", "labels": []}\n{"text": 1.5, "labels": []}\n', "text: expec", 2),
        ("a.jsonl", '{"text": "x", "labels": {"a": 1}}\n', "labels: expected a label list", 1),
        ("a.jsonl", '{"text": "x", "labels": [], "unseen_labels": 3}\n', "unseen_labels", 1),
        ("a.jsonl", '[{"text": "x"}]\n', "JSON object on every line", 1),
        ("a.parquet", "PAR1 and no more", "Parquet", None),
    ],
)
def test_malformed_files(tmp_path, name, content, message, line):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataFormatError, match=message) as caught:
        read_table(path)
    assert (caught.value.path, caught.value.line) == (str(path), line)


def test_rows_of_tables_without_lines_are_placed(tmp_path):
    table = pa.table({"text": ["x", "y"], "labels": [1, None], "n": [1.5, 2.5]})
    assert read_table(table) == (["x", "y"], [["1"], []])
    with pytest.raises(DataFormatError, match="<table>: row 0: n: expected a label list"):
        read_table(table, label_column="n")
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataFormatError, match=r"a\.parquet: row 0: n"):
        read_table(tmp_path / "a.parquet", label_column="n", text_column="text")
    with pytest.raises(DataFormatError, match="no column 'body'"):
        read_table(tmp_path / "a.parquet", text_column="body")
    with pytest.raises(DataFormatError, match="<DataFrame>: row 1"):
        read_table(pd.DataFrame({"text": ["x", ["y"]], "labels": ["a", "b"]}))


def test_a_frame_may_have_any_index_and_other_columns():
    frame = pd.DataFrame({3: [1, 2], "text": ["x", "y"], "labels": ["a", "b"]}, index=[5, 5])
    assert read_table(frame) == (["x", "y"], [["a"], ["b"]])
    twice = pd.concat([frame, frame[["text"]]], axis=1)
    with pytest.raises(DataFormatError, match="more than one column 'text'"):
        read_table(twice)


def test_strings_that_are_not_utf8():
    strings = pa.array([b"fine", b"na\xefve"], pa.binary())
    table = pa.table({"text": strings.view(pa.string()), "labels": [1, 2]})
    with pytest.raises(DataFormatError, match="<table>: row 0: a cell from here on"):
        read_table(table)


def test_unseen_labels_are_counted(tmp_path):
    records = [
        {"text": "x", "labels": ["a"], "unseen_labels": ["q", "r"]},
        {"text": "y", "labels": []},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, records)))
    assert [record.n_unseen for record in iter_table(tmp_path / "a.jsonl")] == [2, 0]


def test_a_likely_separator_is_pointed_out(tmp_path):
    (tmp_path / "a.csv").write_text("text,labels\nx,a;b\ny,c;d\nz,e\n")
    with pytest.warns(UserWarning, match="label_separator=';'"):
        read_table(tmp_path / "a.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(tmp_path / "a.csv", label_separator=";")
    with pytest.warns(UserWarning, match="most cells of 'labels' hold ';'"):
        read_table(tmp_path / "a.csv", label_separator="|")


def test_a_separator_that_occurs_nowhere_is_pointed_out(tmp_path):
    (tmp_path / "a.csv").write_text("text,labels\nx,a\ny,b\n")
    with pytest.warns(UserWarning, match="label_separator='/' stands in no cell of 'labels'"):
        read_table(tmp_path / "a.csv", label_separator="/")
    (tmp_path / "a.jsonl").write_text('{"text": "x", "labels": ["a"]}\n')
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # lists need no separator
        read_table(tmp_path / "a.jsonl", label_separator="/")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"label_separator": ""}, ValueError),
        ({"label_separator": 3}, ValueError),
        ({"text_column": []}, ValueError),
        ({"colour": 3}, TypeError),
    ],
)
def test_bad_options(options, error):
    with pytest.raises(error):
        read_table(pd.DataFrame({"text": ["x"], "labels": ["a"]}), **options)


@pytest.mark.parametrize("source", [3, None, [{"text": "x"}]])
def test_what_is_no_table(source):
    with pytest.raises(TypeError, match="expected a path, a pandas DataFrame"):
        read_table(source)


def test_unknown_suffix(tmp_path):
    with pytest.raises(ValueError, match=r"ends in \.csv"):
        write_table(tmp_path / "a.xlsx", [], [])


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"longtail\[tables\]"):
        read_table(tmp_path / "a.parquet")
    with pytest.raises(MissingDependencyError, match="pyarrow"):
        write_table(tmp_path / "a.parquet", [], [])


def test_missing_files_are_missing_files(tmp_path):
    for name in ("a.csv", "a.jsonl", "a.parquet"):
        with pytest.raises(FileNotFoundError):
            read_table(tmp_path / name)


def test_texts_and_lists_of_different_length_leave_no_file(tmp_path):
    for suffix in SUFFIXES:
        with pytest.raises(ValueError, match="zip"):
            write_table(tmp_path / f"a{suffix}", ["x"], [])
    assert list(tmp_path.iterdir()) == []


def test_texts_by_field(tmp_path):
    path = tmp_path / "tickets.csv"
    path.write_text("title,body,labels\njam,paper stuck,printer\n,no wifi,network\n")
    loaded = load_dataset(path, text_column=["title", "body"], by_field=True)
    assert loaded.train.fields == {"title": ["jam", ""], "body": ["paper stuck", "no wifi"]}
    assert loaded.train.texts == ["jam paper stuck", "no wifi"]
    assert load_dataset(path, text_column=["title", "body"]).train.fields is None
    divided = load_dataset(path, text_column=["title", "body"], by_field=True, test_size=1)
    assert len(divided.train.fields["title"]) == len(divided.test.fields["body"]) == 1
