"""The hosts file of a cluster: which machine plays which role.

    # role   host           more
    memory   10.0.0.1       address=192.168.7.1 port=7100
    memory   10.0.0.2
    compute  10.0.0.9

A host is what the shell (ssh) takes. A memory node listens at `address`, by default the host, and
at `port`, by default 7100, and at the ports behind it when a figure has more nodes than hosts.
"""

import pathlib
from dataclasses import dataclass

from workload import CompareError

PORT = 7100


@dataclass(frozen=True)
class MemoryHost:
    name: str
    address: str
    port: int = PORT


@dataclass(frozen=True)
class Hosts:
    memory: tuple[MemoryHost, ...]
    compute: tuple[str, ...]

    def names(self) -> list[str]:
        """Each machine once, also one with both roles."""
        return list(dict.fromkeys([*(host.name for host in self.memory), *self.compute]))


def memory_host(name: str, words: list[str]) -> MemoryHost:
    options = {"address": name, "port": str(PORT)}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in options or not value:
            raise CompareError(f"'{word}' is neither address=... nor port=...")
        options[key] = value
    if not options["port"].isdigit() or not 0 < int(options["port"]) < 1 << 16:
        raise CompareError(f"port={options['port']} is no port")
    return MemoryHost(name, options["address"], int(options["port"]))


def parse_line(line: str, memory: list[MemoryHost], compute: list[str]) -> None:
    role, *words = line.split()
    if not words:
        raise CompareError(f"'{role}' without a host")
    if role == "memory":
        memory.append(memory_host(words[0], words[1:]))
    elif role == "compute" and len(words) == 1:
        compute.append(words[0])
    else:
        raise CompareError("a line is 'memory HOST [address=A] [port=P]' or 'compute HOST'")


def read_hosts(path: pathlib.Path) -> Hosts:
    """Raises CompareError naming the line that makes no sense, or the role that has no host."""
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise CompareError(f"{path}: {error.strerror}") from error
    memory: list[MemoryHost] = []
    compute: list[str] = []
    for number, line in enumerate(lines, 1):
        line = line.partition("#")[0].strip()
        try:
            if line:
                parse_line(line, memory, compute)
        except CompareError as error:
            raise CompareError(f"{path}:{number}: {error}") from error
    for role, hosts in (("memory", memory), ("compute", compute)):
        if not hosts:
            raise CompareError(f"{path} has no host with the role {role}")
        if len(set(hosts)) != len(hosts):
            raise CompareError(f"{path} has the same {role} host twice")
    return Hosts(tuple(memory), tuple(compute))
