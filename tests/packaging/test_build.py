"""The layer and the compiled functions that `make build` makes for AWS.

Most other tests run the layer's sources, not the built one.
"""

import json
import shutil
import ssl
import sys
from importlib.util import cache_from_source
from pathlib import Path
from platform import machine

import botocore
import pytest
from botocore.config import Config
from botocore.loaders import Loader
from botocore.session import Session

from tests.support import handlers
from tests.support.processes import clone_checkout, run
from tools import ROOT
from tools.git import git
from tools.local.serve_store import serve_store
from tools.local.template import load_template
from tools.packaging import build, layer, sdk_data
from tools.packaging.bytecode import compile_tree
from tools.packaging.targets import HOST_ARCHITECTURE, PYTHON

pytestmark = pytest.mark.skipif(
    not sys.version.startswith(PYTHON) or sys.platform != "linux",
    reason="the layer is for Python 3.13 on Linux",
)

TEMPLATE = load_template()
CERTIFICATE_BUNDLE = TEMPLATE.environment["AWS_CA_BUNDLE"].removeprefix("/opt/")
UNCHECKED_HASH = b"\1\0\0\0"  # PEP 552: Python does not compare the source

# Calls a handler with an event, prints its response, and then loads the logger for failures.
HANDLER_CALL = """
import json, logging, sys, types
logging.basicConfig(level=logging.INFO)  # as Lambda's runtime does for JSON logs, to stderr here
function, layer, event = sys.argv[1:]
sys.path[:0] = [function, layer]
import app

context = types.SimpleNamespace(get_remaining_time_in_millis=lambda: 10_000)
print(json.dumps(app.handler(json.load(open(event)), context)))
assert "aws_lambda_powertools" not in sys.modules
from animal_store import telemetry
telemetry.logger()
"""

# Uses the lazily imported packages in each way that the SDK does.
DEFERRED_CALLS = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
import botocore.session
for name in ("dateutil.parser", "dateutil.tz", "jmespath"):
    assert f"{name}.original" not in sys.modules

from botocore.credentials import RefreshableCredentials
from botocore.utils import parse_timestamp
for time in (1e9, "2001-09-09T01:46:40Z", "Sun, 09 Sep 2001 01:46:40 GMT"):
    print(parse_timestamp(time).isoformat())

expired = dict(access_key="old", secret_key="x", token="x", expiry_time="2001-09-09T01:46:40Z")
fresh = expired | dict(access_key="new", expiry_time="2101-09-09T01:46:40Z")
credentials = RefreshableCredentials.create_from_metadata(expired, lambda: fresh, "test")
print(credentials.get_frozen_credentials().access_key)

import jmespath
print(jmespath.search("a[0]", {"a": [7]}), jmespath.compile("a").search({"a": 8}))

for name in ("dateutil.parser", "dateutil.tz", "jmespath"):
    package = importlib.import_module(name)
    for member in dir(package.original):
        getattr(package, member)
"""


@pytest.fixture(scope="module")
def built_layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The layer for both architectures."""
    output = tmp_path_factory.mktemp("layer")
    layer.build(output, "arm64", "x86_64")
    return output


@pytest.mark.slow
def test_layer_has_licences_certificates_and_both_architectures(
    built_layer: Path,
) -> None:
    assert sorted(library.name for library in built_layer.rglob("*.so")) == [
        "_pydantic_core.cpython-313-aarch64-linux-gnu.so",
        "_pydantic_core.cpython-313-x86_64-linux-gnu.so",
    ]
    packages = list(built_layer.glob("python/*.dist-info"))
    assert len(packages) == 8
    for package in packages:
        assert list(package.rglob("LICEN*"))
    assert (built_layer / CERTIFICATE_BUNDLE).exists()
    # The SDK would import an installed awscrt, and run twice as many instructions.
    assert not (built_layer / "python/awscrt").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "event"),
    [
        ("ListPetsFunction", "list-200"),
        ("CreatePetFunction", "create-201"),
        ("GetPetFunction", "get-200"),
    ],
)
def test_function_needs_only_the_built_layer(
    built_layer: Path, function: str, event: str
) -> None:
    """Python finds no other packages, because it runs with -I and -S."""
    python = (sys.executable, "-ISBc", HANDLER_CALL)
    code = ROOT / TEMPLATE.functions[function]["CodeUri"]
    database = handlers.service().database
    with serve_store(database, "127.0.0.1") as (port, access_key_id):
        variables = {
            "AWS_ACCESS_KEY_ID": access_key_id,
            "AWS_CA_BUNDLE": f"{built_layer}/{CERTIFICATE_BUNDLE}",
            "AWS_DEFAULT_REGION": "x",
            "AWS_ENDPOINT_URL_DYNAMODB": f"http://127.0.0.1:{port}",
            "AWS_SECRET_ACCESS_KEY": "x",
        }
        variables = handlers.TEMPLATE.environment | variables
        arguments = (code, built_layer / "python", ROOT / f"events/{event}.json")
        output = run(*python, *arguments, cwd=ROOT, timeout_s=60, **variables)

    log_line, response = map(json.loads, output.splitlines())
    assert log_line["Status"] == event[-3:]
    assert response["statusCode"] == int(event[-3:])


@pytest.mark.slow
def test_lazily_imported_packages_work_at_their_first_use(built_layer: Path) -> None:
    command = (sys.executable, "-ISBc", DEFERRED_CALLS, built_layer / "python")

    output = run(*command, cwd=ROOT, timeout_s=60, TZ="UTC")

    assert output.splitlines() == [
        "2001-09-09T01:46:40+00:00",
        "2001-09-09T01:46:40+00:00",
        "2001-09-09T01:46:40+00:00",
        "new",
        "7 8",
    ]


def test_sources_are_copied_without_bytecode(tmp_path: Path) -> None:
    package = tmp_path / "animal_store"
    (package / "__pycache__").mkdir(parents=True)
    (package / "__pycache__/paging.cpython-313.pyc").touch()
    (package / "paging.py").touch()

    layer.copy_sources(package, tmp_path / "python")

    assert [path.name for path in (tmp_path / "python").rglob("*.py*")] == ["paging.py"]


FIPS = Config(use_fips_endpoint=True)
DUAL_STACK = Config(use_dualstack_endpoint=True)
ENDPOINTS = [
    ("us-east-1", None, "dynamodb.us-east-1.amazonaws.com"),
    ("us-east-1", FIPS, "dynamodb-fips.us-east-1.amazonaws.com"),
    ("us-east-1", DUAL_STACK, "dynamodb.us-east-1.api.aws"),
    ("us-east-1", FIPS.merge(DUAL_STACK), "dynamodb-fips.us-east-1.api.aws"),
    ("us-gov-west-1", FIPS, "dynamodb.us-gov-west-1.amazonaws.com"),
    ("cn-north-1", None, "dynamodb.cn-north-1.amazonaws.com.cn"),
    ("us-iso-east-1", None, "dynamodb.us-iso-east-1.c2s.ic.gov"),
    ("eu-new-9", None, "dynamodb.eu-new-9.amazonaws.com"),  # AWS may open it later
]


def test_reduced_sdk_data_has_endpoints_of_five_regions(tmp_path: Path) -> None:
    sdk_data_folder = Path(botocore.__file__).with_name("data")
    shutil.copytree(sdk_data_folder / "dynamodb", tmp_path / "dynamodb")
    for file in sdk_data_folder.glob("*.json"):
        shutil.copy(file, tmp_path)

    sdk_data.reduce(tmp_path)

    session = Session()
    loader = Loader([str(tmp_path)], include_default_search_paths=False)
    session.register_component("data_loader", loader)
    for region, config, host in ENDPOINTS:
        client = session.create_client("dynamodb", region, config=config)
        assert client.meta.endpoint_url == f"https://{host}"


def test_reduced_bundle_has_five_root_certificates_of_amazon(tmp_path: Path) -> None:
    bundle = Path(botocore.__file__).with_name("cacert.pem")

    layer.write_amazon_roots(bundle, tmp_path / "roots.pem")

    context = ssl.create_default_context(cafile=tmp_path / "roots.pem")
    assert len(context.get_ca_certs()) == 5


def build_in(folder: Path, **variables: str) -> bytes:
    """Build the commit in a clone, and return the artifact."""
    clone_checkout(folder)
    command = (sys.executable, "-m", "ops", "build", HOST_ARCHITECTURE)
    run(*command, cwd=folder, timeout_s=300, **variables)
    return (folder / f".aws-sam/animal-store-{HOST_ARCHITECTURE}.zip").read_bytes()


@pytest.mark.slow
def test_two_builds_of_a_commit_give_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "t mp").mkdir()

    artifact = build_in(tmp_path / "a")
    other_artifact = build_in(
        tmp_path / "My Projects/b", TMPDIR=f"{tmp_path}/t mp", TZ="Asia/Tokyo"
    )

    assert artifact == other_artifact
    libraries = (tmp_path / "a/.aws-sam/build/CommonLayer").rglob("*.so")
    assert [library.name for library in libraries] == [
        f"_pydantic_core.cpython-313-{machine()}-linux-gnu.so"
    ]


def test_build_leaves_out_uncommitted_changes_and_prints_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "app.py").touch()
    git(tmp_path, "add", ".")
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    git(tmp_path, *identity, "commit", "--quiet", "-m", "x")
    (tmp_path / "app.py").write_text("changed")

    with build.copy_of_head(tmp_path) as copy:
        assert (copy / "app.py").read_text() == ""

    assert "changes:\n M app.py\n" in capsys.readouterr().out


def test_bytecode_is_used_without_checking_the_source(tmp_path: Path) -> None:
    module = tmp_path / "app.py"
    module.touch()

    compile_tree(tmp_path, "/var/task")

    compiled = Path(cache_from_source(str(module))).read_bytes()
    assert compiled[4:8] == UNCHECKED_HASH
