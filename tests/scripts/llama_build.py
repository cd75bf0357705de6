"""Builds llama-cpp-python for `real_server.py`; a build that was stopped goes on where it was.

The package has no wheels, and building it takes some five minutes of two cores. `pip install` of
its name would unpack and build it in temporary folders: stopped by ctrl-C or a limit of time, it
begins again from nothing. Here sources and objects stay in the virtual environment's folder.
"""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

NAME = "llama-cpp-python"
# What builds it; not from an isolated environment, whose folder would be another one each time.
TOOLS = ["scikit-build-core==1.1.2", "cmake==4.4.4", "ninja==1.13.2"]


def installed(python: Path, version: str) -> bool:
    probe = f"import importlib.metadata as m; assert m.version({NAME!r}) == {version!r}"
    return (
        python.exists()
        and subprocess.run([python, "-c", probe], capture_output=True).returncode == 0
    )


def quickly(folder: Path) -> dict:
    """Variables for a build of llama.cpp without what the server does not need for text, which is
    more than half, and hardly optimised, which is fast enough for so small a model. What the
    caller has set stays."""
    # The package's CMakeLists.txt sets this option itself, so it is shadowed by a variable.
    shadow = folder / "without_common.cmake"
    shadow.write_text("set(LLAMA_BUILD_COMMON OFF)\n")
    options = [
        f"-DCMAKE_PROJECT_llama_cpp_INCLUDE={shadow}",
        "-DLLAVA_BUILD=OFF",
        "-DGGML_LLAMAFILE=OFF",
        "-DCMAKE_CXX_FLAGS_RELEASE=-O0",
        "-DCMAKE_C_FLAGS_RELEASE=-O1",
    ]
    ours = {"CMAKE_ARGS": " ".join(options), "CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count())}
    return {**ours, **os.environ}


def sources(python: Path, folder: Path, version: str) -> Path:
    """The unpacked source archive, whole."""
    unpacked = folder / f"llama_cpp_python-{version}"
    if not unpacked.exists():
        pip = [python, "-m", "pip", "download", "-q", "--no-deps", "--no-build-isolation"]
        where = ["--no-binary", NAME, "-d", folder, f"{NAME}=={version}"]
        subprocess.run([*pip, *where], check=True)
        part = folder / "part"
        shutil.rmtree(part, ignore_errors=True)
        with tarfile.open(folder / f"{unpacked.name}.tar.gz") as archive:
            archive.extractall(part, filter="data")
        (part / unpacked.name).rename(unpacked)
    return unpacked


def build(venv: Path, version: str) -> None:
    """Installs this version in the virtual environment, which is made if there is none."""
    python = venv / "bin" / "python"
    if installed(python, version):
        return
    folder = venv.resolve() / "llama"
    print(f"building llama.cpp in {folder}, which takes minutes", file=sys.stderr, flush=True)
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    folder.mkdir(exist_ok=True)
    subprocess.run([python, "-m", "pip", "install", "-q", *TOOLS], check=True)
    # pip calls the tools of the environment by their names.
    env = quickly(folder)
    env["PATH"] = f"{venv.resolve() / 'bin'}:{env['PATH']}"
    unpacked = sources(python, folder, version)
    pip = [python, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps"]
    kept = f"--config-settings=build-dir={folder / 'build'}"
    subprocess.run([*pip, kept, unpacked], check=True, env=env)
