"""A laboratory of several machines: memory nodes and compute nodes run where a hosts file says."""

import contextlib
import pathlib
import secrets
import time
from typing import Any, Iterator, Sequence

from hosts import Hosts
from measure import NODE_START_SECONDS, PROCESS_SECONDS_MAX, end
from papers.lab import TICKS_PER_SECOND, Job, Lab
from shells import RemoteProcess, Shell
from workload import CompareError

BINARIES = ("nacre-memnode", "db_bench")


class NotHere(CompareError):
    """A figure needs what processes of one machine have only."""


class Cluster:
    """The machines, with a folder on each for what a run writes. `close` removes these."""

    def __init__(self, hosts: Hosts, shell: Shell, scheme: str, binaries: str):
        self.hosts = hosts
        self.shell = shell
        self.scheme = scheme
        # The folder of the binaries on every host; "": they are copied into `folders`.
        self.binaries = binaries
        self.folders: dict[str, str] = {}  # By host; one of its own for each.

    def open(self, copied: pathlib.Path | None) -> None:
        """Makes the folders and the pool's secret, and sends the binaries of `copied`, if any."""
        secret = secrets.token_hex(32).encode()
        if copied is not None:
            self.binaries = ""
        for host in self.hosts.names():
            folder = self.shell.script(
                host, "umask 077\nfolder=$(mktemp -d -t nacre-cluster-XXXXXX) || exit 1\n"
                      ": >$folder/secret\necho $folder").strip()
            self.folders[host] = folder
            self.shell.call(host, ["tee", f"{folder}/secret"], secret)
            for binary in BINARIES:
                if copied is not None:
                    self.shell.upload(host, copied / binary, f"{folder}/{binary}", "755")
                path = self.binary(host, binary)
                self.shell.script(host, f"test -x '{path}' || {{ echo there is no '{path}' >&2; "
                                        "exit 1; }")

    def binary(self, host: str, name: str) -> str:
        return f"{self.binaries or self.folders[host]}/{name}"

    def close(self) -> None:
        for host, folder in self.folders.items():
            with contextlib.suppress(CompareError):
                self.shell.call(host, ["rm", "-rf", folder])

    def start(self, host: str, name: str, arguments: list) -> RemoteProcess:
        """A process of the binary of this name."""
        return self.shell.start(host, [self.binary(host, name), *arguments],
                                {"NACRE_SECRET_FILE": f"{self.folders[host]}/secret"})

    def describe(self) -> dict[str, str]:
        """The machine of the first compute node; all are taken to be like it."""
        cpu, cores, memory, kernel = self.shell.script(self.hosts.compute[0], (
            "sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1\nnproc\n"
            "awk '/^MemTotal/ { print int($2 / 1048576 + 0.5) }' /proc/meminfo\nuname -sr\n"
        )).splitlines()
        return {"cpu": cpu, "cores": cores, "memory": f"{memory} GiB", "kernel": kernel}


class ClusterLab(Lab):
    """Nodes and owners go to the hosts of their roles in turn. The network is the one there is:
    models of networks are left out."""

    db_bench = "db_bench"

    def __init__(self, cluster: Cluster, runs: pathlib.Path, num: int, show: Any):
        super().__init__(pathlib.Path(), runs, runs, num, show)
        self.cluster = cluster
        self.where: dict[int, str] = {}  # Hosts of memory nodes, by the process that runs them.

    def check_binaries(self) -> None:
        """They are not on this machine; Cluster.open has looked for them."""

    def counts(self, hosts: int) -> Sequence[int]:
        powers = [1 << power for power in range(hosts.bit_length()) if 1 << power <= hosts]
        return powers if powers[-1] == hosts else [*powers, hosts]

    def computes(self) -> Sequence[int]:
        return self.counts(len(self.cluster.hosts.compute))

    def memories(self) -> Sequence[int]:
        return self.counts(len(self.cluster.hosts.memory))

    def cores(self, most: int) -> list[int]:
        least = min([most, *(int(self.cluster.shell.script(host.name, "nproc"))
                             for host in self.cluster.hosts.memory)])
        return self.counts(least)

    def compute_host(self, number: int) -> str:
        return self.cluster.hosts.compute[number % len(self.cluster.hosts.compute)]

    @contextlib.contextmanager
    def pool(self, count: int, size: int, network: str,
             flags: tuple[str, ...] = ()) -> Iterator[tuple[str, list[RemoteProcess]]]:
        nodes, addresses = [], []
        hosts = self.cluster.hosts.memory
        try:
            for i in range(count):
                host = hosts[i % len(hosts)]
                addresses.append(f"{host.address}:{host.port + i // len(hosts)}")
                nodes.append(self.cluster.start(host.name, "nacre-memnode", [
                    f"--size={size}", f"--listen={self.cluster.scheme}:{addresses[-1]}",
                    "--populate", *flags]))
                self.where[nodes[-1].pid] = host.name
            deadline = time.monotonic() + NODE_START_SECONDS
            for node in nodes:
                node.await_text(b"ready:", deadline)
            yield f"{self.cluster.scheme}:" + ",".join(addresses), nodes
        finally:
            for node in nodes:
                node.close_input()  # All end at the same time.
            for node in nodes:
                end(node)

    def hold_to(self, nodes: list[RemoteProcess], cores: int) -> None:
        for node in nodes:
            self.cluster.shell.call(self.where[node.pid], [
                "taskset", "-acp", f"0-{cores - 1}", str(node.pid_there)])

    def cpu_seconds(self, nodes: list[RemoteProcess]) -> float:
        ticks = 0
        for node in nodes:
            if node.poll() is None:
                text = self.cluster.shell.call(
                    self.where[node.pid], ["cat", f"/proc/{node.pid_there}/stat"]).decode()
                ticks += sum(map(int, text.rpartition(")")[2].split()[11:13]))
        return ticks / TICKS_PER_SECOND

    def execute(self, command: list, title: str, files: str) -> None:
        process = self.launch(command)
        try:
            output, _ = process.communicate(timeout=PROCESS_SECONDS_MAX)
        finally:
            end(process)
        if process.returncode != 0:
            lines = output.decode(errors="replace").strip().splitlines()
            raise CompareError(f"{title}: {process.title}: {lines[-1] if lines else 'no word'}")
        self.collect(files)

    def launch(self, command: list, number: int = 0) -> RemoteProcess:
        host = self.compute_host(number)
        return self.cluster.start(host, self.db_bench, [
            str(word).replace(str(self.runs), self.cluster.folders[host]) for word in command[1:]])

    def collect(self, files: str, number: int = 0) -> None:
        host = self.compute_host(number)
        self.cluster.shell.download(host, self.cluster.folders[host],
                                    pathlib.PurePath(files).name, self.runs)

    def kill_flags(self, job: Job, nodes: list[RemoteProcess]) -> list[str]:
        raise NotHere("db_bench kills nodes of its own machine only")

    def perf(self, operation: str, size: int, network: str = "", depth: int = 1,
             seconds: float = 0.5) -> dict:
        raise NotHere("nacre-perf measures the transport of one machine here")

    def micro_millis(self, binary: str, benchmark: str, argument: int) -> float:
        raise NotHere("a microbenchmark needs no cluster")
