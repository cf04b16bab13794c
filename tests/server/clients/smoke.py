"""Clients of other languages against nacre-server: Jedis, go-redis and ioredis, each by a program
that does what programs do with it.

usage: smoke.py FOLDER_OF_BINARIES CACHE_FOLDER [CLIENT...]

Fetches the clients into the cache folder, builds the programs and runs each against a server of its
own and, where etcd is installed, a cluster of three. Answers 1 if one fails, 77 if none of their
toolchains is here; it says which are missing.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cluster_test import Cluster  # noqa: E402
from redis_suite import SKIPPED, Server  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
JAVA = HERE.parent / "java"


def build_java(cache: pathlib.Path) -> list:
    """By Maven, whose pom.xml says where to."""
    subprocess.run(["mvn", "-q", "-B", f"-Dmaven.repo.local={cache / 'maven'}", "-f",
                    JAVA / "pom.xml", "package"], check=True)
    built = HERE.parents[2] / "build" / "java"
    return ["java", "-cp", f"{built / 'classes'}:{built / 'jars'}/*", "nacre.JedisSmoke"]


def build_go(cache: pathlib.Path) -> list:
    program = cache / "go-smoke"
    environment = os.environ | {
        "GOPATH": f"{cache}/go", "GOMODCACHE": f"{cache}/go/pkg/mod",
        "GOCACHE": f"{cache}/go/cache",
        "GOFLAGS": "-mod=readonly -modcacherw -buildvcs=false", "GOWORK": "off",
        "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    subprocess.run(["go", "build", "-o", program, "."], cwd=HERE / "go", env=environment,
                   check=True)
    return [program]


def build_node(cache: pathlib.Path) -> list:
    folder = cache / "node"
    folder.mkdir(exist_ok=True)
    for file in (HERE / "node").iterdir():
        shutil.copy(file, folder)
    subprocess.run(["npm", "ci", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True)
    return ["node", folder / "smoke.js"]


CLIENTS = {"jedis": ("mvn", build_java), "go-redis": ("go", build_go),
           "ioredis": ("npm", build_node)}


def main() -> int:
    if len(sys.argv) < 3 or not set(sys.argv[3:]) <= set(CLIENTS):
        print(__doc__, file=sys.stderr)
        return 2
    binaries, cache = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    cache.mkdir(parents=True, exist_ok=True)
    failed, ran = [], 0
    for name in sys.argv[3:] or CLIENTS:
        tool, build = CLIENTS[name]
        if shutil.which(tool) is None:
            print(f"{name}: left out, there is no {tool}")
            continue
        ran += 1
        try:
            command = build(cache)
            with contextlib.ExitStack() as stack:
                server = stack.enter_context(Server(binaries, "--standby"))
                ports = [str(server.port)]
                if shutil.which("etcd") is not None:
                    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="nacre-smoke-"))
                    cluster = stack.enter_context(Cluster(binaries, pathlib.Path(folder)))
                    ports.append(str(cluster.ports[0]))
                subprocess.run([*command, *ports], check=True, timeout=120)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            print(f"{name}: {error}")
            failed.append(name)
    if failed:
        print("failed: " + " ".join(failed))
    return 1 if failed else 0 if ran else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
