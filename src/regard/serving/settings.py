"""The settings of a server, which `regard serve` takes as options."""

import re
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
    """Address to listen on; with 127.0.0.1, only this machine can connect."""
    port: Annotated[int, Meta(ge=0, le=65535)] = 8017
    """Port to listen on; 0 selects a free port."""
    open: bool = False
    """Open the workbench in the browser."""
    token: str = ""
    """Bearer token that requests must send; required if other machines can connect."""
    open_to_all: bool = False
    """Allow other machines to connect without a token."""
    cors: tuple[str, ...] = ()
    """Origins whose pages may use the server, such as https://example.org; * for all."""
    device: str = ""
    """cpu, cuda or cuda:N; by default the GPU if there is one."""
    memory: PositiveInt = 2048
    """Maximum memory of loaded models in MiB; the least recently used models are unloaded."""
    queue: PositiveInt = 256
    """Maximum number of waiting inputs; further requests get status 503."""
    per_client: PositiveInt = 128
    """Maximum number of waiting inputs of one client; further requests get status 429."""
    batch: PositiveInt = 32
    """Maximum batch size; 1 disables batching. A request with a seed is one batch, whatever its size."""
    deadline: PositiveFloat = 30.0
    """Maximum waiting time in seconds; then a request that is not being answered gets status 503."""
    max_body: PositiveInt = 24
    """Maximum size of a request in MiB."""
    max_inputs: PositiveInt = 64
    """Maximum number of inputs of a request."""
    max_characters: PositiveInt = 20_000
    """Maximum number of characters of a text."""
    max_megapixels: PositiveInt = 40
    """Maximum size of an image in millions of pixels."""

    def check(self) -> None:
        """Raise an OptionError where fields contradict each other."""
        if not self.is_local and not self.token and not self.open_to_all:
            raise OptionError(
                f"At {self.host} other machines reach the server: set --token, which requests must carry then, or "
                "--open-to-all to serve everybody."
            )
        for origin in self.cors:
            if origin != "*" and not re.fullmatch(r"https?://[^/\s*]+", origin):
                raise OptionError(
                    f"--cors takes an origin such as https://example.org, without a path, or *; got {origin!r:.80}."
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
