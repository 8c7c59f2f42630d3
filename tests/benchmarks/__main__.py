"""Counts the CPU instructions of this service and of two simpler ones; writes RESULTS.md."""

import platform
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import trustme

from tests.benchmarks.execution import count_instructions
from tests.support.handlers import EVENTS, empty_store, function_of
from tools import ROOT
from tools.packaging.bytecode import compile_tree
from tools.packaging.layer import install
from tools.packaging.targets import BUILD, HOST_ARCHITECTURE

FOLDER = ROOT / "tests/benchmarks"
THIS_SERVICE = "this service"
PEERS = {"tuned handler": "bare", "tuned Powertools": "powertools"}
# Maps each measurement to the name of its event in `events/`.
CASES = {
    "cold start": "list-200",
    "list of 20": "list-200",
    "create": "create-201",
    "get": "get-200",
}


def prepare(environment: Path) -> Path:
    """Install the compiled code of the three services, and put animals into the store.

    Returns:
        The folder of the code and of the libraries.
    """
    folder = install(environment, HOST_ARCHITECTURE, "--group=benchmark")
    shutil.copytree(FOLDER / "peers", folder, dirs_exist_ok=True)
    compile_tree(folder, "/var/task")
    shutil.copytree(BUILD, folder, dirs_exist_ok=True)
    authority = trustme.CA(key_type=trustme.KeyType.RSA)
    roots = (BUILD / "CommonLayer/amazon-roots.pem").read_bytes()
    (folder / "authorities.pem").write_bytes(roots + authority.cert_pem.bytes())
    certificate = authority.issue_cert("127.0.0.1", key_type=trustme.KeyType.RSA)
    certificate.private_key_and_cert_chain_pem.write_to_path(folder / "store.pem")
    empty_store()
    measure(folder, THIS_SERVICE, "create")
    return folder


def measure(folder: Path, variant: str, case: str) -> float:
    """Return how many million instructions a cold start, or a later invocation, takes."""
    event = EVENTS[CASES[case]]
    task = folder / PEERS.get(variant, function_of(event))
    layer = f"{folder}/CommonLayer/python:" if variant == THIS_SERVICE else ""
    instructions_of = partial(count_instructions, task, f"{layer}{folder}", event)
    if case == "cold start":
        return instructions_of(1) / 1e6
    # The first 20 invocations fill caches, so they are not counted.
    return (instructions_of(120) - instructions_of(20)) / 100e6


def main() -> None:
    """Measure every case of CASES with each service, and write RESULTS.md."""
    describe = ["git", "log", "-1", "--format=commit %h of %cs"]
    commit = subprocess.check_output(describe, cwd=ROOT, text=True).strip()
    lines = [
        "# Results of the benchmark\n",
        f"At {commit}, on {platform.platform()}. See [README.md](README.md).\n",
        f"| million instructions | {' | '.join(CASES)} |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor() as pool:
        folder = prepare(Path(name))
        for variant in (THIS_SERVICE, *PEERS):
            # The load of the machine does not change the counts, so all cases run at once.
            counts = pool.map(partial(measure, folder, variant), CASES)
            cells = [f"{millions:.2f}" for millions in counts]
            lines.append(f"| {variant} | {' | '.join(cells)} |")
    (FOLDER / "RESULTS.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
