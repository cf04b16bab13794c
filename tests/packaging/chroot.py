"""A Debian system in a folder, and what stands for systemd there.

`make_chroot` makes one with the packages that others depend on, by mmdebstrap. `Chroot` runs
programs in it; `Unit` starts the ExecStart of a unit's file as systemd would: as its user, with its
environment and directories. Mounts and processes end with the namespaces of the caller.
"""

import io
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import threading

SECONDS_MAX = 300
FOLDERS = {"RuntimeDirectory": "run", "StateDirectory": "var/lib", "LogsDirectory": "var/log"}


def output_of(*command: object, **arguments) -> str:
    """Standard output; if the command fails, tells both outputs and raises."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=SECONDS_MAX,
                          stdin=subprocess.DEVNULL, **arguments)
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(words)} answered {done.returncode}:\n"
                             f"{done.stdout}{done.stderr}")
    return done.stdout


def debian_sources() -> str:
    """Where this machine's apt has Debian's packages from, as lines of sources.list."""
    return "\n".join(sorted(set(output_of(
        "apt-get", "indextargets", "--format", "deb $(REPO_URI) $(CODENAME) $(COMPONENT)",
        "Created-By: Packages", "Origin: Debian").splitlines())))


def make_chroot(root: pathlib.Path, packages: list[str]) -> None:
    """The smallest system of this machine's release that has `packages`."""
    release = dict(line.split("=", 1) for line in
                   pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
    words = ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase",
             f"--include={','.join(packages)}", release["VERSION_CODENAME"], str(root), "-"]
    subprocess.run(words, input=debian_sources(), text=True, check=True)
    (root / "etc/dpkg/dpkg.cfg.d/force-unsafe-io").write_text("force-unsafe-io\n")


class Chroot:
    def __init__(self, root: pathlib.Path):
        self.root = root
        output_of("mount", "--rbind", "/dev", root / "dev")
        output_of("mount", "-t", "proc", "proc", root / "proc")

    def command(self, *words: object, environment: dict[str, str] | None = None) -> list[str]:
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        variables = {"PATH": path, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive",
                     **(environment or {})}
        return ["chroot", str(self.root), "env", "-i",
                *(f"{name}={value}" for name, value in variables.items()), *map(str, words)]

    def run(self, *words: object, **environment: str) -> str:
        return output_of(*self.command(*words, environment=environment))

    def fails(self, *words: object, **environment: str) -> str:
        """What a command says that has to fail."""
        done = subprocess.run(self.command(*words, environment=environment), capture_output=True,
                              text=True, check=False, timeout=SECONDS_MAX)
        if done.returncode == 0:
            raise AssertionError(f"{shlex.join(map(str, words))} succeeded:\n{done.stdout}")
        return done.stdout + done.stderr

    def files(self) -> set[str]:
        """All files and folders but what dpkg and the kernel keep for themselves."""
        own = ("dev", "proc", "sys", "tmp", "var/lib/dpkg", "var/log", "var/cache")
        found = set()
        for folder, folders, names in os.walk(self.root):
            path = pathlib.Path(folder).relative_to(self.root).as_posix()
            if path in own:
                folders.clear()
                continue
            found |= {(pathlib.PurePosixPath(path) / name).as_posix()
                      for name in (*folders, *names)}
        # Copies that the tools of users and the linker's cache make by themselves.
        return {path for path in found if not re.match(r"etc/(\.pwd\.lock|\w+-)$", path)}


class Unit:
    """A service of `chroot`, from the unit's file `name`; `instance` is what %I stands for."""

    def __init__(self, chroot: Chroot, name: str, instance: str = ""):
        self.chroot = chroot
        self.lines: list[str] = []  # What it has printed.
        self.process: subprocess.Popen | None = None
        text = (chroot.root / "usr/lib/systemd/system" / name).read_text()
        self.settings: dict[str, str] = {}
        for line in text.replace("%I", instance).splitlines():
            key, equals, value = line.partition("=")
            if equals and not line.startswith("#"):
                self.settings[key] = value

    def start(self, sign: str) -> str:
        """Starts it, and waits until it prints a line that matches `sign`; that line."""
        user = self.settings["User"]
        password = (self.chroot.root / "etc/passwd").read_text()
        ids = re.search(rf"^{user}:[^:]*:(\d+):(\d+):", password, re.MULTILINE)
        for setting, parent in FOLDERS.items():
            if setting in self.settings:
                folder = self.chroot.root / parent / self.settings[setting]
                folder.mkdir(exist_ok=True)
                os.chown(folder, int(ids[1]), int(ids[2]))
                folder.chmod(int(self.settings.get(setting + "Mode", "0755"), 8))
        name, value = self.settings["Environment"].split("=", 1)
        words = self.chroot.command(
            "setpriv", f"--reuid={ids[1]}", f"--regid={ids[2]}", "--clear-groups",
            "--no-new-privs", *shlex.split(self.settings["ExecStart"]), environment={name: value})
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        self.lines = []
        for line in self.process.stdout:
            self.lines.append(line)
            if re.search(sign, line):
                break
        else:
            self.process.wait(timeout=SECONDS_MAX)
            self.process.stdout.close()
            raise AssertionError(f"it ended and printed {self.lines}")
        threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True).start()
        return line.rstrip("\n")

    def _read(self, pipe: io.TextIOWrapper) -> None:
        """Reads on, so that the pipe never fills."""
        with pipe:
            self.lines.extend(pipe)

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=SECONDS_MAX)
            self.process = None
            if "RuntimeDirectory" in self.settings:
                shutil.rmtree(self.chroot.root / "run" / self.settings["RuntimeDirectory"],
                              ignore_errors=True)
