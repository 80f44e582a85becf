"""The proofs say what they are recorded to say: planted faults turn the gate red, every theorem is used, names match the package.

The gate runs on copies: a few theories with their compiled files are copied into a temporary folder, one of them is changed and
compiled again, and `gate.py` of the copy is run on it.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROOFS = ROOT / "proofs"
THEORIES = PROOFS / "theories"
COPIED = ("FinSum", "Advantages", "Clip")  # a closed set of imports, compiled in about two seconds
PLACEHOLDER = "File.v"  # how a docstring writes the form of a reference: ``name (File.v)``
INSTALL = "apt-get install --no-install-recommends coq libcoq-stdlib libcoq-coquelicot make"
needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason=f"coqc is missing: {INSTALL}")


def without_comments(text: str) -> str:
    while (shorter := re.sub(r"\(\*(?:(?!\(\*|\*\)).)*\*\)", "", text, flags=re.S)) != text:
        text = shorter
    return text


def compile_theory(folder: Path, name: str) -> None:
    command = ["coqc", "-q", "-w", "none", "-R", "theories", "ExactGRPO", f"theories/{name}.v"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def gate(folder: Path) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "gate.py"], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The copied theories, compiled once, with the part of the manifest that concerns them."""
    folder = tmp_path_factory.mktemp("proofs")
    (folder / "theories").mkdir()
    shutil.copy(PROOFS / "gate.py", folder)
    for name in COPIED:
        shutil.copy(THEORIES / f"{name}.v", folder / "theories")
        compile_theory(folder, name)
    (folder / "_CoqProject").write_text("-R theories ExactGRPO\n" + "".join(f"theories/{name}.v\n" for name in COPIED), encoding="utf-8")
    manifest = json.loads((PROOFS / "theorems.json").read_text(encoding="utf-8"))
    for kind in ("theorems", "definitions"):
        manifest[kind] = {name: value for name, value in manifest[kind].items() if name.split(".")[0] in COPIED}
    (folder / "theorems.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder


@pytest.fixture
def copy(compiled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(compiled, tmp_path / "proofs"))


def plant(folder: Path, name: str, *changes: tuple[str, str]) -> tuple[int, str]:
    """The gate's answer after changes in one theory, which still compiles."""
    path = folder / "theories" / f"{name}.v"
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, f"the fault no longer fits {name}.v: {old!r}"
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    compile_theory(folder, name)
    return gate(folder)


@needs_coq
def test_the_gate_is_green_on_the_recorded_theories(compiled: Path) -> None:
    code, output = gate(compiled)
    assert code == 0, output
    assert "FAIL" not in output


@needs_coq
def test_an_admitted_theorem_turns_the_gate_red(copy: Path) -> None:
    code, output = plant(copy, "Clip", ("cterm e 0 rho = 0.\nProof. rmm; lra. Qed.", "cterm e 0 rho = 0.\nProof. Admitted."))
    assert code != 0
    assert "forbidden word Admitted" in output
    assert "forbidden axiom ExactGRPO.Clip.cterm_zero" in output or "forbidden axiom Clip.cterm_zero" in output


@needs_coq
def test_a_changed_clip_turns_the_gate_red(copy: Path) -> None:
    """The order of min and max: for bounds in order it is the same function, and every proof still compiles."""
    code, output = plant(
        copy,
        "Clip",
        ("clip (e x : R) : R := Rmin (1 + e) (Rmax (1 - e) x).", "clip (e x : R) : R := Rmax (1 - e) (Rmin (1 + e) x)."),
        ("clip2 (el eh x : R) : R := Rmin (1 + eh) (Rmax (1 - el) x).", "clip2 (el eh x : R) : R := Rmax (1 - el) (Rmin (1 + eh) x)."),
    )
    assert code != 0
    assert "definition Clip.clip changed" in output


@needs_coq
def test_a_dropped_hypothesis_turns_the_gate_red(copy: Path) -> None:
    """Even one that follows from the others: the statement is no longer the recorded one."""
    code, output = plant(
        copy,
        "Advantages",
        ("forall rs a, rs <> [] -> In a (advantages rs) -> Rsqr a", "forall rs a, In a (advantages rs) -> Rsqr a"),
        ("Proof. intros rs a Hne Ha.", "Proof. intros rs a Ha. assert (Hne : rs <> []) by (intros ->; destruct Ha)."),
    )
    assert code != 0
    assert "theorem Advantages.adv_sq_le changed" in output


@needs_coq
def test_a_new_axiom_turns_the_gate_red(copy: Path) -> None:
    statement = "Theorem clip_id e x : 1 - e <= x <= 1 + e -> clip e x = x.\nProof. "
    assumed = "Variable trust : forall e x, clip e x = x.\n"
    code, output = plant(copy, "Clip", (statement + "intros; rmm; lra. Qed.", assumed + statement + "intros; apply trust. Qed."))
    assert code != 0
    assert "Clip: Variable outside a section is an axiom" in output
    assert "forbidden axiom" in output


@needs_coq
def test_an_uncompiled_change_turns_the_gate_red(copy: Path) -> None:
    path = copy / "theories" / "Clip.v"
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    code, output = gate(copy)
    assert code != 0
    assert "Clip is not compiled" in output


@needs_coq
def test_a_wrong_bound_of_a_logarithm_is_refused(compiled: Path, tmp_path: Path) -> None:
    """ln(1000000/203188) = 1.59362362...: the checker accepts [1.5936236, 1.5936237] and no interval beside it."""
    folder = Path(shutil.copytree(compiled, tmp_path / "proofs"))
    for name in ("KL", "Cert", "LnBounds", "LnFix"):
        shutil.copy(THEORIES / f"{name}.v", folder / "theories")
        compile_theory(folder, name)
    for low, verdict in ((15936235, "false"), (15936236, "true"), (15936237, "false")):
        bound = f"check_lnz 40 20 1000000 203188 {low} {low + 1} 10000000"
        script = "From Coq Require Import ZArith.\nFrom ExactGRPO Require Import LnFix.\nOpen Scope Z_scope.\n"
        script += f"Goal {bound} = {verdict}. Proof. vm_compute; reflexivity. Qed.\n"
        (folder / "theories" / "Bound.v").write_text(script, encoding="utf-8")
        compile_theory(folder, "Bound")


def test_every_theorem_is_used_by_a_claim_a_function_or_a_later_proof() -> None:
    manifest = json.loads((PROOFS / "theorems.json").read_text(encoding="utf-8"))
    readme = (PROOFS / "README.md").read_text(encoding="utf-8")
    package = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "exactgrpo").rglob("*.py")))
    proofs = without_comments("".join(path.read_text(encoding="utf-8") for path in sorted(THEORIES.glob("*.v"))))

    def is_used(name: str) -> bool:
        word = re.compile(rf"\b{re.escape(name)}\b")
        return bool(word.search(readme) or word.search(package)) or len(word.findall(proofs)) > 1

    assert [name for name in manifest["theorems"] if not is_used(name.split(".")[1])] == []


def test_the_readme_names_only_theorems_that_exist() -> None:
    manifest = json.loads((PROOFS / "theorems.json").read_text(encoding="utf-8"))
    files = {path.stem for path in THEORIES.glob("*.v")}
    known = set(manifest["theorems"]) | set(manifest["definitions"])
    named = re.findall(r"`([A-Z]\w*)\.(\w+)`", (PROOFS / "README.md").read_text(encoding="utf-8"))
    assert [f"{file}.{name}" for file, name in named if file in files and name != "v" and f"{file}.{name}" not in known] == []


def test_the_readme_names_python_functions_that_exist() -> None:
    named = re.findall(r"`(exactgrpo(?:\.\w+)+)`", (PROOFS / "README.md").read_text(encoding="utf-8"))
    assert len(named) > 20
    assert [name for name in named if not python_name_exists(name)] == []


def test_theories_name_python_functions_that_exist() -> None:
    """Names after `Python:` exist once their room does; names after `Python, to come:` are of rooms still to be built."""
    missing = []
    for path in sorted(THEORIES.glob("*.v")):
        header = path.read_text(encoding="utf-8").split("*)", 1)[0]
        for line in re.findall(r"Python: (.*)", header):
            missing += [f"{path.name}: {name}" for name in line.strip().split(", ") if not python_name_exists(name)]
    assert missing == []


def python_name_exists(name: str) -> bool:
    """The dotted name is a module of the package, or a name defined at the top of one; true when the room is not built yet."""
    *module, last = name.split(".")
    room = ROOT.joinpath(*name.split(".")[:2])
    if not any(path.name != "__init__.py" for path in room.glob("*.py")):
        return True
    path = ROOT.joinpath(*module).with_suffix(".py")
    if not path.exists():
        return ROOT.joinpath(*module, last).with_suffix(".py").exists()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == last for node in tree.body)


def test_python_docstrings_name_theories_and_theorems_that_exist() -> None:
    manifest = json.loads((PROOFS / "theorems.json").read_text(encoding="utf-8"))
    files = {path.name for path in THEORIES.glob("*.v")}
    wrong = []
    for path in sorted((ROOT / "exactgrpo").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        wrong += [f"{path.name}: {file}" for file in re.findall(r"\b([A-Z]\w+\.v)\b", text) if file not in files | {PLACEHOLDER}]
        for names, file in re.findall(r"\b(\w+(?:,\s+\w+)*) \((\w+)\.v\)", text):
            named = [f"{file}.{name}" for name in re.split(r",\s+", names)] if f"{file}.v" != PLACEHOLDER else []
            wrong += [f"{path.name}: {name}" for name in named if name not in manifest["theorems"]]
    assert wrong == []


def test_headers_and_docstrings_name_each_other() -> None:
    """A theory whose header names a function is named in that function's module, and the other way round.

    Claims are data that name their theorem: that it exists is tested above; headers list functions, not claims.
    """
    by_header = set()
    for path in sorted(THEORIES.glob("*.v")):
        header = path.read_text(encoding="utf-8").split("*)", 1)[0]
        for line in re.findall(r"Python: (.*)", header):
            by_header |= {(path.name, name.rpartition(".")[0]) for name in line.strip().split(", ")}
    by_docstring = set()
    for path in sorted((ROOT / "exactgrpo").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if module.startswith("exactgrpo.claims."):
            continue
        by_docstring |= {(file, module) for file in re.findall(r"\b([A-Z]\w+\.v)\b", path.read_text(encoding="utf-8"))}
    assert sorted(by_header ^ by_docstring) == []
