"""The claims that apply: all bundled ones on fresh instances, or those about updates on the update of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from exactgrpo.claims.registry import bundled
from exactgrpo.claims.saved import KIND, Replay, replay
from exactgrpo.claims.verdict import FALSIFY_INSTANCES, Verdict, verdict_on, verify
from exactgrpo.rac.file import decide_data
from exactgrpo.rac.verdict import Verdicts
from exactgrpo.spec import loaded, problem
from exactgrpo.spec.reading import located, parse_data, read_text
from exactgrpo.tabular.figures import PublishedFigures, published_figures
from exactgrpo.tabular.sampled import resample

INSTANCE = "problem"
"""The only variable of claims that a file of kind "update" is an instance of."""


@dataclass(slots=True)
class Audit:
    """What `verify` has found out: verdicts on the bundled claims, on files as instances, and saved counterexamples."""

    instances: int = 20
    seed: int = 0
    catalogues: tuple[str, ...] = ("update",)
    bundled_models: tuple[Path, ...] = ()
    has_benchmark: bool = False
    resamples: bool = False
    verdicts: list[Verdict] = field(default_factory=list)
    updates: dict[Path, list[Verdict]] = field(default_factory=dict)
    models: dict[Path, Verdicts] = field(default_factory=dict)
    replays: dict[Path, Replay] = field(default_factory=dict)
    benchmark: PublishedFigures | None = None
    is_interrupted: bool = False

    def run(self, files: Iterable[Path] = (), tick: Callable[[str], None] = lambda text: None) -> None:
        """Verify what the files hold, or the bundled claims of the catalogues and the models, until an interrupt.

        `tick` is told what comes next.
        """
        try:
            self._run(list(files), tick)
        except KeyboardInterrupt:
            self.is_interrupted = True

    def _run(self, paths: list[Path], tick: Callable[[str], None]) -> None:
        for path in paths:
            tick(f"verifying {path}")
            self._verify(path)
        if not paths:
            for claim in (claim for name in self.catalogues for claim in bundled(name).values()):
                tick(f"verifying {claim.id}")
                instances = self.instances if claim.expected else FALSIFY_INSTANCES
                verdict = verify(claim, instances=instances, seed=self.seed)
                self.verdicts.append(verdict)
                if verdict.ended == "interrupted":
                    raise KeyboardInterrupt
            for path in self.bundled_models:
                tick(f"verifying {path}")
                self._verify(path)
            if self.has_benchmark:
                tick("sampling the published benchmark" if self.resamples else "the published benchmark")
                self.benchmark = published_figures(resample() if self.resamples else None)

    def _verify(self, path: Path) -> None:
        with located(str(path)):
            data = parse_data(*read_text(path))
            if data.get("kind") == KIND:
                self.replays[path] = replay(data)
            elif data.get("kind") == "rac":
                self.models[path] = decide_data(data, path.parent)
            else:
                asked = problem(loaded(data))
                self.updates[path] = [
                    verdict_on(claim, {INSTANCE: asked}) for claim in bundled().values() if list(claim.variables) == [INSTANCE]
                ]

    @property
    def has_surprise(self) -> bool:
        """Whether a claim, of those about a model too, has another verdict than expected, or what is saved is not reproduced."""
        of_claims = any(v.kind == "refuted" if v.claim.expected else v.kind in ("holds", "proved") for v in self.verdicts)
        of_updates = any(v.kind == "refuted" and v.claim.expected for verdicts in self.updates.values() for v in verdicts)
        of_models = any(not v.is_expected for verdicts in self.models.values() for v in verdicts.claims)
        of_benchmark = self.benchmark is not None and bool(self.benchmark.changed)
        return of_claims or of_updates or of_models or of_benchmark or any(r.is_surprise for r in self.replays.values())

    @property
    def is_open(self) -> bool:
        """Whether something is undecided or vacuous."""
        if any(replay.status == "vacuous" for replay in self.replays.values()):
            return True
        of_files: list[str] = [v.kind for verdicts in self.updates.values() for v in verdicts]
        of_files += [v.kind for verdicts in self.models.values() for v in verdicts.claims if v.expected is None]
        return "undecided" in of_files or any(v.kind in ("undecided", "vacuous") for v in self.verdicts)
