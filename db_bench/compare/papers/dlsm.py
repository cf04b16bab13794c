"""The figures of dLSM."""

from papers.figures import BARS, Paper
from papers.lab import NACRE, Lab, Report, rate_together, rocksdb

PAPER = Paper(
    "dlsm", "dLSM (ICDE 2023)",
    "One compute and one memory node of 24 cores each on 100 Gbit/s InfiniBand; 100 M keys of 20 B "
    "with 400 B values, MemTables of 64 MiB, no log; 12 threads compact and 4 flush.",
    "Keys of 20 B with 400 B values, no log, no copies, MemTables and tables of a tenth of the "
    "data, 2 background jobs. Nacre over 4 `nacre-memnode` processes on shm; RocksDB with its own "
    "block-based tables in files over the same nodes, as the baselines of dLSM have it, without a "
    "block cache. Threads share the operations. Compute and memory nodes share this machine's "
    "cores, so more threads show what contention costs rather than what scales; the second series "
    "of each engine is operations for each processor second of the compute node.")
figure = PAPER.figure

THREADS = (1, 2, 4, 8, 16)
ENGINES = (NACRE, rocksdb(8192), rocksdb(2048))
BASELINES = (*ENGINES, rocksdb(512))
STEPS = ("fillrandom", "waitforcompaction", "readrandom", "readseq")
NO_STALLS = ("--level0_slowdown_writes_trigger=1000000", "--level0_stop_writes_trigger=1000000")


def both_rates(name: str, x, report: Report, step: str):
    yield name, x, report.rate(step)
    yield f"{name}, for a processor second", x, report.rate_per_cpu(step)


def by_threads(lab: Lab, step: str):
    for threads in THREADS:
        for engine in lab.turn(ENGINES):
            yield from both_rates(engine.name, threads,
                                  lab.run(*STEPS, engine=engine, threads=threads), step)


@figure("7a", "random writes by threads", "threads", "ops/s",
        "2.6 M writes a second at most; 1.7 to 3.1 times RocksDB with blocks of 8 KiB over RDMA, "
        "1.6 to 3.9 times with 2 KiB, 1.9 to 3.5 times with blocks of one record, 2.5 to 3.0 times "
        "Nova-LSM and 1.8 to 11.7 times Sherman.",
        "fillrandom of a new database with the usual limits on level 0 (36 tables).")
def write_threads(lab: Lab):
    yield from by_threads(lab, "fillrandom")


@figure("7b", "random writes by threads, never stalled", "threads", "ops/s",
        "Without a limit on level 0 up to 4.6 times RocksDB with 8 KiB, 4.0 times with 2 KiB, 3.5 "
        "times with blocks of one record and 3.8 times Nova-LSM.",
        "fillrandom with both triggers of level 0 at 1,000,000 tables.")
def bulk_load(lab: Lab):
    for threads in (1, 4, 16):
        for engine in lab.turn(ENGINES):
            report = lab.run("fillrandom", engine=engine, threads=threads, flags=NO_STALLS, room=2)
            yield from both_rates(engine.name, threads, report, "fillrandom")


@figure("8", "random reads by threads", "threads", "ops/s",
        "Ahead of all LSM-trees, at most 12.5 % behind Sherman, which caches all inner nodes of "
        "its B-tree (at 16 threads); smaller blocks are faster.",
        "readrandom once compactions have ended, on what figure 7a wrote.", in_docs=True)
def read_threads(lab: Lab):
    yield from by_threads(lab, "readrandom")


@figure("9", "size of the data", "times the keys", "ops/s",
        "All slow down as the data grows. 100 M keys took 39 GB of remote memory in RocksDB with "
        "8 KiB, 44 GB with 2 KiB, 52 GB with blocks of one record, 59 GB in dLSM, 68 GB in "
        "Sherman.",
        "fillrandom, then readrandom after compaction, and what the pool holds then, in bytes for "
        "each byte of keys and values.")
def data_sizes(lab: Lab):
    for factor in (0.5, 1, 2):
        for engine in lab.turn(ENGINES):
            report = lab.run("fillrandom", "compact", "readrandom", engine=engine, keys=factor)
            yield f"{engine.name}, writes", factor, report.rate("fillrandom")
            yield f"{engine.name}, reads", factor, report.rate("readrandom")
            yield (f"{engine.name}, bytes stored for one of the user's", factor,
                   report.space["stored_bytes"] / report.space["user_bytes"])


@figure("10", "reads among writes", "percent of reads", "ops/s",
        "Ahead of all LSM-trees at every ratio, a little behind Sherman at 95 and 100 %; with 50 % "
        "reads eight shards (lambda) are 1.7 times as fast as one.",
        "readrandomwriterandom on a database that fillrandom made. Lambda, the shards of one "
        "database, is not there: a database has one owner and a tree for each column family.")
def read_ratios(lab: Lab):
    for percent in (0, 25, 50, 75, 95, 100):
        for engine in lab.turn(ENGINES):
            report = lab.run("fillrandom", "waitforcompaction", "readrandomwriterandom",
                             engine=engine, threads=2, flags=(f"--readwritepercent={percent}",))
            yield engine.name, percent, report.rate("readrandomwriterandom")


@figure("11", "scan of the whole table", "threads", "entries/s",
        "1.3 times RocksDB with 8 KiB, 1.5 times with 2 KiB, 2.5 times with blocks of one record, "
        "1.8 times Sherman.",
        "readseq after compaction, on what figure 7a wrote with one thread.", kind=BARS)
def scans(lab: Lab):
    for engine in lab.turn(BASELINES):
        yield engine.name, 1, lab.run(*STEPS, engine=engine).rate("readseq")


@figure("12", "compaction on the node, by its cores, or here", "writing threads", "ops/s",
        "Near-data compaction gives up to 60 % more writes with enough writers, and nothing with "
        "one; beyond 12 remote cores there is no gain, since compactions of level 0 follow one "
        "another. With few cores the node is fully used.",
        "fillrandom and the wait for compactions together, one node held to so many processors "
        "(taskset) with as many workers, or compactions in the compute node. The paper has 1 to 12 "
        "cores; there are as many here as this machine has.")
def compaction_site(lab: Lab):
    sites = [(f"on the node, {cores} of its cores", cores, "auto") for cores in lab.cores(4)]
    sites.append(("in the compute node", lab.cores(4)[-1], "compute"))
    for threads in (1, 2, 4):
        for name, cores, site in lab.turn(sites):
            report = lab.run("fillrandom", "waitforcompaction", threads=threads, nodes=1,
                             node_cores=cores, flags=(f"--compaction={site}",))
            seconds = sum(report.step(step)["seconds"]
                          for step in ("fillrandom", "waitforcompaction"))
            yield name, threads, report.step("fillrandom")["ops"] / seconds
            yield (f"{name}: percent of them in use", threads,
                   100 * report.node_cpu_seconds / report.seconds / cores)


@figure("13", "byte-addressable tables against blocks", "benchmark", "ops/s",
        "Without blocks writes are somewhat and reads up to 60 % faster than with blocks of 8 KiB "
        "in the same engine.",
        "Nacre has one table format, so the blocks are RocksDB's over the same nodes: fillrandom "
        "and readrandom of figures 7a and 8 with one thread, with blocks down to one record.",
        kind=BARS)
def table_formats(lab: Lab):
    for engine in lab.turn(BASELINES):
        report = lab.run(*STEPS, engine=engine)
        for step in ("fillrandom", "readrandom"):
            yield engine.name, step, report.rate(step)


@figure("14a", "memory nodes, with data that grows as they do", "memory nodes", "ops/s",
        "From 1 node with 50 M keys to 16 with 800 M writes and reads slow down, but less than "
        "with the same data on one node, as compaction has more cores.",
        "fillrandom and readrandom after compaction, a quarter of the keys for each node; all "
        "nodes share this machine's cores.")
def memory_nodes(lab: Lab):
    for nodes in lab.memories():
        report = lab.run("fillrandom", "waitforcompaction", "readrandom", keys=nodes / 4,
                         nodes=nodes)
        for step in ("fillrandom", "readrandom"):
            yield step, nodes, report.rate(step)
        one = lab.run("fillrandom", "waitforcompaction", "readrandom", keys=nodes / 4, nodes=1)
        for step in ("fillrandom", "readrandom"):
            yield f"{step}, all of it on one node", nodes, one.rate(step)


def total_rates(lab: Lab, computes: int, memories: int, keys: float):
    """Operations a second of so many owners at once, each of its own database."""
    job = lab.job("fillrandom", "flush", "waitforcompaction", keys=keys / computes, nodes=memories)
    filled, read = lab.together(job, computes, ("readrandom",))
    return {"fillrandom": rate_together(filled, "fillrandom"),
            "readrandom": rate_together(read, "readrandom")}


@figure("14b", "compute nodes on one memory node", "compute nodes", "ops/s",
        "From 1 to 8 compute nodes writes scale better than reads; 8 ran out of memory.",
        "Owners at the same time, each of a database of its own in the pool, which share the keys; "
        "what they do together, by the time of the slowest. They share this machine's cores.")
def compute_nodes(lab: Lab):
    for computes in lab.computes():
        for step, rate in total_rates(lab, computes, 1, 1).items():
            yield step, computes, rate


@figure("15", "compute and memory nodes together", "nodes", "ops/s",
        "From 1C1M to 8C8M, with 50 M keys for each pair, dLSM scales well and stays ahead of "
        "Sherman and Nova-LSM.",
        "As figure 14b, with as many memory nodes as owners and a quarter of the keys for each "
        "pair. `cluster_bench.py` does it on machines of their own.")
def pairs(lab: Lab):
    for count in lab.computes():
        for step, rate in total_rates(lab, count, count, count / 4).items():
            yield step, f"{count}C{count}M", rate
