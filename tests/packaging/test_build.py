"""The layer, as `make build` packs it for AWS."""

import json
import ssl
import sys
from importlib.util import cache_from_source
from io import BytesIO
from pathlib import Path
from platform import machine
from zipfile import ZipFile

import botocore
import pytest
import yaml

from tests.support.processes import run
from tests.support.stack import parameters
from tools import ROOT
from tools.git import git
from tools.local.service import load_template
from tools.packaging import artifact, layer
from tools.packaging.build import copy_of_head
from tools.packaging.bytecode import compile_tree
from tools.packaging.targets import HOST_ARCHITECTURE, PYTHON

pytestmark = pytest.mark.skipif(
    not sys.version.startswith(PYTHON) or sys.platform != "linux",
    reason="the layer is for Python 3.13 on Linux",
)

TEMPLATE = load_template()
BUNDLE = TEMPLATE.environment["AWS_CA_BUNDLE"].removeprefix("/opt/")
# The rules are those of a partition, so one of its regions stands for all, and one opened later.
REGIONS = ("us-east-1", "eu-new-9", "cn-north-1", "us-gov-west-1", "us-iso-east-1")
UNCHECKED_HASH = b"\1\0\0\0"  # PEP 552: Python does not compare the source

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
path, *regions = sys.argv[1:]
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
for region, fips, dual_stack in itertools.product(regions, both, both):
    if dual_stack and "-iso" in region:
        continue  # in partitions closed to the public: see `_endpoint` in sdk_data.py
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


@pytest.fixture(scope="module")
def built_layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The layer for both processors, freshly packed."""
    output = tmp_path_factory.mktemp("layer")
    layer.build(output, "arm64", "x86_64")
    return output


@pytest.mark.slow
def test_layer_is_compiled_and_has_licences_and_authorities(built_layer: Path) -> None:
    modules = list(built_layer.rglob("*.py"))
    assert len(modules) > 200
    for module in modules:
        assert Path(cache_from_source(str(module))).exists()
    assert sorted(library.name for library in built_layer.rglob("*.so")) == [
        "_pydantic_core.cpython-313-aarch64-linux-gnu.so",
        "_pydantic_core.cpython-313-x86_64-linux-gnu.so",
    ]
    packages = list(built_layer.glob("python/*.dist-info"))
    assert len(packages) == 8
    for package in packages:
        assert list(package.rglob("LICEN*"))
    context = ssl.create_default_context(cafile=built_layer / BUNDLE)
    assert len(context.get_ca_certs()) == 5


@pytest.mark.slow
@pytest.mark.parametrize("function", TEMPLATE.functions)
def test_function_answers_from_the_layer_alone(
    built_layer: Path, function: str
) -> None:
    code = TEMPLATE.functions[function].code
    event = ROOT / "events/list-401.json"  # refused before the function looks at it
    command = (sys.executable, "-ISBc", CALL, code, built_layer / "python", event)
    variables = {"AWS_CA_BUNDLE": f"{built_layer}/{BUNDLE}", "AWS_DEFAULT_REGION": "x"}

    output = run(*command, cwd=ROOT, timeout_s=60, **TEMPLATE.environment | variables)

    log_line, _, answer = output.splitlines()
    assert json.loads(log_line)["Operation"]
    assert json.loads(answer) == [401, "unauthorized", []]


def endpoints(packages: Path) -> str:
    """Return where the SDK of these packages sends requests."""
    command = (sys.executable, "-IBc", ENDPOINTS, packages, *REGIONS)
    return run(*command, cwd=packages)


@pytest.mark.slow
def test_reduced_sdk_finds_the_endpoints_of_the_whole_one(built_layer: Path) -> None:
    whole = endpoints(Path(botocore.__file__).parents[1])

    assert whole.count("https://dynamodb") > 10
    assert endpoints(built_layer / "python") == whole


def build_in(folder: Path, **variables: str) -> bytes:
    """Clone the commit into a folder, build it there, and return the artifact."""
    run("git", "clone", "--quiet", ROOT, folder, cwd=ROOT)
    for name in (".venv", ".tools"):
        (folder / name).symlink_to(ROOT / name)
    command = (sys.executable, "-m", "ops", "build", HOST_ARCHITECTURE)
    run(*command, cwd=folder, timeout_s=300, **variables)
    return (folder / f".aws-sam/animal-store-{HOST_ARCHITECTURE}.zip").read_bytes()


@pytest.mark.slow
def test_commit_gives_one_artifact_for_its_processor_wherever_it_is_built(
    tmp_path: Path,
) -> None:
    (tmp_path / "t mp").mkdir()

    first = build_in(tmp_path / "a")
    second = build_in(
        tmp_path / "My Projects/b", TMPDIR=f"{tmp_path}/t mp", TZ="Asia/Tokyo"
    )

    assert first == second
    built = (tmp_path / "a/.aws-sam/build/CommonLayer").rglob("*.so")
    library = f"_pydantic_core.cpython-313-{machine()}-linux-gnu.so"
    assert [file.name for file in built] == [library]


def test_build_sees_only_what_is_committed_and_prints_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "app.py").touch()
    git(tmp_path, "add", ".")
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    git(tmp_path, *identity, "commit", "--quiet", "-m", "x")
    (tmp_path / "app.py").write_text("changed")

    with copy_of_head(tmp_path) as copy:
        assert (copy / "app.py").read_text() == ""

    assert "changes:\n M app.py\n" in capsys.readouterr().out


def test_bytecode_is_taken_without_a_look_at_its_source(tmp_path: Path) -> None:
    module = tmp_path / "app.py"
    module.touch()

    compile_tree(tmp_path, "/var/task")

    compiled = Path(cache_from_source(str(module))).read_bytes()
    assert compiled[4:8] == UNCHECKED_HASH


def test_artifact_names_its_commit_and_processor(tmp_path: Path) -> None:
    function = {"Type": "AWS::Serverless::Function", "Properties": {"CodeUri": "Code"}}
    template = {"Parameters": {"Architecture": {}}, "Resources": {"Code": function}}
    (tmp_path / "template.yaml").write_text(json.dumps(template))
    (tmp_path / "Code").mkdir()
    (tmp_path / "Code/app.py").touch()

    packed = ZipFile(BytesIO(artifact.pack(tmp_path, "x86_64", "a" * 40)))

    files = [name for name in packed.namelist() if not name.startswith("suite/")]
    assert files == ["COMMIT", "Code.zip", "samconfig.toml", "template.yaml"]
    assert packed.read("COMMIT") == b"a" * 40
    template = yaml.safe_load(packed.read("template.yaml"))
    assert template["Resources"]["Code"]["Properties"] == {"CodeUri": "Code.zip"}
    assert template["Parameters"]["Architecture"] == {"Default": "x86_64"}
    (code,) = ZipFile(packed.open("Code.zip")).infolist()
    assert oct(code.external_attr >> 16) == "0o644"  # Lambda runs as another user


@pytest.mark.parametrize("stage", ["staging", "production"])
def test_stage_leaves_its_processor_to_the_artifact(stage: str) -> None:
    assert "Architecture" not in parameters(stage)
