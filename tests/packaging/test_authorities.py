"""The directory of certificate authorities: OpenSSL finds each one in it that the SDK trusts."""

import re
import ssl
import warnings
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from botocore.httpsession import DEFAULT_CA_BUNDLE
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tools.packaging import authorities

KEY = ec.generate_private_key(ec.SECP256R1())


def server_of(authority: x509.Name, file: Path) -> ssl.SSLContext:
    """Make a server whose certificate claims to be of that authority."""
    now = datetime.now(UTC)
    number = x509.random_serial_number()
    builder = x509.CertificateBuilder(authority, x509.Name([]), KEY.public_key(), number, now, now + timedelta(days=1))
    key = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(key + builder.sign(KEY, SHA256()).public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def refuse(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Have the client look the authority of a server up, and find that it has not signed the server's certificate."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        connection.do_handshake()
    with suppress(ssl.SSLWantReadError):
        server.wrap_bio(to_server, to_client, server_side=True).do_handshake()
    with pytest.raises(ssl.SSLCertVerificationError):
        connection.do_handshake()


def test_openssl_finds_every_authority_of_the_sdk(tmp_path: Path) -> None:
    bundle = Path(DEFAULT_CA_BUNDLE)
    authorities.write(bundle, tmp_path / "authorities")
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(capath=tmp_path / "authorities")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an old authority, whose serial number breaks today's rules
        trusted = x509.load_pem_x509_certificates(bundle.read_bytes())

    for certificate in trusted:
        refuse(client, server_of(certificate.subject, tmp_path / "server.pem"))

    assert len(trusted) > 100
    assert set(client.get_ca_certs(binary_form=True)) == {each.public_bytes(Encoding.DER) for each in trusted}


def test_authorities_of_the_same_name_are_all_kept(tmp_path: Path) -> None:
    first, *_ = re.findall("-----BEGIN.*?END CERTIFICATE-----\n", Path(DEFAULT_CA_BUNDLE).read_text(), re.DOTALL)
    (tmp_path / "bundle.pem").write_text(first * 2)

    authorities.write(tmp_path / "bundle.pem", tmp_path / "authorities")

    (name,) = {path.stem for path in (tmp_path / "authorities").iterdir()}
    assert {path.name for path in (tmp_path / "authorities").iterdir()} == {f"{name}.0", f"{name}.1"}


def test_missing_openssl_stops_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(SystemExit, match="needs the command `openssl`"):
        authorities.write(Path(DEFAULT_CA_BUNDLE), tmp_path / "authorities")
