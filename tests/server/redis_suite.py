"""Runs Redis's own tests, of Debian's source package, against nacre-server.

usage: redis_suite.py FOLDER_OF_BINARIES CACHE_FOLDER [UNIT...]

Answers 1 if a test fails, or fewer tests run than have run before; 77 if the source or Tcl is not
to be had. What is left out is listed below, with the reasons. Six lines of the suite are changed:
it need not forget functions and does not use them (there are none), nor does it set what Redis
alone can be told, and its tests of users and of sharded channels run here, too.
"""

import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "packaging"))
from chroot import debian_sources  # noqa: E402

VERSION = "7.0.15"
SKIPPED = 77

# Groups of tests, by the suite's own tags.
LEFT_OUT_TAGS = {
    "needs:debug": "look into Redis's memory or files by DEBUG",
    "needs:repl": "need Redis's replication",
    "needs:config-maxmemory": "need maxmemory, and eviction",
    "large-memory": "take gigabytes",
    "slow": "take minutes",
    "cluster:skip": "compare databases by DEBUG DIGEST",
}
DUMP = "needs DUMP and RESTORE"
SORT = "needs SORT"
STREAMS = "needs streams"
CUT_OFF = "scripts are never cut off, and others go on meanwhile"
MSGPACK = "there is no cmsgpack"
GEO = "needs GEOADD"
FUNCTIONS = "needs FUNCTION"
SUBCOMMANDS = "names subcommands that there are not"
LATER = ("clients that wait are served soon after what they wait for was acknowledged, and the "
         "test expects it to be before")
# By unit: how many of its tests run at least, and which are left out, by name or by a pattern
# behind a slash.
UNITS = {
    "unit/type/string": (71, {}),
    "unit/type/incr": (23, {}),
    "unit/type/hash": (70, {"/^Hash ziplist of various encodings": DUMP}),
    "unit/type/list": (213, {
        "Circular BRPOPLPUSH": LATER,
        "/when result key is created by SORT": SORT,
        "/^List ziplist of various encodings": DUMP,
    }),
    "unit/type/set": (94, {}),
    "unit/type/zset": (268, {"BZMPOP with multiple blocked clients": LATER}),
    "unit/expire": (56, {}),
    "unit/scan": (17, {}),
    "unit/keyspace": (39, {"/^COPY basic usage for stream": STREAMS}),
    "unit/multi": (23, {
        "/script timeout": CUT_OFF,
        "Blocking commands ignores the timeout": STREAMS,
        "MULTI with SAVE": "there is no SAVE",
        "MULTI with SHUTDOWN": "there is no SHUTDOWN",
        "MULTI with config error": "needs maxmemory",
    }),
    "unit/bitops": (44, {
        "SETBIT/BITFIELD only increase dirty when the value changed":
            "INFO does not count changes since the last save",
    }),
    "unit/bitfield": (16, {}),
    "unit/pubsub": (27, {
        "Keyspace notifications: stream events test": STREAMS,
        "Keyspace notifications: new key test": "a SET does not look whether there was a key",
    }),
    "unit/pubsubshard": (9, {}),
    "unit/protocol": (19, {}),
    "unit/quit": (3, {}),
    "unit/scripting": (84, {
        "EVAL - Scripts can't run XREAD and XREADGROUP with BLOCK option": STREAMS,
        "/cmsgpack": MSGPACK,
        "CLUSTER RESET can not be invoke from within a script": "there is no CLUSTER",
        "Binary code loading failed": "string.dump is missing, which the error has other words for",
        "/^Timedout": CUT_OFF,
        "not enough good replicas": "needs min-replicas-to-write",
        "reject script do not cause a Lua stack leak": "needs maxmemory",
        "/^LUA redis.error_reply API": "INFO does not count errors by their codes",
    }),
    "unit/acl": (64, {
        "ACLs including of a type includes also subcommands": STREAMS,
        "ACLs can block all DEBUG subcommands except one": SUBCOMMANDS,
        "ACLs set can include subcommands, if already full command exists": SUBCOMMANDS,
        "ACLs set can exclude subcommands, if already full command exists": SUBCOMMANDS,
        "ACL GETUSER is able to translate back command permissions": SUBCOMMANDS,
        "/^ACL #5998 regression": SUBCOMMANDS,
        "/^ACL CAT category - list all commands": FUNCTIONS,
        "/^ACL requires explicit permission for scripting": FUNCTIONS,
    }),
    "unit/acl-v2": (23, {
        "Test various odd commands for key permissions": "needs MIGRATE",
        "Existence test commands are not marked as access": "needs the rules of that one",
        "/^Test general keyspace commands require some type": "needs the rules of that one",
        "Intersection cardinaltiy commands are access commands": "needs PFCOUNT",
        "Cardinality commands require some type of permission to execute": STREAMS,
        "Test sort with ACL permissions": SORT,
    }),
    "unit/slowlog": (8, {
        "SLOWLOG - Rewritten commands are logged as their original command": GEO,
    }),
}


def run(command, folder, **more):
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False, **more)


def fetch(cache: pathlib.Path) -> pathlib.Path | None:
    """The folder of the source, which is fetched once; None if it cannot be."""
    source = cache / f"redis-{VERSION}"
    if source.is_dir():
        return source
    apt = cache / "apt"
    shutil.rmtree(apt, ignore_errors=True)
    for folder in ("lists/partial", "cache/archives/partial"):
        (apt / folder).mkdir(parents=True)
    # Sources are where the machine has its packages from.
    try:
        sources = re.sub("^deb ", "deb-src ", debian_sources(), flags=re.MULTILINE)
    except AssertionError as error:
        print(error)
        return None
    (apt / "sources.list").write_text(sources + "\n")
    # Lists of its own: those of the machine need not name sources.
    options = ["-o", f"Dir::Etc::SourceList={apt}/sources.list", "-o",
               "Dir::Etc::SourceParts=/dev/null", "-o", f"Dir::State::Lists={apt}/lists", "-o",
               f"Dir::Cache={apt}/cache"]
    for command in (["update"], ["source", "--download-only", "redis"]):
        fetched = run(["apt-get", *options, *command], cache, timeout=240)
        if fetched.returncode != 0:
            print(fetched.stdout)
            return None
    unpacked = run(["tar", "xzf", f"redis_{VERSION}.orig.tar.gz"], cache, timeout=60)
    if unpacked.returncode != 0:
        print(unpacked.stdout)
        return None
    harness = source / "tests/support/server.tcl"
    text = harness.read_text()
    changed = text.replace("    r function flush\n", "", 1).replace(
        "        r config set $param $val\n", "        catch {r config set $param $val}\n")
    if changed.count("catch {r config set $param $val}") != 2 or "function flush" in changed:
        print("the suite's harness is not the one that is known")
        shutil.rmtree(source)
        return None
    harness.write_text(changed)
    return source


def for_any_server(source: pathlib.Path) -> bool:
    """Has tests run here, too, that the suite would only run with a server that it starts."""
    for name in ("acl", "acl-v2", "pubsubshard"):
        unit = source / f"tests/unit/{name}.tcl"
        first, rest = unit.read_text().split("\n", 1)
        unit.write_text(first.replace(" external:skip", "") + "\n" + rest)
        if not first.startswith('start_server {tags {"'):
            return False
    return True


def without_functions(source: pathlib.Path) -> bool:
    """Has the tests of scripts run with EVAL only, not with FUNCTION as well."""
    unit = source / "tests/unit/scripting.tcl"
    text = unit.read_text()
    unit.write_text(text.replace("foreach is_eval {0 1} {", "foreach is_eval {1} {", 1))
    return "foreach is_eval {1} {" in unit.read_text()


# These take the order in which they write to several connections, without a pause, for the order in
# which the commands take effect. That holds for connections of one thread.
OF_ONE_THREAD = ("unit/type/list", "unit/type/zset", "unit/pubsub", "unit/pubsubshard")


class Server:
    """nacre-server over an embedded pool."""

    def __init__(self, binaries: pathlib.Path, *flags: str, threads: int = 2):
        self.process = subprocess.Popen(
            [binaries / "nacre-server", "--pool=embedded:?nodes=1&size=1GiB",
             "--listen=127.0.0.1:0", "--write_buffer_size=16777216", f"--threads={threads}",
             *flags],
            stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if line.startswith("waiting"):
            line = self.process.stdout.readline()
        match = re.search(r":(\d+)$", line.strip())
        if match is None:
            raise RuntimeError(f"nacre-server did not begin to serve: {line}")
        self.port = int(match.group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=60)
        self.process.stdout.close()


def run_unit(source: pathlib.Path, port: int, unit: str) -> bool:
    """Prints what failed; whether nothing did."""
    least, left_out = UNITS[unit]
    tags = " ".join(f"-{tag}" for tag in LEFT_OUT_TAGS)
    # The harness says nothing of tests that it leaves out for their names.
    skip = source / "skipped_tests.txt"
    skip.write_text("".join(name + "\n" for name in left_out))
    began = time.monotonic()
    # The harness looks for free ports from there on; others may run it, too.
    base_port = random.randrange(20_000, 30_000)
    result = run(
        ["./runtest", "--host", "127.0.0.1", "--port", str(port), "--baseport", str(base_port),
         "--singledb", "--ignore-encoding", "--ignore-digest", "--durable", "--timeout", "240",
         "--tags", tags, "--skipfile", str(skip), "--single", unit], source, timeout=600)
    text = re.sub(r"\x1b\[[0-9;]*m", "", result.stdout)
    passed = len(re.findall(r"^\[ok\]: ", text, re.MULTILINE))
    failures = re.findall(r"^\[(?:err|exception|TIMEOUT)\].*\n.*", text, re.MULTILINE)
    seconds = time.monotonic() - began
    print(f"{unit}: {passed} passed, {len(failures)} failed, {seconds:.1f} s", flush=True)
    for failure in failures:
        print("  " + failure.replace("\n", "\n    "))
    if passed < least:
        print(f"  {least} were expected to pass")
    if result.returncode != 0 and not failures:
        print(text[-3000:])
    return result.returncode == 0 and not failures and passed >= least


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    binaries, cache = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    units = sys.argv[3:] or list(UNITS)
    if shutil.which("tclsh") is None:
        print("skipped: there is no tclsh (Debian's package tcl)")
        return SKIPPED
    cache.mkdir(parents=True, exist_ok=True)
    source = fetch(cache)
    if source is None:
        print("skipped: the source of Redis cannot be fetched")
        return SKIPPED
    if not for_any_server(source):
        print("the suite's tests of users and sharded channels are not those that are known")
        return 1
    if not without_functions(source):
        print("the suite's tests of scripts are not those that are known")
        return 1
    failed = []
    for unit in units:
        with Server(binaries, threads=1 if unit in OF_ONE_THREAD else 2) as server:
            if not run_unit(source, server.port, unit):
                failed.append(unit)
    print("all passed" if not failed else "failed: " + " ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
