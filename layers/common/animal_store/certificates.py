"""The certificate authorities that the SDK trusts, each read when a server's certificate names it.

The SDK gives OpenSSL all of them as one file, which OpenSSL parses for every new connection: nine tenths of what a
request on a new connection takes, and a fifth of a cold start. `make build` writes the same certificates into a
directory in which OpenSSL finds each by a hash of its name (https://docs.openssl.org/3.0/man1/openssl-rehash/).

botocore cannot be given a directory (https://github.com/boto/botocore/issues/2731). When it can, `verify=` of the
client takes the place of this module.
"""

from pathlib import Path

from botocore.awsrequest import AWSHTTPSConnection, AWSHTTPSConnectionPool
from botocore.httpsession import DEFAULT_CA_BUNDLE

DIRECTORY = Path(__file__).parent / "authorities"
"""Made by `make build`; absent in the source tree, where the SDK does as it always does."""


class Connection(AWSHTTPSConnection):
    """A connection that looks authorities up in the directory.

    A bundle that somebody has named (`AWS_CA_BUNDLE`, `REQUESTS_CA_BUNDLE`, `verify=`) is used as it is.
    """

    def connect(self) -> None:
        """Connect, and check the server's certificate as urllib3 does."""
        if self.ca_certs == DEFAULT_CA_BUNDLE:
            self.ca_certs, self.ca_cert_dir = None, str(DIRECTORY)
        super().connect()


def register() -> None:
    """Have the SDK open its connections in this way, where the directory is.

    `ConnectionCls` is urllib3's attribute for this purpose: its SOCKS and HTTP/2, and the SDK's pool, set it too.
    """
    if DIRECTORY.is_dir():
        AWSHTTPSConnectionPool.ConnectionCls = Connection
