"""What a run says while it goes on: one display in a notebook, lines elsewhere."""

from __future__ import annotations

import sys
from html import escape
from typing import Any

from ._program import Event


class Progress:
    """Follows the events of a run. It says nothing until a step begins to compute."""

    def __init__(self, show: bool) -> None:
        self._show = show
        self._steps = 0
        self._begun = 0
        self._seconds_left: float | None = None
        self._running: dict[str, dict[str, Any]] = {}
        self._handle: Any = None

    def follow(self, event: Event) -> None:
        """Takes an event in, and shows what changed by it."""
        if not self._show:
            return
        kind = event["event"]
        if kind == "run_progress":
            self._begun, self._steps = event["begun"], event["steps"]
            self._seconds_left = event["seconds_left"]
        elif kind == "step_started":
            self._running[event["step"]] = {"unit": event["unit"], "done": 0, "total": None}
        elif kind == "step_total" and event["step"] in self._running:
            self._running[event["step"]]["total"] = event["total"]
        elif kind == "progress" and event["step"] in self._running:
            self._running[event["step"]]["done"] = event["done"]
        elif kind == "step_finished":
            self._running.pop(event["step"], None)
            if event["status"] in ("ran", "failed") and not in_notebook():
                line = f"  {event['step']}  {event['status']}  {event['rows']:,} rows"
                print(f"{line}  {event['seconds']:.1f} s", file=sys.stderr)
            if event["status"] == "hit":
                return
        else:
            return
        if in_notebook():
            self._draw()

    def end(self) -> None:
        """The run is over: a notebook's display says nothing any more."""
        if self._handle is not None:
            self._handle.update(_html(""))

    def _draw(self) -> None:
        from IPython.display import display  # A notebook has it.

        content = _html(self._lines())
        if self._handle is None:
            self._handle = display(content, display_id=True)
        else:
            self._handle.update(content)

    def _lines(self) -> str:
        left = ""
        if self._seconds_left is not None:
            left = f", about {self._seconds_left:.0f} s left in all"
        lines = [f"<div>step {self._begun} of {self._steps}{left}</div>"]
        for step, state in self._running.items():
            total = state["total"]
            value = f'value="{state["done"]}" max="{total}"' if total else ""
            count = f"{state['done']:,}" + (f" of {total:,}" if total else "")
            bar = f'<progress aria-label="{escape(step, quote=True)}" {value}></progress>'
            lines.append(f"<div>{bar} {escape(step)}: {count} {escape(state['unit'])}</div>")
        return "".join(lines)


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this, so that displays can be updated."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and getattr(shell, "kernel", None) is not None


def _html(text: str) -> Any:
    from IPython.display import HTML

    return HTML(text)
