"""The module against the program: every method on a small workflow, and every kind of error.

`GALERAS_PROGRAM` names the program to test; without it, it is the one that is installed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import galeras

WORKFLOW = """
galeras: 1
name: small
params:
  n: { type: int, default: 3, min: 1, help: methods in a sample }
  seeds: { type: list, default: [1, 2] }
  words: { type: string, default: plain }
  data: { type: path, default: src }
steps:
  methods:
    op: methods
    with: { dir: "${{ params.data }}" }
  valid:
    op: validate
    from: methods
    with: { rules: [{ name: long, check: "end_line - start_line > 1" }] }
  some:
    op: sample
    from: valid
    matrix: { seed: "${{ params.seeds }}" }
    with: { n: "${{ params.n }}", seed: "${{ matrix.seed }}" }
  words:
    op: sql
    from: valid
    with: { query: "SELECT id, ${{ params.words }} AS words FROM input", key: [id] }
outputs:
  some: { from: "some[*]", path: out/some.csv }
"""

SOURCE = """
def short(): return 1

def sign(x):
    if x < 0:
        return -1
    return 1

def clamp(x, low, high):
    if x < low:
        return low
    return min(x, high)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text(SOURCE)
    (tmp_path / "w.yaml").write_text(WORKFLOW)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GALERAS_CACHE", raising=False)
    return tmp_path


def changed(folder: Path, old: str, new: str) -> galeras.Workflow:
    text = (folder / "w.yaml").read_text()
    assert old in text
    (folder / "w.yaml").write_text(text.replace(old, new))
    return galeras.Workflow("w.yaml")


def test_a_run_and_its_rerun(folder: Path) -> None:
    study = galeras.Workflow("w.yaml", n=1)
    first = study.run(progress=False)
    assert (first.status, first.computed, len(first.steps)) == ("ok", 5, 5)
    assert [(o.name, o.rows, o.written) for o in first.outputs] == [("some", 2, True)]
    assert (folder / "out" / "some.csv").exists()

    second = study.run(progress=False)
    assert second.computed == 0
    assert {s.step: s.digest for s in second.steps} == {s.step: s.digest for s in first.steps}
    assert [o.written for o in second.outputs] == [False]
    assert [r["run"] for r in study.runs()] == [second.id, first.id]
    assert "0 computed" in repr(second) and "<table>" in second._repr_html_()


def test_check_finds_all_mistakes_and_raises_nothing(folder: Path) -> None:
    assert galeras.Workflow("w.yaml").check() == []
    study = changed(folder, "end_line - start", "end_lin - start")
    (mistake,) = study.check()
    assert (mistake.code, mistake.severity, mistake.line) == ("unknown-column", "error", 16)
    assert "end_line" in (mistake.help or "")
    with pytest.raises(galeras.InvalidWorkflow) as caught:
        study.run()
    assert caught.value.diagnostics == (mistake,)
    assert caught.value.exit_code == 2
    assert "unknown-column" in str(caught.value)
    assert "unknown-column" in study._repr_html_()


def test_the_plan_says_what_a_run_would_do(folder: Path) -> None:
    study = galeras.Workflow("w.yaml")
    assert study.steps == ["methods", "valid", "some[seed=1]", "some[seed=2]", "words"]
    assert {step.state for step in study.plan().steps} == {"run", "wait"}
    study.run(progress=False, select="valid")
    assert [step.state for step in study.plan().steps[:2]] == ["hit", "hit"]
    assert "methods" in study.plan()._repr_html_()


def test_tables_are_what_the_store_holds(folder: Path) -> None:
    study = galeras.Workflow("w.yaml")
    study.run(progress=False)
    table = study.table("valid")
    assert sorted(table.column("fun_name").to_pylist()) == ["clamp", "sign"]
    assert table.column("id").to_pylist() == sorted(table.column("id").to_pylist())
    (rejected,) = study.table("valid.rejects").to_pylist()
    assert (rejected["fun_name"], rejected["step"], rejected["rule"]) == ("short", "valid", "long")

    cells = study.table("some[*]")
    assert set(cells.column("seed").to_pylist()) == {1, 2}
    assert cells.num_rows == 4
    for name in ["valid", "valid.rejects", "some[*]", "some[seed=2]", "words"]:
        command = [galeras.program(), "show", "w.yaml", name, "--format", "arrow"]
        stream = subprocess.run(command, capture_output=True, check=True).stdout
        shown, table = pa.ipc.open_stream(stream).read_all(), study.table(name)
        order = [(key, "ascending") for key in ("id", "seed") if key in table.column_names]
        assert table.schema.equals(shown.schema, check_metadata=True), name
        assert table.sort_by(order).equals(shown.sort_by(order)), name
    table = study.table("valid")
    assert study.to_pandas("valid").shape == table.shape
    assert study.to_polars("valid").shape == table.shape


def test_a_table_is_memory_mapped(folder: Path) -> None:
    study = galeras.Workflow("w.yaml")
    study.run(progress=False)
    command = [galeras.program(), "path", "w.yaml", "valid"]
    path = subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
    assert study.table("valid").equals(pq.read_table(path))


def test_what_is_not_computed_is_said_so(folder: Path) -> None:
    study = galeras.Workflow("w.yaml")
    study.run(progress=False)
    with pytest.raises(galeras.NotComputed, match="galeras run w.yaml"):
        galeras.Workflow("w.yaml", n=2).table("some[*]")
    with pytest.raises(galeras.InvalidWorkflow, match="did you mean `valid`"):
        study.table("vlid")


def test_without_params_the_defaults_are_meant(folder: Path) -> None:
    galeras.Workflow("w.yaml").run(progress=False)
    galeras.Workflow("w.yaml", n=1).run(progress=False)
    count = 'SELECT count(*) AS n FROM "some[*]"'
    assert galeras.Workflow("w.yaml").sql(count).to_pylist() == [{"n": 4}]
    assert galeras.Workflow("w.yaml", n=1).sql(count).to_pylist() == [{"n": 2}]
    assert galeras.Workflow("w.yaml").table("some[*]").num_rows == 4


@pytest.mark.parametrize(
    "words", ["it's", 'a "b"', "a\nb", "-x", "--set=n=2", "", "π ünï", "a=b", "null", "5"]
)
def test_texts_arrive_as_they_are(folder: Path, words: str) -> None:
    study = galeras.Workflow("w.yaml", words=words)
    study.run(progress=False)
    assert set(study.table("words").column("words").to_pylist()) == {words}


def test_params_of_every_type(folder: Path) -> None:
    import numpy as np

    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "b.py").write_text(SOURCE)
    study = galeras.Workflow("w.yaml", n=np.int64(1), seeds=[5, 6], data=Path("elsewhere"))
    study.run(progress=False)
    assert set(study.table("some[*]").column("seed").to_pylist()) == {5, 6}
    assert set(study.table("methods").column("path").to_pylist()) == {"b.py"}
    with pytest.raises(galeras.InvalidWorkflow, match="no param `m`"):
        galeras.Workflow("w.yaml", m=1).plan()


def test_a_row_is_traced(folder: Path) -> None:
    study = galeras.Workflow("w.yaml")
    study.run(progress=False)
    row_id = study.table("valid.rejects").column("id")[0].as_py()
    (row,) = study.trace(row_id)
    assert row["id"] == row_id
    assert {place["step"] for place in row["places"]} == {"methods", "valid"}


def test_failures_have_their_kind(folder: Path) -> None:
    study = changed(folder, "outputs:", "    assert: [{ rows: { min: 9 } }]\noutputs:")
    with pytest.raises(galeras.AssertionFailed, match="rows: min 9"):
        study.run(progress=False)
    (folder / "cache2").write_text("a file in the place of a store")
    with pytest.raises(galeras.Error) as caught:
        galeras.Workflow("w.yaml", cache="cache2").run(progress=False)
    assert caught.value.exit_code in (2, 4)
    program = textwrap.dedent(
        """
          program:
            op: exec
            from: methods
            with: { command: "exit 3", format: jsonl, output: { id: utf8! } }
        outputs:
        """
    )
    study = changed(folder, "    assert: [{ rows: { min: 9 } }]\noutputs:\n", program)
    with pytest.raises(galeras.InvalidWorkflow, match="--allow exec"):
        study.run(progress=False)
    with pytest.raises(galeras.StepFailed, match="`program`"):
        galeras.Workflow("w.yaml", allow="exec").run(progress=False)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_ends_the_program_in_order(folder: Path) -> None:
    slow = """
  slow:
    op: exec
    from: methods
    with: { command: "sleep 60.25", format: jsonl, output: { id: utf8! } }
outputs:"""
    study = changed(folder, "\noutputs:", slow)
    study.allow = ["exec"]
    # A shell that starts the tests in the background has them ignore interrupts.
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)

    def press() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not study_is_slow(folder):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        study.run(progress=False)
    presser.join()
    signal.signal(signal.SIGINT, inherited)
    # The run was recorded as interrupted: the program was not killed, and it did not run on.
    assert study.runs()[0]["status"] == "interrupted"


def study_is_slow(folder: Path) -> bool:
    """Whether the step that sleeps has begun: its scratch folder or its child is there."""
    found = subprocess.run(["pgrep", "-f", "sleep 60.25"], capture_output=True, check=False)
    return found.returncode == 0


def test_python_m_galeras_is_the_program() -> None:
    command = [sys.executable, "-m", "galeras", "--version"]
    said = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert said.split() == ["galeras", galeras.version()]


def test_a_missing_program_is_said_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GALERAS_PROGRAM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sysconfig.get_path", lambda *_args, **_kwargs: str(tmp_path))
    with pytest.raises(galeras.ProgramNotFound, match="GALERAS_PROGRAM"):
        galeras.program()
