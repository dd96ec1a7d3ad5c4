# SPDX-License-Identifier: Apache-2.0
"""Build wheel and sdist, and use the wheel as a user does: in new environments, elsewhere.

Usage: python scripts/check_wheel.py [PYTHON:DEPENDENCIES ...]

PYTHON is a version such as 3.13, and DEPENDENCIES is ``oldest`` (the versions of
tests/wheel/oldest.txt) or ``newest``. Default: all combinations that exist. A version of Python
that is not installed is skipped with a message. The script prints the time of each step, and the
sizes of packages and environments.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).resolve().parents[1]
OLDEST = ROOT / "tests/wheel/oldest.txt"
DEFAULT = ("3.11:oldest", "3.11:newest", "3.12:newest", "3.13:newest")
"""The oldest versions of some packages have no wheels for newer versions of Python."""

PORT = 28461
MONTH = (
    "rebat run mira-like-june-2017 -p baseline -p sfsj --mtbf 1h --downtime 1h "
    "--checkpoint young-daly"
)
COMMANDS = (
    "rebat --version",
    "rebat toy",
    f"{MONTH} --out month",
    f"{MONTH} --out again --figures --format parquet",
    "rebat view month --no-browser",
    "rebat campaign run node_stealing/quick --limit 4 --workers 2",
    "rebat campaign report node_stealing/quick --figures",
    "rebat cite month",
    "rebat bundle month -o month.zip",
    "rebat reproduce month.zip",
    "python -W error::DeprecationWarning -c 'import rebat'",
)
"""What a user does first. The second command compiles the kernels, the third the loop."""

WHEEL_ENDINGS = {
    ".bib", ".css", ".csv", ".events", ".gz", ".html", ".js", ".json", ".jsonl", ".md", ".py",
    ".toml", ".txt", ".typed", ".xml",
}  # fmt: skip
METADATA = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
IN_SDIST = {"CITATION.cff", "LICENSE", "README.md", "SECURITY.md", "pyproject.toml"}
NOT_IN_SDIST = {".ci", ".git", ".venv", "build", "dist", "out", "traces"}


def main(combinations: list[str]) -> None:
    """Check the packages, then each combination of Python and dependencies."""
    with tempfile.TemporaryDirectory(prefix="rebat-wheel-") as folder:
        work = Path(folder)
        wheel = build(work)
        done = [
            use(python, dependencies, wheel, work)
            for python, _, dependencies in (text.partition(":") for text in combinations)
        ]
    if not any(done):
        raise SystemExit("no version of Python was checked")


def build(work: Path) -> Path:
    """Build wheel and sdist, check their contents, and return the wheel."""
    tools = Environment(Path(sys.executable), work / "tools", work)
    tools.run("pip install --quiet build twine")
    tools.run(f"python -m build --outdir {work}/dist {ROOT}")
    tools.run(f"twine check --strict {work}/dist/rebat-*")
    (wheel,), (sdist,) = (work / "dist").glob("*.whl"), (work / "dist").glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        check_wheel(archive.namelist())
    with tarfile.open(sdist) as archive:
        check_sdist({name.partition("/")[2] for name in archive.getnames()})
    for package in (wheel, sdist):
        print(f"{package.name}: {package.stat().st_size / 1e6:.1f} MB")
    return wheel


def check_wheel(names: list[str]) -> None:
    """Check that a wheel contains the package and its metadata, and nothing else."""
    metadata = {name.partition(".dist-info/")[2] for name in names if ".dist-info/" in name}
    if metadata != METADATA:
        raise SystemExit(f"the metadata of the wheel is {sorted(metadata)}")
    others = [name for name in names if ".dist-info/" not in name]
    stray = [
        name
        for name in others
        if not name.startswith("rebat/")
        or Path(name).suffix not in WHEEL_ENDINGS
        or {"tests", "traces", "__pycache__"} & {*Path(name).parts}
    ]
    if stray or "rebat/py.typed" not in others:
        raise SystemExit(f"the wheel contains {stray}, or lacks py.typed")


def check_sdist(names: set[str]) -> None:
    """Check that an sdist contains the files that a packager needs, and no local files."""
    top = {name.partition("/")[0] for name in names}
    stray = {name for name in names if name.endswith((".pyc", ".nbi", ".nbc"))}
    if IN_SDIST - top or NOT_IN_SDIST & top or stray:
        problem = f"lacks {IN_SDIST - top}, or contains {NOT_IN_SDIST & top or stray}"
        raise SystemExit(f"the sdist {problem}")


def use(version: str, dependencies: str, wheel: Path, work: Path) -> bool:
    """Install the wheel into a new environment and run the commands. Return whether it ran."""
    python = interpreter(version)
    if python is None:
        print(f"!!!! SKIPPED: Python {version} is not installed ({version}:{dependencies})")
        return False
    print(f"==== Python {version}, {dependencies} dependencies")
    place = work / f"{version}-{dependencies}"
    place.mkdir()
    env = Environment(python, place / "env", place)
    constraint = f" --constraint {OLDEST}" if dependencies == "oldest" else ""
    env.run(f"pip install --quiet '{wheel}[campaign]'{constraint}")
    env.run("pip check")
    for command in COMMANDS:
        env.run(command)
    env.run(f"rebat serve --policy sfsj --endpoint tcp://127.0.0.1:{PORT} --out served", wait=False)
    data = place / "env/lib" / f"python{version}" / "site-packages/rebat/shipped"
    env.run(
        f"rebat simulate -w {data}/workloads/toy.json --events {data}/failure_events/toy.events "
        f"-s tcp://127.0.0.1:{PORT} -e wire --enable-dynamic-jobs --acknowledge-dynamic-jobs "
        "--enable-profile-reuse"
    )
    env.end()
    size = sum(path.lstat().st_size for path in env.folder.rglob("*"))
    print(f"  environment: {size / 1e6:.0f} MB")
    shutil.rmtree(place)
    return True


def interpreter(version: str) -> Path | None:
    """Return the interpreter of a version, from the PATH or from pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    program = shutil.which(f"python{version}")
    places = [Path(program)] if program else []
    for path in [*places, *sorted(pyenv.glob(f"{version}.*/bin/python{version}"))]:
        text = "import sys; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([path, "-c", text], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return path
    return None


class Environment:
    """A virtual environment whose commands run in ``work``, without variables of the caller."""

    def __init__(self, python: Path, folder: Path, work: Path) -> None:
        self.folder, self.work = folder, work
        self._server: subprocess.Popen[bytes] | None = None
        self._variables = {
            "HOME": str(work),
            "LANG": "C.UTF-8",
            "PATH": os.pathsep.join((f"{folder}/bin", "/usr/bin", "/bin")),
        }
        for name in os.environ:
            if name.startswith(("PIP_", "SSL_", "REQUESTS_")) or name.lower().endswith("_proxy"):
                self._variables[name] = os.environ[name]
        subprocess.run([python, "-m", "venv", folder], check=True)

    def run(self, command: str, wait: bool = True) -> None:
        """Run a command and print its time. If it fails, print its output and exit."""
        began_s, log = monotonic(), self.work / "log.txt"
        # exec: a signal reaches the command, not the shell
        words, options = (
            ["bash", "-c", f"exec {command}"],
            {"cwd": self.work, "env": self._variables},
        )
        if not wait:
            self._server = subprocess.Popen(
                words, **options, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            return
        with log.open("wb") as file:
            done = subprocess.run(
                words, **options, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                timeout=600, check=False,
            )  # fmt: skip
        shown = command if len(command) < 90 else f"{command[:87]}..."
        print(f"  {monotonic() - began_s:6.1f} s  {shown}", flush=True)
        if done.returncode:
            self.end()
            raise SystemExit(f"{log.read_text()}\nfailed with status {done.returncode}: {command}")

    def end(self) -> None:
        """Wait for the server, which ends with its simulation. If it does not end, terminate it."""
        if self._server is not None:
            try:
                status = self._server.wait(20)
            except subprocess.TimeoutExpired:
                self._server.terminate()
                status = self._server.wait()
            self._server = None
            if status:
                raise SystemExit(f"rebat serve ended with status {status}")


if __name__ == "__main__":
    main(sys.argv[1:] or [*DEFAULT])
