"""Clients of nacre-server whose histories are checked: what they do, and the checks.

Processes with redis-py write, read and count in registers with values that are written once each.
What each client saw is a history: tests/history/checker, which is porcupine, looks for an order
that explains it; counters are checked here.
"""

import ctypes
import json
import multiprocessing
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time

try:
    import redis
except ImportError:
    redis = None

CLIENTS = 4
REGISTERS = 6
COUNTERS = 3
# Registers are left for others after so long, so that each has a history that can be checked.
EPOCH_SECONDS = 4.0
EPOCHS_IN_FILE = 8
PAUSE_SECONDS_MAX = 0.004
ANSWER_SECONDS = 4.0
PATIENCE_SECONDS = 120.0
OPERATIONS_BETWEEN = 300  # From one harm to the next, at least.


class Failure(Exception):
    """What the test found wrong."""


def eventually(what, look):
    """Waits until `look` answers something, and answers that."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if answer := look():
            return answer
        time.sleep(0.05)
    raise Failure(f"not after {PATIENCE_SECONDS:g} s: {what}")


# ---- Processes ----------------------------------------------------------------------------------


def end_with_parent():
    """The process that is about to run is killed when this one ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def start_process(ready, log_path, *command):
    """Starts a program that ends with this one, and waits for the line that says `ready`. None: it
    said something else."""
    with log_path.open("a") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True,
                                   preexec_fn=end_with_parent)
    line = process.stdout.readline()
    if ready in line:
        return process
    process.kill()
    process.wait()
    return None


def kill_process(process):
    process.kill()
    process.wait()
    process.stdout.close()


# ---- Clients ------------------------------------------------------------------------------------


def is_of_harm(error):
    """Whether a client may be answered so while servers and nodes are killed: without a lease, or
    without its nodes, or since no server has the slot."""
    if not isinstance(error, redis.ResponseError):
        return True
    harmless = (redis.exceptions.ReadOnlyError, redis.exceptions.ClusterError,
                redis.exceptions.MovedError, redis.exceptions.TryAgainError)
    return isinstance(error, harmless) or bool(
        re.search(r"^CLUSTERDOWN|^TRYAGAIN|Unavailable|Fenced|TimedOut|ShutdownInProgress|"
                  r"is not known", str(error)))


class Client:
    """One process: its random operations, and what came of them."""

    def __init__(self, number, connect, folder, seed, acknowledged, stop):
        """`connect(number, n)` answers the n-th way to the data for the client, which is called
        again after a failure with the next n."""
        self.number = number
        self.connect = connect
        self.connections = {}
        self.current = 0
        self.folder = folder
        self.random = random.Random(seed)
        self.acknowledged = acknowledged
        self.stop = stop
        self.values = 0
        self.files = {}
        self.counts = (folder / f"counts-{number}").open("w")

    def run(self):
        while not self.stop.is_set():
            self.step()
            time.sleep(self.random.uniform(0, PAUSE_SECONDS_MAX))
        self.counts.close()
        for file in self.files.values():
            file.close()

    def step(self):
        epoch = int(time.monotonic() / EPOCH_SECONDS)
        choice = self.random.random()
        if choice < 0.15:
            self.count(f"counter{self.random.randrange(COUNTERS)}")
            return
        # Some reads look at what was written before the latest kills.
        if choice < 0.25:
            epoch -= self.random.randrange(1, EPOCHS_IN_FILE)
        key = f"e{epoch}/r{self.random.randrange(REGISTERS)}"
        if choice < 0.6:
            self.note("read", epoch, key, None, lambda server: server.get(key))
        else:
            self.values += 1
            value = f"{self.number}.{self.values}"
            self.note("write", epoch, key, value, lambda server: server.set(key, value))

    def ask(self, operation):
        """The answer, and whether there is one; the other way is next if there is none."""
        try:
            if self.current not in self.connections:
                self.connections[self.current] = self.connect(self.number, self.current)
            answer = operation(self.connections[self.current])
            self.acknowledged[self.number] += 1
            return answer, True
        except (redis.RedisError, redis.exceptions.RedisClusterException, OSError) as error:
            if not is_of_harm(error):
                (self.folder / f"error-{self.number}").write_text(str(error))
            self.current = 1 - self.current
            time.sleep(0.005)
            return None, False

    def note(self, kind, epoch, key, value, operation):
        call = time.monotonic_ns()
        answer, answered = self.ask(operation)
        if kind == "read":
            if not answered:
                return
            value = answer
        file = self.files.get(epoch // EPOCHS_IN_FILE)
        if file is None:
            file = self.files[epoch // EPOCHS_IN_FILE] = (
                self.folder / f"history-{epoch // EPOCHS_IN_FILE}-{self.number}").open("a")
        # A write that was not answered may take effect at any time, or never.
        file.write(json.dumps({"client": self.number, "call": call,
                               "return": time.monotonic_ns() if answered else 0, "op": kind,
                               "keys": [key], "values": [value]}) + "\n")

    def count(self, key):
        call = time.monotonic_ns()
        answer, answered = self.ask(lambda server: server.incr(key))
        self.counts.write(f"{key} {call} {time.monotonic_ns()} {answer if answered else 0}\n")


def run_client(*arguments):
    Client(*arguments).run()


# ---- Checks -------------------------------------------------------------------------------------


def check_histories(binaries, folder):
    """How many operations were explained."""
    operations = 0
    for window in sorted({path.name.split("-")[1] for path in folder.glob("history-*-*")}):
        merged = folder / f"window-{window}"
        with merged.open("w") as file:
            for part in folder.glob(f"history-{window}-*"):
                file.write(part.read_text())
        checked = subprocess.run(
            [binaries / "history_checker", "-timeout", "120s", "-figure", f"{merged}.html", "keys",
             merged], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if checked.returncode != 0:
            kept = pathlib.Path(tempfile.gettempdir()) / f"nacre-{merged.name}-{os.getpid()}"
            shutil.copyfile(merged, kept)
            raise Failure(f"no order explains the history (kept in {kept}):\n{checked.stdout}")
        operations += int(re.search(r"^(\d+) operations on", checked.stdout, re.MULTILINE)[1])
    return operations


def check_counters(folder, last):
    """Each INCR answered a number of its own, larger than all that had been answered when it was
    sent; `last` has what the counters are in the end. Tells how many there were."""
    counts, unknown = {}, {}
    for path in folder.glob("counts-*"):
        for line in path.read_text().splitlines():
            key, call, back, answer = line.split()
            if answer == "0":
                unknown[key] = unknown.get(key, 0) + 1
            else:
                counts.setdefault(key, []).append((int(answer), int(call), int(back)))
    for key, all_of_it in counts.items():
        all_of_it.sort(reverse=True)
        numbers = [number for number, _, _ in all_of_it]
        if len(set(numbers)) != len(numbers):
            raise Failure(f"{key}: two INCRs were answered the same number")
        first_return = float("inf")
        for number, call, back in all_of_it:
            if first_return < call:
                raise Failure(f"{key}: {number} was answered to an INCR that was sent after one "
                              "with a larger number had been answered")
            first_return = min(first_return, back)
        value = last.get(key, 0)
        if not max(numbers) <= value <= len(numbers) + unknown.get(key, 0):
            raise Failure(f"{key} is {value} after {len(numbers)} INCRs that were answered, up to "
                          f"{max(numbers)}, and {unknown.get(key, 0)} that were not")
    return sum(map(len, counts.values()))


def read_all(server, folder, number):
    """Each register once more, as part of the histories; what the counters are."""
    for window in {path.name.split("-")[1] for path in folder.glob("history-*-*")}:
        keys = {json.loads(line)["keys"][0] for path in folder.glob(f"history-{window}-*")
                for line in path.read_text().splitlines()}
        with (folder / f"history-{window}-{number}").open("a") as file:
            for key in sorted(keys):
                call = time.monotonic_ns()
                value = server.get(key)
                file.write(json.dumps({"client": number, "call": call,
                                       "return": time.monotonic_ns(), "op": "read", "keys": [key],
                                       "values": [value]}) + "\n")
    return {key: int(server.get(key) or 0) for key in (f"counter{i}" for i in range(COUNTERS))}


def longest_gaps(folder, harms):
    """The longest gaps by the kind of harm that came last before their ends, as a text."""
    longest = {}
    for line in (folder / "gaps").read_text().splitlines():
        began, seconds = map(float, line.split())
        before = [kind for at, kind in harms if at < began + seconds and at > began - 1]
        kind = before[-1] if before else "nothing"
        longest[kind] = max(longest.get(kind, 0), seconds)
    return ", ".join(f"{gap * 1000:.0f} ms after {kind}" for kind, gap in sorted(longest.items()))


# ---- The test -----------------------------------------------------------------------------------


class Harm:
    """What is done to a cluster, and when; what each kind of it is, `harm` of a subclass says."""

    def __init__(self, cluster, acknowledged, seed):
        self.cluster = cluster
        self.acknowledged = acknowledged
        self.random = random.Random(seed)
        self.done = []

    def do(self, kind):
        self.done.append((time.monotonic(), kind))
        self.harm(kind)

    def await_operations(self):
        """Until the clients have gone on."""
        wanted = sum(self.acknowledged) + OPERATIONS_BETWEEN
        eventually("the clients are answered", lambda: sum(self.acknowledged) >= wanted)


def run_under_harm(binaries, folder, seconds, harm_of, connect, run_stock_client, read_from):
    """Has clients run, and one by `run_stock_client`, while harm is done: all kinds once, then at
    random for so long. `harm_of(acknowledged)` makes it, `read_from()` answers the connection for
    the last reads. Tells the harm and prints what was explained."""
    stop = multiprocessing.Event()
    acknowledged = multiprocessing.Array("Q", CLIENTS)
    harm = harm_of(acknowledged)
    clients = [multiprocessing.Process(
        target=run_client,
        args=(i, connect, folder, harm.random.randrange(1 << 30), acknowledged, stop))
               for i in range(CLIENTS)]
    clients.append(multiprocessing.Process(target=run_stock_client, args=(folder, stop)))
    for client in clients:
        client.start()
    try:
        harm.all_kinds()
        harm.at_random(seconds)
    finally:
        stop.set()
        for client in clients:
            client.join(timeout=60)
            client.kill()
    for path in folder.glob("error-*"):
        raise Failure(f"a client was answered: {path.read_text()}")
    counted = check_counters(folder, read_all(read_from(), folder, CLIENTS))
    operations = check_histories(binaries, folder)
    kinds = [kind for _, kind in harm.done]
    print(f"{operations} reads and writes and {counted} INCRs are explained; " + ", ".join(
        f"{kinds.count(kind)} times {kind}" for kind in sorted(set(kinds))))
    return harm
