// Uses a server of Redis's protocol through node-redis: check.js HOST PORT PROTOCOL.
"use strict";

const assert = require("node:assert/strict");
const { createClient, createClientPool, RESP_TYPES, WatchError } = require("redis");

const [host, port, protocol] = process.argv.slice(2);
const options = { socket: { host, port: Number(port) }, RESP: Number(protocol) };

async function checkTypes(client) {
  assert.equal(await client.set("name", "ana"), "OK");
  assert.equal(await client.get("name"), "ana");
  assert.equal(await client.get("none"), null);
  assert.equal(await client.set("name", "bea", { NX: true }), null);
  assert.equal(await client.incrBy("count", 5), 5);
  assert.equal(await client.hSet("hash", { a: "1", b: "2" }), 2);
  assert.deepEqual({ ...(await client.hGetAll("hash")) }, { a: "1", b: "2" });
  const scores = [{ score: 1.5, value: "one" }, { score: 2, value: "two" }];
  assert.equal(await client.zAdd("scores", scores), 2);
  const found = (await client.zRangeWithScores("scores", 0, -1)).map((pair) => ({ ...pair }));
  assert.deepEqual(found.map(({ score, value }) => ({ score, value })), scores);
  assert.equal(await client.sAdd("set", ["x", "y"]), 2);
  assert.deepEqual([...(await client.sMembers("set"))].sort(), ["x", "y"]);
  assert.equal(await client.rPush("list", ["a", "b", "c"]), 3);
  assert.equal(await client.lPop("list"), "a");
  assert.deepEqual(await client.lRange("list", 0, -1), ["b", "c"]);
  assert.ok(await client.expire("list", 100));
  const left = await client.ttl("list");
  assert.ok(left > 0 && left <= 100, `${left}`);
  const names = [];
  for await (const some of client.scanIterator()) {
    names.push(...some);
  }
  assert.deepEqual(names.sort(), ["count", "hash", "list", "name", "scores", "set"]);
  await assert.rejects(client.lPush("name", "1"), /^[A-Za-z]*Error: WRONGTYPE/);
}

async function checkTransactions(client) {
  // Requests that are not awaited one by one travel as a pipeline.
  const replies = await Promise.all([client.set("p", "1"), client.incr("p"), client.get("p")]);
  assert.deepEqual(replies, ["OK", 2, "2"]);
  assert.deepEqual(await client.multi().set("p", "5").incr("p").exec(), ["OK", 6]);
  const other = client.duplicate();
  await other.connect();
  await client.watch("p");
  await other.set("p", "1");
  await assert.rejects(client.multi().set("p", "2").exec(), WatchError);
  assert.equal(await client.get("p"), "1");
  await client.watch("p");
  assert.deepEqual(await client.multi().set("p", "3").exec(), ["OK"]);
  assert.equal(await other.get("p"), "3");
  await other.close();
}

async function checkBytes(client) {
  const bytes = Buffer.from(Array.from({ length: 25_600 }, (_, index) => index % 256));
  const name = Buffer.from([0, 255, 13, 10]);
  await client.set(name, bytes);
  const typed = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  assert.ok(bytes.equals(await typed.get(name)));
}

// Each task has a connection of its own for the time of a request.
async function checkPool() {
  const pool = createClientPool(options, { minimum: 4, maximum: 4 });
  await pool.connect();
  const add = async (task) => {
    for (let round = 0; round < 50; round += 1) {
      await pool.incr("hits");
      await pool.set(`own:${task}`, `${round}`);
      assert.equal(await pool.get(`own:${task}`), `${round}`);
    }
  };
  await Promise.all([0, 1, 2, 3].map(add));
  assert.equal(await pool.get("hits"), "200");
  await pool.close();
}

async function main() {
  const client = createClient({ ...options, disableOfflineQueue: true });
  client.on("error", (error) => {
    throw error;
  });
  await client.connect();
  assert.equal(await client.ping(), "PONG");
  await client.flushAll();
  await checkTypes(client);
  await checkTransactions(client);
  await checkBytes(client);
  await checkPool();
  await client.close();
  console.log("ok");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
