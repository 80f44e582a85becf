"""The generation protocol: a vocabulary, an end token and a maximum length give the finite truncated response set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from exactgrpo.errors import LimitError, PolicyError

MAX_RESPONSES = 1_000_000


@dataclass(frozen=True, slots=True)
class GenerationProtocol:
    """Responses end with the end token or have the maximum length (truncation); the end token counts towards the length."""

    vocabulary: tuple[str, ...]
    end: str
    max_length: int

    @classmethod
    def of(cls, vocabulary: tuple[str, ...] | list[str], *, end: str, max_length: int) -> GenerationProtocol:
        """Checked: distinct non-empty tokens without blanks, none of them the end token, and a response set of at most a million.

        >>> GenerationProtocol.of(["x"], end=".", max_length=2).responses()
        (('x', 'x'), ('x', '.'), ('.',))
        """
        tokens = [*vocabulary, end]
        if not vocabulary:
            raise PolicyError("protocol.vocabulary", [], "a vocabulary has at least one token")
        for token in tokens:
            if not token or token.split() != [token]:
                raise PolicyError("protocol.vocabulary", token, "a token is non-empty and has no blanks")
        if len(set(tokens)) != len(tokens):
            raise PolicyError("protocol.vocabulary", next(t for t in tokens if tokens.count(t) > 1), "tokens, the end token included, are distinct")
        if max_length < 1:
            raise PolicyError("protocol.max_length", max_length, "the maximum length is at least 1")
        protocol = cls(tuple(vocabulary), end, max_length)
        protocol.support_size()
        return protocol

    @property
    def tokens(self) -> tuple[str, ...]:
        """The vocabulary with the end token last: the order of every next-token distribution."""
        return (*self.vocabulary, self.end)

    def support_size(self) -> int:
        """Number of responses: S(1) = V + 1 and S(L) = V S(L - 1) + 1."""
        size, count = len(self.vocabulary), len(self.vocabulary) + 1
        for _ in range(self.max_length - 1):
            count = size * count + 1
            if count > MAX_RESPONSES:
                raise LimitError("protocol.max_length", self.max_length, f"a response set has at most {MAX_RESPONSES} responses")
        return count

    def responses(self) -> tuple[tuple[str, ...], ...]:
        """The truncated response set in order: depth first, tokens in the order of `tokens`."""
        return tuple(self._grow(()))

    def _grow(self, prefix: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for token in self.tokens:
            response = (*prefix, token)
            if token == self.end or len(response) == self.max_length:
                yield response
            else:
                yield from self._grow(response)
