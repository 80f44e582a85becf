#!/usr/bin/env python3
"""Gate over the compiled theories: nothing may change silently, and nothing may be assumed silently.

It fails when
  - a theorem or definition of the theories is missing from ``theorems.json``, or the other way round;
  - a recorded statement or definition differs from what Coq prints (hashes of the fully explicit text);
  - a compiled file is missing or older than its source;
  - a theorem rests on an axiom outside the four of the classical reals (``ALLOWED``);
  - the sources hold a word that admits, assumes or switches a check off.

usage: gate.py [--write]      --write records the present statements: review the diff of theorems.json
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ALLOWED = frozenset(
    {
        "ClassicalDedekindReals.sig_forall_dec",
        "ClassicalDedekindReals.sig_not_dec",
        "FunctionalExtensionality.functional_extensionality_dep",
        "Classical_Prop.classic",
    }
)
STATEMENT = re.compile(r"(?:^|\.)\s*(?:Theorem|Corollary)\s+(\w+)", re.M)
DEFINITION = re.compile(r"(?:^|\.)\s*(?:Definition|Fixpoint|Inductive|Record)\s+(\w+)", re.M)
FORBIDDEN = re.compile(
    r"\b(Admitted|admit|give_up|Axioms?|Conjectures?|Parameters?|Primitive|bypass_check|native_compute|Unset\s+\w+\s+Checking|type_in_type|Declare\s+ML)\b"
)
OPENED = re.compile(r"^\s*(Section|Module\s+Type|Module|End|Variables?|Hypothes[ie]s|Context)\b", re.M)
MARK = "     = tt\n     : unit\n"


@dataclass(frozen=True, slots=True)
class Manifest:
    """Hashes of the statements and definitions by qualified name, and the axioms that all theorems together use."""

    theorems: dict[str, str] = field(default_factory=dict)
    definitions: dict[str, str] = field(default_factory=dict)
    axioms: list[str] = field(default_factory=list)


def without_comments(text: str) -> str:
    """The Coq text with its (nested) comments and its strings removed."""
    kept: list[str] = []
    depth = 0
    for part in re.split(r'(\(\*|\*\)|"[^"]*")', text):
        if part == "(*":
            depth += 1
        elif part == "*)":
            depth = max(0, depth - 1)
        elif depth == 0 and not part.startswith('"'):
            kept.append(part)
    return "".join(kept)


def listed(root: Path) -> list[Path]:
    """The theory files in the order of ``_CoqProject``."""
    lines = (root / "_CoqProject").read_text(encoding="utf-8").splitlines()
    return [root / line for line in lines if line.endswith(".v")]


def stale(paths: Iterable[Path]) -> Iterator[str]:
    """Theories whose compiled file is missing or older than the source: Coq would answer about another text."""
    for path in paths:
        compiled = path.with_suffix(".vo")
        if not compiled.exists() or compiled.stat().st_mtime < path.stat().st_mtime:
            yield f"{path.stem} is not compiled: run make first"


def source_faults(sources: dict[str, str]) -> Iterator[str]:
    """Words that admit, assume or switch off a check, and section variables declared outside every section."""
    for name, text in sources.items():
        for match in FORBIDDEN.finditer(text):
            yield f"{name}: forbidden word {match.group(1)}"
        depth = 0
        for match in OPENED.finditer(text):
            word = match.group(1).split()[0]
            if word in {"Section", "Module"}:
                depth += 1
            elif word == "End":
                depth -= 1
            elif depth == 0:
                yield f"{name}: {word} outside a section is an axiom"


def names_in(sources: dict[str, str], pattern: re.Pattern[str]) -> list[str]:
    return sorted(f"{name}.{match.group(1)}" for name, text in sources.items() for match in pattern.finditer(text))


def ask_coq(root: Path, script: str) -> str:
    """What coqc prints on the script; a script that fails is a fault of the theories, with Coq's own message."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "gate_script.v")
        path.write_text(script, encoding="utf-8")
        command = ["coqc", "-q", "-w", "none", "-R", str(root / "theories"), "ExactGRPO", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit("FAIL coqc: " + done.stderr.replace(str(path), "gate script").strip())
    return done.stdout


def digest(block: str) -> str:
    return hashlib.sha256(re.sub(r"\s+", " ", block).strip().encode()).hexdigest()[:16]


def axioms_in(block: str) -> list[str]:
    """The names that Print Assumptions lists (none when the block says that the term is closed)."""
    if "Closed under the global context" in block:
        return []
    return sorted(set(re.findall(r"^([A-Za-z_][\w.']*)\s*(?::|$)", block.split("Axioms:", 1)[1], flags=re.M)))


def observe(root: Path, theorems: list[str], definitions: list[str]) -> Manifest:
    """One Coq run: every statement, every definition, and the assumptions of all theorems at once."""
    modules = sorted({name.split(".")[0] for name in theorems + definitions})
    lines = ["Require " + " ".join("ExactGRPO." + module for module in modules) + ".", "Set Printing Width 200.", "Set Printing All."]
    for name in theorems:
        lines += ["Eval compute in tt.", f"Check @ExactGRPO.{name}."]
    for name in definitions:
        lines += ["Eval compute in tt.", f"Print ExactGRPO.{name}."]
    lines += ["Definition gate_all : True.", "Proof."]
    lines += [f"pose proof @ExactGRPO.{name}." for name in theorems]
    lines += ["exact I.", "Defined.", "Eval compute in tt.", "Print Assumptions gate_all."]
    blocks = ask_coq(root, "\n".join(lines) + "\n").split(MARK)[1:]
    if len(blocks) != len(theorems) + len(definitions) + 1:
        raise SystemExit("FAIL the answers of Coq do not match the questions one to one")
    hashes = [digest(block) for block in blocks[:-1]]
    return Manifest(
        theorems=dict(zip(theorems, hashes, strict=False)),
        definitions=dict(zip(definitions, hashes[len(theorems) :], strict=True)),
        axioms=axioms_in(blocks[-1]),
    )


def differences(kind: str, recorded: dict[str, str], seen: dict[str, str]) -> Iterator[str]:
    for name in sorted(recorded.keys() | seen.keys()):
        if name not in seen:
            yield f"{kind} {name} is recorded but gone"
        elif name not in recorded:
            yield f"{kind} {name} is not recorded"
        elif recorded[name] != seen[name]:
            yield f"{kind} {name} changed"


def main(arguments: Iterable[str], root: Path = ROOT) -> int:
    """0 when the theories are exactly what ``theorems.json`` says and assume only the allowed axioms, else 1."""
    write = "--write" in arguments
    sources = {path.stem: without_comments(path.read_text(encoding="utf-8")) for path in listed(root)}
    faults = [*stale(listed(root)), *source_faults(sources)]
    seen = observe(root, names_in(sources, STATEMENT), names_in(sources, DEFINITION))
    faults += [f"forbidden axiom {name}" for name in seen.axioms if name not in ALLOWED]
    manifest = root / "theorems.json"
    if write:
        manifest.write_text(json.dumps(asdict(seen), indent=1) + "\n", encoding="utf-8")
    recorded = Manifest(**json.loads(manifest.read_text(encoding="utf-8")))
    faults += differences("theorem", recorded.theorems, seen.theorems)
    faults += differences("definition", recorded.definitions, seen.definitions)
    print(f"{len(seen.theorems)} theorems, {len(seen.definitions)} definitions; axioms used: {', '.join(seen.axioms)}")
    for fault in faults:
        print("FAIL", fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
