"""A small pool that lives, for the tests of what watches it: nodes, an owner, a follower and an
archive, each of which shows its metrics at a port of this machine, and a Prometheus that scrapes
them all."""

import json
import pathlib
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "db_bench" / "compare"))
from free_ports import free_ports  # noqa: E402

SECONDS_MAX = 120
# db_bench's.
DATABASE = "db_bench"
NODES = 4
# A second, so that this machine has time for what is tested.
OPERATIONS = "--target_ops_per_second=4000"


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.read().decode()


def await_true(what: str, condition, processes=()):
    """The first true answer of `condition`; fails after a time far beyond what it takes."""
    end = time.monotonic() + SECONDS_MAX
    while True:
        value = condition()
        if value:
            return value
        for process in processes:
            if process.poll() is not None:
                raise AssertionError(f"{process.args[0]} has ended with {process.returncode}")
        if time.monotonic() > end:
            raise AssertionError(f"not in time: {what}")
        time.sleep(0.1)


class LivePool:
    """Everything of it ends with `close`."""

    def __init__(self, binaries: pathlib.Path, folder: pathlib.Path):
        self.binaries = binaries
        self.folder = folder
        self.processes: list[subprocess.Popen] = []
        ports = free_ports(2 * NODES + 5)
        self.nodes = [f"tcp:127.0.0.1:{port}" for port in ports[:NODES]]
        self.node_metrics = [f"127.0.0.1:{port}" for port in ports[NODES:2 * NODES]]
        self.owner, self.follower, self.archive, self.server, self.prometheus = (
            f"127.0.0.1:{port}" for port in ports[2 * NODES:])
        self.uri = "tcp:" + ",".join(node.removeprefix("tcp:") for node in self.nodes)
        self.node_processes: list[subprocess.Popen] = []

    def close(self) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()

    def start(self, name: str, *arguments: str, metrics: str = "") -> subprocess.Popen:
        """The output goes to a file NAME.log, for people."""
        environment = {"PATH": "/usr/bin:/bin"} | ({"NACRE_METRICS": metrics} if metrics else {})
        binary = self.binaries / arguments[0]
        command = [str(binary) if binary.exists() else arguments[0], *arguments[1:]]
        with open(self.folder / f"{name}.log", "ab") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output,
                                       stdin=subprocess.DEVNULL, env=environment)
        self.processes.append(process)
        return process

    def log_of(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def start_node(self, index: int) -> subprocess.Popen:
        return self.start(f"node{index}", "nacre-memnode", f"--listen={self.nodes[index]}",
                          "--size=256MiB", "--slab_size=1MiB",
                          f"--metrics={self.node_metrics[index]}")

    def start_nodes(self) -> None:
        self.node_processes = [self.start_node(i) for i in range(NODES)]
        await_true("all nodes serve", lambda: all(
            "ready:" in self.log_of(f"node{i}") for i in range(NODES)), self.node_processes)

    def start_users(self) -> None:
        """The owner, and those that read what it has made."""
        # It does each kind of operation first, and then goes on until it is ended.
        owner = self.start(
            "owner", "db_bench", f"--pool={self.uri}", "--redundancy=rep(2)", "--num=20000",
            "--write_buffer_size=1048576", "--target_file_size_base=1048576",
            "--max_bytes_for_level_base=4194304", "--record_cache_size=1048576",
            "--multiread_batched", "--reads=2000", "--readwrites=1000000000", OPERATIONS,
            "--benchmarks=fillrandom,waitforcompaction,multireadrandom,seekrandom,readrandom,"
            "readrandomwriterandom", metrics=self.owner)
        await_true("the owner has filled its database and read from it", lambda: int(
            (re.findall(r"(?m)^nacre_db_keys_read_total{.*} (\d+)$", self.page(self.owner))
             or [0])[0]) > 2000, [owner])
        follower = self.start(
            "follower", "db_bench", f"--pool={self.uri}", "--use_existing_db",
            "--use_secondary_db", "--secondary_update_interval=0.1", "--num=20000",
            "--duration=100000", OPERATIONS, "--benchmarks=readrandom", metrics=self.follower)
        archive = self.start(
            "archive", "nacre-archive", f"--pool={self.uri}", f"--to={self.folder}/archives",
            DATABASE, metrics=self.archive)
        server = self.start(
            "server", "nacre-server", f"--pool={self.uri}", "--redundancy=rep(2)",
            "--slab_size=1048576", "--write_buffer_size=1048576", "--listen=127.0.0.1:0",
            metrics=self.server)
        for address in (self.owner, self.follower, self.archive, self.server):
            await_true(f"metrics at {address}", lambda at=address: self.page(at),
                       [owner, follower, archive, server])
        await_true("a base", lambda: "nacre_archive_base_timestamp_seconds" in self.page(
            self.archive), [archive])

    def page(self, address: str) -> str:
        """Empty as long as nothing listens there."""
        try:
            return fetch(f"http://{address}/metrics")
        except OSError:
            return ""

    def pages(self) -> list[str]:
        return [self.page(address)
                for address in (*self.node_metrics, self.owner, self.follower, self.archive,
                                self.server)]

    # ---- Prometheus ----

    def start_prometheus(self, rules: str) -> None:
        """With alerts that wait for a second where `rules` have them wait for longer."""
        (self.folder / "alerts.yml").write_text(re.sub(r"(?m)^( +for:) .*$", r"\1 1s", rules))
        jobs = (("nacre-memnode", self.node_metrics), ("nacre-db", [self.owner, self.follower]),
                ("nacre-archive", [self.archive]))
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s",
                       "evaluation_interval": "1s"},
            "rule_files": ["alerts.yml"],
            "scrape_configs": [
                {"job_name": job, "static_configs": [{"targets": targets,
                                                      "labels": {"pool": "main"}}]}
                for job, targets in jobs]}
        # JSON is YAML.
        (self.folder / "prometheus.yml").write_text(json.dumps(config))
        process = self.start(
            "prometheus", "prometheus", f"--config.file={self.folder}/prometheus.yml",
            f"--storage.tsdb.path={self.folder}/data", f"--web.listen-address={self.prometheus}",
            "--log.level=warn")

        def is_ready() -> bool:
            try:
                return bool(fetch(f"http://{self.prometheus}/-/ready"))
            except OSError:
                return False
        await_true("Prometheus is ready", is_ready, [process])

    def ask(self, path: str, **parameters: str) -> dict:
        """What the API has as "data"; an error of its own is one that says what it says."""
        url = f"http://{self.prometheus}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            answer = json.loads(fetch(url))
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error
        return answer["data"]

    def query(self, expression: str) -> list[dict]:
        return self.ask("query", query=expression)["result"]

    def alerts(self) -> dict[str, list[dict]]:
        """Those that are pending or firing, by name."""
        found: dict[str, list[dict]] = {}
        for alert in self.ask("alerts")["alerts"]:
            found.setdefault(alert["labels"]["alertname"], []).append(alert)
        return found
