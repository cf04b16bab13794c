"""Goal: the Debian packages install, run, are upgraded and are purged, and leave nothing behind.

Method: makes a small Debian system in a folder, which has what the packages depend on and no more.
There they are installed; a memory node runs as its unit says, first with the packaged flags, then
with memory that it keeps; the tools, Python, SQLite, an archive, a server and programs in C++ and
C, compiled against the installed files, use it. A systemctl that writes down its arguments stands
for systemd while packages of a higher revision are installed over them, with a node that loses its
memory and with one that does not. In the end the files are those that there were before.

usage: packages_test.py PACKAGES_DIR WORK_DIR

Needs root and mmdebstrap, and network for that. Exit code 77: it was skipped.
"""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time
import unittest

from chroot import SECONDS_MAX, Chroot, Unit, make_chroot, output_of

SKIPPED = 77
SOURCE = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = WORK = pathlib.Path()  # Set by main.
MEMNODE = "nacre-memnode.service"
POOL = "tcp:127.0.0.1:7000"
SECRET = {"NACRE_SECRET_FILE": "/etc/nacre/pool.secret"}
SYSTEMCTL = """#!/bin/sh
echo "$*" >>/tmp/systemctl.log
case $* in *MainPID*) cat /tmp/main_pid ;; esac
"""
SQL = (".load nacre_sqlite",
       f"CREATE VIRTUAL TABLE pearls USING nacre(pool='{POOL}', id INTEGER PRIMARY KEY, hue TEXT)",
       "INSERT INTO pearls VALUES(1, 'white'), (2, 'black')",
       "SELECT hue FROM pearls WHERE id = 2")
WRITE = f"""
import nacre
with nacre.open("packages", pool="{POOL}", create_if_missing=True) as db:
    db[b"key"] = b"value"
print(nacre.version(True))
"""
READ = f"""
import nacre
with nacre.open("packages", pool="{POOL}") as db:
    print(db[b"key"].decode())
"""
C_PROGRAM = """
#include <nacre/c.h>
#include <stdio.h>
int main(void) {
  char* error = NULL;
  nacre_pool_t* pool = nacre_pool_open("embedded:?nodes=1&size=128MiB", NULL, &error);
  puts(error == NULL ? nacre_version() : error);
  nacre_pool_close(pool);
  return 0;
}
"""


def field(package: pathlib.Path, name: str) -> str:
    return output_of("dpkg-deb", "--field", package, name).strip()


def packages() -> list[pathlib.Path]:
    return sorted(PACKAGES.glob("*.deb"))


def dependencies() -> list[str]:
    """The names of what the packages depend on, without themselves."""
    own = {field(package, "Package") for package in packages()}
    named = {re.split(r"[ (|]", word.strip())[0]
             for package in packages() for word in field(package, "Depends").split(",")}
    return sorted(named - own - {""})


def with_higher_revision(package: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The same package, a later one."""
    tree = folder / "tree"
    output_of("dpkg-deb", "--raw-extract", package, tree)
    control = tree / "DEBIAN" / "control"
    version = field(package, "Version")
    control.write_text(control.read_text().replace(version, version + ".1"))
    output_of("dpkg-deb", "--build", "-Znone", tree, folder / package.name)
    shutil.rmtree(tree)
    return folder / package.name


class PackagesTest(unittest.TestCase):
    """One story, told from the first installation to the purge."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.chroot = Chroot(WORK / "chroot")
        cls.root = cls.chroot.root
        cls.version = re.search(r"project\(nacre VERSION ([\d.]+)",
                                (SOURCE / "CMakeLists.txt").read_text()).group(1)
        output_of("ip", "link", "set", "lo", "up")

    def install(self, files: list[pathlib.Path]) -> str:
        for file in files:
            shutil.copy(file, self.root / "tmp" / file.name)
        return self.dpkg("--install", *(f"/tmp/{file.name}" for file in files))

    def dpkg(self, *words: str) -> str:
        """What it prints, on either output: scripts of packages talk on standard error."""
        done = subprocess.run(self.chroot.command("dpkg", *words), text=True, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=SECONDS_MAX)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def unit(self, name: str, instance: str = "") -> Unit:
        unit = Unit(self.chroot, name, instance)
        self.addCleanup(unit.stop)
        return unit

    def systemctl_calls(self) -> str:
        log = self.root / "tmp" / "systemctl.log"
        calls = log.read_text() if log.exists() else ""
        log.unlink(missing_ok=True)
        return calls

    def test_packages(self) -> None:
        before = self.chroot.files()
        self.install(packages())
        self.check_contents()
        self.check_programs()
        self.check_applications()
        self.check_no_secret()
        self.make_secret()
        self.check_cold_node()
        self.check_warm_node()
        self.check_purge(before)

    def check_contents(self) -> None:
        self.assertEqual(
            {field(package, "Package") for package in packages()},
            {"nacre-memnode", "nacre-tools", "nacre-bench", "libnacre0", "libnacre-dev",
             "nacre-sqlite", "python3-nacre"})
        enabled = list((self.root / "etc/systemd/system").glob("*.wants/nacre*"))
        self.assertEqual(enabled, [])
        self.assertIn("/usr/sbin/nologin", self.chroot.run("getent", "passwd", "nacre"))

    def check_programs(self) -> None:
        for program in ("nacre-memnode", "nacre-ctl", "nacre-archive", "nacre-perf", "nacre-server",
                        "nacre-bench"):
            self.assertIn(f" {self.version} (commit ", self.chroot.run(program, "--version"))

    def check_applications(self) -> None:
        """README's program is compiled against the installed files, outside, and runs there."""
        readme = (SOURCE / "README.md").read_text()
        application = WORK / "application"
        application.mkdir()
        (application / "app.cc").write_text(re.search(r"```cpp\n(.*?)```", readme, re.S).group(1))
        find, link = re.search(r"\n(find_package\(nacre.*)\n(target_link_.*)\n",
                               readme).groups()
        (application / "CMakeLists.txt").write_text(
            f"cmake_minimum_required(VERSION 3.25)\nproject(app CXX)\n{find}\n"
            f"add_executable(app app.cc)\n{link}\n")
        output_of("cmake", "-S", application, "-B", application / "build", "-G", "Ninja",
                  f"-DCMAKE_PREFIX_PATH={self.root / 'usr'}")
        output_of("cmake", "--build", application / "build")
        shutil.copy(application / "build" / "app", self.root / "tmp" / "app")
        self.assertEqual(self.chroot.run("/tmp/app"), "OK value\n")

        (application / "program.c").write_text(C_PROGRAM)
        output_of("cc", application / "program.c", f"-I{self.root / 'usr/include'}",
                  f"-L{self.root / 'usr/lib'}", "-lnacre_c", "-Wl,--unresolved-symbols=ignore-all",
                  "-o", self.root / "tmp" / "program")
        self.assertEqual(self.chroot.run("/tmp/program"), f"{self.version}\n")

    def check_no_secret(self) -> None:
        """Neither does systemd start the node before there is a secret, nor would it start."""
        unit = self.unit(MEMNODE)
        self.assertEqual(unit.settings["AssertPathExists"], SECRET["NACRE_SECRET_FILE"])
        with self.assertRaisesRegex(AssertionError, "NACRE_SECRET_FILE"):
            unit.start("^ready: ")

    def make_secret(self) -> None:
        secret = self.root / "etc/nacre/pool.secret"
        secret.write_text(os.urandom(32).hex() + "\n")
        secret.chmod(0o600)
        self.chroot.run("chown", "nacre", "/etc/nacre/pool.secret")

    def begin_systemd(self, node: Unit) -> None:
        (self.root / "run/systemd/system").mkdir(parents=True)
        for name, text in (("systemctl", SYSTEMCTL), ("systemd-tmpfiles", "#!/bin/sh\n")):
            program = self.root / "usr/local/bin" / name
            program.write_text(text)
            program.chmod(0o755)
        # As the chroot's processes see it, since all are in one namespace.
        (self.root / "tmp/main_pid").write_text(f"{node.process.pid}\n")
        self.systemctl_calls()

    def end_systemd(self) -> None:
        shutil.rmtree(self.root / "run/systemd")
        for name in ("systemctl", "systemd-tmpfiles"):
            (self.root / "usr/local/bin" / name).unlink()

    def check_cold_node(self) -> None:
        """The packaged flags; an upgrade leaves the node alone, whose memory would be lost."""
        node = self.unit(MEMNODE)
        self.assertEqual(node.start("^ready: "),
                         f"ready: {POOL} with 16 slabs of 64.0 MiB")
        self.chroot.fails("nacre-ctl", "status", f"--pool={POOL}")
        self.assertIn("1 of 1 reachable",
                      self.chroot.run("nacre-ctl", "status", f"--pool={POOL}", **SECRET))
        doctor = self.chroot.run("nacre-ctl", "doctor", f"--pool={POOL}", **SECRET)
        self.assertRegex(doctor, rf"ok +{POOL} +answers")
        self.assertIn(f"{self.version} (commit ",
                      self.chroot.run("python3", "-c", WRITE, **SECRET))
        self.assertEqual(self.chroot.run("sqlite3", ":memory:", *SQL, **SECRET), "black\n")
        self.check_archive()
        self.check_server()

        self.begin_systemd(node)
        revised = WORK / "revised"
        revised.mkdir()
        upgrade = [with_higher_revision(package, revised) for package in packages()]
        told = self.install(upgrade)
        self.assertIn("systemctl restart nacre-memnode.service", told)
        calls = self.systemctl_calls()
        self.assertIn("try-restart nacre-archive@*.service nacre-server.service", calls)
        self.assertNotIn("restart nacre-memnode.service", calls)
        self.end_systemd()
        self.assertIsNone(node.process.poll())
        self.assertEqual(self.chroot.run("python3", "-c", READ, **SECRET), "value\n")
        node.stop()

    def check_archive(self) -> None:
        flags = self.root / "etc/nacre/archive.flags"
        flags.write_text(flags.read_text() + f"--pool={POOL}\n--report_s=1\n")
        archive = self.unit("nacre-archive@.service", "packages")
        archive.start("archiving packages into /var/lib/nacre-archive/packages")
        deadline = time.monotonic() + SECONDS_MAX
        while not any(" 1 bases, 0 gaps" in line for line in archive.lines):
            self.assertLess(time.monotonic(), deadline, archive.lines)
            time.sleep(0.1)
        archive.stop()
        listed = self.chroot.run("nacre-ctl", "archives", "/var/lib/nacre-archive/packages")
        self.assertIn("checkpoint 1 of ", listed)

    def check_server(self) -> None:
        flags = self.root / "etc/nacre/server.flags"
        flags.write_text(flags.read_text() + f"--pool={POOL}\n--listen=127.0.0.1:0\n")
        server = self.unit("nacre-server.service")
        port = int(server.start("^serving redis at ").rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), SECONDS_MAX) as client:
            client.sendall(b"SET hue white\r\nGET hue\r\nQUIT\r\n")
            with client.makefile("rb") as answers:
                self.assertEqual(answers.read(), b"+OK\r\n$5\r\nwhite\r\n+OK\r\n")
        server.stop()

    def check_warm_node(self) -> None:
        """Memory in a file: an upgrade restarts the node, which comes back with what it had."""
        flags = self.root / "etc/nacre/memnode.flags"
        flags.write_text(flags.read_text().replace("# --region_file=", "--region_file="))
        state = self.root / "var/lib/nacre"
        state.mkdir(exist_ok=True)
        output_of("mount", "-t", "tmpfs", "-o", "size=1200m", "tmpfs", state)
        node = self.unit(MEMNODE)
        node.start("^ready: ")
        self.chroot.run("python3", "-c", WRITE, **SECRET)

        self.begin_systemd(node)
        # The same revision over itself is an upgrade, too.
        told = self.install([WORK / "revised" / package.name for package in packages()])
        self.assertNotIn("systemctl restart", told)
        self.assertIn("try-restart nacre-memnode.service", self.systemctl_calls())
        self.end_systemd()
        self.assertIn("\n--region_file=", flags.read_text())
        node.stop()  # As systemctl would.
        self.assertRegex(node.start("^ready: "), "warm: [1-9]")
        self.assertEqual(self.chroot.run("python3", "-c", READ, **SECRET), "value\n")
        node.stop()

    def check_purge(self, before: set[str]) -> None:
        """What is left is the administrator's: the secret, the archives, a mount, a user."""
        names = [field(package, "Package") for package in packages()]
        self.dpkg("--remove", *names)
        self.assertTrue((self.root / "etc/nacre/memnode.flags").exists())
        self.dpkg("--purge", *names)
        self.assertEqual(list((self.root / "var/lib/nacre").iterdir()), [])
        output_of("umount", self.root / "var/lib/nacre")
        self.chroot.run("getent", "passwd", "nacre")
        left = self.chroot.files() - before - {"run/adduser"}  # A lock of adduser's.
        archives = {path for path in left if path.startswith("var/lib/nacre-archive")}
        self.assertIn("var/lib/nacre-archive/packages", archives)
        self.assertEqual(left - archives,
                         {"etc/nacre", "etc/nacre/pool.secret", "var/lib/nacre"})
        self.assertEqual(before - self.chroot.files(), set())


def main() -> int:
    global PACKAGES, WORK
    PACKAGES, WORK = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    if os.environ.get("NACRE_TEST_INSIDE") == "1":
        return 0 if unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful() else 1
    if os.geteuid() != 0:
        print("skipped: a chroot needs root")
        return SKIPPED
    if shutil.which("mmdebstrap") is None:
        print("skipped: there is no mmdebstrap")
        return SKIPPED
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    try:
        make_chroot(WORK / "chroot", [*dependencies(), "sqlite3"])
    except subprocess.CalledProcessError as error:
        print(f"skipped: mmdebstrap made no system (is there no network?): {error}")
        return SKIPPED
    # Namespaces of its own: its mounts and processes end with it, and ports are free.
    result = subprocess.run(
        ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--mount-proc",
         sys.executable, "-B", *sys.argv],
        env={**os.environ, "NACRE_TEST_INSIDE": "1"}, check=False).returncode
    if result == 0:
        shutil.rmtree(WORK)
    return result


if __name__ == "__main__":
    sys.exit(main())
