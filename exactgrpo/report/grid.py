"""The benchmark over topologies, delay laws and sizes as JSON data and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from exactgrpo.report.numbers import Format
from exactgrpo.report.tables import plain_table
from exactgrpo.tabular.grid import Cell

STATEMENT = (
    "Of the law of an independent delay D only w = E exp(-D/tau) matters to the bias, and 0 <= w - exp(-E D/tau) <= Var(D)/(2 tau^2): laws "
    "of one mean whose spread is small beside tau give nearly one reduction, whatever the MDP. The reduction itself does depend on the MDP."
)


def grid_data(cells: Sequence[Cell]) -> dict[str, Any]:
    """JSON data; numbers as everywhere, without a search for exact forms."""
    form = Format(searches=False)
    return {
        "cells": [
            {
                "topology": cell.topology,
                "size": f"{cell.states}x{cell.actions}",
                "law": cell.law,
                "mean_delay": cell.mean_delay,
                "weight": form.data(cell.effect.weight),
                "bias": form.data(cell.effect.bias),
                "reduction": None if cell.effect.reduction is None else form.data(cell.effect.reduction),
                "matched_bias": form.data(cell.effect.matched_bias),
                "bound": form.data(cell.effect.bound),
                "holds": cell.effect.holds,
            }
            for cell in cells
        ],
        "holds": all(cell.effect.holds for cell in cells),
        "statement": STATEMENT,
    }


def grid_parts(cells: Sequence[Cell]) -> list[Any]:
    """A row for each topology, size and delay, a column for each law; then what is proved of all cells."""
    laws = list(dict.fromkeys(cell.law for cell in cells))
    rows: dict[tuple[str, str, int], dict[str, str]] = {}
    for cell in cells:
        row = rows.setdefault((cell.topology, f"{cell.states}x{cell.actions}", cell.mean_delay), {})
        row[cell.law] = "no bias" if cell.effect.reduction is None else cell.effect.reduction.digits(5)
    table = plain_table("reduction by RAC", "size", "mean delay", *laws)
    for (topology, size, delay), row in rows.items():
        table.add_row(topology, size, str(delay), *(row[law] for law in laws))
    held = sum(cell.effect.holds for cell in cells)
    return [table, Text(f"the bound of the weights, and that of the biases, proved in {held} of {len(cells)} cells"), Text(STATEMENT)]
