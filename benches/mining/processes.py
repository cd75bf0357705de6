"""Time, configuration and window: what all that is measured shares."""

import argparse
import datetime
import resource
from pathlib import Path

from harness import environment


def git_environment(work: Path) -> dict:
    """No configuration but what this script needs: any owner of a repository will do."""
    config = work / "gitconfig"
    if not config.exists():
        config.write_text("[safe]\n\tdirectory = *\n")
    return {**environment(), "GIT_CONFIG_GLOBAL": str(config), "GIT_CONFIG_NOSYSTEM": "1"}


def processor_seconds() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime


def ends(args: argparse.Namespace) -> tuple:
    """The first and the last second of the window."""
    zone = datetime.UTC
    first, after = (
        datetime.datetime.combine(day, datetime.time(), zone) for day in (args.since, args.until)
    )
    return first, after - datetime.timedelta(seconds=1)
