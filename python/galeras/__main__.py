"""``python -m galeras …`` is ``galeras …``."""

import os
import subprocess
import sys

from ._program import program


def main() -> None:
    """Gives the process to the program; where that is impossible, waits for it."""
    command = [program(), *sys.argv[1:]]
    if os.name == "posix":
        os.execv(command[0], command)
    sys.exit(subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    main()
