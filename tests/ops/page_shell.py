"""A shell that runs the commands of a page, one at a time, as an operator would type them."""

import os
import pathlib
import re
import signal
import subprocess
import time

SECONDS_MAX = 120


class Shell:
    """One bash, so that variables and jobs of a command are there for the next one. Whatever it
    starts ends with `close`."""

    def __init__(self, folder: pathlib.Path, environment: dict[str, str]):
        self.folder = folder
        self.count = 0
        answers, its_end = os.pipe()
        self.answers = os.fdopen(answers)
        # A session of its own, by which all that it starts is found.
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"], stdin=subprocess.PIPE, cwd=folder,
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=[its_end], start_new_session=True, text=True)
        os.close(its_end)
        self.descriptor = its_end
        os.set_blocking(answers, False)

    def _ask(self, text: str) -> str:
        """Has the shell run `text`, which writes one line to the descriptor of answers."""
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        end = time.monotonic() + SECONDS_MAX
        answer = ""
        while not answer.endswith("\n"):
            answer += self.answers.readline() or ""
            if self.process.poll() is not None:
                raise AssertionError(f"the shell has ended with {self.process.returncode}")
            if time.monotonic() > end:
                raise AssertionError("the command does not end")
            time.sleep(0.01)
        return answer.strip()

    def _next_output(self) -> pathlib.Path:
        self.count += 1
        output = self.folder / f".output{self.count}"
        output.touch()  # It is there before what is started has begun.
        return output

    def run(self, command: str) -> tuple[int, pathlib.Path]:
        """Its exit status, and the file to which it prints. Jobs that it begins go on; one that it
        kills is gone afterwards, as it is by the time that a person types the next command."""
        output = self._next_output()
        status = self._ask(f"{{ {command}\n}} >{output} 2>&1 </dev/null; "
                           f"echo $? >&{self.descriptor}")
        killed = re.fullmatch(r"kill (?:-\S+ )?(%\d+)", command.strip())
        if killed:
            self._ask(f"wait {killed.group(1)} 2>/dev/null; echo $? >&{self.descriptor}")
        return int(status), output

    def start(self, command: str) -> tuple[int, pathlib.Path]:
        """Its process id, and the file to which it prints. Only for simple commands."""
        output = self._next_output()
        process = self._ask(f"( exec {command}\n) >{output} 2>&1 </dev/null & "
                            f"echo $! >&{self.descriptor}")
        return int(process), output

    def jobs(self) -> list[int]:
        """Process ids of those that run."""
        return [int(each) for each in self._ask(
            f"echo $(jobs -pr) >&{self.descriptor}").split()]

    def end_job(self, process: int) -> int:
        """As a service manager does; its exit status."""
        return int(self._ask(f"kill {process}; wait {process}; echo $? >&{self.descriptor}"))

    def close(self) -> None:
        for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = entry.read_text().rpartition(")")[2].split()
                if int(fields[3]) == self.process.pid:  # The session.
                    os.kill(int(entry.parent.name), signal.SIGKILL)
            except (FileNotFoundError, ProcessLookupError):
                continue
        self.process.wait()
        self.process.stdin.close()
        self.answers.close()
