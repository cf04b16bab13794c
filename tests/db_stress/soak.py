"""Runs RocksDB's db_stress, built with db_stress_open.cc, in the modes that a Nacre database has.

usage: soak.py BIN SECONDS

BIN is the folder of db_stress and nacre-memnode. Rounds of all modes follow one another until
SECONDS have passed, one round at least; each has the next seed, from NACRE_TEST_SEED on, and is
named before it begins. The nodes are processes of this host; in the mode "killed" db_stress is
killed at a moment drawn from the seed and started again on the same database, whose every key it
then compares with what it had been told of its writes. Answers 1, with the end of the output, at
the first db_stress that finds something wrong.
"""

import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

NODES = 3
RUN_SECONDS_MAX = 600
# What db_stress asks of files, and what Nacre answers NotSupported.
OFF = """
    compact_files_one_in get_live_files_one_in get_current_wal_file_one_in
    ingest_external_file_one_in get_sorted_wal_files_one_in backup_one_in checkpoint_one_in
    set_options_one_in
    read_fault_one_in sync_fault_injection continuous_verification_interval progress_reports
    clear_column_family_one_in level_compaction_dynamic_level_bytes use_full_merge_v1
    periodic_compaction_seconds""".split()
BASE = {
    "threads": 4, "column_families": 3, "max_key": 3000, "ops_per_thread": 10000, "reopen": 2,
    "acquire_snapshot_one_in": 100, "snapshot_hold_ops": 500, "compact_range_one_in": 500,
    "flush_one_in": 300, "verify_checksum_one_in": 1000, "verify_db_one_in": 2000,
    "get_property_one_in": 200, "pause_background_one_in": 1000, "approximate_size_one_in": 200,
    "verify_iterator_with_expected_state_one_in": 5, "use_merge": 1, "use_multiget": 1,
    "nooverwritepercent": 1, "readpercent": 35, "prefixpercent": 5, "writepercent": 35,
    "delpercent": 4, "delrangepercent": 1, "iterpercent": 20, "prefix_size": 7,
    "num_iterations": 50, "value_size_mult": 32, "write_buffer_size": 262144,
    "target_file_size_base": 262144, "max_bytes_for_level_base": 1048576,
    "compression_type": "none", "file_checksum_impl": "none", "destroy_db_initially": 1,
}
# What differs from BASE; "expected" keeps the expected state in a folder.
MODES = {
    "plain": {"expected": True},
    # It deletes handles of families that others of its calls may be using: all but updates, which
    # have their key locked. What was written is read when each part ends.
    "families": {"clear_column_family_one_in": 500, "compact_range_one_in": 0, "flush_one_in": 0,
                 "acquire_snapshot_one_in": 0, "verify_db_one_in": 0, "approximate_size_one_in": 0,
                 "iterpercent": 0, "prefixpercent": 0, "readpercent": 0, "writepercent": 80,
                 "delpercent": 18, "delrangepercent": 2},
    "batches": {"test_batches_snapshots": 1, "delrangepercent": 0, "delpercent": 5},
    "consistency": {"test_cf_consistency": 1, "atomic_flush": 1},
    "filter": {"expected": True, "enable_compaction_filter": 1, "nooverwritepercent": 0,
               "acquire_snapshot_one_in": 0, "compact_range_one_in": 0, "iterpercent": 0,
               "readpercent": 55},
    "sync": {"expected": True, "sync": 1, "threads": 16, "ops_per_thread": 2000},
}
KILLS = 4


class Failed(Exception):
    """A db_stress found something wrong."""


class Nodes:
    """Memory nodes in processes of their own."""

    def __init__(self, binaries: pathlib.Path, folder: pathlib.Path):
        self.processes = []
        addresses = []
        for i in range(NODES):
            address = folder / f"node{i}.sock"
            self.processes.append(subprocess.Popen(
                [binaries / "nacre-memnode", f"--listen=shm:{address}", "--size=1GiB"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            addresses.append(str(address))
        self.uri = "shm:" + ",".join(addresses)
        deadline = time.monotonic() + 30
        while not all(os.path.exists(address) for address in addresses):
            if time.monotonic() > deadline:
                raise Failed("the nodes do not start")
            time.sleep(0.1)

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def flags_of(mode: dict, folder: pathlib.Path, seed: int) -> list[str]:
    flags = {name: 0 for name in OFF} | BASE | {"seed": seed, "db": folder / "db"} | mode
    if flags.pop("expected", False):
        flags["expected_values_dir"] = folder
    return [f"--{name}={value}" for name, value in flags.items()]


def run(binaries: pathlib.Path, nodes: Nodes, flags: list[str], kill_after: float = 0) -> None:
    """`kill_after`: seconds; 0: to its end."""
    environment = os.environ | {"NACRE_POOL": nodes.uri, "NACRE_REDUNDANCY": "rep(2)"}
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([binaries / "db_stress", *flags], env=environment,
                                   stdout=output, stderr=subprocess.STDOUT)
        try:
            code = process.wait(kill_after or RUN_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = 0 if kill_after else "none in time"
        if code != 0:
            output.seek(0)
            end = "".join(output.readlines()[-30:])
            raise Failed(f"exit code {code}\n{end}\n{' '.join(flags)}")


def run_mode(binaries: pathlib.Path, name: str, seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="nacre_db_stress.") as path:
        folder = pathlib.Path(path)
        nodes = Nodes(binaries, folder)
        try:
            if name != "killed":
                run(binaries, nodes, flags_of(MODES[name], folder, seed))
                return
            draw = random.Random(seed)
            for attempt in range(KILLS):
                mode = {"expected": True, "reopen": 0, "ops_per_thread": 1_000_000,
                        "destroy_db_initially": 1 if attempt == 0 else 0}
                run(binaries, nodes, flags_of(mode, folder, seed), draw.uniform(3, 12))
            last = {"expected": True, "reopen": 0, "ops_per_thread": 1000,
                    "destroy_db_initially": 0}
            run(binaries, nodes, flags_of(last, folder, seed))
        finally:
            nodes.stop()


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    binaries = pathlib.Path(sys.argv[1]).resolve()
    end = time.monotonic() + float(sys.argv[2])
    seed = int(os.environ.get("NACRE_TEST_SEED", "1"))
    only = os.environ.get("NACRE_DB_STRESS_MODES", ",".join([*MODES, "killed"])).split(",")
    while True:
        for name in only:
            start = time.monotonic()
            print(f"NACRE_TEST_SEED={seed} {name}", end=" ", flush=True)
            try:
                run_mode(binaries, name, seed)
            except Failed as failure:
                print(f"FAILED: {failure}")
                return 1
            print(f"ok, {time.monotonic() - start:.0f} s", flush=True)
        seed += 1
        if time.monotonic() >= end:
            return 0


if __name__ == "__main__":
    sys.exit(main())
