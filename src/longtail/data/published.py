"""The public benchmarks as their publishers describe them: one row per data set, nothing measured.

A field is None where its source does not give it. Sources of the numbers:

XCR     The Extreme Classification Repository, table "Dataset statistics" (Bhatia et al. 2016)
LEVER   Buvanesh et al., "Enhancing Tail Performance in Extreme Classifiers by Label Variance
        Reduction", ICLR 2024, table 3; also the only source of ``pos80``
PECOS   the PECOS repository, table "Data Statistics" of its sparse-product example: D, nnz(X) and
        nnz(Y) of the TF-IDF features of AttentionXML, from which ``features_per_point`` follows
CODE    the configuration files in the repository authors' own code, DeepXML and ECLARE: L, a and b
XT      Chang et al., "Taming Pretrained Transformers for Extreme Multi-label Text Classification",
        KDD 2020, table 2

Two warnings. ``points_per_label`` is the number that was printed: for some data sets it counts the
training rows alone (Amazon-670K: 490,449 x 5.45 / 670,091 = 3.99), for others training and test
rows (Bibtex: 7,395 x 2.40 / 159 = 111.6). And a benchmark's name does not fix its files: some of
the PECOS copies have other splits, labels and features than the repository's files of that name.

The constants a and b of the propensity model p = 1 / (1 + C exp(-a log(n_l + b))) are those of Jain
et al. (KDD 2016): 0.5 and 0.4 for tagging Wikipedia, 0.6 and 2.6 for recommending Amazon products,
and 0.55 and 1.5, their mean, for everything else. That "everything else" includes AmazonCat
(categories, not products) and WikiSeeAlso (links, not categories): see CODE.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["BENCHMARKS", "Benchmark"]

REPOSITORY = "http://manikvarma.org/downloads/XC/XMLRepository.html"


@dataclass(frozen=True)
class Benchmark:
    """One data set: published statistics, propensity constants, and where to get it.

    ``n_train``, ``n_test``, ``n_features`` (D) and ``n_labels`` (L) are counts; the averages are
    ``labels_per_point``, ``points_per_label`` and ``features_per_point`` (non-zeros a row).
    ``pos80`` is the smallest share of the labels that holds 80 % of the positives: the smaller, the
    more skewed. ``a`` and ``b`` are the propensity constants, ``source`` the page to get the data
    from, ``numbers`` where the statistics are from. ``url`` is a file that can be downloaded as it
    is, or several by file name; ``sha256`` its checksum, or theirs by file name. ``builder`` names
    a function, ``module:function``, that makes the data set without any files.
    """

    name: str
    n_train: int | None = None
    n_test: int | None = None
    n_features: int | None = None
    n_labels: int | None = None
    labels_per_point: float | None = None
    points_per_label: float | None = None
    features_per_point: float | None = None
    pos80: float | None = None
    a: float = 0.55
    b: float = 1.5
    source: str = REPOSITORY
    numbers: str = "XCR"
    url: str | dict[str, str] | None = None
    sha256: str | dict[str, str] | None = None
    layout: str | None = None
    builder: str | None = None
    note: str = ""
    aliases: tuple[str, ...] = ()


def _wikipedia(name: str, *row: Any, **more: Any) -> Benchmark:
    return Benchmark(name, *row, **{"a": 0.5, "b": 0.4, **more})


def _amazon(name: str, *row: Any, **more: Any) -> Benchmark:
    return Benchmark(name, *row, **{"a": 0.6, "b": 2.6, **more})


def _pecos(slug: str, *row: Any, **more: Any) -> Benchmark:
    """Return a copy in the PECOS layout with AttentionXML's TF-IDF features, downloadable as it
    is.
    """
    facts = {
        "url": f"https://archive.org/download/pecos-dataset/xmc-base/{slug}.tar.gz",
        "source": "https://archive.org/details/pecos-dataset",
        "numbers": "PECOS, XT",
        "layout": "pecos",
    }
    return Benchmark(f"pecos-{slug}", *row, **{**facts, **more})


_BOTH: dict[str, Any] = {"numbers": "XCR, PECOS"}
_MULAN = "MULAN publishes another split of the same size, which gives other results"
_TEXT = "labels have texts, and filter pairs must be left out of the evaluation"

# features/point of a repository row is the one of its PECOS copy where both have the same N and D.
# fmt: off
# name, N train, N test, D, L, labels/point, points/label, features/point, pos80
BENCHMARKS: tuple[Benchmark, ...] = (
    Benchmark("icd10cm", builder="longtail.data.icd10cm:load_icd10cm", numbers="",
              source="https://www.cdc.gov/nchs/icd/icd-10-cm/", aliases=("ICD-10-CM",)),
    Benchmark("Mediamill", 30_993, 12_914, 120, 101, 4.38, 1902.15),
    Benchmark("Bibtex", 4_880, 2_515, 1_836, 159, 2.40, 111.71, note=_MULAN),
    Benchmark("Delicious", 12_920, 3_185, 500, 983, 19.03, 311.61, note=_MULAN),
    Benchmark("RCV1-2K", 623_847, 155_962, 47_236, 2_456, 4.79, 1218.56, aliases=("RCV1-X",)),
    Benchmark("EURLex-4K", 15_539, 3_809, 5_000, 3_993, 5.31, 25.73),
    Benchmark("EURLex-4.3K", 45_000, 6_000, 200_000, 4_271, 5.07, 60.57),
    Benchmark("AmazonCat-13K", 1_186_239, 306_782, 203_882, 13_330, 5.04, 448.57, 71.16, **_BOTH),
    Benchmark("AmazonCat-14K", 4_398_050, 1_099_725, 597_540, 14_588, 3.53, 1330.1),
    Benchmark("Wiki10-31K", 14_146, 6_616, 101_938, 30_938, 18.64, 8.52, 673.45, **_BOTH),
    Benchmark("Delicious-200K", 196_606, 100_095, 782_585, 205_443, 75.54, 72.29,
              aliases=("DeliciousLarge",)),
    Benchmark("WikiSeeAlsoTitles-350K", 629_418, 162_491, 91_414, 352_072, 2.33, 5.24),
    _wikipedia("WikiLSHTC-325K", 1_778_351, 587_084, 1_617_899, 325_056, 3.19, 17.46),
    _wikipedia("WikiTitles-500K", 1_699_722, 722_678, 185_479, 501_070, 4.89, 23.62),
    _wikipedia("Wikipedia-500K", 1_813_391, 783_743, 2_381_304, 501_070, 4.77, 24.75,
               aliases=("Wiki-500K",)),
    _amazon("AmazonTitles-670K", 485_176, 150_875, 66_666, 670_091, 5.39, 5.11),
    _amazon("Amazon-670K", 490_449, 153_025, 135_909, 670_091, 5.45, 3.99, 75.68, **_BOTH),
    _amazon("AmazonTitles-3M", 1_712_536, 739_665, 165_431, 2_812_281, 36.18, 31.55),
    _amazon("Amazon-3M", 1_717_899, 742_507, 337_067, 2_812_281, 36.17, 31.64, 49.25, **_BOTH),
    _amazon("LF-AmazonTitles-131K", 294_805, 134_835, None, 131_073, 2.29, 5.15, None, 0.475,
            numbers="LEVER", note=_TEXT),
    _amazon("LF-Amazon-131K", 294_805, 134_835, None, 131_073, 2.29, 5.15, None, 0.475,
            numbers="LEVER", note=_TEXT),
    Benchmark("LF-WikiSeeAlsoTitles-320K", n_labels=312_330, numbers="CODE", note=_TEXT),
    Benchmark("LF-WikiSeeAlso-320K", 693_082, 177_515, None, 312_330, 2.11, 4.68, None, 0.374,
              numbers="LEVER", note=_TEXT),
    _wikipedia("LF-WikiTitles-500K", n_labels=501_070, numbers="CODE", note=_TEXT,
               aliases=("LF-WikipediaTitles-500K",)),
    _wikipedia("LF-Wikipedia-500K", 1_813_391, 783_743, None, 501_070, 4.77, 24.75, None, 0.251,
               numbers="LEVER", note=_TEXT),
    _amazon("LF-AmazonTitles-1.3M", 2_248_619, 970_237, None, 1_305_265, 22.20, 38.24, None, 0.289,
            numbers="LEVER", note=_TEXT),
    _pecos("eurlex-4k", 15_449, 3_865, 186_104, 3_956, 5.30, 20.79, 271.48),
    _pecos("wiki10-31k", 14_146, 6_616, 101_938, 30_938, 18.64, 8.52, 673.45),
    _pecos("amazoncat-13k", 1_186_239, 306_782, 203_882, 13_330, 5.04, 448.57, 71.16),
    _pecos("wiki-500k", 1_779_881, 769_421, 2_381_304, 501_070, 4.75, 16.86, 387.40, a=0.5, b=0.4),
    _pecos("amazon-670k", 490_449, None, 135_909, 670_091, 5.45, None, 75.68, a=0.6, b=2.6,
           numbers="PECOS"),
    _pecos("amazon-3m", 1_717_899, None, 337_067, 2_812_281, 36.04, None, 49.25, a=0.6, b=2.6,
           numbers="PECOS"),
)
# fmt: on
