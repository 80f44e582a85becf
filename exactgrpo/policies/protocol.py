"""The generation protocol: a vocabulary, an end token and a maximum length give the finite truncated response set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from exactgrpo.errors import LimitError, PolicyError
from exactgrpo.numbers.inputs import listed, whole

MAX_RESPONSES = 1_000_000
MAX_TOKENS = 10_000_000
"""Of all responses together: only a vocabulary of one token meets this limit before the one on responses."""


@dataclass(frozen=True, slots=True)
class GenerationProtocol:
    """Responses end with the end token or have the maximum length (truncation); the end token counts towards the length.

    Theorems: responses_shape, responses_nodup (Tokens.v).
    """

    vocabulary: tuple[str, ...]
    end: str
    max_length: int

    @classmethod
    def of(cls, vocabulary: Sequence[str], *, end: str, max_length: int) -> GenerationProtocol:
        """Return the protocol of these tokens: distinct, non-empty, without blanks, the end token none of the others.

        Raises PolicyError, or LimitError for a response set of more than `MAX_RESPONSES` responses or `MAX_TOKENS` tokens.

        >>> GenerationProtocol.of(["x"], end=".", max_length=2).responses()
        (('x', 'x'), ('x', '.'), ('.',))
        """
        tokens = [*listed(vocabulary, "protocol.vocabulary", error=PolicyError), end]
        if len(tokens) == 1:
            raise PolicyError("protocol.vocabulary", [], "a vocabulary has at least one token")
        known: set[str] = set()
        for i, token in enumerate(tokens):
            place = f"protocol.vocabulary[{i}]" if i < len(tokens) - 1 else "protocol.end"
            if not isinstance(token, str) or not token or token.split() != [token]:
                raise PolicyError(place, token, "a token is non-empty text without blanks")
            if token in known:
                raise PolicyError(place, token, "tokens, the end token included, are distinct")
            known.add(token)
        protocol = cls(tuple(tokens[:-1]), end, whole(max_length, "protocol.max_length", least=1, error=PolicyError))
        protocol.support_size()
        return protocol

    @property
    def tokens(self) -> tuple[str, ...]:
        """The vocabulary with the end token last: the order of every next-token distribution."""
        return (*self.vocabulary, self.end)

    def support_size(self) -> int:
        """Return the number of responses, S(1) = V + 1 and S(L) = V S(L - 1) + 1; LimitError as soon as it is too large."""
        width = len(self.tokens)
        ended = tokens = 0
        unfinished = 1
        for length in range(1, self.max_length + 1):
            if ended + unfinished * width > MAX_RESPONSES:
                raise LimitError("protocol.max_length", self.max_length, f"a response set has at most {MAX_RESPONSES} responses")
            if tokens + unfinished * width * length > MAX_TOKENS:
                raise LimitError("protocol.max_length", self.max_length, f"the responses have together at most {MAX_TOKENS} tokens")
            ended += unfinished
            tokens += unfinished * length
            unfinished *= width - 1
        return ended + unfinished

    def responses(self) -> tuple[tuple[str, ...], ...]:
        """Return the truncated response set in order: depth first, tokens in the order of `tokens`."""
        return tuple(self._grow())

    def _grow(self) -> Iterator[tuple[str, ...]]:
        """Depth first with a stack of its own: a response may be longer than Python's."""
        backwards = self.tokens[::-1]
        open_: list[tuple[str, ...]] = [(token,) for token in backwards]
        while open_:
            response = open_.pop()
            if response[-1] == self.end or len(response) == self.max_length:
                yield response
            else:
                open_.extend((*response, token) for token in backwards)
