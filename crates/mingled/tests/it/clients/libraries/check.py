"""Uses a server of Redis's protocol through redis-py: check.py HOST PORT PROTOCOL."""

import sys
import threading

import redis

HOST, PORT, PROTOCOL = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def same(found, expected):
    assert found == expected, f"found {found!r}, expected {expected!r}"


def check_types(client):
    same(client.set("name", "ana"), True)
    same(client.get("name"), "ana")
    same(client.get("none"), None)
    same(client.set("name", "bea", nx=True), None)
    same(client.incrby("count", 5), 5)
    same(client.hset("hash", mapping={"a": "1", "b": "2"}), 2)
    same(client.hgetall("hash"), {"a": "1", "b": "2"})
    same(client.zadd("scores", {"one": 1.5, "two": 2}), 2)
    same([tuple(pair) for pair in client.zrange("scores", 0, -1, withscores=True)],
         [("one", 1.5), ("two", 2.0)])
    same(client.sadd("set", "x", "y"), 2)
    same(client.smembers("set"), {"x", "y"})
    same(client.rpush("list", "a", "b", "c"), 3)
    same(client.lpop("list"), "a")
    same(client.lrange("list", 0, -1), ["b", "c"])
    same(client.expire("list", 100), True)
    assert 0 < client.ttl("list") <= 100
    same(sorted(client.scan_iter()), ["count", "hash", "list", "name", "scores", "set"])
    try:
        client.lpush("name", 1)
    except redis.ResponseError as error:
        assert str(error).startswith("WRONGTYPE"), error
    else:
        raise AssertionError("a string is no list")


def check_transactions(client):
    same(client.pipeline(transaction=False).set("p", 1).incr("p").get("p").execute(), [True, 2, "2"])
    same(client.pipeline().set("p", 5).incr("p").execute(), [True, 6])

    def double(pipe):
        old = int(pipe.get("p"))
        pipe.multi()
        pipe.set("p", old * 2)

    same(client.transaction(double, "p"), [True])
    same(client.get("p"), "12")
    with client.pipeline() as pipe:
        pipe.watch("p")
        client.set("p", 1)
        pipe.multi()
        pipe.set("p", 2)
        try:
            pipe.execute()
        except redis.WatchError:
            pass
        else:
            raise AssertionError("the watched key has changed")
    same(client.get("p"), "1")


def check_bytes():
    client = redis.Redis(HOST, PORT, protocol=PROTOCOL)
    value = bytes(range(256)) * 100
    client.set(b"\x00\xff\r\n", value)
    same(client.get(b"\x00\xff\r\n"), value)
    client.close()


def check_pool(client):
    """Each thread has a connection of its own; all see what the others were told."""
    faults = []

    def add():
        try:
            for _ in range(50):
                client.incr("hits")
                name = f"own:{threading.get_ident()}"
                client.set(name, "1")
                same(client.get(name), "1")
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same(faults, [])
    same(client.get("hits"), "200")


client = redis.Redis(HOST, PORT, protocol=PROTOCOL, decode_responses=True)
same(client.ping(), True)
client.flushall()
check_types(client)
check_transactions(client)
check_bytes()
check_pool(client)
client.close()
print("ok")
