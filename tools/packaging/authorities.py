"""Write a bundle of certificate authorities as a directory in which OpenSSL finds each by a hash of its name."""

import re
import subprocess
from pathlib import Path

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", re.DOTALL)


def write(bundle: Path, directory: Path) -> None:
    """Write every certificate of a bundle, as `openssl rehash` would link it; what the directory has already stays."""
    directory.mkdir(exist_ok=True)
    for certificate in _CERTIFICATE.findall(bundle.read_text()):
        number = 0
        name = _subject_hash(certificate)
        while (path := directory / f"{name}.{number}").exists():
            number += 1
        path.write_text(certificate)


def _subject_hash(certificate: str) -> str:
    command = ["openssl", "x509", "-noout", "-subject_hash"]
    try:
        done = subprocess.run(command, input=certificate, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise SystemExit("The build needs the command `openssl` (Debian: apt-get install openssl).") from None
    return done.stdout.strip()
