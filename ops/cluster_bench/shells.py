"""Processes on other machines, over ssh or any other command that runs words there.

Each process lives as long as its input: the shell there waits for the end of it, kills the process
then, and so leaves nothing behind whether this program ends well, is interrupted or is killed, or
the connection breaks.
"""

import io
import os
import pathlib
import re
import select
import shlex
import subprocess
import tarfile
import time

from measure import end, start
from workload import CompareError

REPLY_SECONDS = 60
COPY_SECONDS = 600
END_SECONDS = 10
PID = re.compile(rb"^pid (\d+)\n")
# The shell reads all of it before it runs the first line, and nothing of its input behind it. The
# process has a number before it says anything.
SCRIPT = """{{
exec 3<&0
{exports}
sh -c 'echo "pid $$"; exec "$@"' sh {command} </dev/null 3<&- &
process=$!
(cat <&3; kill -9 $process) >/dev/null 2>&1 &
watcher=$!
wait $process
code=$?
kill $watcher 2>/dev/null
exit $code
}}
"""


class RemoteProcess(subprocess.Popen):
    """The command that runs it there. Killing it ends its input, and so the process itself."""

    title = ""
    pid_there = 0  # Known once `await_text` has returned.

    def close_input(self) -> None:
        if self.stdin is not None and not self.stdin.closed:
            self.stdin.close()

    def kill(self) -> None:
        self.close_input()
        try:
            self.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            super().kill()

    def communicate(self, input=None, timeout=None):
        """Its input stays open until it has ended."""
        deadline = time.monotonic() + timeout
        said = b""
        while more := self.read_some(deadline):
            said += more
        self.wait(max(0, deadline - time.monotonic()))
        self.close_input()
        return PID.sub(b"", said, count=1), None

    def read_some(self, deadline: float) -> bytes:
        """Something of its output; nothing once that has ended. Raises TimeoutExpired."""
        readable, _, _ = select.select([self.stdout], [], [], max(0, deadline - time.monotonic()))
        if not readable:
            raise subprocess.TimeoutExpired(self.title, 0)
        return os.read(self.stdout.fileno(), 1 << 16)

    def await_text(self, mark: bytes, deadline: float) -> None:
        """Until it has said that, on a line of its own. Raises CompareError with its last words."""
        said = b""
        while b"\n" + mark not in said:
            try:
                more = self.read_some(deadline)
            except subprocess.TimeoutExpired:
                more = b""
            if not more:
                lines = PID.sub(b"", said).decode(errors="replace").strip().splitlines()
                raise CompareError(f"{self.title}: {lines[-1] if lines else 'no answer'}")
            said += more
        self.pid_there = int(PID.match(said).group(1))


class Shell:
    """`template`: the command that runs words on a host, such as "ssh -o BatchMode=yes {host}"."""

    def __init__(self, template: str):
        if "{host}" not in template:
            raise CompareError(f"--shell={template} has no {{host}}")
        self.template = template

    def words(self, host: str) -> list[str]:
        return [word.replace("{host}", host) for word in shlex.split(self.template)]

    def call(self, host: str, words: list[str], given: bytes = b"",
             seconds: float = REPLY_SECONDS) -> bytes:
        """What plain words, which need no quotes, say there. Raises CompareError if they fail."""
        what = f"{host}: {words[0]}"
        try:
            done = subprocess.run([*self.words(host), *words], input=given, capture_output=True,
                                  check=False, timeout=seconds)
        except subprocess.TimeoutExpired as error:
            raise CompareError(f"{what}: no answer after {seconds} s") from error
        except OSError as error:
            raise CompareError(f"{what}: {error.strerror}") from error
        if done.returncode != 0:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            raise CompareError(f"{what}: {lines[-1] if lines else f'code {done.returncode}'}")
        return done.stdout

    def script(self, host: str, text: str) -> str:
        """What a shell script says there."""
        return self.call(host, ["sh", "-s"], f"{{\n{text}\nexit\n}}\n".encode()).decode()

    def start(self, host: str, command: list, environment: dict[str, str]) -> RemoteProcess:
        """Starts it there; measure.end ends it."""
        exports = "\n".join(f"export {name}={shlex.quote(value)}"
                            for name, value in environment.items())
        text = SCRIPT.format(exports=exports, command=shlex.join(map(str, command)))
        process = start([*self.words(host), "sh", "-s"], make=RemoteProcess,
                        stdin=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0)
        process.title = f"{host}: {pathlib.PurePath(str(command[0])).name}"
        try:
            process.stdin.write(text.encode())
        except OSError as error:
            end(process)
            raise CompareError(f"{process.title}: {error.strerror}") from error
        return process

    def upload(self, host: str, file: pathlib.Path, path: str, mode: str) -> None:
        self.call(host, ["tee", path], file.read_bytes(), COPY_SECONDS)
        self.call(host, ["chmod", mode, path])

    def download(self, host: str, folder: str, prefix: str, target: pathlib.Path) -> None:
        """The files there whose names begin with `prefix`, into `target`."""
        names = [name for name in self.call(host, ["ls", folder]).decode().split()
                 if name.startswith(prefix)]
        data = self.call(host, ["tar", "cf", "-", "-C", folder, *names], seconds=COPY_SECONDS)
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                (target / pathlib.PurePath(member.name).name).write_bytes(
                    archive.extractfile(member).read())
