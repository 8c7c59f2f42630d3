"""Write a bundle of certificate authorities as a directory in which OpenSSL finds each by a hash of its name."""

import re
import subprocess
from pathlib import Path

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", re.DOTALL)
_SUBJECT_HASH = ("openssl", "x509", "-noout", "-subject_hash")


def write(bundle: Path, directory: Path) -> None:
    """Write every certificate of a bundle, as `openssl rehash` would link it; what the directory has already stays."""
    directory.mkdir(exist_ok=True)
    for certificate in _CERTIFICATE.findall(bundle.read_text()):
        name = subprocess.run(
            _SUBJECT_HASH, input=certificate, capture_output=True, text=True, check=True
        ).stdout
        number = 0
        while (path := directory / f"{name.strip()}.{number}").exists():
            number += 1
        path.write_text(certificate)
