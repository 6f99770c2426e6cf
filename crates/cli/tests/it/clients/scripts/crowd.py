"""More calls at once than a session takes."""

import sys
from concurrent.futures import ThreadPoolExecutor

from clients.message_groups import Client, Group

client = Client(sys.argv[1])
with ThreadPoolExecutor(10) as pool:
    posts = [pool.submit(client.add_post, Group("rust"), "hello") for _ in range(10)]
    assert [post.result() for post in posts] == [1] * 10
