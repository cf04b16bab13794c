"""Goal: a library exports all functions of its C headers and nothing else, and a test calls each.

Method: usage: exports_test.py LIBRARY HEADERS PROGRAMS, lists with commas. Compares what `nm` sees
in the library with what the headers declare, and looks for a call of each in the programs.
"""

import pathlib
import re
import subprocess
import sys


def declared(header: str) -> set[str]:
    """Functions of a C header: names before a parenthesis, outside of comments and types."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/", "", header, flags=re.DOTALL)
    return set(re.findall(r"\b((?:nacre|leveldb)_\w+)\s*\(", code))


def main() -> int:
    library, headers, programs = sys.argv[1:]
    names = set().union(*(declared(pathlib.Path(header).read_text(encoding="utf-8"))
                          for header in headers.split(",")))
    symbols = subprocess.run(["nm", "-D", "--defined-only", library], check=True,
                             capture_output=True, text=True).stdout
    exported = {line.split()[-1] for line in symbols.splitlines()}
    code = "".join(pathlib.Path(program).read_text(encoding="utf-8")
                   for program in programs.split(","))
    # A program has macros for the pairs of functions that set and get an option.
    called = set(re.findall(r"\b(\w+)\s*\(", code))
    for option in re.findall(r"\bCHECK_OPTION\((\w+),", code):
        called |= {f"nacre_options_set_{option}", f"nacre_options_get_{option}"}
    failures = [f"{name}: declared, not exported" for name in sorted(names - exported)]
    failures += [f"{name}: exported, not declared" for name in sorted(exported - names)]
    failures += [f"{name}: never called by a program" for name in sorted(names - called)]
    if len(names) < 50:
        failures.append(f"only {len(names)} functions found in {headers}")
    print("\n".join(failures) or f"{len(names)} functions")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
