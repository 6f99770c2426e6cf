// Uses a server of Redis's protocol through Jedis: Check HOST PORT PROTOCOL.

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.resps.ScanResult;
import redis.clients.jedis.resps.Tuple;

final class Check {
    private static void same(Object found, Object expected) {
        if (!Objects.equals(found, expected)) {
            throw new AssertionError("found " + found + ", expected " + expected);
        }
    }

    private static void checkTypes(Jedis client) {
        same(client.set("name", "ana"), "OK");
        same(client.get("name"), "ana");
        same(client.get("none"), null);
        same(client.set("name", "bea", SetParams.setParams().nx()), null);
        same(client.incrBy("count", 5), 5L);
        same(client.hset("hash", Map.of("a", "1", "b", "2")), 2L);
        same(client.hgetAll("hash"), Map.of("a", "1", "b", "2"));
        same(client.zadd("scores", Map.of("one", 1.5, "two", 2.0)), 2L);
        List<Tuple> scores = List.of(new Tuple("one", 1.5), new Tuple("two", 2.0));
        same(client.zrangeWithScores("scores", 0, -1), scores);
        same(client.sadd("set", "x", "y"), 2L);
        same(client.smembers("set"), Set.of("x", "y"));
        same(client.rpush("list", "a", "b", "c"), 3L);
        same(client.lpop("list"), "a");
        same(client.lrange("list", 0, -1), List.of("b", "c"));
        same(client.expire("list", 100), 1L);
        long left = client.ttl("list");
        same(left > 0 && left <= 100, true);
        Set<String> names = new TreeSet<>();
        String cursor = "0";
        do {
            ScanResult<String> step = client.scan(cursor);
            names.addAll(step.getResult());
            cursor = step.getCursor();
        } while (!cursor.equals("0"));
        same(names, Set.of("count", "hash", "list", "name", "scores", "set"));
        try {
            client.lpush("name", "1");
            throw new AssertionError("a string is no list");
        } catch (JedisDataException error) {
            same(error.getMessage().startsWith("WRONGTYPE"), true);
        }
    }

    private static void checkTransactions(Jedis client, Jedis other) {
        Pipeline pipeline = client.pipelined();
        pipeline.set("p", "1");
        Response<Long> count = pipeline.incr("p");
        Response<String> text = pipeline.get("p");
        pipeline.sync();
        same(count.get(), 2L);
        same(text.get(), "2");
        Transaction added = client.multi();
        added.set("p", "5");
        added.incr("p");
        same(added.exec(), List.of("OK", 6L));
        client.watch("p");
        other.set("p", "1");
        Transaction late = client.multi();
        late.set("p", "2");
        same(late.exec(), null);
        same(client.get("p"), "1");
        client.watch("p");
        Transaction alone = client.multi();
        alone.set("p", "3");
        same(alone.exec(), List.of("OK"));
        same(other.get("p"), "3");
    }

    private static void checkBytes(Jedis client) {
        byte[] name = {0, (byte) 255, 13, 10};
        byte[] value = new byte[25_600];
        for (int index = 0; index < value.length; index++) {
            value[index] = (byte) index;
        }
        client.set(name, value);
        same(Arrays.equals(client.get(name), value), true);
    }

    // Each request takes a connection of the pool.
    private static void checkPool(HostAndPort address, DefaultJedisClientConfig settings)
            throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(4);
        try (JedisPooled pool = new JedisPooled(address, settings)) {
            List<Callable<Void>> tasks = new ArrayList<>();
            for (int number = 0; number < 4; number++) {
                String own = "own:" + number;
                tasks.add(() -> {
                    for (int round = 0; round < 50; round++) {
                        pool.incr("hits");
                        pool.set(own, "" + round);
                        same(pool.get(own), "" + round);
                    }
                    return null;
                });
            }
            for (Future<Void> done : threads.invokeAll(tasks)) {
                done.get();
            }
            same(pool.get("hits"), "200");
        } finally {
            threads.shutdown();
        }
    }

    public static void main(String[] arguments) throws Exception {
        HostAndPort address = new HostAndPort(arguments[0], Integer.parseInt(arguments[1]));
        RedisProtocol protocol =
                arguments[2].equals("3") ? RedisProtocol.RESP3 : RedisProtocol.RESP2;
        DefaultJedisClientConfig settings =
                DefaultJedisClientConfig.builder().protocol(protocol).build();
        try (Jedis client = new Jedis(address, settings); Jedis other = new Jedis(address, settings)) {
            same(client.ping(), "PONG");
            client.flushAll();
            checkTypes(client);
            checkTransactions(client, other);
            checkBytes(client);
        }
        checkPool(address, settings);
        System.out.println("ok");
    }
}
