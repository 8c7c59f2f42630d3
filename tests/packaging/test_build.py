"""The layer, as `make build` packs it for AWS."""

import json
import os
import ssl
import subprocess
import sys
import zipfile
from hashlib import sha256
from importlib.util import cache_from_source
from pathlib import Path

import botocore
import pytest
import yaml

from tests.support.processes import run
from tools import ROOT
from tools.git import git
from tools.local.service import load_template
from tools.packaging import artifact, layer
from tools.packaging.build import committed
from tools.packaging.bytecode import compile_tree
from tools.packaging.targets import PYTHON, TARGETS, Target

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != PYTHON or sys.platform != "linux",
    reason="the layer is for Python 3.13 on Linux",
)

IDENTITY = ("-c", "user.name=x", "-c", "user.email=x@example.com")
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


def clone(folder: Path) -> Path:
    """Clone the commit, with this checkout's environments."""
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    for name in (".venv", ".tools"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def build_in(folder: Path, **variables: str) -> bytes:
    command = [sys.executable, "-m", "ops", "build", MACHINE]
    run(*command, cwd=folder, timeout_s=300, **variables)
    return (folder / f".aws-sam/animal-store-{MACHINE}.zip").read_bytes()


@pytest.mark.slow
def test_a_commit_gives_the_same_artifact_wherever_it_is_built(tmp_path: Path) -> None:
    plain, other = clone(tmp_path / "a"), clone(tmp_path / "My Projects/b")
    (tmp_path / "t mp").mkdir()
    for folder in ("layers/common/animal_store", "functions/list_pets"):
        (other / folder / "__pycache__").mkdir()
        stale = other / folder / "__pycache__/app.cpython-313.pyc"
        stale.write_bytes(b"stale")
    with (other / "layers/common/animal_store/errors.py").open("a") as file:
        file.write("# not committed\n")

    first = build_in(plain)
    second = build_in(
        other,
        PYTHONPATH=str(other),
        PYTHONSAFEPATH="1",
        SAM_TEMPLATE_FILE="elsewhere.yaml",
        TMPDIR=f"{tmp_path}/t mp",
        TZ="Asia/Tokyo",
    )

    assert sha256(second).hexdigest() == sha256(first).hexdigest()
    assert sha256(build_in(plain)).hexdigest() == sha256(first).hexdigest()


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


def target(folder: Path) -> Target:
    """An arm64 build of one function."""
    (folder / "build/Code").mkdir(parents=True)
    (folder / "build/Code/app.py").write_text("handler = None\n")
    template = {
        "Parameters": {"Architecture": {"Default": "x86_64"}},
        "Resources": {"Code": {"Properties": {"CodeUri": "Code"}}, "Table": {}},
    }
    (folder / "build/template.yaml").write_text(json.dumps(template))
    return TARGETS["arm64"]._replace(build_dir=folder / "build")


def test_artifact_names_its_commit_and_packs_each_function(tmp_path: Path) -> None:
    built = target(tmp_path)

    artifact.pack(built, "a" * 40)

    with zipfile.ZipFile(built.artifact) as packed:
        assert packed.read("COMMIT") == b"a" * 40
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
    assert template["Parameters"]["Architecture"] == {"Default": "arm64"}


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


def test_bytecode_is_taken_without_a_look_at_its_source(tmp_path: Path) -> None:
    module = tmp_path / "app.py"
    module.touch()

    compile_tree(tmp_path, "/var/task")

    compiled = Path(cache_from_source(str(module))).read_bytes()
    assert compiled[4:8] == b"\1\0\0\0"  # PEP 552: unchecked hash


def test_build_sees_only_what_is_committed_and_names_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "app.py").write_text("committed")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, *IDENTITY, "commit", "--quiet", "-m", "x")
    (tmp_path / "app.py").write_text("changed")
    (tmp_path / "new.py").touch()

    with committed(tmp_path) as copy:
        assert (copy / "app.py").read_text() == "committed"

    assert " M app.py\n?? new.py\n" in capsys.readouterr().out
