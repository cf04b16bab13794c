"""Goal: the Python package does what its docstrings say, as a user has it: from a wheel, installed.

Method: installs this build's libraries into an empty prefix, builds a wheel against it (so that the
library itself is not compiled once more), installs that into an empty virtual environment, and
runs TESTS there. Ends with 77, which skips the test, where the build requirements cannot be had.

usage: wheel_test.py SOURCE_DIR BUILD_DIR WORK_DIR [PATTERN of tests]
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77
TESTS = ("python_api", "python_keyspaces", "python_updates", "python_beside_sqlite")


def run(*command: object, **arguments) -> None:
    words = [str(word) for word in command]
    print("+", *words, flush=True)
    subprocess.run(words, check=True, **arguments)


def build_requirements(source: pathlib.Path) -> list[str]:
    """Of pyproject.toml."""
    line = re.search(r"^requires = \[(.*)\]$", (source / "pyproject.toml").read_text(), re.M)
    return re.findall(r'"([^"]+)"', line.group(1))


def clean_environment() -> dict[str, str]:
    """Without what an outer virtual environment or a user's own packages would add."""
    ours = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "NACRE_POOL")
    return {name: value for name, value in os.environ.items() if name not in ours}


def main() -> int:
    source, build, work = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    patterns = [word for pattern in sys.argv[4:] for word in ("-k", pattern)]
    environment = clean_environment()
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    python = work / "venv" / "bin" / "python"
    run(sys.executable, "-m", "venv", work / "venv", env=environment)
    pip = (python, "-m", "pip", "--disable-pip-version-check")
    try:
        run(*pip, "install", "--quiet", *build_requirements(source), env=environment)
    except subprocess.CalledProcessError:
        print("the build requirements of the Python package cannot be had here")
        return SKIPPED
    run("cmake", "--install", build, "--prefix", work / "prefix", "--component", "development",
        stdout=subprocess.DEVNULL)
    run(*pip, "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", work / "wheels",
        f"--config-settings=cmake.define.NACRE_PREFIX={work / 'prefix'}",
        # Both compile in a fraction of the time.
        "--config-settings=cmake.build-type=Debug",
        "--config-settings=cmake.define.CMAKE_UNITY_BUILD=ON",
        f"--config-settings=build-dir={work / 'build'}", source, env=environment)
    run(*pip, "install", "--no-deps", "--no-index", *(work / "wheels").glob("nacre-*.whl"),
        env=environment)
    environment["NACRE_MEMNODE"] = str(build / "bin" / "nacre-memnode")
    environment["NACRE_SQLITE"] = str(build / "bin" / "nacre_sqlite.so")
    # Elsewhere, so that nothing but what is installed can be imported.
    environment["PYTHONPATH"] = str(source / "tests" / "adapters")
    run(python, "-B", "-X", "faulthandler", "-m", "unittest", "-v", *patterns, *TESTS,
        env=environment, cwd=work)
    shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
