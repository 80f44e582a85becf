"""The command `exactgrpo`. Every error is one line on stderr; exit codes are in `ExitCode`."""

from __future__ import annotations

import enum
import io
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

import click

from exactgrpo.claims.interrupt import lasting_interrupt
from exactgrpo.errors import InputError, UndecidedError

EXAMPLES = Path(__file__).parent / "examples"
ABOUT = ("update", "field", "delay", "benchmark")
MODELS = (EXAMPLES / "geometric_ageing.toml", EXAMPLES / "clipped_delay.toml")
QUIET_SECONDS = 1.0
LINE_SECONDS = 5.0
WIDTH = 120
"""Of tables that do not go to a terminal."""
ENDINGS = (
    "Exit codes: 0 finished and as expected, 1 refuted against expectation or a counterexample found, 2 bad input or usage, "
    "3 something undecided or no instance found, 70 a fault of ours, 130 interrupted."
)
MAX_BITS_HELP = "Budget in bits of precision for a comparison in a number class without a decision procedure."


class ExitCode(enum.IntEnum):
    """What the exit status of the command says."""

    DONE = 0
    REFUTED = 1
    BAD_INPUT = 2
    UNDECIDED = 3
    OWN_FAULT = 70
    INTERRUPTED = 130


class _Command(click.Group):
    """A group in which an interrupt, or a reader who is gone, ends without what click would print or return."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        with _endings():
            return super().make_context(*arguments, **options)

    def invoke(self, context: click.Context) -> Any:
        with _endings():
            return super().invoke(context)


@contextmanager
def _endings() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise click.Abort from None
    except BrokenPipeError:
        _forget_reader(sys.stdout)
        raise click.exceptions.Exit(ExitCode.DONE) from None


@click.group(cls=_Command, invoke_without_command=True, epilog=ENDINGS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="exactgrpo", message="%(package)s %(version)s")
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
    outer, inner = problem.outer_iterations, problem.inner_steps
    with _ticker() as tick:

        def progress(arithmetic: str, level: tuple[int, int]) -> None:
            tick(f"{arithmetic.lower()}: outer iteration {level[0]} of {outer}, inner step {level[1]} of {inner}")

        result = run_problem(problem, digits=digits, max_bits=max_bits, progress=progress)
    if as_json:
        from exactgrpo.report.run import run_data

        _print_json(run_data(result, digits=digits))
    else:
        from exactgrpo.report.tables import run_tables

        _print(*run_tables(result, digits=digits))
    if result.status == "undecided":
        sys.exit(ExitCode.UNDECIDED)


@app.command()
@click.argument("files", type=click.Path(path_type=Path), nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--about", type=click.Choice(ABOUT), default="update", help="Which claims, or the benchmark alone.", show_default=True)
@click.option("--all", "everything", is_flag=True, help="All bundled claims.")
@click.option("--sample", is_flag=True, help="Draw the samples of the published benchmark again.")
@click.option("--instances", default=20, type=click.IntRange(1, 10**6), help="Instances tried for each true claim.", show_default=True)
@click.option("--seed", default=0, type=int, help="Seed of the instances.", show_default=True)
def verify(files: tuple[Path, ...], as_json: bool, about: str, everything: bool, sample: bool, instances: int, seed: int) -> None:
    """Verify the bundled claims about the update, the field's formulas or delayed rewards, the published benchmark, or what FILES hold.

    Without a file: every claim on fresh instances, every false one by a counterexample, and beside the update's claims two bundled
    models of delayed rewards, one where the claims follow and one where they fail, and the published benchmark, each figure as printed,
    as sampled and exactly. A file of kind "update" is tried as an instance of
    every claim about updates; one of kind "rac", a model of delayed rewards, is held against the claims about those, and against the
    verdicts that it expects; a counterexample that `exactgrpo falsify --out` wrote is computed again.
    """
    from exactgrpo.claims.audit import Audit
    from exactgrpo.claims.registry import CATALOGUE
    from exactgrpo.report.claims import audit_data, audit_parts

    if sample and files:
        raise click.UsageError("--sample goes without FILES")
    audit = Audit(
        instances=instances,
        seed=seed,
        catalogues=CATALOGUE if everything else (about,) if about != "benchmark" else (),
        bundled_models=MODELS if everything or about == "update" else (),
        has_benchmark=everything or sample or about in ("update", "benchmark"),
        resamples=sample,
    )
    with _ticker() as tick:
        audit.run(files, tick)
    if as_json:
        _print_json(audit_data(audit))
    else:
        _print(*audit_parts(audit))
    if audit.is_interrupted:
        sys.exit(ExitCode.INTERRUPTED)
    sys.exit(ExitCode.REFUTED if audit.has_surprise else ExitCode.UNDECIDED if audit.is_open else ExitCode.DONE)


@app.command()
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--digits", default=11, type=click.IntRange(1, 10_000), help="Significant digits of decimals.", show_default=True)
@click.option("--delays", metavar="D,D,...", help="Delays of the slow reward in steps, instead of those of the file.")
@click.option("--horizon", type=int, help="Steps of a trajectory, instead of those of the file.")
def benchmark(file: str, as_json: bool, digits: int, delays: str | None, horizon: int | None) -> None:
    """Compute the tabular benchmark of late rewards exactly: bias, reduction and cost of each estimator.

    FILE is a .json or .toml file with an MDP, a fast and a slow reward; `3x2` is the published one.
    """
    from exactgrpo.report.benchmark import benchmark_data, benchmark_parts
    from exactgrpo.tabular.comparison import compare
    from exactgrpo.tabular.file import load_benchmark, with_changes

    instance = with_changes(load_benchmark(file), delays=delays, horizon=horizon)
    with _ticker() as tick:
        result = compare(instance, progress=tick)
        tick("digits")
        output = benchmark_data(result, digits=digits) if as_json else benchmark_parts(result, digits=digits)
    if as_json:
        _print_json(output)
    else:
        _print(*output)


@app.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--fast", required=True, metavar="COLUMN", help="The fast rewards.")
@click.option("--slow", required=True, metavar="COLUMN", help="The slow rewards.")
@click.option("--prompt", metavar="COLUMN", help="Rows with the same entry here are a group; without it all rows are one.")
@click.option("--step", metavar="COLUMN", help="Numbers by which rows are ordered; without it they keep the order of the file.")
@click.option("--shift", default=1, type=int, help="Rows from a residual to the one that takes it.", show_default=True)
@click.option("--weight", default="1", help="Weight of a residual that is taken.", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def probe(file: Path, fast: str, slow: str, prompt: str | None, step: str | None, shift: int, weight: str, as_json: bool) -> None:
    """Run the three checks of late rewards on a batch, exactly: identity kernel, slack scaling, forward injection.

    FILE is a .jsonl or .csv log with fast and slow rewards; rows that lack one are counted and left out. `two_judges` is a real one with
    the columns judge_fast and oracle_slow.
    """
    from exactgrpo.report.probe import probe_data, probe_parts
    from exactgrpo.tabular.probe import probe as check, read_rewards

    found = check(read_rewards(file, fast=fast, slow=slow, prompt=prompt, step=step), shift=shift, weight=weight)
    if as_json:
        _print_json(probe_data(found))
    else:
        _print(*probe_parts(found))


@app.command()
@click.option("--size", "sizes", multiple=True, type=click.Choice(["3x2", "5x3", "10x5", "20x8"]), help="Default: all; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def grid(sizes: tuple[str, ...], as_json: bool) -> None:
    """Compute the reductions of RAC over topologies, delay laws of one mean, and sizes, and prove why the law hardly matters."""
    from exactgrpo.report.grid import grid_data, grid_parts
    from exactgrpo.tabular.grid import grid as cells_of
    from exactgrpo.tabular.published import SIZES

    with _ticker() as tick:
        cells = cells_of(sizes=[size for size in SIZES if not sizes or "{}x{}".format(*size) in sizes], progress=tick)
    if as_json:
        _print_json(grid_data(cells))
    else:
        _print(*grid_parts(cells))


@app.command()
@click.argument("claim")
@click.option("--drop", multiple=True, metavar="HYPOTHESIS", help="Leave out the hypothesis whose name begins so; may be repeated.")
@click.option("--necessary", is_flag=True, help="Drop each hypothesis in turn, and say which are needed.")
@click.option("--seconds", default=10.0, type=float, help="Time for each search.", show_default=True)
@click.option("--seed", default=0, type=int, help="Seed of the search.", show_default=True)
@click.option("--out", metavar="FILE", help="Write the counterexample to this .json file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def falsify(claim: str, drop: tuple[str, ...], necessary: bool, seconds: float, seed: int, out: str | None, as_json: bool) -> None:
    """Search for a counterexample to the bundled CLAIM (its id; `exactgrpo claims` lists them), and shrink it."""
    from exactgrpo.claims import verdict
    from exactgrpo.claims.registry import find_claim
    from exactgrpo.claims.saved import write_counterexample
    from exactgrpo.claims.search import checked_seconds
    from exactgrpo.report import claims as report
    from exactgrpo.spec.json_file import check_target

    asked = find_claim(claim)
    drop = tuple(map(asked.hypothesis, drop))
    checked_seconds(seconds)
    if out is not None:
        check_target(out)
    if necessary:
        if drop or out is not None:
            raise click.UsageError("--necessary goes without --drop and --out")
        results = verdict.necessary(asked, seconds=seconds, seed=seed)
        if as_json:
            data = {name: report.search_data(asked, result, dropped=[name]) for name, result in results.items()}
            _print_json({name: {"need": verdict.need(results[name]), **found} for name, found in data.items()})
        else:
            _print(report.necessity_table(results))
        sys.exit(ExitCode.INTERRUPTED if any(result.ended == "interrupted" for result in results.values()) else ExitCode.DONE)
    with _ticker() as tick:
        result = verdict.falsify(asked, drop=drop, seconds=seconds, seed=seed, found=lambda x: tick(f"found: {report.brief(str(x))}"))
    try:
        if as_json:
            _print_json(report.search_data(asked, result, dropped=drop))
        else:
            _print(*report.search_parts(asked, result, drop))
    finally:  # the file is worth more than a reader who is gone
        if out is not None and result.counterexample is not None:
            write_counterexample(out, asked, result.counterexample, dropped=drop)
    if result.ended == "interrupted":
        sys.exit(ExitCode.INTERRUPTED)
    sys.exit(ExitCode.REFUTED if result.counterexample else ExitCode.UNDECIDED)


@app.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def claims(as_json: bool) -> None:
    """List the bundled claims."""
    from exactgrpo.claims.registry import bundled
    from exactgrpo.report.claims import claim_data, claim_table

    if as_json:
        _print_json({"claims": [claim_data(claim) for claim in bundled().values()]})
    else:
        _print(claim_table(list(bundled().values())))


@app.command()
@click.argument("kind", type=click.Choice(["update", "rac"]), default="update")
def schema(kind: str) -> None:
    """Print the JSON Schema of files of a KIND: update (the default) or rac."""
    from exactgrpo.rac.schema import json_schema as schema_of_delays
    from exactgrpo.spec import json_schema as schema_of_updates

    _print_json(schema_of_updates() if kind == "update" else schema_of_delays())


@app.group()
def fixtures() -> None:
    """Exact test vectors for other implementations."""


@fixtures.command("write")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--topic", "names", multiple=True, metavar="TOPIC", help="Only this topic; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def write_fixtures(folder: Path, names: tuple[str, ...], as_json: bool) -> None:
    """Write exact test vectors to FOLDER: a JSON file for each topic, their schema, and the protocol in words."""
    from exactgrpo.fixtures.catalogue import find_topic
    from exactgrpo.fixtures.files import write_fixtures as write

    with _ticker() as tick:
        written = write(folder, [find_topic(name) for name in names], tick)
    if as_json:
        _print_json({"folder": str(folder), "cases": written})
    else:
        for name, count in written.items():
            click.echo(f"{folder / name}: {count} cases")


@app.command()
def examples() -> None:
    """List the bundled example files."""
    for path in sorted(EXAMPLES.glob("*.toml")):
        with path.open(encoding="utf-8") as lines:
            click.echo(f"{path}\n    {lines.readline().lstrip('# ').rstrip()}")


def main() -> None:
    """Entry point: run the command and turn every ending into an exit code."""
    code: int = ExitCode.INTERRUPTED
    with suppress(KeyboardInterrupt), lasting_interrupt():
        code = _main()
    sys.exit(code)


def _main() -> int:
    sys.set_int_max_str_digits(0)  # sizes are bounded where texts are read
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stderr is None:
        sys.stderr = io.StringIO()
    if sys.stdout is None:
        return _fail(ExitCode.OWN_FAULT, "the output cannot be written: stdout is closed")
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
    with _written(sys.stderr) as err:
        err.write(f"exactgrpo: {' '.join(message.split())}\n")
    return code


@contextmanager
def _written(stream: TextIO) -> Iterator[TextIO]:
    """A stream to write to, flushed at the end. A reader who is gone has what he wanted: the command ends as it would have."""
    try:
        yield stream
        stream.flush()
    except BrokenPipeError:
        _forget_reader(stream)


def _forget_reader(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _print(*parts: Any) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else WIDTH)
    with console.capture() as text:
        for part in parts:
            console.print(part)
    with _written(sys.stdout) as out:
        out.write(text.get())


def _print_json(data: Any) -> None:
    with _written(sys.stdout) as out:
        json.dump(data, out, indent=2, ensure_ascii=out.encoding.lower() != "utf-8", allow_nan=False)
        out.write("\n")


@contextmanager
def _ticker() -> Iterator[Callable[[str], None]]:
    """Lines about the work on stderr, once it has taken a second: a live line on a terminal, else a line at times."""
    start = time.monotonic()
    live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    due = start + QUIET_SECONDS
    shown = False

    def tick(text: str) -> None:
        nonlocal due, shown
        check()
        now = time.monotonic()
        if now < due:
            return
        due = now + (0.1 if live else LINE_SECONDS)
        shown = True
        text = f"{text}, {now - start:.0f} s"
        with _written(sys.stderr) as err:
            err.write(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}" if live else f"{text}\n")

    try:
        with lasting_interrupt() as check:
            yield tick
    finally:
        if live and shown:
            sys.stderr.write("\r\x1b[K")


if __name__ == "__main__":
    main()
