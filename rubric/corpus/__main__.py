"""`python -m rubric.corpus`: `check FILE...` for authors, `sheet` of what nobody read for blind readers, `report`."""

from __future__ import annotations

import sys
from pathlib import Path

from rubric.bank import load_bank
from rubric.corpus.checking import check_files
from rubric.corpus.pairs import agrees, all_pairs, read_relabels, sheet_lines
from rubric.corpus.records import read_corpus, read_matrix
from rubric.corpus.report import report_lines

USAGE = "usage: python -m rubric.corpus check FILE... | sheet | report"


def main(arguments: list[str]) -> int:
    """The exit status: 0 = good, 1 = problems were found, 2 = wrong words."""
    if len(arguments) >= 2 and arguments[0] == "check":
        rows = {row.id: row for row in read_matrix()}
        problems = check_files([Path(name) for name in arguments[1:]], rows=rows, bank_ids=frozenset(load_bank().by_id))
        print("\n".join(problems) if problems else f"{len(arguments) - 1} files are good.")
        return 1 if problems else 0
    if arguments == ["sheet"]:
        relabels = read_relabels()
        print("\n".join(sheet_lines([pair for pair in all_pairs(read_corpus()) if agrees(pair, relabels) is None])))
        return 0
    if arguments == ["report"]:
        print("\n".join(report_lines()))
        return 0
    print(USAGE)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
