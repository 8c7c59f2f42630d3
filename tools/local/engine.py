"""Ask the engine that sam finds how containers reach this machine, and read the template.

Run by sam's own Python: `python -m tools.local.engine IMAGE HOST`; it prints JSON.
"""

import json
import sys
from pathlib import Path

ABSENT = """\
no container engine answers. Start Docker, or name the socket of another engine, for instance:
  DOCKER_HOST=unix://$XDG_RUNTIME_DIR/podman/podman.sock make sam-local
Without one, `make run` serves the same handlers, and `animal-store invoke EVENT` invokes one."""
NO_IMAGE = """\
the engine cannot run {image}: {error}
If no registry can be reached, load the image from a file: docker load -i FILE"""


def main(image: str, host: str) -> None:
    """Print the address of this machine that a host name has in containers, and the template."""
    from docker.errors import DockerException  # type: ignore[import-untyped]
    from samcli.local.docker import exceptions  # type: ignore[import-not-found]
    from samcli.local.docker.container_client_factory import (  # type: ignore[import-not-found]
        ContainerClientFactory,
    )
    from samcli.yamlhelper import yaml_parse  # type: ignore[import-not-found]

    options = {"entrypoint": "cat", "extra_hosts": {host: "host-gateway"}}
    try:
        client = ContainerClientFactory.create_client()
        hosts = client.containers.run(image, "/etc/hosts", remove=True, **options)
    except exceptions.ContainerNotReachableException:
        sys.exit(ABSENT)
    except DockerException as error:
        sys.exit(NO_IMAGE.format(image=image, error=error))
    lines = [line for line in hosts.decode().splitlines() if line.endswith(host)]
    address = next(line.split()[0] for line in lines if ":" not in line)
    template = yaml_parse(Path("template.yaml").read_text())
    print(json.dumps({"address": address, "template": template}))


if __name__ == "__main__":
    main(*sys.argv[1:])
