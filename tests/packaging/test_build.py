"""What ships: the layer, as `make build` packs it."""

import json
import os
import ssl
import subprocess
import sys
import zipfile
from importlib.util import cache_from_source
from pathlib import Path

import botocore
import pytest
import yaml

from tools import ROOT
from tools.local.service import load_template
from tools.packaging import artifact, layer
from tools.packaging.build import committed
from tools.packaging.targets import PYTHON, TARGETS

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != PYTHON or sys.platform != "linux",
    reason="the layer is for Python 3.13 on Linux",
)

MACHINE = "x86_64" if os.uname().machine == "x86_64" else "arm64"
TEMPLATE = load_template()
FUNCTIONS = TEMPLATE.functions
VARIABLES = TEMPLATE.environment
BUNDLE = VARIABLES["AWS_CA_BUNDLE"].removeprefix("/opt/")
# The rules are those of a partition, so one of its regions stands for all, and one opened later.
REGIONS = "us-east-1 eu-central-1 eu-new-9 cn-north-1 us-gov-west-1 us-iso-east-1 eu-isoe-west-1"

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
for region, fips, dual_stack in itertools.product(regions.split(), both, both):
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
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The layer for this machine, freshly packed."""
    output = tmp_path_factory.mktemp("layer")
    layer.build(TARGETS[MACHINE], output)
    return output


@pytest.mark.slow
def test_a_layer_is_compiled_and_has_licences_and_authorities(built: Path) -> None:
    modules = list(built.rglob("*.py"))
    libraries = list(built.glob("python/*.dist-info"))

    assert len(modules) > 200
    for module in modules:
        compiled = Path(cache_from_source(str(module))).read_bytes()
        assert compiled[4:8] == b"\1\0\0\0"  # by PEP 552, for good
    assert len(libraries) == 8
    for library in libraries:
        assert list(library.rglob("LICEN*"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(built / BUNDLE)
    assert len(context.get_ca_certs()) == 5


@pytest.mark.slow
def test_the_same_input_gives_the_same_bytes(built: Path, tmp_path: Path) -> None:
    layer.build(TARGETS[MACHINE], tmp_path / "again")
    assert artifact.zipped(tmp_path / "again") == artifact.zipped(built)


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_answers_from_the_layer_alone(built: Path, function: str) -> None:
    # It is refused before the function looks at it.
    event = ROOT / "events/list-401.json"
    files = [FUNCTIONS[function].code, built / "python", event]
    own = {"AWS_DEFAULT_REGION": "eu-west-1", "AWS_CA_BUNDLE": f"{built}/{BUNDLE}"}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", CALL, *files],
        env=VARIABLES | own,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    log_line, _, told = done.stdout.splitlines()
    assert json.loads(log_line)["Operation"]
    assert json.loads(told) == [401, "unauthorized", []]


@pytest.mark.slow
def test_the_reduced_sdk_finds_the_endpoints_of_the_whole_one(built: Path) -> None:
    sent = [
        subprocess.check_output(
            [sys.executable, "-I", "-B", "-c", ENDPOINTS, sdk, REGIONS], env={}
        )
        for sdk in (Path(botocore.__file__).parents[1], built / "python")
    ]

    assert sent[0].count(b"https://dynamodb") > 10
    assert sent[0] == sent[1]


def test_an_artifact_holds_code_that_is_addressed_by_its_digest(tmp_path: Path) -> None:
    build = tmp_path / "build"
    (build / "Code").mkdir(parents=True)
    (build / "Code/app.py").write_text("handler = None\n")
    template = {
        "Parameters": {"Architecture": {"Default": "arm64"}},
        "Resources": {"Code": {"Properties": {"CodeUri": "Code"}}, "Table": {}},
    }
    (build / "template.yaml").write_text(json.dumps(template))

    artifact.pack(build, tmp_path / "it.zip", "x86_64")

    with zipfile.ZipFile(tmp_path / "it.zip") as packed:
        assert len(packed.read("COMMIT")) == 40
        names = packed.namelist()
        assert names == sorted(names)  # in one order everywhere
        files = [name for name in names if not name.startswith("suite/")]
        assert files == ["COMMIT", "Code.zip", "samconfig.toml", "template.yaml"]
        assert "suite/tests/contract/test_routes.py" in names
        template = yaml.safe_load(packed.read("template.yaml"))
        with zipfile.ZipFile(packed.open("Code.zip")) as code:
            # Lambda runs as another user.
            assert code.infolist()[0].external_attr >> 16 == 0o644
    assert template["Resources"]["Code"]["Properties"] == {"CodeUri": "Code.zip"}
    assert template["Parameters"]["Architecture"] == {"Default": "x86_64"}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ('"Stage=staging MemorySize=512"', "staging as a list"),
        ('{Stage = "staging"}', "staging as a list"),
        ('["Stage=staging", "Architecture=x86_64"]', "must not name Architecture"),
    ],
)
def test_other_forms_of_a_stages_parameters_are_refused(
    overrides: str, message: str
) -> None:
    config = f"version = 0.1\n[staging.deploy.parameters]\nparameter_overrides = {overrides}\n"
    with pytest.raises(SystemExit, match=message):
        artifact.check_stages(config)


@pytest.mark.slow
def test_a_layer_for_both_processors_has_the_libraries_of_each(tmp_path: Path) -> None:
    layer.build(TARGETS["arm64"], tmp_path, TARGETS["x86_64"])
    libraries = sorted(library.name for library in tmp_path.rglob("*.so"))
    assert libraries == [
        "_pydantic_core.cpython-313-aarch64-linux-gnu.so",
        "_pydantic_core.cpython-313-x86_64-linux-gnu.so",
    ]


def test_a_build_sees_only_what_is_committed_and_names_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "app.py").write_text("committed")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com"]
    for command in ("init", "add .", "commit -m x"):
        subprocess.run([*git, *command.split()], cwd=tmp_path, check=True)
    (tmp_path / "app.py").write_text("changed")
    (tmp_path / "new.py").touch()
    with committed(tmp_path) as copy:
        assert (copy / "app.py").read_text() == "committed"
    assert " M app.py\n?? new.py\n" in capsys.readouterr().out
