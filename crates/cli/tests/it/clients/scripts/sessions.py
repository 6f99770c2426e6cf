"""What a session keeps of calls, one after another and side by side."""

import sys
from concurrent.futures import ThreadPoolExecutor

from clients.message_groups import Client, Early, Group, Options, Session

client = Client(sys.argv[1], token=lambda: "secret")
rust = Group("rust")

with ThreadPoolExecutor(2) as pool:
    posts = [pool.submit(client.add_post, rust, text) for text in ("one", "two")]
    assert [post.result() for post in posts] == [1, 1]
assert client.session.token in ("t1, t2", "t2, t1"), client.session.token
client.add_post(rust, "three")
assert client.session.token == "t3"
client.add_post(rust, "four")
# An answer without a token keeps the earlier tokens.
client.add_post(rust, "five")
assert client.session.token == "t4"
kept = Session(" kept ")
assert kept.token == "kept"
client.with_session(kept).add_post(rust, "six")
assert (kept.token, client.session.token) == ("u1", "t4")
early = client.add_post(rust, "seven", until="groups")
assert early == Early(None, ("inboxes",))
assert client.add_post(rust, "eight", until="inboxes", options=Options(deadline=1.5)).result == 7
