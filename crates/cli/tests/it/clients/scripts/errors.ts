// Each call meets another error.

import assert from "node:assert/strict";

import {
  AccessError, Client, ConflictError, ExistsError, Group, IncompleteError, InvalidCallError,
  InvalidSessionError, MingleError, NoAnswerError, ProtocolError, RequireError, ResultGoneError,
  StoreError, TakenError, UnavailableError, UnknownOutcomeError, type CallOptions,
} from "./clients/message_groups.js";

const url = process.argv[2] ?? "";
const client = new Client(url);
const rust = new Group("rust");

async function failure<E extends MingleError>(
  kind: new (...about: never[]) => E,
  code: string,
  options?: CallOptions,
): Promise<E> {
  try {
    await client.addPost(rust, "hello", options);
  } catch (error) {
    assert.ok(error instanceof kind, `${String(error)} is no ${kind.name}`);
    assert.ok(error instanceof MingleError && error instanceof Error);
    assert.equal(error.code, code);
    return error;
  }
  throw new assert.AssertionError({ message: `no error ${code}` });
}

const refused = await failure(RequireError, "require");
assert.deepEqual([refused.message, refused.requireCode, refused.status], ["no", "closed", 422]);
assert.deepEqual([refused.retryable, refused.committed, refused.store], [false, [], undefined]);
assert.equal((await failure(ExistsError, "exists")).message, "it exists");
assert.equal((await failure(TakenError, "taken")).message, "another has it");
const conflict = await failure(ConflictError, "conflict");
assert.deepEqual([conflict.retryable, conflict.store], [true, "groups"]);
const down = await failure(StoreError, "store");
assert.deepEqual([down.retryable, down.store, down.name], [false, "inboxes", "StoreError"]);
const incomplete = await failure(IncompleteError, "incomplete");
assert.deepEqual([incomplete.committed, incomplete.store], [["groups"], "inboxes"]);
await failure(UnknownOutcomeError, "unknown");
await failure(ResultGoneError, "result-gone");
await failure(UnavailableError, "overloaded");
await failure(AccessError, "unauthenticated");
assert.ok((await failure(InvalidSessionError, "invalid-session")) instanceof InvalidCallError);
await failure(InvalidCallError, "limit");
// A code that is not known yet, and no name of something else either.
assert.equal((await failure(MingleError, "toString")).constructor, MingleError);
const proxy = await failure(ProtocolError, "protocol");
assert.deepEqual([proxy.status, proxy.retryable], [502, false]);
await failure(ProtocolError, "protocol");
assert.match((await failure(ProtocolError, "protocol")).message, /expected an int as result, found "twelve"/);
await failure(ProtocolError, "protocol");
assert.equal(await client.show(rust), null);
const closed = await failure(NoAnswerError, "no-answer");
assert.ok(closed instanceof UnknownOutcomeError && !closed.retryable && closed.status === undefined);
const late = await failure(NoAnswerError, "no-answer", { timeoutMs: 200 });
assert.equal(late.message, "no answer within 200 ms");
const stop = new AbortController();
setTimeout(() => stop.abort(new Error("enough")), 100);
await assert.rejects(client.addPost(rust, "hello", { signal: stop.signal }), { message: "enough" });
// What was stopped before it began is not sent.
await assert.rejects(client.addPost(rust, "hello", { signal: stop.signal }), { message: "enough" });
