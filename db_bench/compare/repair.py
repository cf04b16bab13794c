"""What the loss of a memory node does to operations meanwhile, out of db_bench's --report_file."""

import csv
import pathlib
from dataclasses import dataclass

from workload import CompareError

DURATION_SECONDS, KILL_AT_SECONDS, INTERVAL_SECONDS = 8, 4, 0.25
# Each operation is timed, or the longest would not be found.
FLAGS = (f"--duration={DURATION_SECONDS}", f"--kill_at_seconds={KILL_AT_SECONDS}",
         "--latency_sample_period=1", f"--report_interval_seconds={INTERVAL_SECONDS}")


@dataclass(frozen=True)
class Interval:
    start: float  # Seconds from the start of the benchmark.
    end: float
    ops_per_sec: float
    p99_us: float
    max_us: float
    repaired_bytes: int  # Up to its end.

    def is_after_kill(self) -> bool:
        # The one that the kill ends is written a little after it.
        return self.end > KILL_AT_SECONDS + INTERVAL_SECONDS / 2


def longest_ms(intervals: list[Interval]) -> float:
    return max(interval.max_us for interval in intervals) / 1000


def rate(intervals: list[Interval]) -> float:
    """Operations a second over all of them."""
    ops = sum(interval.ops_per_sec * (interval.end - interval.start) for interval in intervals)
    return ops / sum(interval.end - interval.start for interval in intervals)


@dataclass(frozen=True)
class Timeline:
    """A benchmark in whose middle a node was killed."""
    before: list[Interval]
    after: list[Interval]  # The kill.

    def rebuild_end(self) -> float:
        """When what was lost had been made anew."""
        done = self.after[-1].repaired_bytes
        return next(interval.end for interval in self.after if interval.repaired_bytes == done)

    def rebuild(self) -> list[Interval]:
        return [interval for interval in self.after if interval.end <= self.rebuild_end()]


def read_timeline(path: pathlib.Path, benchmark: str, must_repair: bool = True) -> Timeline:
    """Throws CompareError unless the benchmark went on after the kill. `must_repair`: and unless
    something was repaired meanwhile; of a small database compactions may write all anew first."""
    try:
        with path.open() as file:
            lines = [line for line in csv.DictReader(file) if line["benchmark"] == benchmark]
        ends = [float(line["secs_elapsed"]) for line in lines]
        start = ends[0] - INTERVAL_SECONDS
        intervals = [Interval(begin - start, end - start, float(line["interval_qps"]),
                              float(line["p99_us"]), float(line["max_us"]),
                              int(line["repaired_bytes"]))
                     for begin, end, line in zip([start] + ends, ends, lines)]
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise CompareError(f"{path}: {error}") from error
    timeline = Timeline([interval for interval in intervals if not interval.is_after_kill()],
                        [interval for interval in intervals if interval.is_after_kill()])
    if not timeline.before or not timeline.after:
        raise CompareError(f"{path}: it did not go on after the kill at {KILL_AT_SECONDS} s")
    if must_repair and timeline.after[-1].repaired_bytes == 0:
        raise CompareError(f"{path}: nothing was repaired after a kill at {KILL_AT_SECONDS} s")
    return timeline
