"""Runs the commands of a page by the tables that say what they need."""

import dataclasses
import pathlib
import re
import time
from typing import Callable

from live_pool import await_true
from page_commands import Command
from page_scene import Scene


SECONDS_AGAIN_MAX = 20
# What may be run, which changes nothing but a scene's folder and processes. A command of another
# program has to be excused, lest a test changes the machine.
PROGRAMS = {"nacre-memnode", "nacre-ctl", "nacre-archive", "nacre-perf", "db_bench", "export",
            "kill", "ls", "mkdir", "mv", "openssl", "printf", "umask"}


def without_comment(command: Command) -> str:
    return re.sub(r" +# .*$", "", command.text)


@dataclasses.dataclass(frozen=True)
class Step:
    """What a command needs beyond what the page says."""
    prepare: Callable[[Scene], None] | None = None  # What has happened before it.
    replace: dict[str, str] = dataclasses.field(default_factory=dict)  # Beside those of the page.
    append: str = ""
    status: int = 0
    runs_on: bool = False  # It would run forever: it is started, looked at and ended.
    optional: tuple[str, ...] = ()  # How lines begin that are there at times only: patterns.
    # It shows how the pool is at that moment, which depends on how busy this machine is: it is run
    # again as long as it shows something else.
    again: bool = False
    # What else differs from run to run, in what is shown and in what is printed: patterns.
    varying: tuple[str, ...] = ()
    look: Callable[[Scene], None] | None = None  # At what the command has done, or does.


@dataclasses.dataclass(frozen=True)
class Place:
    """Sections that are run one after the other in one place."""
    name: str
    sections: tuple[str, ...]
    prepare: Callable[[Scene], None] | None = None
    needs: Callable[[pathlib.Path], str] | None = None  # Answers what is missing here.


@dataclasses.dataclass(frozen=True)
class Page:
    path: str
    scenes: tuple[Place, ...]
    # What stands on the page in the place of what is here.
    substitutions: dict[str, str]
    # By section and the command's beginning.
    steps: dict[tuple[str, str], Step]
    # Commands that cannot be run, as they stand there, by the reason.
    not_run: dict[str, tuple[str, ...]]

    def is_excused(self, command: Command) -> bool:
        return any(without_comment(command) in texts for texts in self.not_run.values())

    def reason_not_to_run(self, command: Command) -> str:
        """Why a command that is not excused is not run either; empty if it may be run."""
        text = re.sub(r"'[^']*'", "''", command.text)
        programs = {part.split()[0] for part in re.split(r"[;|(]|&&", text) if part.split()}
        others = ", ".join(sorted(programs - PROGRAMS))
        return others and f"it is not excused, and a test may not run: {others}"

    def step_of(self, command: Command) -> Step:
        begins = [begin for section, begin in self.steps
                  if section == command.section and command.text.startswith(begin)]
        return self.steps[command.section, max(begins, key=len)] if begins else Step()

    def unused(self, commands: list[Command]) -> list[str]:
        """Commands without a place to be run in, and entries of tables that fit no command."""
        placed = [section for place in self.scenes for section in place.sections]
        found = [f"{self.path}:{command.line}: nothing says in which place the commands of section "
                 f"{command.section} are run" for command in commands
                 if command.section not in placed and not self.is_excused(command)]
        run = [command for command in commands if not self.is_excused(command)]
        found += [f"{self.path}:{command.line}: {self.reason_not_to_run(command)}"
                  for command in run if self.reason_not_to_run(command)]
        found += [f"there is no command '{text}'" for texts in self.not_run.values()
                  for text in texts
                  if text not in map(without_comment, commands)]
        found += [f"no command of section {section} begins with '{begin}'"
                  for section, begin in self.steps
                  if not any(command.section == section and command.text.startswith(begin)
                             for command in run)]
        found += [f"section {section} has no commands" for section in placed
                  if not any(command.section == section for command in commands)]
        found += [f"no command has '{shown}'" for shown in self.substitutions
                  if not any(shown in command.text for command in run)]
        return found


class PageRun:
    def __init__(self, page: Page, commands: list[Command], binaries: pathlib.Path,
                 folder: pathlib.Path):
        self.page = page
        self.commands = commands
        self.scene = Scene(binaries, folder)
        self.running_on: list[tuple[Command, int]] = []

    def close(self) -> None:
        self.scene.close()

    def run_scene(self, place: Place) -> list[str]:
        """What went wrong, a text for each command; commands after the first one that failed are
        not run."""
        if place.prepare:
            place.prepare(self.scene)
        for section in place.sections:
            for command in self.commands:
                if command.section != section or self.page.is_excused(command):
                    continue
                try:
                    failure = self._run(command)
                except AssertionError as error:
                    failure = str(error)
                if failure:
                    return [self._named(command, failure)]
        return self._end_those_that_run_on()

    def _named(self, command: Command, failure: str) -> str:
        return f"{self.page.path}:{command.line}: {command.text}\n{failure}"

    def _run(self, command: Command) -> str:
        if reason := self.page.reason_not_to_run(command):
            return reason
        step = self.page.step_of(command)
        if step.prepare:
            step.prepare(self.scene)
        text, used = self.scene.put_in(command.text, self.page.substitutions | step.replace)
        text += step.append.format_map(self.scene.names)
        if step.runs_on:
            process, output = self.scene.shell.start(text)
            self.running_on.append((command, process))
            failure = self.scene.await_output(command, output, used, step.optional, step.varying,
                                              lambda: not self.scene.is_running(process))
            if not failure and not self.scene.is_running(process):
                failure = f"it has ended, and printed:\n{output.read_text()}"
        else:
            end = time.monotonic() + (SECONDS_AGAIN_MAX if step.again else 0)
            while (failure := self._run_once(command, text, used, step)):
                if time.monotonic() > end:
                    break
        if failure:
            return f"as: {text}\n{failure}"
        if step.look:
            step.look(self.scene)
        return ""

    def _run_once(self, command: Command, text: str, used: dict[str, str], step: Step) -> str:
        status, output = self.scene.shell.run(text)
        if status != step.status:
            return (f"it ended with status {status} in the place of {step.status}, and printed:\n"
                    f"{output.read_text(errors='replace')}")
        in_background = text.rstrip().endswith("&")
        if in_background and not self._has_begun(output):
            return "it has printed nothing in the background"
        return self.scene.await_output(
            command, output, used, step.optional, step.varying,
            lambda: not in_background or not self.scene.shell.jobs())

    def _has_begun(self, output: pathlib.Path) -> bool:
        """What was started in the background has begun when it has printed something."""
        return bool(await_true("something is printed", lambda: output.stat().st_size > 0
                               or not self.scene.shell.jobs())) and output.stat().st_size > 0

    def _end_those_that_run_on(self) -> list[str]:
        failures = []
        for command, process in self.running_on:
            status = self.scene.shell.end_job(process)
            if status != 0:
                failures.append(self._named(command, f"interrupted, it ended with {status}"))
        return failures
