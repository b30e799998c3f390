"""The settings of a server, which `regard serve` takes as options."""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated

from msgspec import Meta

from regard.config import Checked, PositiveFloat, PositiveInt
from regard.errors import OptionError

MEBIBYTE = 2**20


@dataclass(frozen=True)
class ServerSettings(Checked):
    """Where a server listens, whom it serves, and how much it takes on."""

    host: str = "127.0.0.1"
    """Address to listen at; other machines reach the server only at another address than 127.0.0.1."""
    port: Annotated[int, Meta(ge=0, le=65535)] = 8017
    """Port to listen at; 0 takes any free one."""
    open: bool = False
    """Open the workbench in the browser."""
    token: str = ""
    """Bearer token that requests must carry; needed to listen at an address that other machines reach."""
    open_to_all: bool = False
    """Listen at such an address without a token."""
    device: str = ""
    """cpu, cuda or cuda:N; by default the GPU when there is one."""
    memory: PositiveInt = 2048
    """Mebibytes that loaded models may take together; those that were not used for longest are unloaded."""
    queue: PositiveInt = 256
    """Inputs that may wait; requests beyond them are answered with status 503."""
    per_client: PositiveInt = 128
    """Inputs of one client that may wait; requests beyond them are answered with status 429."""
    batch: PositiveInt = 32
    """Inputs that are answered together; 1 answers them one by one."""
    deadline: PositiveFloat = 30.0
    """Seconds after which a request that still waits is answered with status 503."""
    max_body: PositiveInt = 24
    """Mebibytes of a request."""
    max_inputs: PositiveInt = 64
    """Inputs of a request."""
    max_characters: PositiveInt = 20_000
    """Characters of a text."""
    max_megapixels: PositiveInt = 40
    """Millions of pixels of an image."""

    def check(self) -> None:
        """Rules between the fields."""
        if not self.is_local and not self.token and not self.open_to_all:
            raise OptionError(
                f"At {self.host} other machines reach the server: set --token, which requests must carry then, or "
                "--open-to-all to serve everybody."
            )
        if self.token and not (self.token.isascii() and self.token.isprintable() and " " not in self.token):
            raise OptionError("A token is one word of printable ASCII characters.")

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches the address."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"
