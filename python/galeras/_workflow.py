"""A workflow file with values for its params, and what can be asked of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _program, _tables
from ._errors import Diagnostic
from ._progress import Progress
from ._results import Output, Plan, PlannedStep, Run, StepResult

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa


class Workflow:
    """A workflow file and values for its params.

    Args:
        path: the YAML file.
        cache: the store, a folder or a URL (default: ``GALERAS_CACHE``, else ``cache`` in the
            folder of the project), as ``--cache``.
        out: the folder for output files (default: the current folder), as ``--out``.
        allow: what the workflow may do to the machine, as ``--allow``: ``["exec",
            "env:NAME=HOST"]``.
        allow_all: whether it may do whatever it does, for one that you wrote or read.
        params: values for the params, as ``--set``. Those that are not named have their defaults.
            Paths (``pathlib.Path``) start in the current folder.

    Nothing is read until something is asked, and every question looks at the file as it is then.
    Every method raises a kind of :class:`galeras.Error` if the program ends with one; a workflow
    with mistakes is :class:`galeras.InvalidWorkflow`, whose ``diagnostics`` say where they are.

    >>> galeras.Workflow("workflow.yaml", seed=7, n=50)
    galeras.Workflow('workflow.yaml', seed=7, n=50)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        cache: str | os.PathLike[str] | None = None,
        out: str | os.PathLike[str] | None = None,
        allow: str | Iterable[str] = (),
        allow_all: bool = False,
        **params: Any,
    ) -> None:
        self.path = Path(path)
        self.params = dict(params)
        self.cache = None if cache is None else os.fspath(cache)
        self.out = None if out is None else os.fspath(out)
        self.allow = [allow] if isinstance(allow, str) else list(allow)
        self.allow_all = allow_all

    def check(self) -> list[Diagnostic]:
        """Everything that is wrong with the workflow; an empty list if nothing is. Runs nothing.

        It sends nothing either: a file behind a URL is a warning, as its columns are not known.

        >>> galeras.Workflow("workflow.yaml", n=50).check()
        []
        >>> [mistake.code for mistake in galeras.Workflow("workflow.yaml", n=-1).check()]
        ['wrong-value']
        """
        events = _program.events(["check", *self._named(), "--format", "json"], expected=(0, 2))
        return list(_program.diagnostics(list(events)))

    def plan(self) -> Plan:
        """What a run would do, and why, and what it would ask of models at which cost.

        >>> galeras.Workflow("workflow.yaml", n=50).plan()
        <Plan of quickstart: 19 steps, 19 from the store>
        """
        arguments = ["plan", *self._call(), *self._output_folder(), "--format", "json"]
        for event in _program.events(arguments):
            if event["event"] == "plan":
                steps = tuple(PlannedStep.of(step) for step in event["steps"])
                return Plan(event["workflow"], steps, event["limits"], event["asks"])
        raise AssertionError("`galeras plan` said nothing")

    def run(
        self,
        *,
        select: str | Iterable[str] = (),
        force: str | Iterable[str] = (),
        frozen: bool = False,
        keep_going: bool = False,
        overwrite: bool = False,
        allow_empty: bool = False,
        jobs: int | None = None,
        memory: str | None = None,
        progress: bool = True,
    ) -> Run:
        """Runs the workflow: takes from the store what is right, computes the rest.

        Args:
            select: only these steps, and what they need.
            force: compute these again although their results are stored.
            frozen: fail if anything asked of the world is not pinned in ``galeras.lock``.
            keep_going: after a failure go on with what does not depend on it.
            overwrite: replace output files that another workflow wrote.
            allow_empty: outputs may have no rows, as with `rows: { min: 0 }`.
            jobs: threads to compute with (default: all).
            memory: memory of a step for large tables, as ``"4GiB"``.
            progress: whether to show what goes on, in a notebook as bars.

        Raises:
            StepFailed, AssertionFailed, StoreFailed, InvalidWorkflow, Interrupted: what was
                computed until then stays in the store, and the next run goes on from there.

        >>> study = galeras.Workflow("workflow.yaml", n=50)
        >>> run = study.run(select="table_1", jobs=2, progress=False)
        >>> [step.step for step in run.steps]
        ['methods', 'features', 'valid', 'unique', 'sampled', 'testbed', 'table_1']
        >>> run = study.run(force="table_1", progress=False)
        >>> [step.step for step in run.steps if step.status == "ran"]
        ['table_1']
        """
        arguments = ["run", *self._call(), *self._output_folder(), "--format", "json"]
        for flag, values in (("--select", select), ("--force", force)):
            for value in [values] if isinstance(values, str) else values:
                arguments.append(f"{flag}={value}")
        for flag, given in (
            ("--frozen", frozen),
            ("--keep-going", keep_going),
            ("--overwrite", overwrite),
            ("--allow-empty", allow_empty),
        ):
            if given:
                arguments.append(flag)
        if jobs is not None:
            arguments.append(f"--jobs={jobs}")
        if memory is not None:
            arguments.append(f"--memory={memory}")
        return _follow(arguments, Progress(progress))

    @property
    def steps(self) -> list[str]:
        """The names of the steps, cells of a matrix as ``gen[seed=1]``, in order of the graph.

        >>> galeras.Workflow("workflow.yaml").steps[:4]
        ['methods', 'features', 'valid', 'unique']
        """
        return [step.step for step in self.plan().steps]

    def table(self, name: str) -> pa.Table:
        """The result of a step as a pyarrow Table, memory-mapped from the store.

        ``name`` is a step (``"scores"``), a port (``"valid.rejects"``), a cell
        (``"gen[seed=1]"``) or all cells with the matrix keys as columns (``"gen[*]"``).

        Raises:
            NotComputed: if there is no result for the workflow and its params as they stand; an
                older one is never given in its place.

        >>> study = galeras.Workflow("workflow.yaml", n=50)
        >>> study.table("table_1").column("column").to_pylist()[:2]
        ['ast_levels', 'complexity']
        >>> study.table("valid.rejects").num_rows
        891
        """
        return _tables.stored(self._call(), name, self._defaults())

    def to_pandas(self, name: str) -> pandas.DataFrame:
        """The result of a step as a pandas DataFrame.

        >>> galeras.Workflow("workflow.yaml", n=50).to_pandas("table_1")[["column", "n"]].head(2)
               column   n
        0  ast_levels  50
        1  complexity  50
        """
        return self.table(name).to_pandas()

    def to_polars(self, name: str) -> polars.DataFrame:
        """The result of a step as a polars DataFrame.

        >>> galeras.Workflow("workflow.yaml", n=50).to_polars("table_1")["n"].unique().to_list()
        [50]
        """
        import polars

        return polars.from_arrow(self.table(name))

    def sql(self, query: str) -> pa.Table:
        """Rows of a query in which every step is a table: ``SELECT … FROM "scores[*]"``.

        >>> study = galeras.Workflow("workflow.yaml", n=50)
        >>> study.sql("SELECT min(nloc) AS low, max(nloc) AS high FROM testbed").to_pylist()
        [{'low': 2, 'high': 63}]
        """
        return _tables.stream(["sql", *self._call(), query, *self._defaults(), "--format", "arrow"])

    def trace(self, row_id: str) -> list[dict[str, Any]]:
        """Where rows whose id begins with ``row_id`` were made, kept or rejected, a dict each.

        >>> study = galeras.Workflow("workflow.yaml", n=50)
        >>> score = study.table("scores").slice(0, 1).to_pylist()[0]
        >>> row = study.trace(score["id"])[0]
        >>> [place["step"] for place in row["places"]]
        ['answers', 'scores', 'whole_scores']
        >>> source = row["made_from"][-1]           # the method that was completed
        >>> source["id"] == score["snippet_id"], source["places"][0]["step"]
        (True, 'methods')
        """
        arguments = ["trace", *self._call(), row_id, *self._defaults(), "--format", "json"]
        return [e for e in _program.events(arguments) if e["event"] == "trace"]

    def runs(self) -> list[dict[str, Any]]:
        """The runs of this workflow file, the newest first: time, status, params, digests.

        >>> study = galeras.Workflow("workflow.yaml", n=50)
        >>> run = study.run(progress=False)
        >>> study.runs()[0]["run"] == run.id, study.runs()[0]["params"]
        (True, {'seed': 42, 'n': 50})
        """
        store = [] if self.cache is None else [f"--cache={self.cache}"]
        arguments = ["runs", os.fspath(self.path), *store, "--format", "json"]
        return [e for e in _program.events(arguments) if e["event"] == "run"]

    def graph(self) -> str:
        """The graph of the steps with their states, as SVG.

        >>> galeras.Workflow("workflow.yaml", n=50).graph()[:4]
        '<svg'
        """
        return _program.output(["graph", *self._call(), "--format", "svg"]).decode()

    def figure(self, name: str) -> str:
        """The picture of a step with ``op: figure``, as SVG.

        >>> galeras.Workflow("workflow.yaml", n=50).figure("figure")[:4]
        '<svg'
        """
        arguments = ["show", *self._call(), name, *self._defaults()]
        rows = _program.output([*arguments, "--columns=svg", "--format", "json"]).splitlines()
        if len(rows) != 1:
            raise ValueError(f"`{name}` has {len(rows)} pictures, not one: name a cell of it")
        return str(json.loads(rows[0])["svg"])

    def explain(self, step: str) -> list[dict[str, Any]]:
        """Why a step would run or not, and the inputs of its result: a dict for each of its cells.

        >>> galeras.Workflow("workflow.yaml", n=50).explain("testbed")[0]["state"]
        'hit'
        """
        arguments = ["explain", *self._call(), step, *self._defaults(), "--format", "json"]
        return [e for e in _program.events(arguments) if e["event"] == "explain"]

    def diff(self, old: str = "last~1", new: str = "last") -> list[dict[str, Any]]:
        """What differs between two runs: first params and steps, then each table that differs.

        A run is named by the beginning of its id, or counted from the end: ``last``, ``last~1``.

        >>> study = galeras.Workflow("workflow.yaml", n=50)
        >>> runs = [study.run(progress=False) for _ in range(2)]
        >>> [event["event"] for event in study.diff()]
        ['diff']
        """
        store = [] if self.cache is None else [f"--cache={self.cache}"]
        arguments = ["diff", os.fspath(self.path), old, new, *store, "--format", "json"]
        return [e for e in _program.events(arguments) if e["event"] in ("diff", "table")]

    def report(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Writes one page that explains the study from its stored results; returns its path.

        >>> galeras.Workflow("workflow.yaml", n=50).report("study.html").name
        'study.html'
        """
        flags = ["--overwrite"] if overwrite else []
        page = f"--output={os.fspath(path)}"
        _program.output(["report", *self._call(), *self._defaults(), page, *flags])
        return Path(path)

    def __repr__(self) -> str:
        params = "".join(f", {name}={value!r}" for name, value in self.params.items())
        return f"galeras.Workflow({os.fspath(self.path)!r}{params})"

    def _repr_html_(self) -> str:
        mistakes = [mistake for mistake in self.check() if mistake.severity == "error"]
        if mistakes:
            from html import escape

            return "".join(f"<pre>{escape(str(mistake))}</pre>" for mistake in mistakes)
        return self.graph()

    def _named(self) -> list[str]:
        """The file and what stands for it, as arguments of every verb."""
        call = [os.fspath(self.path)]
        call += [f"--set={name}={_text(value)}" for name, value in self.params.items()]
        if self.cache is not None:
            call.append(f"--cache={self.cache}")
        return call

    def _call(self) -> list[str]:
        """The same for verbs that may ask a server, with what they may do."""
        call = self._named()
        call += [f"--allow={what}" for what in self.allow]
        if self.allow_all:
            call.append("--allow-all")
        return call

    def _output_folder(self) -> list[str]:
        return [] if self.out is None else [f"--out={self.out}"]

    def _defaults(self) -> list[str]:
        # Without params the defaults are meant, not those of the last run of the file.
        return [] if self.params else ["--defaults"]


def _follow(arguments: Sequence[str], progress: Progress) -> Run:
    identity = ""
    outputs: list[Output] = []
    warnings: list[str] = []
    finished: dict[str, Any] = {"status": "interrupted", "seconds": 0.0, "steps": []}
    try:
        for event in _program.events(arguments):
            progress.follow(event)
            match event["event"]:
                case "started":
                    identity = event["run"]
                case "output":
                    names = ("path", "rows", "written")
                    outputs.append(Output(event["output"], *(event[name] for name in names)))
                case "warning":
                    step = f"step `{event['step']}`: " if event["step"] else ""
                    warnings.append(step + event["message"])
                case "finished":
                    finished = event
    finally:
        progress.end()
    steps = tuple(StepResult.of(step) for step in finished["steps"])
    return Run(
        identity, finished["status"], finished["seconds"], steps, tuple(outputs), tuple(warnings)
    )


def _text(value: Any) -> str:
    """A value as ``--set`` reads it: texts and paths as they are, all else as JSON."""
    if isinstance(value, os.PathLike):
        return os.path.abspath(value)
    if isinstance(value, str):
        return value
    if hasattr(value, "item"):  # A number of numpy.
        value = value.item()
    return json.dumps(value, ensure_ascii=False, default=os.fspath)
