"""Kills and damage by the thousand: never a wrong result, never a panic, never paid twice.

What it shows: three small workflows (`methods` of a folder up to `regress`; a search, clones and
`mine`; a paid model) run undisturbed once, as they are and with edits. Then, from a seed:

- *kills*: runs get SIGKILL, SIGTERM, SIGINT or SIGHUP at a random instant, one to three times on
  one store, alone or two at a time. After each kill `cache verify` must find nothing; the run
  after the last one must end well, with every digest and the bytes of every output as undisturbed,
  and one more run must hit everywhere. An answer that had counted is never asked for again.
- *damages*: in a copy of a store, finished or of a killed run, one file of some kind gets a flipped
  bit or byte, is cut, swapped, deleted, replaced by a folder, nothing or garbage, or appended to.
  The next run, of the workflow or of an edit that computes from what is damaged, may refuse with
  an error but must not give another result with exit code 0. After `cache verify --repair`, a run
  gives the truth, of the edit and of the workflow. Where the time of the file was put back, only
  `verify` can know: then all of this holds after the repair, whatever was computed before.

A panic, an end by a signal that nobody sent, and a run of over three minutes are violations
everywhere.

How to run it: `python3 tests/scripts/chaos.py [--binary PATH] [--kills 700] [--paid-kills 300]
[--damages 1000] [--seed 1] [--jobs 2] [--keep DIR]`. Needs the `git` program. Takes some two
seconds of a core per case, and less with TMPDIR on a disk in memory. `--among REGEX` takes only
damages that are called so, such as `finished table: bit`. `--only CASE` repeats one case: a damage
exactly, if `--keep` names the folder of the run that found it; a kill at about the same instant.
With `--keep` the folders of failed cases stay there. An interrupt ends it with the report so far.

What it prints: the kills per workflow, signal and step at work; a table of the damages, kind of
file by kind of damage; the violations, each with the command that repeats it. Exit code 1 if there
is one.
"""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from chaos.command import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(__doc__))
