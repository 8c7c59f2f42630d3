"""Measures this service, and a handler that is tuned by hand; writes RESULTS.md."""

import os
import platform
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import trustme

from tests.benchmarks.execution import count_instructions, measure_in_container
from tests.support.handlers import EVENTS, function_of, reset_store
from tools import ROOT
from tools.packaging.bytecode import compile_tree
from tools.packaging.layer import install
from tools.packaging.targets import BUILD, HOST_ARCHITECTURE

FOLDER = ROOT / "tests/benchmarks"
# The folders of the two functions that are compared, below the folder that `prepare` makes.
FUNCTIONS = {"this service": "ListPetsFunction", "tuned handler": "."}
CASES = ("cold start", "list of 20")


def prepare(environment: Path) -> Path:
    """Install the compiled code of both implementations, and put animals into the store.

    Returns:
        The folder of the code and of the libraries.
    """
    folder = install(environment, HOST_ARCHITECTURE, "--group=benchmark")
    shutil.copytree(FOLDER / "tuned_handler", folder, dirs_exist_ok=True)
    compile_tree(folder, "/var/task")
    shutil.copytree(BUILD, folder, dirs_exist_ok=True)
    authority = trustme.CA(key_type=trustme.KeyType.RSA)
    with (folder / "CommonLayer/amazon-roots.pem").open("ab") as roots:
        roots.write(authority.cert_pem.bytes())
    certificate = authority.issue_cert("127.0.0.1", key_type=trustme.KeyType.RSA)
    certificate.private_key_and_cert_chain_pem.write_to_path(folder / "store.pem")
    reset_store()
    count_instructions(folder, "CreatePetFunction", EVENTS["create-201"], 20)
    return folder


def measure(folder: Path, function: str, case: str) -> float:
    """Return how many million instructions a cold start, or a later invocation, takes."""
    instructions_of = partial(count_instructions, folder, function, EVENTS["list-200"])
    if case == "cold start":
        return instructions_of(1) / 1e6
    # The first 20 invocations fill caches, so they are not counted.
    return (instructions_of(120) - instructions_of(20)) / 100e6


def container_rows(folder: Path) -> list[str]:
    """Measure each function in ten containers, one after the other; return rows of a table."""
    rows = []
    for event in ("list-200", "create-201", "get-200"):
        function = function_of(EVENTS[event])
        runs = [
            measure_in_container(folder, function, EVENTS[event]) for _ in range(10)
        ]
        row = f"| {function} "
        for values in zip(*runs, strict=True):
            row += f"| {min(values):.0f} to {max(values):.0f} "
        rows.append(f"{row}|")
    return rows


def main() -> None:
    """Measure both functions under Valgrind, and the service in containers."""
    describe = ["git", "log", "-1", "--format=commit %h of %cs"]
    commit = subprocess.check_output(describe, cwd=ROOT, text=True).strip()
    lines = [
        "# Results of the benchmark\n",
        f"At {commit}, on {platform.machine()}. See [docs/speed.md](../../docs/speed.md).\n",
        f"| million instructions | {' | '.join(CASES)} |",
        "| --- | ---: | ---: |",
    ]
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor() as pool:
        folder = prepare(Path(temporary))
        rows = container_rows(folder)
        load, *_ = os.getloadavg()
        for name, function in FUNCTIONS.items():
            # The load of the machine does not change the counts, so both cases run at once.
            counts = pool.map(partial(measure, folder, function), CASES)
            cells = [f"{millions:.2f}" for millions in counts]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += [
        f"\nTen runs in containers, on a machine with a load of {load:.0f}:\n",
        "| function | memory at its peak, MB | cold start and first call, ms | later call, ms |",
        "| --- | ---: | ---: | ---: |",
        *rows,
    ]
    (FOLDER / "RESULTS.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
