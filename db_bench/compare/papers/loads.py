"""Loads that several papers have."""

from typing import Iterator

from papers.lab import Lab, Report

# The name of an operation in the papers, the benchmark, and how db_bench calls its kind.
OPERATIONS = (("INSERT", "ycsbload", "write"), ("UPDATE", "overwrite", "write"),
              ("SEARCH", "readrandom", "read"), ("DELETE", "deleterandom", "delete"))
LOAD = ("fillseq", "flush", "waitforcompaction")


def operations(lab: Lab, **shape) -> Iterator[tuple[str, Report, str, str]]:
    """The four operations one after another: INSERT makes a new database, the others find all of
    their keys, SEARCH those that no MemTable has."""
    inserts = lab.run("ycsbload", **shape)
    others = lab.run("readrandom", "overwrite", "deleterandom", before=LOAD,
                     **({"room": 3} | shape))
    for name, step, kind in OPERATIONS:
        yield name, inserts if step == "ycsbload" else others, step, kind
