"""Every example in a docstring runs and says the truth, and whatever is public has one.

The examples use the file that `galeras init` writes. They share a folder, in which it has been run
once. `GALERAS_PROGRAM` names the program; without it, it is the one that is installed.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
from pathlib import Path

import pytest

import galeras

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# With these, an example would not be tried.
NOT_HERE = [doctest.SKIP, doctest.IGNORE_EXCEPTION_DETAIL]


def documented() -> list[doctest.DocTest]:
    """The docstrings with examples, of all modules; these need no `import galeras`."""
    modules = [galeras]
    for module in pkgutil.iter_modules(galeras.__path__, "galeras."):
        if module.name != "galeras.__main__":  # It gives the process to the program.
            modules.append(importlib.import_module(module.name))
    finder = doctest.DocTestFinder(exclude_empty=True)
    names = {"galeras": galeras}
    found = [test for module in modules for test in finder.find(module, globs=names)]
    return [test for test in found if test.examples]


EXAMPLES = documented()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("docstrings")
    subprocess.run([galeras.program(), "init"], cwd=made, check=True, capture_output=True)
    command = [galeras.program(), "run", "workflow.yaml", "--set", "n=50"]
    subprocess.run(command, cwd=made, check=True, capture_output=True)
    return made


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_says_the_truth(
    example: doctest.DocTest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("GALERAS_CACHE", raising=False)
    said: list[str] = []
    outcome = doctest.DocTestRunner(optionflags=OPTIONS).run(example, out=said.append)
    assert outcome.failed == 0, "".join(said)
    assert outcome.attempted == len(example.examples)
    assert not any(flag in line.options for line in example.examples for flag in NOT_HERE)


def test_the_page_of_the_module_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("GALERAS_CACHE", raising=False)
    page = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    assert "seed=7" in code
    exec(code.replace("seed=7", "seed=7, n=50"), {})  # Fewer methods than there, for time.


def test_what_is_public_has_an_example() -> None:
    with_example = {example.name.removeprefix("galeras.").split(".", 1)[-1] for example in EXAMPLES}
    wanted = set()
    for name in galeras.__all__:
        thing = getattr(galeras, name)
        assert inspect.getdoc(thing), f"{name} is not documented"
        # Exceptions are told apart by their name; what they carry is shown at their parent.
        if not (inspect.isclass(thing) and issubclass(thing, galeras.Error)):
            wanted.add(name)
    for name, thing in vars(galeras.Workflow).items():
        if not name.startswith("_") and (callable(thing) or isinstance(thing, property)):
            wanted.add(f"Workflow.{name}")
    assert wanted - with_example == set()
