// The tokens that a session keeps of calls, sequential and concurrent ones.

import assert from "node:assert/strict";

import { Client, Group, Session } from "./clients/message_groups.js";

const client = new Client(process.argv[2] ?? "", { token: async () => "secret" });
const rust = new Group("rust");

await Promise.all([client.addPost(rust, "one"), client.addPost(rust, "two")]);
assert.ok(["t1, t2", "t2, t1"].includes(client.session.token), client.session.token);
await client.addPost(rust, "three");
assert.equal(client.session.token, "t3");
await client.addPost(rust, "four");
// An answer without a token keeps the earlier tokens.
await client.addPost(rust, "five");
assert.equal(client.session.token, "t4");
const kept = new Session(" kept ");
assert.equal(kept.token, "kept");
await client.withSession(kept).addPost(rust, "six");
assert.deepEqual([kept.token, client.session.token], ["u1", "t4"]);
const early = await client.addPost(rust, "seven", { until: "groups" });
assert.deepEqual(early, { result: undefined, follows: ["inboxes"] });
const { result } = await client.addPost(rust, "eight", { until: "inboxes", deadlineMs: 1500 });
assert.equal(result, 7n);
