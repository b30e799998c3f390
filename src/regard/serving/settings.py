"""The settings of a server, which `regard serve` takes as options."""

import os
import re
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from regard.config import Checked, NonNegativeFloat, PositiveFloat, PositiveInt
from regard.errors import OptionError

MEBIBYTE = 2**20
TOKEN_VARIABLE = "REGARD_TOKEN"  # noqa: S105 - the name of the variable


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
    """Bearer token that requests must send; required if other machines can connect. The list of processes shows it to
    other users of this machine: prefer --token-file, or the environment variable REGARD_TOKEN."""
    token_file: str = ""
    """File that contains the token."""
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
    """Maximum time in seconds in which an input is answered; then its request gets status 503, and work on it ends."""
    client_timeout: PositiveFloat = 30.0
    """Maximum time in seconds for a client to send a request, and to go on receiving its answer."""
    drain: NonNegativeFloat = 0.0
    """Seconds after SIGTERM in which new requests get status 503, before the server stops listening: /health tells
    load balancers meanwhile that it stops."""
    max_body: PositiveInt = 24
    """Maximum size of a request in MiB."""
    max_inputs: PositiveInt = 64
    """Maximum number of inputs of a request."""
    max_characters: PositiveInt = 20_000
    """Maximum number of characters of a text."""
    max_megapixels: PositiveInt = 40
    """Maximum size of an image in millions of pixels; all images of a request together may have four times as many."""
    max_work: PositiveInt = 100_000
    """Maximum work of a request: the tokens that it reads and may write, times the hypotheses of its search."""

    def check(self) -> None:
        """Raise an OptionError where fields contradict each other."""
        if self.token and self.token_file:
            raise OptionError("Give --token or --token-file, not both.")
        secret = self.secret
        if not self.is_local and not secret and not self.open_to_all:
            raise OptionError(
                f"At {self.host} other machines reach the server: set --token-file, {TOKEN_VARIABLE} or --token, which "
                "requests must carry then, or --open-to-all to serve everybody."
            )
        for origin in self.cors:
            if origin != "*" and not re.fullmatch(r"https?://[^/\s*]+", origin):
                raise OptionError(
                    f"--cors takes an origin such as https://example.org, without a path, or *; got {origin!r:.80}."
                )
        if secret and not (secret.isascii() and secret.isprintable() and " " not in secret):
            raise OptionError("A token must be one word of printable ASCII characters.")

    @cached_property
    def secret(self) -> str:
        """The token: as given, of the file, or of the environment; read once."""
        if not self.token_file:
            return self.token or os.environ.get(TOKEN_VARIABLE, "")
        try:
            text = Path(self.token_file).read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise OptionError(f"The token cannot be read from {self.token_file}: {error}.") from error
        if not text:
            raise OptionError(f"{self.token_file} is empty; it must contain the token.")
        return text

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches the address."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"
