"""What ships: the layer for both processors, as `make build` packs it."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import cache_from_source
from pathlib import Path

import botocore
import pytest
import yaml

from tools import ROOT
from tools.packaging import artifact, layer, sbom
from tools.packaging.__main__ import foreign_libraries
from tools.packaging.bytecode import compile_tree
from tools.packaging.targets import PYTHON, TARGETS

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != PYTHON, reason="the layer's bytecode is for Python 3.13; this Python refuses to build it"
)

# Calls a handler with an event, its key taken out, and tells what it answered and which modules came from elsewhere.
CALL = """
import json, sys
function, layer, event = sys.argv[1:]
standard_library = list(sys.path)
sys.path[:0] = [function, layer]
import app

class Context:
    aws_request_id = "00000000-0000-0000-0000-000000000000"
    def get_remaining_time_in_millis(self): return 10_000

event = json.load(open(event)) | {"headers": {}, "multiValueHeaders": {}}
answer = app.handler(event, Context())
foreign = [name for name, module in sys.modules.items()
           if (path := getattr(module, "__file__", None)) and not path.startswith((function, layer, *standard_library))]
print()
print(json.dumps({"status": answer["statusCode"], "body": json.loads(answer["body"]), "foreign": foreign,
                  "sdk": sys.modules["botocore"].__file__}))
"""

# Tells for each region where the SDK sends a signed request: plainly, by FIPS, dual-stack, both, and to an address of
# one's own.
ENDPOINTS = """
import json, sys
path, regions = sys.argv[1:]
sys.path.insert(0, path)
from botocore.config import Config
from botocore.exceptions import EndpointVariantError
from botocore.session import Session

sent = []
def stop(request, **_):
    sent.append((request.url, request.headers["Authorization"].split(b",")[0].decode()))
    raise InterruptedError

for region in json.loads(regions):
    for fips, dual_stack, address in [
        (False, False, None), (True, False, None), (False, True, None), (True, True, None), (False, False, "https://a.b")
    ]:
        session = Session()
        session.set_credentials("AKID", "SECRET")
        config = Config(use_fips_endpoint=fips, use_dualstack_endpoint=dual_stack)
        try:
            client = session.create_client("dynamodb", region_name=region, endpoint_url=address, config=config)
        except EndpointVariantError:
            sent.append(None)
            continue
        client.meta.events.register("before-send", stop)
        try:
            client.get_item(TableName="t", Key={"pk": {"S": "x"}})
        except InterruptedError:
            pass
print(json.dumps(sent))
"""


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Pack the layer for a processor, once."""
    directory = tmp_path_factory.mktemp("layer")

    def pack(architecture: str) -> Path:
        output = directory / architecture
        if not output.exists():
            layer.build(TARGETS[architecture], output)
        return output

    return pack


@pytest.fixture(scope="module", params=sorted(TARGETS))
def built(request: pytest.FixtureRequest, packed: Callable[[str], Path]) -> Path:
    """The layer, freshly packed, for one processor after the other."""
    return packed(request.param)


def test_every_library_is_for_the_target(built: Path) -> None:
    other = "x86_64" if built.name == "arm64" else "arm64"
    assert list(foreign_libraries(built, TARGETS[built.name].elf_machine)) == []
    assert list(foreign_libraries(built, TARGETS[other].elf_machine)) != []


def test_every_module_has_bytecode(built: Path) -> None:
    modules = list(built.rglob("*.py"))
    assert len(modules) > 200
    assert all(Path(cache_from_source(str(module))).exists() for module in modules)


def test_each_authority_of_the_sdk_has_a_file_of_its_own(built: Path) -> None:
    bundle = (built / "python/botocore/cacert.pem").read_text()
    assert len(list((built / "python/animal_store/authorities").iterdir())) == bundle.count("BEGIN CERTIFICATE") > 100


def test_the_same_input_gives_the_same_bytes(built: Path, tmp_path: Path) -> None:
    layer.build(TARGETS[built.name], tmp_path / "again")
    assert artifact.zipped(tmp_path / "again") == artifact.zipped(built)


def test_the_bill_of_materials_names_what_is_inside(built: Path, tmp_path: Path) -> None:
    sbom.write(tmp_path / sbom.NAME)
    bill = json.loads((tmp_path / sbom.NAME).read_text())
    pins = [f"{component['name']}=={component['version']}" for component in bill["components"]]
    assert pins == (built / "python/requirements.txt").read_text().splitlines()
    assert {pin.split("==")[0] for pin in pins} >= {"botocore", "pydantic-core", "urllib3"}
    for unshipped in ("boto3", "pydantic"):
        assert not (built / "python" / unshipped).exists()
    assert all(component["licenses"][0]["expression"] for component in bill["components"])
    sbom.write(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / sbom.NAME).read_bytes()


@pytest.fixture(scope="module")
def native(packed: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The layer for this machine, and the functions."""
    directory = tmp_path_factory.mktemp("native")
    machine = {"x86_64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}.get(os.uname().machine)
    if os.uname().sysname != "Linux" or machine is None:
        pytest.skip("the layer holds Linux libraries for x86_64 and arm64")
    shutil.copytree(packed(machine), directory / "opt")
    for source in sorted((ROOT / "functions").glob("*/app.py")):
        task = directory / source.parent.name
        task.mkdir()
        shutil.copy(source, task)
        compile_tree(task, "/var/task")
    return directory


@pytest.mark.parametrize("function", ["list_pets", "create_pet", "get_pet"])
def test_a_function_answers_from_the_layer_alone(native: Path, function: str) -> None:
    environment = {
        "ANIMALS_TABLE": "animals",
        "API_KEYS_TABLE": "api-keys",
        "STAGE": "staging",
        "AWS_REGION": "eu-central-1",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "POWERTOOLS_SERVICE_NAME": "animal-store",
        "POWERTOOLS_METRICS_NAMESPACE": "AnimalStore",
    }
    event = ROOT / f"events/{function.split('_', maxsplit=1)[0]}-401.json"
    command = [sys.executable, "-I", "-S", "-B", "-c", CALL]
    command += [str(native / function), str(native / "opt/python"), str(event)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["status"] == 401
    assert answer["body"]["code"] == "unauthorized"
    assert answer["foreign"] == []
    assert answer["sdk"].startswith(str(native))


def test_the_reduced_sdk_finds_the_endpoints_of_the_whole_one(native: Path) -> None:
    data = json.loads((Path(botocore.__file__).parent / "data/endpoints.json").read_bytes())
    # The rules are those of a partition: two regions of each stand for all. The last one is opened after the release.
    regions = [region for partition in data["partitions"] for region in sorted(partition["regions"])[:2]]
    regions += ["eu-central-1", "eu-unheard-of-9"]
    assert {"cn-north-1", "us-gov-west-1", "us-iso-east-1"} <= set(regions)

    def sent(path: Path) -> list[list[str] | None]:
        command = [sys.executable, "-I", "-B", "-c", ENDPOINTS, str(path), json.dumps(regions)]
        done = subprocess.run(command, env={}, capture_output=True, text=True, timeout=120, check=True)
        found: list[list[str] | None] = json.loads(done.stdout)
        return found

    whole = sent(Path(botocore.__file__).parents[1])
    reduced = sent(native / "opt/python")
    assert len(whole) == len(reduced) == 5 * len(regions)
    different = {
        regions[number // 5] for number, pair in enumerate(zip(whole, reduced, strict=True)) if pair[0] != pair[1]
    }
    # Dual-stack only, in partitions that are closed to the public: see `_endpoint` in tools/packaging/sdk_data.py.
    assert all(re.match(r"(us|eu)-iso", region) for region in different), different
    plain_and_fips = [number for number in range(len(whole)) if number % 5 not in {2, 3}]
    assert [reduced[number] for number in plain_and_fips] == [whole[number] for number in plain_and_fips]


def test_code_that_does_not_compile_stops_the_build(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("answer = \n")
    with pytest.raises(SystemExit, match="cannot compile"):
        compile_tree(tmp_path, "/var/task")


def test_a_rule_that_matches_nothing_stops_the_build(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="drops gone"):
        layer.trim(tmp_path, [layer.Drop(("gone",), "no longer there")])
    (tmp_path / "data").mkdir()
    with pytest.raises(SystemExit, match="keeps data/needed"):
        layer.trim(tmp_path, [layer.Drop(("data",), "too large", keep=frozenset({"needed"}))])


def test_another_python_refuses_to_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tools.packaging.targets.PYTHON", (3, 99))
    with pytest.raises(SystemExit, match=r"must be compiled by CPython 3\.99"):
        layer.build(TARGETS["arm64"], tmp_path / "layer")
    assert not (tmp_path / "layer").exists()


def test_an_artifact_holds_code_that_is_addressed_by_its_digest(tmp_path: Path) -> None:
    (tmp_path / "build/Code").mkdir(parents=True)
    (tmp_path / "build/Code/app.py").write_text("handler = None\n")
    template = {"Resources": {"Code": {"Properties": {"CodeUri": "Code"}}, "Table": {"Type": "AWS::DynamoDB::Table"}}}
    (tmp_path / "build/template.yaml").write_text(json.dumps(template))

    sha256 = artifact.pack(tmp_path / "build", tmp_path / "it.zip")
    unpacked = artifact.unpack(tmp_path / "it.zip", tmp_path / "unpacked")

    assert unpacked.sha256 == sha256 == artifact.pack(tmp_path / "build", tmp_path / "again.zip")
    assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?", unpacked.commit)
    assert unpacked.code == {"Code": artifact.digest((tmp_path / "unpacked/Code.zip").read_bytes())}
    packed = yaml.safe_load((tmp_path / "unpacked/template.yaml").read_text())
    assert packed["Resources"]["Code"]["Properties"]["CodeUri"] == "Code.zip"
    assert (tmp_path / "unpacked/samconfig.toml").read_bytes() == (ROOT / "samconfig.toml").read_bytes()
