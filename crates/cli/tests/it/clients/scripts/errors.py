"""Each call meets another error."""

from __future__ import annotations

import sys
from typing import TypeVar

from clients.message_groups import (
    AccessError,
    Client,
    ConflictError,
    ExistsError,
    Group,
    IncompleteError,
    InvalidCallError,
    InvalidSessionError,
    MingleError,
    NoAnswerError,
    Options,
    ProtocolError,
    RequireError,
    ResultGoneError,
    StoreError,
    TakenError,
    UnavailableError,
    UnknownOutcomeError,
)

client = Client(sys.argv[1])
rust = Group("rust")
E = TypeVar("E", bound=MingleError)


def failure(kind: type[E], code: str, options: Options | None = None) -> E:
    try:
        client.add_post(rust, "hello", options=options)
    except kind as error:
        assert error.code == code, error.code
        return error
    raise AssertionError(f"no error {code}")


refused = failure(RequireError, "require")
assert (str(refused), refused.require_code, refused.status) == ("no", "closed", 422)
assert (refused.retryable, refused.committed, refused.store) == (False, (), None)
assert str(failure(ExistsError, "exists")) == "it exists"
assert str(failure(TakenError, "taken")) == "another has it"
conflict = failure(ConflictError, "conflict")
assert (conflict.retryable, conflict.store) == (True, "groups")
down = failure(StoreError, "store")
assert (down.retryable, down.store) == (False, "inboxes")
incomplete = failure(IncompleteError, "incomplete")
assert (incomplete.committed, incomplete.store) == (("groups",), "inboxes")
failure(UnknownOutcomeError, "unknown")
failure(ResultGoneError, "result-gone")
failure(UnavailableError, "overloaded")
failure(AccessError, "unauthenticated")
assert isinstance(failure(InvalidSessionError, "invalid-session"), InvalidCallError)
failure(InvalidCallError, "limit")
# A code that is not known yet.
assert type(failure(MingleError, "toString")) is MingleError
proxy = failure(ProtocolError, "protocol")
assert (proxy.status, proxy.retryable) == (502, False)
failure(ProtocolError, "protocol")
assert 'expected an int as result, found "twelve"' in str(failure(ProtocolError, "protocol"))
failure(ProtocolError, "protocol")
assert client.show(rust) is None
closed = failure(NoAnswerError, "no-answer")
assert isinstance(closed, UnknownOutcomeError) and not closed.retryable and closed.status is None
late = failure(NoAnswerError, "no-answer", Options(timeout=0.2))
assert str(late) == "no answer within 0.2 s"
for url in ("shop.example", "ftp://shop.example", "http://"):
    try:
        Client(url)
    except ValueError as error:
        assert "expected a URL" in str(error)
    else:
        raise AssertionError(url)
