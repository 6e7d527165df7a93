"""API keys: ``pk_``, 8 public characters, ``_``, a secret of 256 bits. Only the secret's SHA-256 is ever kept."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import Final

# 32 bytes are 52 characters of base32; its padding is left out, which says nothing and is awkward in headers.
_KEY: Final = re.compile(r"pk_([a-z2-7]{8})_([a-z2-7]{52})")


@dataclass(frozen=True)
class ApiKey:
    """A key in the clear; its secret is in no `repr`.

    Attributes:
        public_id: 8 characters `[a-z2-7]` that name the key.
        secret: 32 random bytes in base32, lower case, without padding.
    """

    public_id: str
    secret: str = field(repr=False)

    @property
    def text(self) -> str:
        """The key as its holder sends it."""
        return f"pk_{self.public_id}_{self.secret}"

    @property
    def secret_sha256(self) -> str:
        """What is kept of the secret: 64 hex digits."""
        return hashlib.sha256(self.secret.encode()).hexdigest()

    def opens(self, secret_sha256: str) -> bool:
        """Whether the kept hash is that of this secret, in a time that does not depend on where they differ."""
        return hmac.compare_digest(self.secret_sha256.encode(), secret_sha256.encode())


def parse_key(text: str) -> ApiKey | None:
    """Reads a key; None if the text has not the form of one."""
    found = _KEY.fullmatch(text)
    return ApiKey(found[1], found[2]) if found else None
