"""The Docker engine: whether it answers, how containers reach this machine, and what a run has left behind."""

import shutil
import subprocess

IMAGE = "public.ecr.aws/lambda/python:3.13-x86_64"
HOST = "host.docker.internal"
ADD_HOST = f"{HOST}:host-gateway"

_LAYERED_IMAGES = "samcli/lambda-python"  # what sam makes of the base image and a layer


def _docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["docker", *arguments], check=False, capture_output=True, text=True, timeout=120)


def missing() -> str | None:
    """Tell why no engine can be used; None when one answers."""
    if shutil.which("docker") is None:
        return "the docker command is not installed"
    answer = _docker("version", "--format", "{{.Server.Version}}")
    return None if answer.returncode == 0 else (answer.stderr.strip().splitlines() or ["no answer"])[-1]


def has_image() -> bool:
    """Tell whether the base image is on this machine."""
    return _docker("image", "inspect", IMAGE).returncode == 0


def pull_image() -> bool:
    """Fetch the base image, showing it; tell whether that went well."""
    print(f"pulling {IMAGE}", flush=True)
    return subprocess.run(["docker", "pull", IMAGE], check=False).returncode == 0


def host_address() -> str:
    """Return the address by which containers reach this machine; the base image must be there.

    Raises:
        RuntimeError: The engine does not tell.
    """
    hosts = _docker(
        "run", "--rm", "--pull", "never", "--add-host", ADD_HOST, "--entrypoint", "cat", IMAGE, "/etc/hosts"
    )
    for line in hosts.stdout.splitlines():
        address, *names = line.split()
        if HOST in names and "." in address:
            return address
    raise RuntimeError(f"the engine gives containers no way to this machine: {hosts.stderr.strip() or hosts.stdout}")


def containers_with(environment: str) -> list[str]:
    """Find the ids of the containers, running or not, that were given this `NAME=VALUE`."""
    ids = _docker("ps", "--all", "--quiet", "--no-trunc").stdout.split()
    if not ids:
        return []
    # A container that goes away meanwhile makes this fail for itself alone.
    lines = _docker("inspect", "--format", "{{.Id}} {{json .Config.Env}}", *ids).stdout.splitlines()
    return [line.split()[0] for line in lines if f'"{environment}"' in line]


def remove_containers(ids: list[str]) -> None:
    """Stop and remove containers, by their ids."""
    if ids:
        _docker("rm", "--force", *ids)


def layered_images() -> set[str]:
    """Find the images that sam has made of layers."""
    return set(_docker("images", "--format", "{{.Repository}}:{{.Tag}}", _LAYERED_IMAGES).stdout.split())


def remove_images(images: set[str]) -> None:
    """Remove images, except those that some container still uses."""
    for image in images:
        _docker("rmi", image)
