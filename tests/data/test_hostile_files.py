"""Whatever bytes a file holds: a reader returns, or raises DataFormatError. Nothing else."""

import gzip
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from data_cases import folder
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.answers.vocabulary import Vocabulary
from longtail.data.fasttext_lines import read_fasttext
from longtail.data.label_features import read_label_feature_folder, read_label_records
from longtail.data.label_file import read_label_file
from longtail.data.load import load_dataset
from longtail.data.npz_pairs import read_npz_pair
from longtail.data.raw_text import read_raw_text
from longtail.data.tables import read_table
from longtail.exceptions import DataFormatError


def _saved(write) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


_ROW = b'{"text": "a b\\u2028", "labels": ["x", "y"], "unseen_labels": ["z"]}\n'
_TARGET = (
    b'{"uid": "u", "title": "t", "content": "c", "target_ind": [0, 2], "target_rel": [1, 0.5]}\n'
)
_MATRIX = sp.csr_matrix(np.array([[1, 0, 1], [0, 1, 0]], np.float32))
_TABLE = pa.table({"text": ["x", "y"], "labels": [["a"], ["b", "c"]]})

# Name of the file, a good content, and what reads it.
READERS = {
    "a.csv": (b'text,labels\r\n"x, ""y""","[""a"", 3]"\r\nz,\'b\'\r\n', read_table),
    "a.tsv": (b"text\tlabels\nx\t['a', 'b']\n", read_table),
    "a.jsonl": (_ROW * 2, read_table),
    "b.jsonl.gz": (gzip.compress(_ROW * 2, mtime=0), load_dataset),
    "a.parquet": (_saved(lambda f: pq.write_table(_TABLE, f)), read_table),
    "a.txt": (b"__label__a __label__b text\nplain\n", read_fasttext),
    "b.txt": (b"a b\n\nc\n", lambda path: read_raw_text(path, path)),
    "trn.json": (_TARGET * 2, read_label_records),
    "lbl.json": (_TARGET, lambda path: read_label_feature_folder(path.parent)),
    "labels.txt": (b"a\nb\n", read_label_file),
    "labels.jsonl": (b'{"label": "a", "text": "b"}\n', read_label_file),
    "names.json": (b'["a", "b"]\n', Vocabulary.load),
    "Y.npz": (_saved(lambda f: sp.save_npz(f, _MATRIX)), lambda p: read_npz_pair(None, p)),
    "Z.npz": (
        _saved(lambda f: sp.save_npz(f, _MATRIX.tocsc(), False)),
        lambda p: read_npz_pair(p, p),
    ),
    "X.npy": (_saved(lambda f: np.save(f, np.eye(2))), lambda path: read_npz_pair(path, path)),
    "c.txt": (b"1 2 2\n0,1 1:0.5\n", load_dataset),
}


def read_or_refuse(name: str, content: bytes) -> None:
    with folder() as place:
        (place / name).write_bytes(content)
        try:
            READERS[name][1](place / name)
        except DataFormatError as error:
            assert str(place) in str(error)
            assert len(str(error)) < 2000


@pytest.mark.parametrize("name", READERS)
def test_the_good_content_is_read(name, tmp_path):
    content, read = READERS[name]
    (tmp_path / name).write_bytes(content)
    read(tmp_path / name)


@pytest.mark.filterwarnings("ignore:most cells", "ignore:Reading")
@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(READERS)), st.binary(max_size=60))
def test_any_bytes(name, content):
    read_or_refuse(name, content)


@pytest.mark.filterwarnings("ignore:most cells", "ignore:Reading")
@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(READERS)), st.data())
def test_a_good_file_that_was_damaged(name, data):
    content = bytearray(READERS[name][0])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        end = min(len(content), at + data.draw(st.integers(0, 8)))
        content[at:end] = data.draw(
            st.one_of(
                st.binary(max_size=8), st.sampled_from([b"[", b'"', b"{", b"-1", b"\n", b"1e999"])
            )
        )
    read_or_refuse(name, bytes(content))
