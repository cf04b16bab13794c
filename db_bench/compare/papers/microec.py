"""The figures of MicroEC."""

from papers.figures import BARS, Paper
from papers.lab import Job, Lab, Report, rate_together, size_name
from papers.loads import LOAD

PAPER = Paper(
    "microec", "MicroEC (TPDS 2023)",
    "4 compute and 12 memory nodes on 56 Gbit/s InfiniBand; objects of 1 KB to 64 MB, 1 MB where "
    "nothing else is said; code (4,2), pieces of 4 KB, 3 processors for coding; against MemoryEC, "
    "AsyncEC, 3 copies (REP3) and none (REP1).",
    "An object is a value; writing objects is fillseq and the flush that sends their tables, no "
    "log; reading is readrandom. 64 MiB of objects at the ordinary size; one thread, "
    "`nacre-memnode` processes on shm, of this machine, with ports of 10 Gbit/s and 2 us "
    "(`?rtt_us=2&gbps=10`) where the unit is MB/s of objects written.")
figure, without = PAPER.figure, PAPER.without

CODE, COPIES, NONE = "rs(4,2)", "rep(3)", "none"
ALL = (NONE, COPIES, CODE)
NODES = 7
NETWORK = "rtt_us=2&gbps=10"
SIZES = tuple(1 << power for power in (12, 14, 16, 18, 20, 22, 24))
OBJECT_BYTES, LEAST_OBJECTS = 1 << 20, 4
PERCENTILES = (1, 10, 25, 50, 75, 90, 99, 99.9)


def objects(lab: Lab, *steps: str, size: int, **more) -> Job:
    """As many objects as 64 MiB have, at the ordinary size."""
    count = max(LEAST_OBJECTS, int((64 << 20) * min(1, lab.num / 400_000)) // size)
    flags = ("--repair_bytes_per_second=4096", *more.pop("flags", ()))
    return Job(steps, count, value_bytes=size, flags=flags, **({"nodes": NODES} | more))


def written_rate(lab: Lab, size: int, **more) -> tuple[float, Report]:
    """MB/s of objects, the flush included."""
    job = objects(lab, "fillseq", "flush", size=size, **({"network": NETWORK} | more))
    report = lab.report_of(job)
    seconds = sum(report.step(step)["seconds"] for step in ("fillseq", "flush"))
    return report.step("fillseq")["ops"] * size / seconds / 1e6, report


@figure("2", "an RDMA write and encoding", "size", "us",
        "Encoding a stripe takes about as long as sending it, so one is worth hiding behind the "
        "other.",
        "Write: `nacre-perf write` of the object with `?rtt_us=2&gbps=10`, median. Encoding: the "
        "processor time for as many bytes in the flushes of figure 11.")
def write_and_encode(lab: Lab):
    encoding = written_rate(lab, OBJECT_BYTES, redundancy=CODE)[1].data["encoding"]
    for size in SIZES:
        yield "write", size_name(size), lab.perf("write", size, NETWORK)["p50_us"]
        yield ("encoding", size_name(size),
               1e6 * size * encoding["cpu_seconds"] / encoding["data_bytes"])


without("4", "misses of the first cache",
        "Coding a second object right after the first one, on the same processor, misses the first "
        "level's cache less and is faster.",
        "not measured: this machine lets no program count cache misses.")


@figure("10", "time to write, by that of 3 copies", "object", "times",
        "MicroEC takes up to 44.35 % less than MemoryEC and 26.69 % less than AsyncEC; from 256 KB "
        "on it is faster than REP3 (by 42.14 % at 64 MB), below 64 KB slower (24 against 15 us at "
        "1 KB).",
        "The time for each object of figure 11 by that with `rep(3)`.")
def write_times(lab: Lab):
    for size in SIZES:
        copies, _ = written_rate(lab, size, redundancy=COPIES)
        for redundancy in (NONE, CODE):
            yield redundancy, size_name(size), copies / written_rate(lab, size,
                                                                     redundancy=redundancy)[0]


@figure("11", "rate of writes", "object", "MB/s",
        "About 3200 MB/s from 16 MB on, 1.75 times MemoryEC and 72.83 % above REP3; with parity "
        "4851 MB/s, 73 % of the port and 19.8 % below REP1.",
        "64 MiB of objects, then the flush. The compute node's port is the limit: a byte with two "
        "copies besides sends three, with the code one and a half.", in_docs=True)
def write_rates(lab: Lab):
    for size in SIZES:
        for redundancy in lab.turn(ALL):
            yield redundancy, size_name(size), written_rate(lab, size, redundancy=redundancy)[0]


@figure("12", "reads, with all nodes and with one lost", "object", "us",
        "With all nodes codes and REP3 are alike. Degraded reads of MicroEC take up to 47.67 % "
        "less than those of MemoryEC; of 16 MB 2.96 ms against 2.58 ms with REP3.",
        "readrandom of 64 MiB of objects, then a node of seven is killed, repair held back, and "
        "readrandom again; means, since a part of the objects only has lost chunks. Round trip 2 "
        "us, 10 Gbit/s.")
def read_times(lab: Lab):
    for size in SIZES:
        for redundancy in lab.turn((COPIES, CODE)):
            job = objects(lab, "fillseq", "flush", "readrandom", "kill", "readrandom", size=size,
                          redundancy=redundancy, network=NETWORK, flags=("--reads=200",))
            for name, step in zip(("", ", one lost"), lab.report_of(job).steps("readrandom")):
                yield f"{redundancy}{name}", size_name(size), step["micros_per_op"]


@figure("13", "recovery of one and of two nodes", "lost nodes", "",
        "One block up to 96.28 % and two up to 121.59 % faster than MemoryEC and AsyncEC, 65.56 % "
        "and 115.71 % faster than REP3.",
        "Ordinary keys; one or two nodes of eight are killed between two owners, the second of "
        "which repairs. The rate is of bytes made anew, until the last table is whole.", kind=BARS)
def recovery(lab: Lab):
    for redundancy in lab.turn((CODE, COPIES)):
        for lost in (1, 2):
            step = lab.run("waitforrepair", before=(*LOAD, "compact"), kills=lost, nodes=8,
                           redundancy=redundancy,
                           flags=("--repair_bytes_per_second=0",)).step("waitforrepair")
            yield f"{redundancy}, MB/s", lost, 1.048576 * step["mb_per_sec"]
            yield f"{redundancy}, ms", lost, 1000 * step["seconds"]


@figure("14a", "where a write's time goes", "part", "us for an object of 1 MiB",
        "Coding takes 318 us and sending 315 us of an object of 1 MB, packing 2.6 us.",
        "Processor time of encoding, of all of the compute node, and the time by the clock, in "
        "figure 11; what the clock has beyond the processor is the port.", kind=BARS)
def breakdown(lab: Lab):
    _, report = written_rate(lab, OBJECT_BYTES, redundancy=CODE)
    steps = [report.step(step) for step in ("fillseq", "flush")]
    count = steps[0]["ops"]
    yield "rs(4,2)", "encoding", 1e6 * report.data["encoding"]["cpu_seconds"] / count
    yield ("rs(4,2)", "processors, all",
           1e6 * sum(step["process_cpu_seconds"] for step in steps) / count)
    yield "rs(4,2)", "by the clock", 1e6 * sum(step["seconds"] for step in steps) / count


@figure("14b", "size of pieces", "piece", "us for an object of 1 MiB",
        "Pieces of growing size beat those of a fixed size by 35.76 % at its best, 512 KB; small "
        "ones are far slower.",
        "`--chunk_size`, the unit that is striped and sent. The last chunk of a table always goes "
        "out in pieces of halving size; there is no other way in the code to compare it with.")
def piece_sizes(lab: Lab):
    for size in (16 << 10, 64 << 10, 256 << 10, 1 << 20):
        rate, _ = written_rate(lab, OBJECT_BYTES, redundancy=CODE, flags=(f"--chunk_size={size}",))
        yield "rs(4,2)", size_name(size), OBJECT_BYTES / rate


without("15", "small objects",
        "Coding objects of 1 KB one after another on the same processor takes 10.17 % off the mean "
        "and 27.81 % off p99.",
        "nothing to measure: objects are coded by the row of a table, not one by one, and tables "
        "below 64 KiB are copied.")


def code_cells(lab: Lab, x: int, data: int, parity: int):
    for name, redundancy in (("code", f"rs({data},{parity})"), ("copies", f"rep({parity + 1})")):
        rate, report = written_rate(lab, OBJECT_BYTES, redundancy=redundancy, nodes=data + parity)
        yield f"{name}, MB/s", x, rate
        if name == "code":
            encoding = report.data["encoding"]
            yield ("encoding, GB/s", x,
                   encoding["data_bytes"] / max(encoding["cpu_seconds"], 1e-9) / 1e9)


@figure("16a", "number k of data chunks", "k, with m = 2", "",
        "The larger k, the smaller the gain over MemoryEC and AsyncEC.",
        "`rs(k,2)` against `rep(3)` on k + 2 nodes, objects of 1 MiB.")
def data_chunks(lab: Lab):
    for data in (2, 4, 6, 8):
        yield from code_cells(lab, data, data, 2)


@figure("16b", "number m of parity chunks", "m, with k = 4", "",
        "The larger m, the larger the gain over MemoryEC and AsyncEC.",
        "`rs(4,m)` against `rep(m+1)` on m + 4 nodes, objects of 1 MiB. With m = 1 the parity is "
        "XOR.")
def parity_chunks(lab: Lab):
    for parity in (1, 2, 3):
        yield from code_cells(lab, parity, 4, parity)


@figure("17a", "compute servers", "servers", "MB/s",
        "The rate grows with each of four servers, each with a port of its own, at nearly the same "
        "latency.",
        "Owners at the same time, each with a database and a port of its own, objects of 1 MiB; "
        "they share this machine's cores.")
def servers(lab: Lab):
    for count in lab.computes():
        for redundancy in lab.turn(ALL):
            job = objects(lab, "fillseq", "flush", size=OBJECT_BYTES, redundancy=redundancy,
                          network=NETWORK)
            (reports,) = lab.together(job, count)
            yield redundancy, count, rate_together(reports, "fillseq", "flush") * OBJECT_BYTES / 1e6


@figure("17b", "clients of a server", "clients", "MB/s",
        "Objects of 256 KB: with 24 clients the port is the limit; MicroEC reaches with 16 what "
        "others do with 24.",
        "Threads of one owner, objects of 256 KiB in random order; all written before the flush "
        "ends.")
def clients(lab: Lab):
    for count in (1, 2, 4, 8):
        for redundancy in lab.turn(ALL):
            job = objects(lab, "fillrandom", "flush", size=256 << 10, redundancy=redundancy,
                          network=NETWORK, threads=count)
            report = lab.report_of(job)
            seconds = sum(report.step(step)["seconds"] for step in ("fillrandom", "flush"))
            yield redundancy, count, report.step("fillrandom")["ops"] * (256 << 10) / seconds / 1e6


@figure("18", "processors for coding", "background jobs", "MB/s",
        "Two cores set aside are enough for objects of 1 MB, three for small ones (10.76 % more "
        "than with two).",
        "No processor is set aside: the threads that flush encode. `--max_background_jobs`, "
        "objects of 4 KiB and of 1 MiB.")
def coding_jobs(lab: Lab):
    for size in (4096, OBJECT_BYTES):
        for jobs in (1, 2, 4):
            rate, _ = written_rate(lab, size, redundancy=CODE,
                                   flags=(f"--max_background_jobs={jobs}",))
            yield f"objects of {size_name(size)}", jobs, rate


without("19", "IBM's registry",
        "18 hours of requests, objects of 1 KB to 660 MB, 96 % reads, one node lost: above 10 MB "
        "26.58 % less than MemoryEC, close to REP3.",
        "not measured: the trace is no part of this project, and its 124 GB of objects are more "
        "than this machine has memory for.")


@figure("20", "YCSB A with objects of 4 KB", "percentile", "us",
        "Four clients: reads take about 1.39 and writes 1.23 times those of REP3, for the work of "
        "k + m connections.",
        "YCSB A after compaction, 4 KiB, two threads, a log; a round trip of 2 us. A write waits "
        "for the log, which is copied in both cases; a read is one read in both.")
def ycsb(lab: Lab):
    for redundancy in lab.turn((CODE, COPIES)):
        report = lab.run("ycsbload", "flush", "compact", "ycsba", keys=0.1, value_bytes=4096,
                         redundancy=redundancy, nodes=NODES, log=True, threads=2, room=2,
                         network="rtt_us=2", latencies=True,
                         flags=("--latency_sample_period=1",))
        for name, kind in (("read", "read"), ("write", "write")):
            for percentile, micros in report.percentiles("ycsba", kind, PERCENTILES):
                yield f"{redundancy}, {name}", f"{percentile:g}", micros
