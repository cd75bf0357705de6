"""What can go wrong, as exceptions: one for each exit code of the program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Diagnostic:
    """Something wrong with a workflow, and where.

    ``code`` is explained by ``galeras check --explain CODE``. Lines and columns count from 1.

    >>> from pathlib import Path
    >>> with_a_mistake = Path("workflow.yaml").read_text().replace("op: dedup", "op: dedupe")
    >>> Path("with_a_mistake.yaml").write_text(with_a_mistake) > 0
    True
    >>> mistake = galeras.Workflow("with_a_mistake.yaml").check()[0]
    >>> mistake.code, mistake.help
    ('unknown-operator', 'did you mean `dedup`?')
    >>> print(mistake)
    with_a_mistake.yaml:...: error[unknown-operator]: there is no operator `dedupe`
      help: did you mean `dedup`?
    """

    code: str
    severity: str
    message: str
    file: str
    line: int
    column: int
    help: str | None = None

    @classmethod
    def of(cls, event: dict[str, Any]) -> Diagnostic:
        """The diagnostic that an event of the program tells."""
        return cls(
            code=event["code"],
            severity=event["severity"],
            message=event["message"],
            file=event["file"],
            line=event["line"],
            column=event["column"],
            help=event.get("help"),
        )

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}"
        text = f"{place}: {self.severity}[{self.code}]: {self.message}"
        return f"{text}\n  help: {self.help}" if self.help else text


class Error(Exception):
    """The program ended with an error.

    ``exit_code`` is its exit code, ``diagnostics`` are what is wrong with the workflow.

    >>> try:
    ...     galeras.Workflow("workflow.yaml", m=50).run()
    ... except galeras.Error as error:
    ...     print(type(error).__name__, error.exit_code, [d.code for d in error.diagnostics])
    InvalidWorkflow 2 ['unknown-param']
    """

    def __init__(
        self, message: str, exit_code: int = 1, diagnostics: tuple[Diagnostic, ...] = ()
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.diagnostics = diagnostics


class ProgramNotFound(Error):
    """There is no program ``galeras`` beside this module, in this environment, or on the path."""


class StepFailed(Error):
    """A step failed (exit code 1)."""


class InvalidWorkflow(Error):
    """The workflow or the call is not valid, or does what nobody allowed (exit code 2)."""


class AssertionFailed(Error):
    """An assertion of severity error failed (exit code 3)."""


class StoreFailed(Error):
    """The store or a disk failed (exit code 4)."""


class Interrupted(Error):
    """The run was stopped by a signal (exit code 130). What was computed stays."""


class NotComputed(Error):
    """There is no result of this table for the workflow and the params as they stand.

    >>> try:
    ...     galeras.Workflow("workflow.yaml", n=51).table("scores")
    ... except galeras.NotComputed as error:
    ...     print(error)
    `scores` is not computed yet for the current workflow; run
      galeras run workflow.yaml --set n=51 --select scores
    """


_BY_EXIT_CODE: dict[int, type[Error]] = {
    1: StepFailed,
    2: InvalidWorkflow,
    3: AssertionFailed,
    4: StoreFailed,
    130: Interrupted,
}


def failure(exit_code: int, message: str, diagnostics: tuple[Diagnostic, ...] = ()) -> Error:
    """The exception for an exit code."""
    if diagnostics:
        message = "\n".join(str(diagnostic) for diagnostic in diagnostics)
    if "not computed yet" in message:
        return NotComputed(message, exit_code, diagnostics)
    if exit_code < 0:
        message = message or f"galeras was ended by signal {-exit_code}"
    kind = _BY_EXIT_CODE.get(exit_code, Error)
    return kind(message or f"galeras ended with exit code {exit_code}", exit_code, diagnostics)
