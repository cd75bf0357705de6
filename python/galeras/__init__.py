"""Galeras from Python: run workflows, and look at their results as tables.

The work is done by the program ``galeras``, which the wheel brings; this module starts it, reads
what it says, and opens the Parquet files of its store.

>>> import galeras
>>> study = galeras.Workflow("workflows/quickstart.yaml", seed=7)
>>> study.run()                                                     # doctest: +SKIP
>>> study.table("scores").to_pandas()                               # doctest: +SKIP
"""

from ._errors import (
    AssertionFailed,
    Diagnostic,
    Error,
    Interrupted,
    InvalidWorkflow,
    NotComputed,
    ProgramNotFound,
    StepFailed,
    StoreFailed,
)
from ._program import program, version
from ._results import Output, Plan, PlannedStep, Run, StepResult
from ._workflow import Workflow

__all__ = [
    "AssertionFailed",
    "Diagnostic",
    "Error",
    "Interrupted",
    "InvalidWorkflow",
    "NotComputed",
    "Output",
    "Plan",
    "PlannedStep",
    "ProgramNotFound",
    "Run",
    "StepFailed",
    "StepResult",
    "StoreFailed",
    "Workflow",
    "program",
    "version",
]
