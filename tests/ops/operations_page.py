"""What the commands of docs/operations.md need to be run on one machine."""

import json
import shutil
import signal
import subprocess
import time
import urllib.error

from live_pool import await_true
from page_run import Page, Place, Step
from page_scene import Scene, needs_etcd

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
    "It builds everything; ./run package --test tests the packages.": (
        "./run package",),
    "It installs packages on the machine; ./run package --test does that elsewhere.": (
        "apt-get install ./nacre-memnode_*.deb ./nacre-tools_*.deb",
        "apt-get install rdma-core ibverbs-providers ibverbs-utils iproute2",
        "apt-get install rdma-core ibverbs-providers ibverbs-utils"),
    "It changes the machine's kernel; tests/rdma_vm has these modules in a guest.": (
        "modprobe rdma_rxe", "modprobe rdma_ucm", "rdma link add rxe0 type rxe netdev eth0",
        "rdma link"),
    "It changes settings of the machine's kernel.": (
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled"),
    "It changes the machine's firewall.": (
        "nft add rule inet filter input udp dport 4791 accept",),
    "It wants systemd, which machines of tests may not have.": (
        "systemctl enable --now soft-roce@eth0", "systemctl enable --now nacre-memnode",
        "journalctl -u nacre-memnode -n 1", "systemctl enable --now nacre-archive@orders"),
    "It wants an RDMA device; tests/rdma_vm has one in a guest.": (
        "ibv_devices", "nacre-ctl doctor --pool=verbs:",
        "nacre-ctl doctor --pool=verbs:10.0.0.1:7000,10.0.0.2:7000",
        "ib_read_lat -d rxe0 -R -s 512 -n 2000", "ib_read_lat -d rxe0 -R -s 512 -n 2000 10.0.0.1",
        "ib_write_lat -d rxe0 -R -s 64 -n 2000 10.0.0.1",
        "ib_write_bw -d rxe0 -R -s 65536 -n 2000 10.0.0.1"),
    "The user nacre comes with the package.": (
        "chown nacre /etc/nacre/pool.secret", "chown nacre /dev/dax0.0"),
    "It wants root; the place of the file is in a tmpfs here, too.": (
        "mount -t tmpfs -o size=9g,mode=0700,uid=nacre,huge=within_size tmpfs /var/lib/nacre",),
    "It wants a dax device, for which a file stands here.": (
        "daxctl reconfigure-device -m devdax dax0.0",),
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


# ---- 6: the pool ----

def start_pool_with_secret(scene: Scene) -> None:
    secret = scene.folder / "etc" / "nacre" / "pool.secret"
    secret.write_text("7" * 64)
    secret.chmod(0o600)
    scene.parameters = f"?secret_file={secret}"
    scene.start_nodes(4)
    scene.use_pool(3)
    scene.start_owner(redundancy="rs(2,1)")


def stop_second_node(scene: Scene) -> None:
    scene.nodes[1].send_signal(signal.SIGSTOP)


def go_on(scene: Scene) -> None:
    scene.nodes[1].send_signal(signal.SIGCONT)


def archive_and_lose_third_node(scene: Scene) -> None:
    archive = scene.start("archive", scene.program("nacre-archive"),
                          f"--pool={scene.names['pool']}", f"--to={scene.folder}/backup",
                          "--report_s=1", "orders")
    scene.await_log("archive", "orders", archive)
    scene.use_pool(4)
    done = scene.ctl("repair", "pause")
    assert done.returncode == 0, done.stderr
    await_true("the log's reader is known", lambda: "log reader" in scene.ctl(
        "top", "--once").stdout)
    scene.end(scene.nodes[2])
    await_true("the owner has told what is lost", lambda: "went with nodes" in scene.ctl(
        "top", "--once").stdout)


def page_is_served(scene: Scene) -> None:
    assert "<title>" in scene.fetch("console", "/")
    await_true("the pool is shown", lambda: "orders" in scene.fetch("console", "/api/pool"))


def write_file_of_pool(scene: Scene) -> None:
    addresses, _, parameters = scene.names["pool"].partition("?")
    lines = [f"tcp:{address}" for address in addresses.removeprefix("tcp:").split(",")]
    (scene.folder / "etc" / "nacre" / "pool").write_text(
        "\n".join((*lines, f"?{parameters}")) + "\n")


def token_is_wanted(scene: Scene) -> None:
    try:
        scene.fetch("spare", "/api/pool")
        raise AssertionError("it answers without the token")
    except urllib.error.HTTPError as error:
        assert error.code == 401, error
    token = (scene.folder / "etc" / "nacre" / "console.token").read_text().strip()
    await_true("the pool is shown", lambda: "orders" in scene.fetch(
        "spare", "/api/pool", Authorization=f"Bearer {token}"))


def start_pool_of_six(scene: Scene) -> None:
    scene.start_nodes(6)
    scene.use_pool(3)
    scene.bench(redundancy="rs(2,1)")


def use_all_six(scene: Scene) -> None:
    scene.use_pool(6)


# ---- 6.3: damage ----

def damage_manifest(scene: Scene) -> None:
    """In all copies, by nodes that are ended and started again on their files."""
    scene.start_nodes(3, keep=True)
    scene.bench(redundancy="rep(2)")
    found = json.loads(scene.ctl("manifest", "orders", "--json").stdout)
    addresses = {each["instance_id"]: each["node"].removeprefix("tcp:")
                 for each in found["root"]["members"]}
    for process in list(scene.nodes):
        scene.end(process)
    for copy in found["manifest"]["copies"]:
        index = next(i for i in range(3)
                     if scene.names[f"node{i}"] == addresses[copy["instance_id"]])
        with open(scene.folder / f"n{index}.region", "r+b") as region:
            region.seek(copy["offset"])
            region.write(b"\x55" * (256 << 10))
    scene.start_nodes(3, keep=True)
    done = scene.ctl("fsck", "orders")
    assert done.returncode == 1 and "manifest" in done.stdout, done.stdout + done.stderr


def start_followed(scene: Scene) -> None:
    scene.start_nodes(2)
    scene.start_owner(database="db_bench")


# ---- 6.5: copies ----

def start_with_checkpoint(scene: Scene) -> None:
    scene.start_nodes(6)
    scene.bench()
    scene.bench(database="customers")
    done = scene.ctl("checkpoint", "orders", f"{scene.folder}/backup/orders")
    assert done.returncode == 0, done.stderr


def open_database(scene: Scene) -> None:
    scene.start_owner()


def archive_for_some_seconds(scene: Scene) -> None:
    """Sets a time that the archive covers."""
    def listed() -> str:
        done = subprocess.run([scene.program("nacre-ctl"), "archives",
                               f"{scene.folder}/backup/orders"], capture_output=True, text=True,
                              timeout=60, check=False, env=scene.environment)
        return done.stdout
    await_true("a base", lambda: "checkpoint" in listed())
    scene.names["covered_time"] = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() + 1))

    def covers() -> bool:
        return any(line.rpartition(" to ")[2] > scene.names["covered_time"] + ".5"
                   for line in listed().splitlines() if line.startswith("log"))
    await_true("the archive covers a whole second", covers)


def encrypted_archive_is_there(scene: Scene) -> None:
    def listed() -> str:
        done = subprocess.run(
            [scene.program("nacre-ctl"), "archives", f"{scene.folder}/backup/encrypted/orders",
             f"--encryption_key_file={scene.folder}/etc/nacre/archive.keys"],
            capture_output=True, text=True, timeout=60, check=False, env=scene.environment)
        return done.stdout
    await_true("base and log", lambda: "checkpoint" in listed() and "\nlog of" in listed())


COMMIT = r"commit [^,)]+"

# ---- 6.6: keyspaces ----

MEMBER = r"tcp:\S+(?: +|(?= ))|(?<= )\d{15,}"


# ---- 6.7, 7, 8 ----

def start_kept_nodes(scene: Scene) -> None:
    scene.start_nodes(3, keep=True)
    scene.start_owner()


def start_mixed(scene: Scene) -> None:
    scene.start_node(0, scheme="shm")
    scene.start_node(1)
    scene.start_node(2)


QUICK = " --seconds=0.2"
BRIEF = " {small} --benchmarks=fillrandom,waitforcompaction,readrandom"

PAGE = Page(
    path="docs/operations.md",
    scenes=(
        Place("machines", ("2", "3.1", "3.2", "3.4", "3.5")),
        Place("secrets", ("4", "4.1", "4.2")),
        Place("nodes", ("5",)),
        Place("kept_memory", ("5.1",)),
        Place("device", ("5.2",), prepare=make_device),
        Place("pool", ("6",), prepare=start_pool_with_secret),
        Place("databases", ("6.1", "6.2"), prepare=start_pool_of_six),
        Place("damage", ("6.3",), prepare=damage_manifest),
        Place("followers", ("6.4",), prepare=start_followed),
        Place("copies", ("6.5",), prepare=start_with_checkpoint),
        Place("keyspace", ("6.6",), prepare=Scene.start_keyspace, needs=needs_etcd),
        Place("maintenance", ("6.7",), prepare=start_kept_nodes),
        Place("upgrade", ("6.8",), prepare=lambda scene: scene.start_nodes(3)),
        Place("encryption", ("6.9",)),
        Place("measurements", ("7",), prepare=lambda scene: scene.start_nodes(2)),
        Place("mixed", ("8",), prepare=start_mixed),
    ),
    substitutions=SUBSTITUTIONS,
    steps={
        ("4", "ls -l"): Step(varying=(r"\b\S+ \S+(?= +\d+ [A-Z])",)),
        ("4.1", "nacre-ctl secrets list"): Step(look=serve_with_secrets),
        ("4.2", "nacre-ctl secrets add /etc/nacre/node.secrets 'write"): Step(
            look=both_secrets_are_good),
        ("4.2", "mv"): Step(look=new_secret_is_good),
        ("4.2", "nacre-ctl secrets retire"): Step(look=old_secret_is_refused),
        ("4.2", "nacre-ctl secrets revoke"): Step(look=old_secret_is_refused),
        ("5", "nacre-memnode"): Step(runs_on=True),
        ("5.1", "kill -9 %1"): Step(prepare=make_database_on_it),
        ("5.2", "db_bench"): Step(replace={" ...": BRIEF}),
        ("6", "nacre-ctl doctor"): Step(again=True, varying=(COMMIT,)),
        ("6", "nacre-ctl status"): Step(again=True),
        ("6", "nacre-ctl nodes"): Step(
            prepare=stop_second_node, look=go_on, status=1, again=True, varying=(COMMIT,)),
        ("6", "nacre-ctl top"): Step(
            prepare=archive_and_lose_third_node, status=1, again=True),
        ("6", "nacre-ctl console --pool=tcp"): Step(
            runs_on=True, append=" --listen={console}", look=page_is_served,
            varying=(r"127\.0\.0\.1:\d+",)),
        ("6", "nacre-ctl console --pool=file"): Step(
            runs_on=True, prepare=write_file_of_pool, look=token_is_wanted,
            replace={"0.0.0.0:8080": "0.0.0.0:{spare_port}"}),
        ("6.2", "db_bench"): Step(prepare=use_all_six, replace={" ...": " --pool={pool} {small}"}),
        # What else it finds depends on which compactions were under way.
        ("6.3", "nacre-ctl repair"): Step(optional=("  not used:", r"  \d+ heads of fragments")),
        ("6.5", "nacre-archive"): Step(runs_on=True, prepare=open_database,
                                       look=archive_for_some_seconds),
        ("6.5", "nacre-archive --pool=... --to=/backup/encrypted"): Step(
            runs_on=True, look=encrypted_archive_is_there),
        ("6.5", "nacre-ctl restore /backup/orders orders-1115"): Step(
            replace={"2026-11-28 11:15:00": "{covered_time}"}),
        ("6.6", "nacre-ctl shards"): Step(varying=(MEMBER,), again=True),
        ("6.6", "nacre-ctl members"): Step(
            varying=(MEMBER, r"(?:yes|-) +-(?= +\d+$)"), again=True),
        ("6.6", "nacre-ctl doctor"): Step(varying=(MEMBER, r"\d{15,}"), again=True),
        # What keeps it from being stopped at first is over within moments.
        ("6.7", "nacre-ctl maintenance"): Step(
            optional=("tcp:10.0.0.3:7000: cannot be stopped yet",)),
        ("7", "nacre-perf serve"): Step(runs_on=True),
        ("7", "nacre-perf read"): Step(append=QUICK),
        ("7", "nacre-perf write"): Step(append=QUICK),
        ("8", "db_bench"): Step(replace={" ...": BRIEF}),
    },
    not_run=NOT_RUN,
)
