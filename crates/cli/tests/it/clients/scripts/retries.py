"""Calls that are made again."""

import sys

from clients.message_groups import Client, Group, MingleError, Options, RequireError, UnavailableError, User

client = Client(sys.argv[1], retries=1)
rust = Group("rust")


def fails(kind: type[MingleError], options: Options | None = None) -> None:
    try:
        client.add_post(rust, "hello", options=options)
    except kind:
        return
    raise AssertionError(f"no {kind}")


assert client.add_post(rust, "hello", options=Options(retries=2)) == 3
fails(RequireError)
fails(UnavailableError, Options(retries=0))
assert client.add_post(rust, "hello", options=Options(idempotency_key="mine")) == 4
fails(UnavailableError)
shown = client.show(rust)
assert shown is not None and shown.closed and shown.members == [User("ana")]
