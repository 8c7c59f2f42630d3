"""What ships: the layer for both processors, as `make build` packs it."""

import hashlib
import itertools
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import zipfile
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import botocore
import pytest
import yaml

from tools import ROOT
from tools.local.service import load_template
from tools.packaging import artifact, layer, sbom
from tools.packaging.build import foreign_libraries
from tools.packaging.bytecode import compile_tree
from tools.packaging.targets import PYTHON, TARGETS

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != PYTHON,
    reason="the layer's bytecode is for Python 3.13; this Python refuses to build it",
)

MACHINE = "x86_64" if os.uname().machine == "x86_64" else "arm64"

# Calls a handler with an event without a key; prints its answer and the modules from elsewhere.
CALL = """
import json, logging, sys, types
logging.basicConfig(level=logging.INFO)  # as Lambda's runtime does for JSON logs, to stderr here
function, layer, event = sys.argv[1:]
standard_library = list(sys.path)
sys.path[:0] = [function, layer]
import app

context = types.SimpleNamespace(get_remaining_time_in_millis=lambda: 10_000)
answer = app.handler(json.load(open(event)) | {"headers": {}, "multiValueHeaders": {}}, context)
from animal_store import telemetry
assert "aws_lambda_powertools" not in sys.modules
telemetry.logger()  # Powertools, imported at the first failure
known = (function, layer, *standard_library)
files = (getattr(module, "__file__", None) for module in sys.modules.values())
print("\\n", json.dumps([answer["statusCode"], json.loads(answer["body"])["code"],
                        [file for file in files if file and not file.startswith(known)]]))
"""

# Prints for each region where the SDK sends a request: plainly, by dual-stack, FIPS, and both.
ENDPOINTS = """
import itertools, json, sys
path, regions = sys.argv[1:]
sys.path.insert(0, path)
from botocore.config import Config
from botocore.exceptions import EndpointVariantError
from botocore.session import Session

def stop(request, **_):
    raise InterruptedError(request.url, request.headers["Authorization"].split(b",")[0].decode())

sent = []
session = Session()
session.set_credentials("AKID", "SECRET")
both = (False, True)
for region, fips, dual_stack in itertools.product(json.loads(regions), both, both):
    try:
        config = Config(use_fips_endpoint=fips, use_dualstack_endpoint=dual_stack)
        client = session.create_client("dynamodb", region_name=region, config=config)
        client.meta.events.register("before-send", stop)
        client.get_item(TableName="t", Key={"pk": {"S": "x"}})
    except InterruptedError as request:
        sent.append(request.args)
    except EndpointVariantError:
        sent.append(None)
print(json.dumps(sent))
"""


@pytest.fixture(scope="module", params=sorted(TARGETS))
def built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The layer, freshly packed, for one processor after the other."""
    output: Path = tmp_path_factory.mktemp("layer") / request.param
    layer.build(TARGETS[request.param], output)
    return output


def test_a_layer_is_for_its_processor_compiled_and_documented(
    built: Path, tmp_path: Path
) -> None:
    for target in TARGETS.values():
        assert (list(foreign_libraries(built, target)) == []) is (
            target.name == built.name
        )
    modules = list(built.rglob("*.py"))
    assert len(modules) > 200
    assert all(Path(cache_from_source(str(module))).exists() for module in modules)

    sbom.write(tmp_path / sbom.NAME)
    bill = json.loads((tmp_path / sbom.NAME).read_text())
    pins = [
        f"{library['name']}=={library['version']}" for library in bill["components"]
    ]
    assert pins == (built / "python/requirements.txt").read_text().splitlines()
    assert all(library["licenses"][0]["expression"] for library in bill["components"])
    folders = list((built / "licences").iterdir())
    names = {
        folder.name.removesuffix(".dist-info").lower().replace("_", "-")
        for folder in folders
    }
    assert names == {pin.replace("==", "-") for pin in pins}
    for folder in folders:
        assert any(
            "copyright" in text.read_text("utf-8").lower() for text in folder.iterdir()
        ), folder.name
    for unshipped in ("boto3", "pydantic"):
        assert not (built / "python" / unshipped).exists()


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The layer for this machine, and the functions."""
    directory = tmp_path_factory.mktemp("native")
    if sys.platform != "linux":
        pytest.skip("the layer holds libraries for Linux")
    layer.build(TARGETS[MACHINE], directory / "opt")
    for source in (ROOT / "functions").glob("*/app.py"):
        shutil.copytree(source.parent, directory / source.parent.name)
        compile_tree(directory / source.parent.name, "/var/task")
    return directory


def test_the_same_input_gives_the_same_bytes(native: Path, tmp_path: Path) -> None:
    layer.build(TARGETS[MACHINE], tmp_path / "again")
    assert artifact.zipped(tmp_path / "again") == artifact.zipped(native / "opt")
    for name in ("first", "second"):
        sbom.write(tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


@pytest.mark.parametrize(
    "function", sorted(path.name for path in (ROOT / "functions").iterdir())
)
def test_a_function_answers_from_the_layer_alone(native: Path, function: str) -> None:
    environment = {
        "ANIMALS_TABLE": "animals",
        "API_KEYS_TABLE": "keys",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "POWERTOOLS_METRICS_NAMESPACE": "AnimalStore",
        "POWERTOOLS_SERVICE_NAME": "animal-store",
        "STAGE": "staging",
    }
    event = ROOT / f"events/{function.split('_', maxsplit=1)[0]}-401.json"
    files = (native / function, native / "opt/python", event)
    command = [sys.executable, "-I", "-S", "-B", "-c", CALL, *map(str, files)]
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    log_line, _, told = done.stdout.splitlines()
    assert json.loads(log_line)["Operation"]
    assert json.loads(told) == [401, "unauthorized", []]


def test_the_reduced_sdk_finds_the_endpoints_of_the_whole_one(native: Path) -> None:
    data = json.loads(
        (Path(botocore.__file__).parent / "data/endpoints.json").read_bytes()
    )
    # The rules are those of a partition: two regions of each stand for all, one opened later too.
    regions = [
        region
        for partition in data["partitions"]
        for region in sorted(partition["regions"])[:2]
    ]
    regions += ["eu-central-1", "eu-unheard-of-9"]
    assert {"cn-north-1", "us-gov-west-1", "us-iso-east-1"} <= set(regions)

    def sent(path: Path) -> list[list[str] | None]:
        command = [
            sys.executable,
            "-I",
            "-B",
            "-c",
            ENDPOINTS,
            str(path),
            json.dumps(regions),
        ]
        done = subprocess.run(
            command, env={}, stdout=subprocess.PIPE, timeout=120, check=True
        )
        found: list[list[str] | None] = json.loads(done.stdout)
        return found

    pairs = zip(
        sent(Path(botocore.__file__).parents[1]),
        sent(native / "opt/python"),
        strict=True,
    )
    variants = itertools.product(
        regions, ("plain", "dual-stack", "FIPS", "FIPS, dual-stack")
    )
    different = [
        where
        for where, (whole, reduced) in zip(variants, pairs, strict=True)
        if whole != reduced
    ]
    # Dual-stack only, in partitions closed to the public: see `_endpoint` in sdk_data.py.
    assert all(
        re.match(r"(us|eu)-iso", region) and "dual" in variant
        for region, variant in different
    ), different


def test_a_layer_has_the_bundle_that_the_template_names(built: Path) -> None:
    functions = load_template().functions
    bundle = functions["GetPetFunction"].environment["AWS_CA_BUNDLE"]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    context.load_verify_locations(built / bundle.removeprefix("/opt/"))

    assert [authority["subject"][-1] for authority in context.get_ca_certs()] == [
        (("commonName", "Amazon Root CA 1"),),
        (("commonName", "Amazon Root CA 2"),),
        (("commonName", "Amazon Root CA 3"),),
        (("commonName", "Amazon Root CA 4"),),
        (("commonName", "Starfield Services Root Certificate Authority - G2"),),
    ]


def test_what_stops_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other-1.0.dist-info").mkdir()
    for rules in ({"gone": set[str]()}, {"*": {"needed"}}):
        with pytest.raises(SystemExit, match="no longer fits"):
            layer.trim(tmp_path, rules)
    with pytest.raises(SystemExit, match=r"other-1\.0 brings no licence text"):
        layer.keep_licences(tmp_path, tmp_path / "licences")
    (tmp_path / "module.py").write_text("answer = \n")
    with pytest.raises(SystemExit, match="cannot compile"):
        compile_tree(tmp_path, "/var/task")
    monkeypatch.setattr("tools.packaging.bytecode.PYTHON", (3, 99))
    with pytest.raises(SystemExit, match=r"must be compiled by CPython 3\.99"):
        layer.build(TARGETS["arm64"], tmp_path / "layer")


def test_an_artifact_holds_code_that_is_addressed_by_its_digest(tmp_path: Path) -> None:
    resources: dict[str, Any] = {"Table": {"Type": "AWS::DynamoDB::Table"}}
    for name, property_ in (("Code", "CodeUri"), ("Layer", "ContentUri")):
        (tmp_path / "build" / name).mkdir(parents=True)
        (tmp_path / "build" / name / "app.py").write_text("handler = None\n")
        resources[name] = {"Properties": {property_: name}}
    (tmp_path / "build/template.yaml").write_text(json.dumps({"Resources": resources}))
    (tmp_path / "build" / sbom.NAME).touch()

    sha256 = artifact.pack(tmp_path / "build", tmp_path / "it.zip")
    unpacked = artifact.unpack(tmp_path / "it.zip", tmp_path / "unpacked")

    assert (
        unpacked.sha256
        == sha256
        == artifact.pack(tmp_path / "build", tmp_path / "again.zip")
    )
    assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?", unpacked.commit)
    code = (tmp_path / "unpacked/Code.zip").read_bytes()
    assert unpacked.code == dict.fromkeys(
        ("Code", "Layer"), hashlib.sha256(code).hexdigest()
    )
    with zipfile.ZipFile(tmp_path / "unpacked/Code.zip") as archive:
        # Lambda runs as another user.
        assert archive.infolist()[0].external_attr >> 16 == 0o644
    packed = yaml.safe_load((tmp_path / "unpacked/template.yaml").read_text())[
        "Resources"
    ]
    uris = packed["Code"]["Properties"] | packed["Layer"]["Properties"]
    assert uris == {"CodeUri": "Code.zip", "ContentUri": "Layer.zip"}
    assert (tmp_path / "unpacked/samconfig.toml").read_bytes() == (
        ROOT / "samconfig.toml"
    ).read_bytes()
    assert (tmp_path / "unpacked" / sbom.NAME).exists()


def run_makefile(root: Path, output: Path) -> subprocess.CompletedProcess[str]:
    """Build the layer as a plain `sam build` does."""
    command = ["make", "-f", f"{root}/layers/common/Makefile", "build-CommonLayer"]
    return subprocess.run(
        [*command, f"ARTIFACTS_DIR={output}"],
        check=False,
        capture_output=True,
        text=True,
    )


def test_layer_of_a_plain_sam_build_serves_both_processors(tmp_path: Path) -> None:
    assert run_makefile(ROOT, tmp_path).returncode == 0

    assert {path.name for path in tmp_path.rglob("*.so")} == {
        "_pydantic_core.cpython-313-aarch64-linux-gnu.so",
        "_pydantic_core.cpython-313-x86_64-linux-gnu.so",
    }


def test_sam_build_before_installation_says_what_to_do(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "layers/common", tmp_path / "layers/common")

    failed = run_makefile(tmp_path, tmp_path / "layer")

    assert failed.returncode != 0
    assert f"run 'make install' in {tmp_path} first" in failed.stderr
