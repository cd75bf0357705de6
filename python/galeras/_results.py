"""What a run and a plan came to: values with names, and tables in notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any


@dataclass(frozen=True)
class StepResult:
    """How a step ended.

    ``status`` is ``hit`` (the stored result was taken), ``ran``, ``failed`` or ``skipped``;
    ``digest`` is the logical digest of its main table; ``rows`` are that table's.

    >>> step = galeras.Workflow("workflow.yaml", n=50).run().steps[-1]
    >>> step.step, step.status, step.rows, len(step.digest)
    ('figure', 'hit', 1, 64)
    """

    step: str
    status: str
    reason: str | None
    detail: str | None
    rows: int
    computed_rows: int
    reused_rows: int
    digest: str | None
    seconds: float

    @classmethod
    def of(cls, event: dict[str, Any]) -> StepResult:
        """The step of an event."""
        return cls(**{name: event.get(name) for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Output:
    """A file that a run wrote, or left because it was as it should be (``written`` is false).

    >>> galeras.Workflow("workflow.yaml", n=50).run().outputs[0]
    Output(name='testbed', path='./quickstart/testbed.parquet', rows=50, written=False)
    """

    name: str
    path: str
    rows: int
    written: bool


@dataclass(frozen=True)
class Run:
    """A finished run: its id, status (``ok``), steps, outputs and the time that it took.

    >>> run = galeras.Workflow("workflow.yaml", n=50).run()
    >>> run
    <Run ...: ok, 19 steps, 19 from the store, 0 computed, ... s>
    >>> run.computed, run.warnings
    (0, ())
    """

    id: str
    status: str
    seconds: float
    steps: Sequence[StepResult] = field(default_factory=tuple)
    outputs: Sequence[Output] = field(default_factory=tuple)
    warnings: Sequence[str] = field(default_factory=tuple)

    @property
    def computed(self) -> int:
        """The number of steps that were not taken from the store."""
        return sum(step.status == "ran" for step in self.steps)

    def __repr__(self) -> str:
        hits = sum(step.status == "hit" for step in self.steps)
        return (
            f"<Run {self.id}: {self.status}, {len(self.steps)} steps, {hits} from the store, "
            f"{self.computed} computed, {self.seconds:.2f} s>"
        )

    def _repr_html_(self) -> str:
        rows = [
            (s.step, s.status, s.reason or "", f"{s.rows:,}", f"{s.seconds:.2f}", s.digest or "")
            for s in self.steps
        ]
        head = ("step", "status", "reason", "rows", "seconds", "digest")
        return f"<p>{escape(repr(self)[1:-1])}</p>" + html_table(head, rows)


@dataclass(frozen=True)
class PlannedStep:
    """What a run would do with a step.

    ``state`` is ``hit``, ``run`` or ``wait`` (it depends on what comes before); ``requests`` is
    what it would ask of a model, absent for all others.

    >>> steps = {s.step: s for s in galeras.Workflow("workflow.yaml", n=60).plan().steps}
    >>> steps["unique"].state, steps["sampled"].state, steps["testbed"].state
    ('hit', 'run', 'wait')
    >>> steps["sampled"].reason, steps["sampled"].detail
    ('ARG_CHANGED', 'with.n: 50 → 60 (workflow.yaml:...)')
    """

    step: str
    op: str
    state: str
    reason: str
    detail: str | None
    rows: int | None
    requests: dict[str, Any] | None

    @classmethod
    def of(cls, event: dict[str, Any]) -> PlannedStep:
        """The step of a plan's event."""
        return cls(**{name: event.get(name) for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Plan:
    """What a run would do: steps, limits of spending, and what it would ask consent for.

    >>> plan = galeras.Workflow("workflow.yaml", n=50).plan()
    >>> plan
    <Plan of quickstart: 19 steps, 19 from the store>
    >>> plan.limits, plan.asks
    ([], [])
    """

    workflow: str
    steps: Sequence[PlannedStep]
    limits: Sequence[dict[str, Any]]
    asks: Sequence[Any]

    def __repr__(self) -> str:
        hits = sum(step.state == "hit" for step in self.steps)
        return f"<Plan of {self.workflow}: {len(self.steps)} steps, {hits} from the store>"

    def _repr_html_(self) -> str:
        rows = [(s.step, s.op, s.state, s.reason, s.detail or "") for s in self.steps]
        head = ("step", "operator", "state", "reason", "detail")
        return f"<p>{escape(repr(self)[1:-1])}</p>" + html_table(head, rows)


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in HTML, with every cell escaped."""

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(c))}</{tag}>" for c in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(head, 'th')}</thead><tbody>{body}</tbody></table>"
