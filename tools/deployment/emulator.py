"""The emulator of AWS (ministack): run it, lead calls to it, and change templates so that it takes them."""

import contextlib
import json
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import yaml

from tools import ROOT
from tools.deployment.service import DeploymentError
from tools.packaging.targets import PYTHON
from tools.packaging.translate import translate

ACCOUNT = "123456789012"
LACKS = Path(__file__).with_name("emulator.yaml")
_REGION = "eu-central-1"
_ENVIRONMENT = ROOT / ".tools/ministack"
_ROOT = {
    "AccessKeyId": ACCOUNT,
    "SecretAccessKey": "none",
    "SessionToken": "",
}  # the account's number names its root


def use(endpoint: str, credentials: Mapping[str, str] = _ROOT) -> None:
    """Let this process and what it starts call the emulator, never AWS, as root or with a role's credentials."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ |= {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": credentials["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": credentials["SecretAccessKey"],
        "AWS_SESSION_TOKEN": credentials["SessionToken"],
        "AWS_DEFAULT_REGION": _REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "NO_PROXY": "*",
    }
    boto3.setup_default_session()


@contextlib.contextmanager
def running(
    folder: Path, host: str = "127.0.0.1", settings: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Run an empty emulator in a new folder for as long as the context lasts; give its endpoint."""
    version = "{}.{}".format(*PYTHON)  # the emulator runs functions on its own Python
    packages = _ENVIRONMENT / f"lib/python{version}/site-packages"
    if not packages.exists():
        raise DeploymentError(
            f"there is no emulator with Python {version}: make clean, make rehearse"
        )
    # An interpreter that finds what Lambda's Python finds: the standard library. The emulator runs the functions by it.
    subprocess.run(
        [_ENVIRONMENT / "bin/python", "-m", "venv", "--without-pip", str(folder)], check=True
    )
    listener = socket.create_server((host, 0))
    port = listener.getsockname()[1]
    # Nothing of our environment: functions inherit this one. The last three keep the emulator from starting a file
    # server and a message broker, and from looking for containers.
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
    }
    environment |= {
        "GATEWAY_PORT": str(port),
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "AWS_ACCESS_KEY_ID": ACCOUNT,
    }
    environment |= {"MINISTACK_REGION": _REGION, "LOG_LEVEL": "ERROR", **(settings or {})}
    environment |= {
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",
        "DOCKER_HOST": "unix:///nonexistent",
    }
    program, number = ROOT / "tools/deployment/emulator_process.py", listener.fileno()
    command = [f"{folder}/bin/python", "-I", f"{program}", f"{packages}", f"{number}"]
    # A session of its own: Ctrl-C goes to every process of the terminal, and this one ends with its input.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, env=environment, start_new_session=True, pass_fds=[number]
    ) as process:
        listener.close()
        try:
            yield f"http://{host}:{port}"
        finally:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=15)
            process.kill()


def adapt(path: Path, parameters: dict[str, str]) -> None:
    """Translate a template in place, and change it to what the emulator takes: LACKS says what it has not."""
    template: dict[str, Any] = translate(parameters, path)
    resources = template["Resources"]
    refused = tuple(
        yaml.safe_load(LACKS.read_text("utf-8"))["Left out, because it cannot be on the emulator"]
    )
    for name in [
        name for name, resource in resources.items() if resource["Type"].startswith(refused)
    ]:
        del resources[name]
    for resource in resources.values():
        resource.pop("UpdatePolicy", None)  # of an alias: how CodeDeploy moves it
        others = resource.get("DependsOn", [])
        others = [others] if isinstance(others, str) else others
        resource["DependsOn"] = [other for other in others if other in resources]
        properties = resource.get("Properties", {})
        if "Metrics" in properties:  # so that what refers to the alarm (the dashboard) can stay
            metric = next(
                query["MetricStat"] for query in properties.pop("Metrics") if "MetricStat" in query
            )
            statistic = "ExtendedStatistic" if metric["Stat"].startswith("p") else "Statistic"
            properties |= metric["Metric"] | {"Period": metric["Period"], statistic: metric["Stat"]}
    if "Api" in resources:
        _lift_gateway_responses(resources)
    path.write_text(json.dumps(template), "utf-8")


def _lift_gateway_responses(resources: dict[str, Any]) -> None:
    """Make a resource of each gateway response, there before the deployment that takes it up."""
    (deployment,) = (
        each for each in resources.values() if each["Type"] == "AWS::ApiGateway::Deployment"
    )
    for kind, response in resources["Api"]["Properties"]["Body"][
        "x-amazon-apigateway-gateway-responses"
    ].items():
        properties = {key[0].upper() + key[1:]: value for key, value in response.items()}
        properties |= {"RestApiId": {"Ref": "Api"}, "ResponseType": kind}
        name = f"Api{kind.title().replace('_', '')}Response"
        resources[name] = {"Type": "AWS::ApiGateway::GatewayResponse", "Properties": properties}
        deployment["DependsOn"].append(name)
