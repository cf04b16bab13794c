"""The figures of Aceso."""

from papers import loads
from papers.figures import BARS, Paper
from papers.lab import Lab, Report, size_name

PAPER = Paper(
    "aceso", "Aceso (SOSP 2024)",
    "23 compute and 5 memory nodes on 56 Gbit/s InfiniBand; 184 clients; keys and values of 1024 B "
    "together, 1 M keys; codes of XOR over groups of 5, against FUSEE with 3 copies.",
    "Keys of 20 B with 1004 B values, a log, 2 threads; five `nacre-memnode` processes on shm, of "
    "this machine. `rs(3,2)` and `rep(3)` both survive two nodes, as Aceso and FUSEE do. Aceso's "
    "clients share one database, Nacre's threads are those of its owner.")
figure, without = PAPER.figure, PAPER.without

CODE, COPIES = "rs(3,2)", "rep(3)"
KEYS = 0.3  # The values are larger than those of other figures.
SHAPE = {"value_bytes": 1004, "nodes": 5, "keys": KEYS, "threads": 2, "log": True}
# A cluster of Twitter's for each kind that the paper names: its number, bytes of keys and values.
CLUSTERS = {"STORAGE": (51, 44, 221), "COMPUTE": (12, 44, 1030), "TRANSIENT": (23, 35, 224)}


@figure("8", "rates of operations", "operation", "ops/s",
        "Writes gain most over FUSEE, since the index is not replicated synchronously: DELETE up "
        "to 2.67 times; SEARCH a little.",
        "ycsbload into a new database; readrandom, overwrite and deleterandom on another.",
        kind=BARS)
def operations(lab: Lab):
    for redundancy in lab.turn((CODE, COPIES)):
        for name, report, step, _ in loads.operations(lab, redundancy=redundancy, **SHAPE):
            yield redundancy, name, report.rate(step)


@figure("9", "latencies of operations", "operation", "us",
        "Up to 62 % less than FUSEE at the median and 54 % less at p99, with one compare-and-swap "
        "in the place of three.",
        "The same with one thread and a round trip of 2 us (`?rtt_us=2`).", kind=BARS)
def latencies(lab: Lab):
    for redundancy in lab.turn((CODE, COPIES)):
        shape = SHAPE | {"threads": 1, "keys": KEYS / 4, "network": "rtt_us=2"}
        for name, report, step, kind in loads.operations(
                lab, redundancy=redundancy, flags=("--latency_sample_period=1",), **shape):
            yield f"{redundancy}, p50", name, report.latency(step, kind)
            yield f"{redundancy}, p99", name, report.latency(step, kind, "p99_us")


@figure("10", "YCSB", "workload", "ops/s",
        "A (half updates) 1.63 times FUSEE; B, C and D up to 1.28 times.",
        "Zipf, theta 0.99.", kind=BARS)
def ycsb(lab: Lab):
    for redundancy in lab.turn((CODE, COPIES)):
        report = lab.run("ycsbload", "waitforcompaction", "ycsba", "ycsbb", "ycsbc", "ycsbd",
                         redundancy=redundancy, room=2, **SHAPE)
        for letter in "abcd":
            yield redundancy, letter.upper(), report.rate(f"ycsb{letter}")


@figure("11", "Twitter's mixes", "cluster", "ops/s",
        "STORAGE (mostly reads) 1.10 times FUSEE, COMPUTE and TRANSIENT (many writes) up to 1.94 "
        "times. The paper does not tell which clusters it took.",
        "Mixes after the published statistics of cluster 51 (10 % writes), 12 (80 %) and 23 (61 % "
        "and 2 % deletions, values that live for two minutes), not the traces.", kind=BARS)
def twitter(lab: Lab):
    for redundancy in lab.turn((CODE, COPIES)):
        for name, (number, key_bytes, value_bytes) in CLUSTERS.items():
            report = lab.run("ycsbload", "waitforcompaction", "twitter", redundancy=redundancy,
                             flags=(f"--twitter_cluster={number}",), key_bytes=key_bytes, room=2,
                             **(SHAPE | {"value_bytes": value_bytes}))
            yield redundancy, name, report.rate("twitter")


@figure("12", "what memory holds", "redundancy", "bytes for one of the user's",
        "Of 52.6 GB written Aceso takes 44 % less memory than FUSEE; its blocks of differences are "
        "1 % of the data.",
        "After fillseq and a compaction of all. Tables are never changed, so there are no "
        "differences; the log is what is left of it.", kind=BARS)
def memory(lab: Lab):
    for redundancy in (CODE, COPIES, "rs(4,1)", "none"):
        space = lab.run("fillseq", "compact", redundancy=redundancy,
                        **(SHAPE | {"threads": 1})).space
        for name, part in (("all that is stored", "stored_bytes"),):
            yield name, redundancy, space[part] / space["user_bytes"]
        for part in ("parity-bytes", "header-bytes", "remote-index-bytes", "padding-bytes",
                     "log-bytes"):
            yield part[:-6], redundancy, space["parts"][part] / space["user_bytes"]


without("13", "factors",
        "From FUSEE to Aceso by larger index slots, checkpoints of the index, and cached "
        "addresses of slots.",
        "not measured. The steps are changes of a hash index that clients share; Nacre has none.")


@figure("14", "degraded searches, and updates that reuse space", "state", "ops/s",
        "Searches while a node's blocks are lost run at 0.53 of the usual rate, updates that reuse "
        "reclaimed space at 0.97.",
        "readrandom before and after a node of five is killed, repair held back; the first and the "
        "third overwrite of all keys, which flushes and compacts into freed space.", kind=BARS)
def degraded(lab: Lab):
    report = lab.run("fillrandom", "compact", "readrandom", "kill", "readrandom", redundancy=CODE,
                     flags=("--repair_bytes_per_second=4096",), **SHAPE)
    before, after = report.steps("readrandom")
    yield "SEARCH", "usual", before["ops_per_sec"]
    yield "SEARCH", "special", after["ops_per_sec"]
    report = lab.run("fillrandom", *["overwrite"] * 3, redundancy=CODE, room=4, **SHAPE)
    first, _, third = report.steps("overwrite")
    yield "UPDATE", "usual", first["ops_per_sec"]
    yield "UPDATE", "special", third["ops_per_sec"]


@figure("T3", "processors of memory nodes", "redundancy", "percent of a core, each node",
        "Four cores of a memory node (requests, coding, sending and receiving checkpoints) are "
        "busy for 3.8, 41.9, 29.1 and 43.1 % while all clients write.",
        "fillrandom and the wait for compactions; all that a node does, compactions first of all, "
        "which Aceso has not.", kind=BARS)
def node_load(lab: Lab):
    for redundancy in (CODE, COPIES):
        report = lab.run("fillrandom", "waitforcompaction", redundancy=redundancy, **SHAPE)
        yield ("in use", redundancy,
               100 * report.node_cpu_seconds / report.seconds / SHAPE["nodes"])


@figure("15", "updates among searches", "percent of updates", "ops/s",
        "Rates fall as updates grow, for both; Aceso is ahead at every ratio.",
        "readrandomwriterandom with Zipf keys, theta 0.99.")
def update_ratios(lab: Lab):
    for updates in (0, 25, 50, 75, 100):
        for redundancy in lab.turn((CODE, COPIES)):
            report = lab.run("fillrandom", "waitforcompaction", "readrandomwriterandom",
                             redundancy=redundancy, room=2, **SHAPE,
                             flags=(f"--readwritepercent={100 - updates}", "--key_dist=zipf"))
            yield redundancy, updates, report.rate("readrandomwriterandom")


def rebuilt(lab: Lab, redundancy: str, keys: float = KEYS, nodes: int = 6,
            flags: tuple[str, ...] = ()) -> tuple[Report, dict]:
    """A run in which a node is lost at the end, and the step that waits for the repair."""
    report = lab.run("fillrandom", "waitforcompaction", "compact", "kill", "waitforrepair",
                     redundancy=redundancy, flags=("--repair_bytes_per_second=0", *flags),
                     **(SHAPE | {"keys": keys, "nodes": nodes, "threads": 1, "log": False}))
    return report, report.step("waitforrepair")


def repair_cells(x, step: dict):
    yield "until all is made anew, ms", x, 1000 * step["seconds"]
    yield "processor time of the nodes, ms", x, 1000 * step["cpu_seconds"]
    yield "made anew, MiB", x, step["mb_per_sec"] * step["seconds"]


@figure("T2", "XOR against Reed-Solomon", "code", "",
        "Recovery of a node takes 3109 ms with XOR and 3775 ms with Reed-Solomon, of which "
        "metadata are 1 ms, the checkpoint of the index 17 ms, and new and old blocks the rest; "
        "encoding runs at 20.6 against 12.6 GB/s.",
        "A code with one parity chunk is XOR, with more it is Reed-Solomon by ISA-L. One of six "
        "nodes is killed after a compaction. Index and manifest are not on it alone, so only "
        "fragments of tables are made anew, from the moment of the kill. Encoding: in flushes, for "
        "each processor second.", kind=BARS)
def codes(lab: Lab):
    for redundancy in lab.turn(("rs(4,1)", "rs(4,2)")):
        report, step = rebuilt(lab, redundancy, nodes=7)
        yield from repair_cells(redundancy, step)
        encoding = report.data["encoding"]
        yield ("encoding, GB/s", redundancy,
               encoding["data_bytes"] / max(encoding["cpu_seconds"], 1e-9) / 1e9)


@figure("16", "recovery by what was lost", "times the keys", "",
        "Metadata and index recover in a constant time, below a second; blocks at about 2 GB/s.",
        "As table 2, `rs(3,2)`. Clients wait for none of it: reads of what is lost decode. If the "
        "owner dies with the node, the next one has to replay the log and to read the manifest, "
        "but no tables: the last series is until it has answered a Get, with 8 MiB in the log.",
        in_docs=True)
def lost_sizes(lab: Lab):
    for factor in (0.25, 0.5, 1, 2):
        _, step = rebuilt(lab, CODE, KEYS * factor)
        yield from repair_cells(factor, step)
        job = lab.job(*loads.LOAD, redundancy=CODE,
                      **(SHAPE | {"keys": KEYS * factor, "nodes": 6, "threads": 1}))
        yield ("owner and node lost: the first Get, ms", factor,
               lab.takeover(job, 8 << 20, kills=1)["first_get_us"] / 1000)


@figure("17-18", "interval of checkpoints", "ms", "",
        "Between 100 ms and some seconds the interval hardly changes rates; the longer it is the "
        "longer the index takes to recover.",
        "`--manifest_image_interval`: updates of the manifest's image, MemTables of 1 MiB so that "
        "there are edits. The takeover is of an owner that was killed.")
def intervals(lab: Lab):
    for interval in (100, 250, 500, 1000, 2000):
        flags = (f"--manifest_image_interval={interval}", "--write_buffer_size=1048576",
                 "--target_file_size_base=1048576")
        report = lab.run("fillseq", "overwrite", redundancy=COPIES, room=3,
                         **(SHAPE | {"threads": 1}), flags=flags)
        yield "overwrite, ops/s", interval, report.rate("overwrite")
        job = lab.job(*loads.LOAD, redundancy=COPIES,
                      **(SHAPE | {"threads": 1}), flags=flags)
        yield ("takeover, first Get, ms", interval,
               lab.takeover(job, 1 << 20)["first_get_us"] / 1000)


@figure("19", "size of the index", "tables", "ms",
        "A compressed checkpoint of an index of 2 GB has 27 MB; the time of each step grows with "
        "the index.",
        "What is checkpointed is the manifest: an update of its image of so many tables after 64 "
        "edits, and its recovery, on an embedded pool (`micro_scale`). What an update sends is in "
        "performance.md, \"Durability\".")
def index_sizes(lab: Lab):
    for tables in (1650, 16500, 165000):
        for name, benchmark in (("update of the image", "BM_ManifestScaleImageUpdate"),
                                ("recovery", "BM_ManifestScaleRecovery")):
            yield name, tables, lab.micro_millis("micro_scale", benchmark, tables)


@figure("20", "size of blocks", "chunk", "",
        "From 16 KB to 16 MB updates get faster with the size, and the index recovers fastest at 2 "
        "MB.",
        "`--chunk_size`, the unit of striping, `rs(3,2)`; a repair as in table 2, an overwrite of "
        "all keys.")
def block_sizes(lab: Lab):
    for size in (16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20):
        flags = (f"--chunk_size={size}",)
        _, step = rebuilt(lab, CODE, flags=flags)
        yield "until all is made anew, ms", size_name(size), 1000 * step["seconds"]
        report = lab.run("fillrandom", "overwrite", redundancy=CODE, room=2, flags=flags, **SHAPE)
        yield "overwrite, ops/s", size_name(size), report.rate("overwrite")
