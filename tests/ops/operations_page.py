"""What the commands of docs/operations.md need to be run on one machine."""

import json
import pathlib
import shutil
import signal
import subprocess
import time

from live_pool import await_true
from page_run import Page, Place, Step
from page_scene import Scene

SUBSTITUTIONS = {
    # Addresses: RDMA cards are what machines of tests have not got.
    "verbs:10.0.0.1:7000": "tcp:{node0}",
    "verbs:10.0.0.1:7100": "tcp:{perf}",
    "verbs:10.1.0.3:7000": "tcp:{node2}",
    "10.0.0.1:7000": "{node0}",
    "10.0.0.2:7000": "{node1}",
    "10.0.0.3:7000": "{node2}",
    "10.0.0.4:7000": "{node3}",
    "10.0.0.11:2379": "{etcd}",
    "0.0.0.0:8080": "{console}",
    "--pool=URI": "--pool={pool}",
    "--pool=...": "--pool={pool}",
    # Paths.
    "/etc/": "{root}/etc/",
    "/var/lib/": "{root}/var/lib/",
    "/run/nacre": "{root}/run/nacre",
    "/backup": "{root}/backup",
    "/dev/dax0.0": "{root}/dev/dax0.0",
    # Sizes and times, for a test that is small and quick.
    "--size=8GiB": "--size=64MiB --slab_size=1MiB",
    "--size=60GiB": "--size=64MiB --slab_size=2MiB",
    "--num=200000 --reads=50000": "--num=20000 --reads=5000",
    "--duration=60": "--duration=1",
}

NOT_RUN = {
    "./run package": "it builds everything; ./run package --test tests the packages",
    "apt-get": "it installs packages on the machine; ./run package --test does that elsewhere",
    "modprobe": "it loads modules into the machine's kernel; tests/rdma_vm does that in a guest",
    "rdma link": "it wants the module rdma_rxe; tests/rdma_vm has it in a guest",
    "systemctl": "it wants the packages' services; ./run package --test starts them",
    "journalctl": "it wants systemd",
    "nft": "it changes the machine's firewall",
    "ibv_devices": "it wants a kernel with RDMA",
    "nacre-ctl doctor --pool=verbs:": "it wants an RDMA device; tests/rdma_vm has one",
    "ib_": "perftest wants an RDMA device",
    "echo": "it changes settings of the machine's kernel",
    "chown nacre": "the user nacre comes with the package",
    "mount": "it wants root; the place of the file is in a tmpfs here, too",
    "daxctl": "it wants a dax device, for which a file stands here",
}


# ---- 4: secrets ----

def serve_with_secrets(scene: Scene) -> None:
    scene.parameters = f"?secret_file={scene.folder}/etc/nacre/node.secrets"
    scene.start_nodes(1)


def answers(scene: Scene, secret: str) -> bool:
    pool = f"tcp:{scene.names['node0']}?secret_file={scene.folder}/{secret}"
    return scene.ctl("status", pool=pool).returncode == 0


def both_secrets_are_good(scene: Scene) -> None:
    shutil.copy(scene.folder / "shop.secret", scene.folder / "old.secret")
    for secret in ("shop.secret", "shop.secret.new"):
        await_true(f"{secret} is taken", lambda of=secret: answers(scene, of))


def new_secret_is_good(scene: Scene) -> None:
    await_true("the new secret is taken", lambda: answers(scene, "shop.secret"))


def old_secret_is_refused(scene: Scene) -> None:
    await_true("the old secret is refused", lambda: not answers(scene, "old.secret"))
    new_secret_is_good(scene)


# ---- 5: nodes ----

def make_database_on_it(scene: Scene) -> None:
    scene.use_pool(1)
    scene.bench(redundancy="none")


def database_is_there(scene: Scene) -> None:
    done = scene.ctl("fsck", "orders")
    assert done.returncode == 0, done.stdout + done.stderr


def make_device(scene: Scene) -> None:
    with open(scene.folder / "dev" / "dax0.0", "wb") as device:
        device.truncate(256 << 20)


PAGE = Page(
    path="docs/operations.md",
    scenes=(
        Place("machines", ("2", "3.1", "3.2", "3.4", "3.5")),
        Place("secrets", ("4", "4.1", "4.2")),
        Place("nodes", ("5",)),
        Place("kept_memory", ("5.1",)),
        Place("device", ("5.2",), prepare=make_device),
    ),
    substitutions=SUBSTITUTIONS,
    steps={
        ("4", "ls -l"): Step(replace={}),
        ("4.1", "nacre-ctl secrets list"): Step(look=serve_with_secrets),
        ("4.2", "nacre-ctl secrets add /etc/nacre/node.secrets 'write"): Step(
            look=both_secrets_are_good),
        ("4.2", "mv"): Step(look=new_secret_is_good),
        ("4.2", "nacre-ctl secrets retire"): Step(look=old_secret_is_refused),
        ("4.2", "nacre-ctl secrets revoke"): Step(look=old_secret_is_refused),
        ("5", "nacre-memnode"): Step(runs_on=True),
        ("5.1", "kill -9 %1"): Step(prepare=make_database_on_it),
        ("5.2", "db_bench"): Step(replace={" ...": " {small}"}),
    },
    not_run=NOT_RUN,
)
