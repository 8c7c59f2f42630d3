"""Measure this service and two peers, and write RESULTS.md."""

import platform
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.support.handlers import EVENTS, empty_store, function_of
from tools import ROOT
from tools.benchmarks.execution import AUTHORITY, count
from tools.packaging.bytecode import compile_tree
from tools.packaging.layer import install
from tools.packaging.targets import BUILD, MACHINE

HERE = ROOT / "tools/benchmarks"
OURS = "this service"
PEERS = {"tuned handler": "bare", "tuned Powertools": "powertools"}
CASES = {
    "cold start": ("list-200", 0, 1),
    "list of 20": ("list-200", 20, 100),
    "create": ("create-201", 20, 100),
    "get": ("get-200", 20, 100),
}
"""An event, how often it is sent to fill caches, and how often to measure."""


def prepare(folder: Path) -> None:
    """Fill a folder with what is measured, all compiled, and the store with animals."""
    shutil.copytree(HERE / "peers", folder, dirs_exist_ok=True)
    install(folder, MACHINE, "--group=benchmark")
    compile_tree(folder, "/var/task")
    shutil.copytree(BUILD, folder, dirs_exist_ok=True)
    roots = (BUILD / "CommonLayer/amazon-roots.pem").read_bytes()
    (folder / "authorities.pem").write_bytes(roots + AUTHORITY.cert_pem.bytes())
    empty_store()
    measure(folder, OURS, "create")


def measure(folder: Path, variant: str, case: str) -> float:
    """Return the million instructions of one invocation."""
    name, before, measured = CASES[case]
    event = EVENTS[name]
    task = folder / PEERS.get(variant, function_of(event))
    layer = f"{folder}/CommonLayer/python:" if variant == OURS else ""
    libraries = f"{layer}{folder}"
    counted = count(task, libraries, event, before + measured)
    if before:
        counted -= count(task, libraries, event, before)
    return counted / measured / 1e6


def main() -> None:
    """Measure every case with every variant, and write RESULTS.md."""
    describe = ["git", "log", "-1", "--format=commit %h of %cs"]
    commit = subprocess.check_output(describe, cwd=ROOT, text=True).strip()
    lines = [
        "# Results of the benchmark\n",
        f"At {commit}, on {platform.platform()}. What they say: [README.md](README.md).\n",
        f"| million instructions | {' | '.join(CASES)} |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor() as pool:
        folder = Path(name)
        prepare(folder)
        for variant in (OURS, *PEERS):
            # At once: no count depends on another process.
            counts = pool.map(partial(measure, folder, variant), CASES)
            cells = [f"{each:.2f}" for each in counts]
            lines.append(f"| {variant} | {' | '.join(cells)} |")
    (HERE / "RESULTS.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
