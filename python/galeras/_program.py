"""Finds the program, starts it, and reads the events that it writes, one JSON object a line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ._errors import Diagnostic, ProgramNotFound, failure

Event = dict[str, Any]


def program() -> str:
    """The path of the program.

    ``GALERAS_PROGRAM`` if it is set; else what the wheel installed for this interpreter, for
    ``pip install --user``, or with ``--target``; else what the search path has.

    Raises:
        ProgramNotFound: if there is none.

    >>> galeras.program()
    '...galeras'
    """
    named = os.environ.get("GALERAS_PROGRAM")
    if named:
        return named
    name = "galeras" + (sysconfig.get_config_var("EXE") or "")
    folders = [sysconfig.get_path("scripts")]
    user_scheme = sysconfig.get_preferred_scheme("user")
    folders.append(sysconfig.get_path("scripts", scheme=user_scheme))
    folders.append(str(Path(__file__).parent.parent / "bin"))
    for folder in folders:
        if folder and os.access(Path(folder) / name, os.X_OK):
            return str(Path(folder) / name)
    on_path = shutil.which(name)
    if on_path:
        return on_path
    raise ProgramNotFound(
        "there is no program `galeras` in this environment: install the wheel, or let "
        "GALERAS_PROGRAM name one"
    )


@cache
def version() -> str:
    """The version of the program, as ``galeras --version`` says it.

    >>> galeras.version()
    '0...'
    """
    return output(["--version"]).decode().split()[-1]


def doctor(*, cache: str | os.PathLike[str] | None = None) -> Event:
    """What this machine offers: layers of the sandbox, interpreters, tools, memory and space.

    ``cache`` is the store whose free space is wanted, as of :class:`galeras.Workflow`. A layer that
    is missing has its ``reason`` and, if there is one, the ``remedy``.

    >>> machine = galeras.doctor()
    >>> machine["galeras"] == galeras.version(), machine["memory"] > 0
    (True, True)
    >>> [layer["layer"] for layer in machine["sandbox"]["layers"]][:2]
    ['no_new_privs', 'landlock_files']
    """
    store = [] if cache is None else [f"--cache={os.fspath(cache)}"]
    (found,) = events(["doctor", *store, "--format", "json"])
    return found


def output(arguments: Sequence[str]) -> bytes:
    """What the program writes to standard output, whole.

    Raises:
        Error: of the kind that its exit code says, with what it wrote to standard error.
    """
    done = subprocess.run([program(), *arguments], capture_output=True, check=False)
    if done.returncode != 0:
        events = list(_events(done.stdout.splitlines()))
        raise failure(done.returncode, _message(done.stderr), diagnostics(events))
    return done.stdout


def events(arguments: Sequence[str], expected: Sequence[int] = (0,)) -> Iterator[Event]:
    """The events of a call, as the program writes them.

    An interrupt of Python (the stop button of a notebook, Ctrl-C) interrupts the program and waits
    until it has ended in order. Standard error goes into a file, so that neither pipe can fill up
    while the other is read.

    Raises:
        Error: if the exit code is none of ``expected``; after the last event.
    """
    told: list[Event] = []
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen([program(), *arguments], stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        assert process.stdout is not None
        try:
            for event in _events(process.stdout):
                if event["event"] in ("diagnostic", "assertion", "finished", "step_finished"):
                    told.append(event)
                yield event
        except BaseException:
            # Also a generator that nobody reads on: the program must not outlive it.
            if process.poll() is None:
                process.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)
            process.stdout.close()
            process.wait()
            raise
        exit_code = process.wait()
        errors.seek(0)
        message = _message(errors.read())
    if exit_code not in expected:
        raise failure(exit_code, _reasons(told) or message, diagnostics(told))
    if message:
        print(message, file=sys.stderr)


def diagnostics(events: Sequence[Event]) -> tuple[Diagnostic, ...]:
    """What is wrong with a workflow, of the events of a call."""
    return tuple(Diagnostic.of(event) for event in events if event["event"] == "diagnostic")


def _events(lines: Any) -> Iterator[Event]:
    for line in lines:
        if line.strip():
            try:
                event = json.loads(line)
            except ValueError:
                continue  # Rows that a verb printed before it failed are not events.
            if isinstance(event, dict) and "event" in event:
                yield event


def _reasons(events: Sequence[Event]) -> str:
    """Why a run failed: its failed assertions, else its failed steps."""
    failed = [e for e in events if e["event"] == "step_finished" and e["status"] == "failed"]
    return "\n".join(f"step `{event['step']}`: {event['detail']}" for event in failed)


def _message(written: bytes) -> str:
    text = written.decode("utf-8", "replace").strip()
    return text.removeprefix("error: ")
