"""python -m tests.bench [--json] [--row NAME ...]: the table of measured claims; exit 1 if a limit is broken."""

from __future__ import annotations

import argparse
import json
import sys

from .rows import ROWS, Row


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure the claims about speed, each against its limit.")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.add_argument("--row", action="append", choices=sorted(ROWS), help="measure only this (may be repeated)")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for name in options.row or ROWS:
        print(f"measuring {name} ...", file=sys.stderr)
        rows += ROWS[name]()
    if options.json:
        print(json.dumps({"rows": [row.as_dict() for row in rows]}, indent=1))
    else:
        show(rows)
    return 0 if all(row.holds for row in rows) else 1


def show(rows: list[Row]) -> None:
    """The table on stdout."""
    from rich.console import Console
    from rich.table import Table

    table = Table("row", "claim", "measured", "limit", "holds", "detail")
    for row in rows:
        bound = f"{'>=' if row.at_least else '<='} {row.limit:g} {row.unit}"
        slack = f" (fails above {row.limit * row.slack:g})" if row.slack != 1 else ""
        table.add_row(row.name, row.claim, f"{row.measured:.3g} {row.unit}", bound + slack, "yes" if row.holds else "NO", row.detail)
    Console(width=None if sys.stdout.isatty() else 150).print(table)


if __name__ == "__main__":
    sys.exit(main())
