// The answers of a real server.

import assert from "node:assert/strict";

import { AccessError, Client, Customer, InvalidCallError, InvalidSessionError, MingleError, RequireError, Session, Account } from "./clients/bank.js";

const [, , url = "", token = ""] = process.argv;
await assert.rejects(new Client(url).deposit(new Account("1"), 1), AccessError);
const client = new Client(url, { token, retries: 3 });
const ana = new Customer("ana");
const [from, to] = [await client.openAccount("1", ana), await client.openAccount("2", new Customer("bob"))];
assert.ok(from.equals(new Account("1")));
await assert.rejects(client.openAccount("1", ana), (error: MingleError) => error.code === "exists");

// Repeated calls with one key take effect once.
const once = { idempotencyKey: "once" };
assert.equal(await client.deposit(from, 100, once), 100n);
assert.equal(await client.deposit(from, 100, once), 100n);
await assert.rejects(client.deposit(from, 50, once), InvalidCallError);
await assert.rejects(
  client.transfer(from, to, 1000),
  (error) => error instanceof RequireError && error.requireCode === "too_low" && error.message === "the balance is too low",
);

// Later calls of a session see the writes of earlier ones, even if those ran concurrently.
const { result, follows } = await client.deposit(from, 1, { until: "accounts" });
assert.deepEqual([result, follows], [101n, []]);
const transfers = Array.from({ length: 12 }, () => client.transfer(from, to, 1));
await Promise.all(transfers);
const resumed = client.withSession(new Session(client.session.token));
assert.equal((await resumed.messages(ana, 100)).length, 12);
assert.ok(client.session.token.split(",").length <= 8);
const account = await client.show(to);
assert.deepEqual([account?.balance, account?.history.length], [12n, 12]);
await assert.rejects(client.messages(ana, 1, { session: new Session("made up") }), InvalidSessionError);
await assert.rejects(client.messages(ana, 1, { deadlineMs: -1 }), InvalidCallError);
