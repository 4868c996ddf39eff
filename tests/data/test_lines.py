import gzip

import pytest
from data_cases import folder, line_text, with_files
from hypothesis import given
from hypothesis import strategies as st

from longtail._lines import open_for_writing, read_lines, write_lines
from longtail.data.json_lines import read_json_lines, write_json_lines
from longtail.exceptions import DataFormatError


def lines_of(path):
    return [line for _, line in read_lines(path)]


@with_files
@given(st.lists(line_text, max_size=5), st.sampled_from(["a.txt", "a.txt.gz"]))
def test_lines_survive_the_round_trip(lines, name):
    with folder() as place:
        write_lines(place / name, lines)
        assert lines_of(place / name) == lines
        assert [p.name for p in place.iterdir()] == [name]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\n\nb", ["a", "", "b"]),
        (b"\xef\xbb\xbfa\nb\n", ["a", "b"]),
        (b"\xef\xbb\xbf", []),
        ("a\u2028b\x85c\x0cd\x1ce\n".encode(), ["a\u2028b\x85c\x0cd\x1ce"]),
        (b"a\rb\n", ["a\rb"]),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_only_lf_and_crlf_end_a_line(tmp_path, raw, expected, packed):
    path = tmp_path / "a.txt"  # gzip is told from the bytes, not from the name
    path.write_bytes(gzip.compress(raw) if packed else raw)
    assert lines_of(path) == expected


def test_bytes_that_are_not_utf8_are_placed(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"fine\nna\xefve\n")
    with pytest.raises(DataFormatError, match="0xef") as caught:
        lines_of(path)
    assert (caught.value.path, caught.value.line, caught.value.column) == (str(path), 2, 3)


@pytest.mark.parametrize("cut", [3, 12, -6])
def test_truncated_gzip(tmp_path, cut):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"some text\n" * 1000)[:cut])
    with pytest.raises(DataFormatError, match="gzip"):
        lines_of(path)


def test_damaged_gzip(tmp_path):
    data = bytearray(gzip.compress(bytes(range(256)) * 50))
    data[20] ^= 0xFF
    (tmp_path / "a.gz").write_bytes(data)
    with pytest.raises(DataFormatError, match=r"gzip|UTF-8"):
        lines_of(tmp_path / "a.gz")


@pytest.mark.parametrize("line", ["a\nb", "a\r", "\ud800"])
def test_what_a_line_cannot_hold_is_refused_and_nothing_is_left(tmp_path, line):
    with pytest.raises(ValueError, match="line 2"):
        write_lines(tmp_path / "a.txt", ["fine", line])
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_keeps_the_old_file(tmp_path):
    write_lines(tmp_path / "a.txt", ["old"])
    with pytest.raises(KeyboardInterrupt), open_for_writing(tmp_path / "a.txt") as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert lines_of(tmp_path / "a.txt") == ["old"]
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_gzip_bytes_depend_on_the_contents_alone(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_lines(tmp_path / name, ["x"])
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_json_lines_round_trip(tmp_path):
    records = [{"text": "a\u2028b\nc\r\U0001f600", "n": 1}, {}, {"labels": ["ä"]}]
    write_json_lines(tmp_path / "a.jsonl.gz", records)
    assert [record for _, record in read_json_lines(tmp_path / "a.jsonl.gz")] == records


def test_json_lines_skip_blank_lines_and_join_surrogate_pairs(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('\n{"a": "\\ud83d\\ude00"}\n  \n{"a": "x"}\n')
    assert list(read_json_lines(path)) == [(2, {"a": "\U0001f600"}), (4, {"a": "x"})]


@pytest.mark.parametrize(
    ("line", "message", "column"),
    [
        ('{"a": 1', "expected a JSON object", 8),
        ("[1]", "JSON object", None),
        ("3", "JSON object", None),
        ("[" * 100_000, "JSON object", None),
        ('{"a": ' + "9" * 5000 + "}", "JSON object", None),
        ('{"a": "\\ud800"}', "surrogate", None),
        ('{"a": 1} {"a": 2}', "Extra data", 10),
    ],
)
def test_malformed_json_lines(tmp_path, line, message, column):
    path = tmp_path / "a.jsonl"
    path.write_text('{"ok": 1}\n' + line + "\n")
    with pytest.raises(DataFormatError, match=message) as caught:
        list(read_json_lines(path))
    assert caught.value.line == 2
    if column is not None:
        assert caught.value.column == column


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_told_from_its_mark(tmp_path, encoding, packed):
    text = "\ufeffhällo \u2028 \U0001f600\r\nzwei\n" + "x" * 300_000 + "\n"
    raw = text.encode(encoding)
    path = tmp_path / "a.txt"
    path.write_bytes(gzip.compress(raw) if packed else raw)
    lines = [line for _, line in read_lines(path)]
    assert lines == ["hällo \u2028 \U0001f600", "zwei", "x" * 300_000]
    path.write_bytes(raw[:-1])
    with pytest.raises(DataFormatError, match="UTF-16"):
        list(read_lines(path))
