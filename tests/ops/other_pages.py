"""What the commands of README.md, docs/security.md and docs/sharding.md need to be run on one
machine."""

from page_run import Page, Place, Step
from page_scene import Scene, needs_etcd

README = Page(
    path="README.md",
    scenes=(Place("pool", ("A pool over TCP, in a minute",)),),
    substitutions={
        "$PWD/build/release/bin": "{binaries}",
        "127.0.0.1:7001": "{node0}",
        "127.0.0.1:7002": "{node1}",
        "--size=1GiB --populate": "--size=128MiB --slab_size=1MiB --populate",
        "--num=200000": "--num=20000",
    },
    steps={("A pool over TCP, in a minute", "nacre-ctl doctor"): Step(again=True)},
    not_run={
        "It builds everything; the build that this test is of was made so.": (
            "./run bench", "./run test",
            "cmake --preset release && cmake --build --preset release"),
        "It writes to /usr/local; repo.install does it elsewhere.": (
            "cmake --install build/release --prefix /usr/local",),
        "N, Suite and Test stand for what failed.": (
            "NACRE_TEST_SEED=N build/release/bin/db_tests --gtest_filter=Suite.Test",),
    },
)

# Its commands are in sentences, each beside the name of its test.
SECURITY = Page(path="docs/security.md", scenes=(), substitutions={}, steps={}, not_run={})


def start_pool_and_etcd(scene: Scene) -> None:
    scene.start_etcd()
    for index in range(3):
        scene.start_node(index, "--size=4GiB", "--slab_size=64MiB")
    scene.use_pool(3)


SHARDING = Page(
    path="docs/sharding.md",
    scenes=(
        Place("measurements", ("11",), prepare=start_pool_and_etcd, needs=needs_etcd),
        Place("keyspace", ("12",), prepare=Scene.start_keyspace, needs=needs_etcd),
    ),
    substitutions={
        "--pool=URI": "--pool={pool}",
        "127.0.0.1:2379": "{etcd}",
        "10.0.0.11:2379,10.0.0.12:2379,10.0.0.13:2379": "{etcd}",
        "--num=1000000": "--num=20000",
    },
    steps={
        ("12", "nacre-ctl shards"): Step(again=True),
        ("11", "db_bench --pool=URI --coordinator"): Step(append=" --num=4000 --moves=3"),
    },
    not_run={},
)
