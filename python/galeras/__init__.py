"""Galeras from Python: run workflows, and look at their results as tables.

The work is done by the program ``galeras``, which the wheel brings; this module starts it, reads
what it says, and opens the Parquet files of its store. The examples use the file that
``galeras init`` writes.

>>> import galeras
>>> study = galeras.Workflow("workflow.yaml", n=50)
>>> run = study.run()
>>> run.status
'ok'
>>> scores = study.table("scores")
>>> scores.num_rows
150
>>> scores.to_pandas().groupby("treatment").size().to_dict()
{'T1': 50, 'T2': 50, 'control': 50}
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
from ._program import doctor, program, version
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
    "doctor",
    "program",
    "version",
]
