"""Makes the sample that ``longtail sample`` copies: respiratory diagnoses with ICD-10-CM codes.

Run with the extra ``icd10cm`` installed: ``python benchmarks/sample.py``. The texts are the
descriptions and inclusion terms of chapter 10, as ``load_dataset("icd10cm")`` splits them: what is
for training goes to diagnoses.csv, what is for testing to new-diagnoses.csv.
"""

from __future__ import annotations

import csv
from pathlib import Path

import longtail as lt

CHAPTER = "10"
FOLDER = Path(lt.__file__).parent / "data" / "samples"


def main() -> None:
    data = lt.load_dataset("icd10cm")
    names = data.vocabulary
    chapter = names.id(CHAPTER)
    used: set[str] = set()
    for part, file in ((data.train, "diagnoses.csv"), (data.test, "new-diagnoses.csv")):
        rows = part.Y[:, [chapter]].nonzero()[0].tolist()
        with open(FOLDER / file, "w", encoding="utf-8", newline="") as out:
            table = csv.writer(out, lineterminator="\n")
            table.writerow(["id", "text", "labels"])
            number = 0
            for row in rows:
                codes = [names[j] for j in part.Y[row].indices if names[j][0] == "J"]
                if not codes:  # the chapter itself
                    continue
                used.update(codes)
                number += 1
                prefix = "N" if "new" in file else "D"
                table.writerow([f"{prefix}{number:03d}", part.texts[row], ";".join(codes)])
        print(f"{file}: {number} rows")
    with open(FOLDER / "codes.tsv", "w", encoding="utf-8", newline="") as out:
        for code in sorted(used):
            out.write(f"{code}\t{data.label_texts[names.id(code)]}\n")
    print(f"codes.tsv: {len(used)} codes")


if __name__ == "__main__":
    main()
