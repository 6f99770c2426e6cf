// Values of all types go to a server and come back as they went.

import assert from "node:assert/strict";

import {
  Client, Day, ExactTime, Flag, JsonNumber, Number_, Result, Session_, User, UserFields,
  Grade, type Json, type Literal, type Option, type String_,
} from "./clients/odd.js";

const client = new Client(process.argv[2] ?? "");
const far = [8_640_000_000_000_001n, -8_640_000_000_000_001n, 2n ** 63n - 1n, -(2n ** 63n)];

const bare: Option = { value: null, parts: [], next: null };
const full: Option = { value: "é\u{1f600}\n\"", parts: [bare, bare], next: bare };
const points = [{ x: 1.5, y: -0.25 }, { x: Infinity, y: NaN }];
assert.deepEqual(await client.echo(full, points, { some: null }), full);
assert.deepEqual(await client.echo(full, points, null), bare);

const text: String_ = {
  type: -(2n ** 63n),
  moveTo: true,
  bytes: Uint8Array.from({ length: 70_000 }, (_, at) => at % 256),
  list: [[], [null, 2n ** 53n, 2n ** 53n + 1n]],
  datetime: new Date("2026-11-22T10:20:30.456Z"),
  of: new Result(new Uint8Array([0, 255])),
  constructor_: { some: { some: new Uint8Array() } },
  proto: 1n,
  init: 2n,
};
const back = await client.stringOf(text);
assert.ok(back.of.equals(text.of) && back.of instanceof Result);
assert.deepEqual(back, text);
for (const nested of [null, { some: null }, { some: 5n }]) {
  assert.deepEqual(await client.nested(nested), nested);
}
assert.equal((await client.nested({ some: 5 }))?.some, 5n);
assert.deepEqual(await client.list([[1, 2n], []]), [[1n, 2n], []]);
assert.deepEqual(await client.show_(), [1n, null]);
assert.equal(await client.constructor_(null, 3), 3n);
assert.equal(await client.class(1, 2, 3), 6n);
assert.equal(await client.nothing({}), undefined);
for (const half of [0.1, Infinity, -Infinity, NaN, 5e-324]) {
  assert.ok(Object.is(await client.half(new Number_(2n ** 60n), half * 2), half * 2 / 2));
}
assert.ok((await client.flip(new Flag(false))).equals(new Flag(true)));
assert.ok(Object.is(await client.half(new Number_(1), -0), -0));

// Values of an enum are their labels, and no other text is sent.
const ratings: Literal[] = ["a", "NC-17", "new", "\"'\\*/\u2028\u202e\n${x}", "A", "none"];
for (const rating of ratings) {
  const grade = new Grade(rating);
  assert.deepEqual(await client.rate(grade, rating, ratings), [...ratings, rating]);
  const graded = await client.show(grade);
  assert.equal(graded?.rating, rating);
  assert.equal(graded?.rated, rating);
  assert.equal(graded?.byRating.get(rating), "client");
}
for (const wrong of ["b", "nc_17", "", 1, null] as unknown[] as Literal[]) {
  await assert.rejects(client.rate(new Grade("a"), wrong, []), /a value of Literal/);
}

// A value that cannot be sent exactly, or is not of its type, is refused before it is sent.
const unsafe = [1.5, 2 ** 53, -(2 ** 53), NaN, Infinity, 2n ** 63n, -(2n ** 63n) - 1n];
for (const wrong of unsafe) {
  await assert.rejects(client.class(wrong, 0, 0), RangeError);
  await assert.rejects(client.list([[wrong]]), RangeError);
  await assert.rejects(client.stringOf({ ...text, type: wrong }), RangeError);
  assert.throws(() => new Number_(wrong), RangeError);
}
for (const wrong of ["7", true, null, {}] as unknown[] as number[]) {
  await assert.rejects(client.class(wrong, 0, 0), TypeError);
  assert.throws(() => new Number_(wrong), TypeError);
}
for (const exact of [2 ** 53 - 1, 2n ** 63n - 1n, -(2n ** 63n)]) {
  assert.equal(await client.class(exact, 0, 0), BigInt(exact));
  assert.equal(new Number_(exact).equals(new Number_(BigInt(exact))), true);
}
// A number is taken for an integer in structs, their lists and keys too.
const numbers = { ...text, type: 5, list: [[], [null, 7]], proto: 1, init: 2 };
assert.deepEqual(await client.stringOf(numbers), { ...text, type: 5n, list: [[], [null, 7n]] });
const pair = new UserFields({ first: 1, second: new User("ana") });
assert.equal(pair.equals(new UserFields({ first: 1n, second: new User("ana") })), true);
for (const wrong of ["1", 1n, true, null] as unknown[] as number[]) {
  await assert.rejects(client.half(new Number_(1), wrong), TypeError);
}
await assert.rejects(client.later(new Day(new Date(NaN)), 1), RangeError);
for (const wrong of [0, "2026-01-01T00:00:00Z", null] as unknown[] as Date[]) {
  await assert.rejects(async () => client.later(new Day(wrong), 1), TypeError);
}
await assert.rejects(client.later(new Day(new ExactTime(2n ** 63n)), 1), RangeError);
for (const wrong of ["a", [1], new Uint16Array([300])] as unknown[] as Uint8Array[]) {
  await assert.rejects(async () => client.show(new Result(wrong)), TypeError);
}
await assert.rejects(async () => client.show(new User(1 as unknown as string)), TypeError);
// A refusal names the argument, and the place in it.
const nested = [[1], ["7"]] as unknown[] as number[][];
await assert.rejects(client.list(nested), /^TypeError: \w+: \[1\]: \[0\]: expected a bigint or a number, found string 7$/);
for (const wrong of ["tea", null, undefined, new User("ana")] as unknown[] as Number_[]) {
  await assert.rejects(client.half(wrong, 1), /^TypeError: \w+: expected the handle of a \w+, found (string|object|undefined) /);
}

const start = new Date(0);
for (const ms of [1, -1, 253_402_300_799_999, 253_402_300_800_000, -62_167_219_200_001, 8.64e15]) {
  assert.equal((await client.later(new Day(start), ms)).getTime(), ms);
  assert.equal((await client.later(new Day(new Date(ms)), 0)).getTime(), ms);
  assert.equal((await client.show(new Day(new Date(ms))))?.start.getTime(), ms);
}
for (const us of [1n, -1n, 999n, -999n, 1_000_001n, -62_167_219_200_000_000n - 1n, 253_402_300_799_999_999n]) {
  const time = new ExactTime(us);
  assert.deepEqual(await client.later(new Day(time), 0), time);
  assert.equal(time.getTime(), Number(us < 0n ? (us - 999n) / 1000n : us / 1000n));
  assert.deepEqual((await client.show(new Day(time)))?.start, time);
}
const inBounds = (ms: bigint) => BigInt.asIntN(64, ms * 1000n) === ms * 1000n ? ms * 1000n : ms < 0n ? -(2n ** 63n) : 2n ** 63n - 1n;
for (const ms of far) {
  const time = await client.later(new Day(start), ms);
  assert.ok(time instanceof ExactTime && time.epochMicroseconds === inBounds(ms) && time.getTime() !== 0);
  assert.deepEqual(await client.later(new Day(time), 0), time);
  assert.deepEqual((await client.show(new Day(time)))?.at, time);
}

const day = new Day(start);
await client.points(day, points);
assert.deepEqual((await client.show(day))?.points, points);
const person = new User("ana");
const session = new Session_(text.of);
await client.keep(session, text, person, new Date(7));
const shown = await client.show(session);
assert.ok(shown !== null);
assert.deepEqual(shown.byRef, [[text.of, text]]);
assert.deepEqual([...shown.byName], [["a", text.type]]);
assert.deepEqual([...shown.byNumber], [[text.type, "b"]]);
assert.deepEqual([...shown.byBool], [[true, NaN]]);
assert.deepEqual(shown.byTime, [[new Date(7), true]]);
assert.deepEqual(shown.byBytes, [[text.bytes, [1n, 2n]]]);
assert.deepEqual(shown.byStruct, [[{ first: 1n, second: person }, null]]);
assert.deepEqual(shown.byList, [[[1n], 2n]]);
assert.deepEqual([...shown.byFloat], [[1.5, 2n]]);
assert.deepEqual([shown.all, shown.toString_, shown.count], [[person], [text], 3n]);
assert.equal((await client.show(session, { limit: 0 }))?.all.length, 0);
assert.equal((await client.show(person))?.größe, 3n);
assert.equal(await client.show(new User("nobody")), null);
assert.equal(await client.show(new UserFields({ first: 1n, second: person })), null);
for (const name of ["", ".", "..", "a/b", "a?b#c%20", "\"", "\"a\"", "é\u{1f600} +&", "null", "5"]) {
  const odd = new User(name);
  await client.keep(session, text, odd, start);
  assert.equal((await client.show(odd))?.name, name);
}
assert.equal(String(person), "User[\"ana\"]".replace("User", "user"));

for (const [day, next] of [
  ["1969-12-31", "1970-01-01"],
  ["2000-02-28", "2000-02-29"],
  ["1900-02-28", "1900-03-01"],
  ["0000-02-28", "0000-02-29"],
  ["9999-12-31", "+10000-01-01"],
  ["-0001-12-31", "0000-01-01"],
  ["+5881580-07-11", "+5881580-07-11"],
] as const) {
  assert.equal(await client.nextDay(day, null), next);
  assert.equal(await client.nextDay(day, 0), day);
}
for (const wrong of ["2026-02-29", "2026-00-01", "2026-01-00", "2026-1-31", "-0000-01-01", "+2026-01-31", "today"]) {
  await assert.rejects(client.nextDay(wrong, 1), RangeError);
}
for (const wrong of [20_484, null, new Date()] as unknown[] as string[]) {
  await assert.rejects(client.nextDay(wrong, 1), TypeError);
}

const nines = "9".repeat(38);
for (const [one, other, whole] of [["19.90", "0.1", "20.00"], [nines, "0", nines], ["-0", "-007.5", "-7.5"]] as const) {
  assert.equal(await client.sum(one, other), whole);
}
for (const wrong of ["1e3", "", "1.", ".5", "NaN", `${nines}0`, `${nines}.1`, `0.0${nines}`]) {
  await assert.rejects(client.sum(wrong, "0"), RangeError);
}
for (const wrong of [1.5, 1n, null] as unknown[] as string[]) await assert.rejects(client.sum(wrong, "0"), TypeError);

const big = new JsonNumber("12345678901234567890.1");
const documents: [Json, Json][] = [
  [null, null],
  [{ b: [1.5, -0, 1e3, 5e-324, 1.7976931348623157e308], a: "<é\">" }, { a: "<é\">", b: [1.5, 0, 1000, 5e-324, 1.7976931348623157e308] }],
  [{ "": big, $number: [true, { $number: "7" }] }, { "": big, $number: [true, { $number: "7" }] }],
  [[new JsonNumber("9007199254740993"), new JsonNumber("1e3"), 2 ** 53], [new JsonNumber("9007199254740993"), 1000, 2 ** 53]],
  [{ some: null }, { some: null }],
  [JSON.parse('{"__proto__": 1}') as Json, JSON.parse('{"__proto__": 1}') as Json],
];
for (const [given, canonical] of documents) {
  for (const maybe of [null, { some: given }]) {
    const found = await client.documents(session, given, maybe, [given, given]);
    assert.deepEqual(found.json, canonical);
    assert.deepEqual(found.maybe, maybe === null ? null : { some: canonical });
    assert.deepEqual(found.all, [canonical, canonical]);
    const kept = await client.show(session);
    assert.deepEqual([kept?.document, kept?.maybe, kept?.documents.get("a")], [canonical, found.maybe, canonical]);
  }
}
for (const wrong of [NaN, [Infinity]]) await assert.rejects(client.documents(session, wrong, null, []), RangeError);
for (const wrong of [undefined, 1n, new Date(), { a: undefined }] as unknown[] as Json[]) {
  await assert.rejects(client.documents(session, wrong, null, []), TypeError);
}
for (const refused of ["\u0000", "\ud800", new JsonNumber("1e400")]) {
  await assert.rejects(client.documents(session, refused, null, []), { code: "invalid-argument" });
}
assert.throws(() => new JsonNumber("01"), RangeError);
