"""The command `exactgrpo`. Every error is one line on stderr; exit codes are in `ExitCode`."""

from __future__ import annotations

import enum
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exactgrpo.errors import InputError, UndecidedError

if TYPE_CHECKING:
    from exactgrpo.update.run import Progress

EXAMPLES = Path(__file__).parent / "examples"
QUIET_SECONDS = 1.0
LINE_SECONDS = 5.0
WIDTH = 120
"""Of tables that do not go to a terminal."""
ENDINGS = "Exit codes: 0 finished, 2 bad input or usage, 3 something undecided, 70 a fault of ours, 130 interrupted."
MAX_BITS_HELP = "Budget in bits of precision for a comparison in a number class without a decision procedure."


class ExitCode(enum.IntEnum):
    """What the exit status of the command says."""

    DONE = 0
    BAD_INPUT = 2
    UNDECIDED = 3
    OWN_FAULT = 70
    INTERRUPTED = 130


@click.group(invoke_without_command=True, epilog=ENDINGS)
@click.pass_context
def app(context: click.Context) -> None:
    """Exact group-relative policy updates: status, parameters, counts and gradients, with a proof behind every comparison."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@app.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--digits", default=11, type=click.IntRange(1, 100_000), help="Significant digits of decimals.", show_default=True)
@click.option("--max-bits", default=1 << 15, type=click.IntRange(64, 1 << 24), help=MAX_BITS_HELP, show_default=True)
def run(file: Path, as_json: bool, digits: int, max_bits: int) -> None:
    """Run the update that FILE describes, exactly.

    FILE is a .toml or .json file of kind "update"; `exactgrpo schema` describes it, and `exactgrpo examples` lists some.
    """
    from exactgrpo.spec import load_problem
    from exactgrpo.update.run import run as run_problem

    problem = load_problem(file)
    with _progress(problem.outer_iterations, problem.inner_steps) as progress:
        result = run_problem(problem, digits=digits, max_bits=max_bits, progress=progress)
    if as_json:
        from exactgrpo.report.run import run_data

        _print_json(run_data(result, digits=digits))
    else:
        from rich.console import Console

        from exactgrpo.report.tables import run_tables

        console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else WIDTH)
        for part in run_tables(result, digits=digits):
            console.print(part)
    if result.status == "undecided":
        sys.exit(ExitCode.UNDECIDED)


@app.command()
def schema() -> None:
    """Print the JSON Schema of update files."""
    from exactgrpo.spec import json_schema

    _print_json(json_schema())


@app.command()
def examples() -> None:
    """List the bundled example files."""
    for path in sorted(EXAMPLES.glob("*.toml")):
        with path.open(encoding="utf-8") as lines:
            click.echo(f"{path}\n    {lines.readline().lstrip('# ').rstrip()}")


def main() -> None:
    """Entry point: run the command and turn every ending into an exit code."""
    sys.exit(_main())


def _main() -> int:
    sys.set_int_max_str_digits(0)  # sizes are bounded where texts are read
    try:
        return int(app(standalone_mode=False, prog_name="exactgrpo") or 0)
    except InputError as error:
        return _fail(ExitCode.BAD_INPUT, str(error))
    except UndecidedError as error:
        return _fail(ExitCode.UNDECIDED, str(error))
    except click.ClickException as error:
        return _fail(ExitCode.BAD_INPUT, error.format_message())
    except (KeyboardInterrupt, click.Abort):
        return _fail(ExitCode.INTERRUPTED, "interrupted")
    except OSError as error:  # files are read elsewhere: this is stdout
        sys.stdout = None  # nothing more to flush
        return _fail(ExitCode.OWN_FAULT, f"the output cannot be written: {error.strerror}")
    except Exception as error:
        return _fail(ExitCode.OWN_FAULT, f"internal error, please report it: {type(error).__name__}: {error}")


def _fail(code: ExitCode, message: str) -> int:
    click.echo(f"exactgrpo: {' '.join(message.split())}", err=True)
    return code


def _print_json(data: Any) -> None:
    json.dump(data, sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")
    sys.stdout.flush()


@contextmanager
def _progress(outer: int, inner: int) -> Iterator[Progress]:
    """Steps as they are reached, on stderr, once the work has taken a second: a live line on a terminal, else a line at times."""
    start = time.monotonic()
    live = sys.stderr.isatty()
    due = start + QUIET_SECONDS
    shown = False

    def report(arithmetic: str, level: tuple[int, int]) -> None:
        nonlocal due, shown
        now = time.monotonic()
        if now < due:
            return
        due = now + (0.1 if live else LINE_SECONDS)
        shown = True
        text = f"{arithmetic.lower()}: outer iteration {level[0]} of {outer}, inner step {level[1]} of {inner}, {now - start:.0f} s"
        sys.stderr.write(f"\r\x1b[K{text}" if live else f"{text}\n")
        sys.stderr.flush()

    try:
        yield report
    finally:
        if live and shown:
            sys.stderr.write("\r\x1b[K")


if __name__ == "__main__":
    main()
