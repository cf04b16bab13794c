"""What the numbers were measured on."""

import datetime
import os
import pathlib
import platform
import subprocess
from typing import Optional

PEERS = {"rocksdb": "RocksDB", "lmdb": "LMDB"}


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


def describe_tree() -> dict[str, str]:
    """What was measured, and when."""
    return {"date": datetime.date.today().isoformat(), "commit": commit()}


def describe(peers: dict[str, str]) -> dict[str, str]:
    """`peers`: version and build of each engine but Nacre that was run, by its name."""
    memory_kib = int((first_value("/proc/meminfo", "MemTotal") or "0").split()[0])
    described = {
        "cpu": first_value("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory_kib / (1 << 20):.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
    }
    return described | describe_tree() | peers


def sentence(machine: dict[str, str]) -> str:
    peers = "".join(f", {name} {machine[peer]}" for peer, name in PEERS.items() if peer in machine)
    return (f"{machine['cpu']}, {machine['cores']} cores, {machine['memory']} of memory, "
            f"{machine['kernel']}{peers}; {machine['date']}, "
            f"commit {machine['commit']}")
