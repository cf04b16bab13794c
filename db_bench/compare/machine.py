"""What the numbers were measured on."""

import datetime
import os
import pathlib
import platform
import subprocess
from typing import Optional


def first_value(path: str, name: str) -> Optional[str]:
    """Of the first line `name : value` of a file in /proc."""
    try:
        for line in pathlib.Path(path).read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    except OSError:
        pass
    return None


def commit() -> str:
    """Of the tree this file is in, with a plus when files differ from it."""
    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=pathlib.Path(__file__).parent, check=True,
                              capture_output=True, text=True).stdout.strip()
    try:
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def describe(rocksdb: Optional[str]) -> dict[str, str]:
    """`rocksdb`: its version and build; None if it was not run."""
    memory_kib = int((first_value("/proc/meminfo", "MemTotal") or "0").split()[0])
    described = {
        "cpu": first_value("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory_kib / (1 << 20):.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
    }
    return described if rocksdb is None else described | {"rocksdb": rocksdb}


def sentence(machine: dict[str, str]) -> str:
    rocksdb = f", RocksDB {machine['rocksdb']}" if "rocksdb" in machine else ""
    return (f"{machine['cpu']}, {machine['cores']} cores, {machine['memory']} of memory, "
            f"{machine['kernel']}{rocksdb}; {machine['date']}, "
            f"commit {machine['commit']}")
