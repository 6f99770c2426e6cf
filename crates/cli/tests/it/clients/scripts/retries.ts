// Calls that are made again.

import assert from "node:assert/strict";

import { Client, Group, RequireError, UnavailableError } from "./clients/message_groups.js";

const client = new Client(process.argv[2] ?? "", { retries: 1 });
const rust = new Group("rust");

assert.equal(await client.addPost(rust, "hello", { retries: 2 }), 3n);
await assert.rejects(client.addPost(rust, "hello"), RequireError);
await assert.rejects(client.addPost(rust, "hello", { retries: 0 }), UnavailableError);
assert.equal(await client.addPost(rust, "hello", { idempotencyKey: "mine" }), 4n);
await assert.rejects(client.addPost(rust, "hello"), UnavailableError);
const shown = await client.show(rust);
assert.ok(shown !== null && shown.closed && shown.members[0]?.name === "ana");
