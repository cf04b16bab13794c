"""The figures of SWARM."""

from dataclasses import replace

from papers.figures import BARS, Paper
from papers.lab import NACRE, Job, Lab, Report, size_name

PAPER = Paper(
    "swarm", "SWARM (SOSP 2024)",
    "4 client servers and 4 memory nodes on 100 Gbit/s; 100 k keys of 24 B with 64 B values, 3 "
    "replicas, 4 clients; against an unreplicated store (RAW), ABD (DM-ABD) and FUSEE.",
    "Keys of 24 B with 64 B values, a log, three copies (`rep(3)`) on four `nacre-memnode` "
    "processes on shm, of this machine, with a round trip of 2 us (`?rtt_us=2`) before each "
    "completion. YCSB A and B with Zipf keys after compaction. A client is a thread of the owner, "
    "which spins while it waits, so more than two of them wait for a processor too. SWARM's "
    "clients may be on any machine; Nacre's readers elsewhere are followers.")
figure, without = PAPER.figure, PAPER.without

SHAPE = {"key_bytes": 24, "value_bytes": 64, "keys": 0.5, "log": True, "redundancy": "rep(3)",
         "network": "rtt_us=2", "flags": ("--latency_sample_period=1",)}
LOAD = ("ycsbload", "flush", "compact")
PERCENTILES = (1, 10, 25, 50, 75, 90, 99, 99.9)
COUNT = ("--latency_sample_period=1", "--count_remote_reads")
INDEX_BYTES_PER_KEY = 7.3  # All of a table's point and range index.


def ycsb(lab: Lab, letters: str, **more) -> Report:
    return lab.run(*LOAD, *(f"ycsb{letter}" for letter in letters), **({"room": 2} | SHAPE | more))


def both_latencies(prefix: str, x, report: Report, step: str):
    for name, kind in (("get", "read"), ("update", "write")):
        yield f"{prefix}{name}, p50, us", x, report.latency(step, kind)


def reads_at(counts: list[int], percentile: float) -> int:
    """How often the operation at this percentile read nodes' memory."""
    passed, wanted = 0, percentile / 100 * sum(counts)
    for reads, count in enumerate(counts):
        passed += count
        if passed >= wanted:
            return reads
    return len(counts) - 1


def mean_reads(counts: list[int]) -> float:
    return sum(reads * count for reads, count in enumerate(counts)) / max(1, sum(counts))


@figure("T2", "round trips", "operation", "round trips",
        "A get or an update takes one in SWARM and RAW, 2 in DM-ABD, 1 to 2 and 4 in FUSEE (at "
        "p99 2 and 5).",
        "Counted: reads of nodes' memory that each get of YCSB B makes, after compaction; and "
        "writes to the log for each update, each of which goes to all copies at once. Zipf keys "
        "that were updated are in MemTables and take none. With no index in memory "
        "(`--index_memory_budget=0`) the bucket is read first.", kind=BARS)
def round_trips(lab: Lab):
    for name, flags in (("indexes in memory", COUNT),
                        ("no index in memory", (*COUNT, "--index_memory_budget=0"))):
        report = ycsb(lab, "cb", flags=flags)
        for step in ("ycsbc", "ycsbb"):
            counts = report.remote_reads(step, "read")
            letter = step[-1].upper()
            yield name, f"get, {letter}, mean", mean_reads(counts)
            yield name, f"get, {letter}, p50", reads_at(counts, 50)
            yield name, f"get, {letter}, p99", reads_at(counts, 99)
        before, after = report.step("ycsbc")["durability"], report.step("ycsbb")["durability"]
        updates = report.step("ycsbb")["latencies"]["write"]["samples"]
        yield name, "update, mean", (after["log.writes"] - before["log.writes"]) / updates


def distribution(report: Report, name: str):
    for operation, kind in (("get", "read"), ("update", "write")):
        for percentile, micros in report.percentiles("ycsbb", kind, PERCENTILES):
            yield f"{name}{operation}", f"{percentile:g}", micros


@figure("5", "distribution of latencies", "percentile", "us",
        "YCSB B, 4 clients: gets have a median of 1.9 us in RAW, 2.4 in SWARM (p99 2.8), 2.9 in "
        "FUSEE (4.8 at p90) and 4.3 in DM-ABD; updates 1.6, 3.1, 8.5 (10.4 at p90) and 4.9.",
        "YCSB B with one client. RAW: `nacre-perf`, one-sided reads and writes of 64 B, median and "
        "p99.", in_docs=True)
def latencies(lab: Lab):
    yield from distribution(ycsb(lab, "b", latencies=True), "")
    for operation in ("read", "write"):
        raw = lab.perf(operation, 64, SHAPE["network"])
        for percentile in (50, 99):
            yield f"RAW {operation}", f"{percentile:g}", raw[f"p{percentile}_us"]


@figure("6", "small caches of the index", "percentile", "us",
        "1 M keys and 5 MiB of cache for their places: a miss costs a get one round trip and an "
        "update of SWARM two; 45.6 % miss in SWARM, 42.5 % in the others.",
        "YCSB B with one client, `--index_memory_budget` for so much of the indexes, which stay or "
        "go by whole tables. A get whose index is not in memory reads one bucket first; an update "
        "reads nothing.")
def small_indexes(lab: Lab):
    for share in (1, 0.5, 0.25, 0):
        budget = int(share * INDEX_BYTES_PER_KEY * lab.num * 2)
        more = () if share == 1 else (f"--index_memory_budget={budget}",)
        report = ycsb(lab, "b", keys=2, latencies=True, flags=(*COUNT, *more))
        yield from distribution(report, f"{100 * share:g} % of it: ")


@figure("7", "operations at the same time by one client", "operations", "",
        "YCSB A: 264 k ops/s at 2.7 us with one, 499 k at 2.8 us with two, 609 k at 3.4 us with "
        "three, at most 640 k. YCSB B: 389 k at 2.4 us with one, at most 1030 k with five.",
        "Gets by that many coroutines of one thread (asyncreadrandom); the mean latency is their "
        "number by the rate. Puts of one thread overlap by batches only.")
def concurrency(lab: Lab):
    for count in range(1, 9):
        report = lab.run("fillseq", "flush", "compact", "asyncreadrandom",
                         **(SHAPE | {"flags": (f"--async_reads={count}",)}))
        rate = report.rate("asyncreadrandom")
        yield "gets, ops/s", count, rate
        yield "mean latency, us", count, count / rate * 1e6


@figure("8", "clients", "clients", "",
        "YCSB B grows nearly linearly to 15.9 M ops/s with 64 clients, gets from 2.2 to 3.69 us, "
        "updates from 2.7 to 4.3 us; with four operations at a time 28.3 M ops/s with 40 clients.",
        "Threads of one owner, on two cores that they share with the nodes.")
def clients(lab: Lab):
    for count in (1, 2, 4, 8, 16):
        report = ycsb(lab, "b", threads=count)
        yield "YCSB B, ops/s", count, report.rate("ycsbb")
        yield "YCSB B for a processor second", count, report.rate_per_cpu("ycsbb")
        yield from both_latencies("", count, report, "ycsbb")


@figure("9", "size of values", "value", "",
        "From 16 B to 8 KiB latencies grow linearly and stay below 10 us.",
        "YCSB A and B with one client, and 64 KiB besides.")
def value_sizes(lab: Lab):
    for size in (16, 64, 256, 1024, 4096, 8192, 65536):
        share = 0.5 * min(1, 1024 / size)
        report = ycsb(lab, "ab", value_bytes=size, keys=share)
        for letter in "ab":
            step, name = f"ycsb{letter}", f"YCSB {letter.upper()}"
            yield f"{name}, ops/s", size_name(size), report.rate(step)
            yield from both_latencies(f"{name}, ", size_name(size), report, step)


@figure("10", "replication factor", "copies", "",
        "3, 5 and 7 replicas: gets from 2.3 us by 0.2 us for each two more, updates from 3 us by "
        "0.5 us; the rate falls by 9 % and 7 %.",
        "`rep(1)` to `rep(5)` on five nodes, YCSB B with one client. A write waits for all copies, "
        "not for a majority; a get reads one of them.")
def copies(lab: Lab):
    for count in (1, 2, 3, 5):
        report = ycsb(lab, "b", redundancy=f"rep({count})", nodes=5)
        yield "YCSB B, ops/s", count, report.rate("ycsbb")
        yield from both_latencies("", count, report, "ycsbb")


@figure("T3", "resources", "redundancy", "",
        "1 M keys with values of 1 KiB, one failure tolerated, 4 clients, YCSB B: RAW takes 46.6 % "
        "of a processor for each client, 22.9 MiB of cache, 6.55 Gbit/s and 0.95 GiB of remote "
        "memory; DM-ABD 99.0 %, 22.9 MiB, 6.99 Gbit/s, 3.00 GiB; SWARM 61.3 %, 30.5 MiB, 7.41 "
        "Gbit/s, 4.06 GiB; FUSEE 74.2 %, 22.9 MiB, 8.15 Gbit/s, 2.04 GiB.",
        "Values of 1 KiB, YCSB B with one client that starts 100,000 operations a second "
        "(`--target_ops_per_second`), all threads of the compute node. Index: what the compute "
        "node holds to find keys.", kind=BARS)
def resources(lab: Lab):
    for redundancy in ("none", "rep(2)", "rep(3)", "rs(3,1)"):
        report = ycsb(lab, "b", redundancy=redundancy, value_bytes=1024, keys=0.25,
                      flags=("--target_ops_per_second=100000",))
        step, space = report.step("ycsbb"), report.space
        network = step["network"]["compute_read"] + step["network"]["compute_written"]
        yield "processors, %", redundancy, 100 * step["process_cpu_seconds"] / step["seconds"]
        yield "index, bytes a key", redundancy, space["index_bytes"] / (0.25 * lab.num)
        yield "network, Gbit/s", redundancy, 8e-9 * network / step["seconds"]
        yield ("remote memory, bytes for one of the user's", redundancy,
               space["stored_bytes"] / space["user_bytes"])


@figure("11", "failure of a memory node", "seconds", "",
        "Operations go on without a pause; latencies rise for a while, as data in place is lost, "
        "and recover as operations write it again.",
        "YCSB B with one client; one of four nodes is killed after three of six seconds, and what "
        "it held is made anew.")
def failure(lab: Lab):
    report = ycsb(lab, "b", kill_at=3, flags=("--duration=6", "--report_interval_seconds=0.5",
                                              "--latency_sample_period=1"))
    for at, row in enumerate(report.timeline("ycsbb")[:12]):
        x = f"{(at + 1) / 2:g}"
        yield "ops/s", x, row["interval_qps"]
        for percentile in ("p50_us", "p99_us", "max_us"):
            yield f"{percentile[:-3]}, us", x, row[percentile]


@figure("12", "clients at one key", "clients", "",
        "YCSB A with 16 clients at one key: gets at p99 30 us, 14 % of them in one round trip; "
        "updates at p99 10 us, 73 % in one. DM-ABD suffers far more; with 32 clients its medians "
        "are 47 us.",
        "YCSB A on one record, by threads of one owner. The owner orders all writes, so they never "
        "go back and forth, and gets find the key in a MemTable. Threads beyond the cores wait for "
        "these.")
def one_key(lab: Lab):
    for count in (1, 4, 16):
        ops = max(1, lab.num // 4 // count)
        flags = (*SHAPE["flags"], f"--readwrites={ops}")
        shape = {key: value for key, value in SHAPE.items() if key not in ("keys", "flags")}
        crowded = Job((*LOAD, "ycsba"), 1, NACRE, flags, threads=count, room=1, **shape)
        spread = replace(crowded, keys=lab.num // 4)
        for name, job in lab.turn((("one key", crowded), ("many keys", spread))):
            report = lab.report_of(job)
            yield f"{name}, ops/s", count, report.rate("ycsba")
            for operation, kind in (("get", "read"), ("update", "write")):
                yield (f"{name}, {operation}, p99, us", count,
                       report.latency("ycsba", kind, "p99_us"))


without("13", "metadata buffers of a key",
        "More buffers let more updates end in one round trip (23 % with one, 99 % with 64), and "
        "make gets slower (3.1 to 3.6 us).",
        "nothing to measure: writers need no registers that they would share.")


@figure("S", "many small keys (not in the paper)", "millions of keys", "",
        "Clients cache 24 B for each key.",
        "Keys of 16 B with 16 B values, `rep(3)`, no log, no round trip; as many as a run of this "
        "size has time and memory for, not the 50 M that a machine with more memory would have.")
def small_keys(lab: Lab):
    for factor in (1, 4, 10):
        report = lab.run("fillrandom", "compact", "readrandom", keys=factor, key_bytes=16,
                         value_bytes=16, redundancy="rep(3)")
        x = f"{factor * lab.num / 1e6:g}"
        yield "fillrandom, ops/s", x, report.rate("fillrandom")
        yield "readrandom, ops/s", x, report.rate("readrandom")
        space = report.space
        yield "index, bytes a key", x, space["index_bytes"] / (space["user_bytes"] / 32)
        yield ("remote memory, bytes for one of the user's", x,
               space["stored_bytes"] / space["user_bytes"])
