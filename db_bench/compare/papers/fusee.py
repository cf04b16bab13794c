"""The figures of FUSEE."""

from papers import loads
from papers.figures import BARS, Paper
from papers.lab import Lab, Report

PAPER = Paper(
    "fusee", "FUSEE (FAST 2023)",
    "16 compute nodes with 8 clients each and 2 to 5 memory nodes on 56 Gbit/s InfiniBand; keys "
    "and values of 1024 B together, 100 k keys for YCSB; against Clover and pDPM-Direct.",
    "Keys of 20 B with 1004 B values, a log, two copies of all (`rep(2)`) on two `nacre-memnode` "
    "processes on shm, of this machine. A client is a thread of the owner.")
figure, without = PAPER.figure, PAPER.without

KEYS = 0.25
SHAPE = {"value_bytes": 1004, "nodes": 2, "keys": KEYS, "log": True, "redundancy": "rep(2)"}
ROUND_TRIP = "rtt_us=2"
PERCENTILES = (1, 10, 25, 50, 75, 90, 99, 99.9)
# How long a database is watched whose node dies, or whose readers come and go.
WATCHED_SECONDS, CHANGE_SECONDS, INTERVAL_SECONDS = 6, 3, 1


def ycsb(lab: Lab, letters: str, **more) -> Report:
    return lab.run("ycsbload", "waitforcompaction", *(f"ycsb{letter}" for letter in letters),
                   room=2, **(SHAPE | more))


without("2", "Clover by processors of its metadata server",
        "The rate grows with the server's processors up to six; it is the bottleneck.",
        "nothing to measure: no operation passes a server.")
without("3", "Derecho and locks",
        "Both ways to agree on a key's index slot stay far below what an RNIC can do.",
        "nothing to measure: one owner orders all writes of a database.")


@figure("10", "distribution of latencies", "percentile", "us",
        "INSERT and UPDATE are fastest of the three systems, SEARCH a little slower than Clover's "
        "and DELETE than pDPM-Direct's, with one client.",
        "One thread, a round trip of 2 us (`?rtt_us=2`), each operation timed.", in_docs=True)
def latencies(lab: Lab):
    for name, report, step, kind in loads.operations(
            lab, network=ROUND_TRIP, flags=("--latency_sample_period=1",), latencies=True, **SHAPE):
        for percentile, micros in report.percentiles(step, kind, PERCENTILES):
            yield name, f"{percentile:g}", micros


@figure("11", "rates of operations by clients", "clients", "ops/s",
        "With 128 clients FUSEE is ahead of both: Clover is bound by its metadata server and "
        "pDPM-Direct by locks.",
        "Threads of one owner.")
def rates(lab: Lab):
    for clients in (1, 2, 4, 8):
        for name, report, step, _ in loads.operations(lab, threads=clients, **SHAPE):
            yield name, clients, report.rate(step)


@figure("12", "size of values", "bytes of key and value", "ops/s",
        "YCSB C is 44.1 % faster with 512 B and 55.9 % with 256 B than with 1024 B, as memory "
        "nodes' ports are the limit; the number of keys does not matter.",
        "YCSB A and C, two threads, 256 B to 64 KiB, 100 MB of data at the ordinary size.")
def value_sizes(lab: Lab):
    for size in (256, 512, 1024, 4096, 16384, 65536):
        report = ycsb(lab, "ac", value_bytes=size - 20, keys=KEYS * 1024 / size, threads=2)
        for letter in "ac":
            yield f"YCSB {letter.upper()}", size, report.rate(f"ycsb{letter}")


@figure("13", "YCSB by clients", "clients", "ops/s",
        "Clover leads with few clients; at 128 FUSEE has 4.9 times its rate and 117 times that of "
        "pDPM-Direct.",
        "YCSB A to D by threads of one owner, on two cores with both memory nodes.")
def ycsb_clients(lab: Lab):
    for clients in (1, 2, 4, 8, 16):
        report = ycsb(lab, "abcd", threads=clients)
        for letter in "abcd":
            yield f"YCSB {letter.upper()}", clients, report.rate(f"ycsb{letter}")


@figure("14", "memory nodes", "memory nodes", "ops/s",
        "YCSB A and C gain from 2 to 3 memory nodes and no more beyond, up to 5, where clients are "
        "the limit.",
        "The nodes share this machine, and so gain nothing from one another.")
def memory_nodes(lab: Lab):
    for nodes in (2, 3, 4, 5):
        report = ycsb(lab, "ac", nodes=nodes, threads=2)
        for letter in "ac":
            yield f"YCSB {letter.upper()}", nodes, report.rate(f"ycsb{letter}")


@figure("15", "searches among updates", "percent of searches", "ops/s",
        "All rates fall as updates grow; FUSEE is ahead at every ratio.",
        "readrandomwriterandom with Zipf keys, theta 0.99, two threads.")
def ratios(lab: Lab):
    for percent in (0, 25, 50, 75, 100):
        report = lab.run("fillrandom", "waitforcompaction", "readrandomwriterandom", room=2,
                         threads=2, **SHAPE,
                         flags=(f"--readwritepercent={percent}", "--key_dist=zipf"))
        yield "nacre", percent, report.rate("readrandomwriterandom")


without("16", "threshold of the index cache",
        "YCSB A gets slower the higher the threshold is at which a key that changes is no longer "
        "read by its cached address.",
        "nothing to measure: a MemTable has what changed, and tables are never changed, so no "
        "cached address is stale.")
without("17", "allocation of memory",
        "With allocation by the memory nodes alone YCSB A loses 90.9 %, YCSB C nothing.",
        "not measured: owners carve extents out of slabs that are leased ahead; there is no other "
        "way to compare with. Neither a Put nor a flush waits for a request to a node.")


@figure("18", "replication factor: rates", "copies", "ops/s",
        "YCSB A and B lose with each copy, D goes from 8.8 to 8.6 M, C stays.",
        "`rep(1)` to `rep(3)` on three nodes, two threads.")
def copies_rates(lab: Lab):
    for copies in (1, 2, 3):
        report = ycsb(lab, "abcd", redundancy=f"rep({copies})", nodes=3, threads=2)
        for letter in "abcd":
            yield f"YCSB {letter.upper()}", copies, report.rate(f"ycsb{letter}")


@figure("19", "replication factor: medians", "copies", "us",
        "Latencies of FUSEE grow little with the copies, where replicas changed one after another "
        "cost a round trip for each.",
        "One thread, a round trip of 2 us: copies are written at the same time, and a read needs "
        "one of them.")
def copies_latencies(lab: Lab):
    for copies in (1, 2, 3):
        shape = SHAPE | {"redundancy": f"rep({copies})", "nodes": 3, "keys": KEYS / 2}
        for name, report, step, kind in loads.operations(
                lab, network=ROUND_TRIP, flags=("--latency_sample_period=1",), **shape):
            yield name, copies, report.latency(step, kind)


@figure("20", "searches while a memory node crashes", "seconds", "ops/s",
        "One of two nodes crashes in the fifth of nine seconds; YCSB C goes on at half the rate, "
        "the port of one node.",
        "YCSB C with two threads; one of three nodes is killed in the middle, and what it held is "
        "made anew meanwhile. Over shm no port is the limit.", in_docs=True)
def crash(lab: Lab):
    report = ycsb(lab, "c", nodes=3, threads=2, kill_at=CHANGE_SECONDS,
                  flags=(f"--duration={WATCHED_SECONDS}",
                         f"--report_interval_seconds={INTERVAL_SECONDS}"))
    for at, row in enumerate(report.timeline("ycsbc")[:int(WATCHED_SECONDS / INTERVAL_SECONDS)]):
        yield "YCSB C", f"{(at + 1) * INTERVAL_SECONDS:g}", row["interval_qps"]


@figure("21", "clients that come and go", "seconds", "ops/s",
        "YCSB C rises as 16 clients join 16 others, and falls back when they leave.",
        "Followers, each a process with one reading thread and connections of its own, of a "
        "database whose owner is idle: one at first, a second one for the middle third.")
def elasticity(lab: Lab):
    third = CHANGE_SECONDS
    rates = lab.followers(lab.job("fillseq", "flush", "waitforcompaction", **SHAPE),
                          ((0, 3 * third), (third, 2 * third)), INTERVAL_SECONDS)
    for at, rate in enumerate(rates):
        yield "readrandom of all followers", f"{(at + 1) * INTERVAL_SECONDS:g}", rate


@figure("T1", "recovery of a client", "step", "ms",
        "After 1000 updates 177.0 ms: connections and memory regions 163.1, metadata 0.3, the log "
        "3.5, its requests 3.5, the list of free memory 6.6.",
        "An owner is killed with 1000 records in its log and in no table; the next one opens the "
        "database. Steps of DB::Open, then the first answers, since before connecting.", kind=BARS)
def recovery(lab: Lab):
    taken = lab.takeover(lab.job("fillseq", "flush", "waitforcompaction", **SHAPE), 1000 * 1024)
    for step, micros in taken["steps"].items():
        yield "nacre", step, micros / 1000
    for what in ("get", "put"):
        yield "nacre", f"first {what.capitalize()}", taken[f"first_{what}_us"] / 1000
