// What follows is the same for all programs.

/** The handle of an object: its kind and its key. */
export interface Handle<Fields> {
  /** The kind of object. */
  readonly $kind: string;
  /** Where it is, below what all objects are; for this file alone, as is what follows. */
  readonly $path: string;
  /** How its fields are read. */
  readonly $fields: $Codec<Fields, never>;
  /** The key as JSON. */
  toJSON(): $Json;
}

/** A value in an option that stands in another option, or a document in an option. */
export interface Some<T> {
  readonly some: T;
}

/** Any JSON document. */
export type Json = null | boolean | number | string | JsonNumber | readonly Json[] | { readonly [name: string]: Json };

/** A number in a JSON document that a number of JavaScript would round. */
export class JsonNumber {
  /** The number, as it stands in JSON. */
  readonly text: string;

  constructor(text: string) {
    if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text)) {
      throw new RangeError(`expected a number of JSON, found ${text.slice(0, 40)}`);
    }
    this.text = text;
  }

  toString(): string {
    return this.text;
  }
}

/** An answer with the level that it has, or none in time: then its level is `late`, and there is no value. */
export type Rushed<T> =
  | { readonly level: "late"; readonly value?: undefined }
  | { readonly level: string; readonly value: T };

/** What is taken where a `T` is sent: the same, and an integer also as a number. */
export type Input<T> = T extends bigint
  ? bigint | number
  : T extends boolean | number | string | null | undefined | Date | Uint8Array | Handle<unknown> | Json
    ? T
    : T extends readonly (infer Item)[]
      ? readonly Input<Item>[]
      : { readonly [K in keyof T]: Input<T[K]> };

/** What a call with `until` gives. */
export interface Early<T> {
  /** The result; `undefined` where a store that comes later has yet to compute it. */
  readonly result: T | undefined;
  /** The stores that have yet to commit. They follow by themselves. */
  readonly follows: readonly string[];
}

/** How a client calls, unless a call says otherwise. */
export interface ClientOptions {
  /** Who calls: what stands after `Bearer`, or what gives it before each request. */
  readonly token?: string | (() => string | Promise<string>) | undefined;
  /** The session of its calls: without one, a new one. */
  readonly session?: Session | undefined;
  /** How many milliseconds a call takes at most, everything included: a minute if nothing is said. */
  readonly timeoutMs?: number | undefined;
  /** How often a call is made again that may then succeed: not at all if nothing is said. */
  readonly retries?: number | undefined;
  /** What sends a request: the platform's `fetch` if nothing is said. */
  readonly fetch?: typeof fetch | undefined;
}

/** How one object is read. */
export interface ShowOptions {
  /** The session: that of the client if nothing is said. */
  readonly session?: Session | undefined;
  /** How many milliseconds it takes at most, everything included. */
  readonly timeoutMs?: number | undefined;
  /** How often it is tried again if that may succeed. */
  readonly retries?: number | undefined;
  /** Gives up when it is aborted; the promise is then rejected with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** How many items of each collection there are at most. */
  readonly limit?: number | undefined;
}

/** How one transaction is called. */
export interface CallOptions {
  /** The session: that of the client if nothing is said. */
  readonly session?: Session | undefined;
  /** How many milliseconds the call takes at most, everything included. */
  readonly timeoutMs?: number | undefined;
  /**
   * How often the call is made again after an error that is retryable, or after which it is not
   * known whether it took effect. It runs once all the same: all attempts have one idempotency key.
   */
  readonly retries?: number | undefined;
  /** Stops waiting when it is aborted; what has begun to commit may take effect all the same. */
  readonly signal?: AbortSignal | undefined;
  /** For how many milliseconds the server repeats what conflicts, and waits for others. */
  readonly deadlineMs?: number | undefined;
  /** Calls with one key run once, however often they are made: 1 to 128 visible characters of ASCII. */
  readonly idempotencyKey?: string | undefined;
  readonly until?: undefined;
}

/** How one transaction is called whose answer shall come early. */
export interface EarlyOptions extends Omit<CallOptions, "until"> {
  /** Answers once this store, and all that are visited before it, have committed. */
  readonly until: Store;
}

/**
 * One client of the server, and what it has seen: its later calls see that too.
 *
 * Calls of one session may run side by side, up to eight of them; more wait their turn. What each
 * of them has seen, all that begin after its answer build upon. A call whose answer was lost leaves
 * nothing in the session, unless it is made again with its idempotency key.
 */
export class Session {
  #tokens: readonly string[];
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  /** A new session, or one that goes on from what `token` gave. */
  constructor(token = "") {
    this.#tokens = token.split(",").map((part) => part.trim()).filter((part) => part !== "");
  }

  /** The session as text, which can be kept; empty if it has seen nothing. */
  get token(): string {
    return this.#tokens.join(", ");
  }

  /**
   * Puts the answer's token in the place of those that the call began with. So there are never more
   * than calls that run side by side: who began after a token came replaces it.
   */
  $learn(sent: string, learned: string): void {
    const covered = new Session(sent).#tokens;
    const left = this.#tokens.filter((token) => !covered.includes(token) && token !== learned);
    this.#tokens = [...left, learned];
  }

  /** Waits until fewer calls run than may. */
  async $enter(signal: AbortSignal): Promise<void> {
    while (this.#running >= $SESSION_CALLS_MAX) {
      const turn = new Promise<void>((resolve) => this.#waiting.push(resolve));
      await $unlessAborted(turn, signal);
    }
    this.#running += 1;
  }

  $leave(): void {
    this.#running -= 1;
    // Who has given up waiting leaves its turn to all others: each of them looks again.
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

/**
 * A time that a `Date` cannot hold: one that is not in whole milliseconds, or beyond its ends. As a date it stands
 * at its millisecond, or at the end.
 */
export class ExactTime extends Date {
  /** Microseconds since 1970-01-01T00:00:00Z; this is what is sent. */
  readonly epochMicroseconds: bigint;

  constructor(epochMicroseconds: bigint) {
    const ms = $floorDivide(epochMicroseconds, 1000n);
    super(Math.max(-$DATE_MS_MAX, Math.min($DATE_MS_MAX, Number(ms))));
    this.epochMicroseconds = epochMicroseconds;
  }
}

/** Why there is no result. */
export class MingleError extends Error {
  override readonly name: string = "MingleError";
  /** What happened, as the server calls it. */
  readonly code: string;
  /** The status of the answer; none if there was no answer. */
  readonly status: number | undefined;
  /** The code of the `require` that failed, if it has one. */
  readonly requireCode: string | undefined;
  /** The stores that have committed. */
  readonly committed: readonly string[];
  /** The store that it is about. */
  readonly store: string | undefined;
  /** Whether the same call may succeed later, and can be made without doing anything twice. */
  readonly retryable: boolean;
  /** After how many seconds it may, if the server said so. */
  readonly retryAfter: number | undefined;

  constructor(message: string, about: $About) {
    super(message, { cause: about.cause });
    this.code = about.code;
    this.status = about.status;
    this.requireCode = about.requireCode;
    this.committed = about.committed ?? [];
    this.store = about.store;
    this.retryable = about.retryable ?? false;
    this.retryAfter = about.retryAfter;
  }
}

/** A `require` of the program failed: see `requireCode`. Nothing was written. */
export class RequireError extends MingleError {
  override readonly name = "RequireError";
}

/** A `new` with a key met an object that exists. Nothing was written. */
export class ExistsError extends MingleError {
  override readonly name = "ExistsError";
}

/** A write of a `unique` met another object with the same values. Nothing was written. */
export class TakenError extends MingleError {
  override readonly name = "TakenError";
}

/** A rule of the database, such as a constraint, does not allow it. Nothing was written. */
export class ConstraintError extends MingleError {
  override readonly name = "ConstraintError";
}

/** Others were in the way until the deadline. Nothing was written by this attempt. */
export class ConflictError extends MingleError {
  override readonly name = "ConflictError";
}

/** A store failed, see `store`, or what it waits for cannot be finished. Nothing was written. */
export class StoreError extends MingleError {
  override readonly name = "StoreError";
}

/** Some stores have committed, see `committed`, and `store` has not: the rest follows by itself. */
export class IncompleteError extends MingleError {
  override readonly name = "IncompleteError";
}

/** Whether the call took effect is not known: ask again with the same idempotency key. */
export class UnknownOutcomeError extends MingleError {
  override readonly name: string = "UnknownOutcomeError";
}

/** No answer came, or none in time: whether the call took effect is not known. */
export class NoAnswerError extends UnknownOutcomeError {
  override readonly name = "NoAnswerError";
}

/** The call took effect, but its result is not known any more. */
export class ResultGoneError extends MingleError {
  override readonly name = "ResultGoneError";
}

/** The server cannot take the call now. Nothing was written. */
export class UnavailableError extends MingleError {
  override readonly name = "UnavailableError";
}

/** The call is wrong, or too large: as it is, it will never succeed. Nothing was written. */
export class InvalidCallError extends MingleError {
  override readonly name: string = "InvalidCallError";
}

/** The session is not one of this server's: go on with a new one. Nothing was written. */
export class InvalidSessionError extends InvalidCallError {
  override readonly name = "InvalidSessionError";
}

/** The server does not know who calls, or does not let them. Nothing was written. */
export class AccessError extends MingleError {
  override readonly name = "AccessError";
}

/** The answer is not one of this program's: the server runs another one, or is no such server. */
export class ProtocolError extends MingleError {
  override readonly name = "ProtocolError";
}

interface $About {
  readonly code: string;
  readonly status?: number | undefined;
  readonly requireCode?: string | undefined;
  readonly committed?: readonly string[] | undefined;
  readonly store?: string | undefined;
  readonly retryable?: boolean | undefined;
  readonly retryAfter?: number | undefined;
  readonly cause?: unknown;
}

/** What a `Date` reaches in both directions, in milliseconds. */
const $DATE_MS_MAX = 8.64e15;
/** So many calls of one session run side by side: so many tokens stand in a header. */
const $SESSION_CALLS_MAX = 8;
/** How long a call takes at most, unless it is said. */
const $TIMEOUT_MS = 60_000;
/** How long to wait before the second attempt, and at most before any. */
const $PAUSE_MS = 50;
const $PAUSE_MS_MAX = 5_000;
/** Timers take no more. */
const $TIMER_MS_MAX = 2_147_483_647;

/** What an error is, by its code. */
const $errors: Readonly<Record<string, typeof MingleError>> = {
  require: RequireError,
  exists: ExistsError,
  taken: TakenError,
  conflict: ConflictError,
  waiting: ConflictError,
  "in-progress": ConflictError,
  store: StoreError,
  parked: StoreError,
  incomplete: IncompleteError,
  unknown: UnknownOutcomeError,
  "result-gone": ResultGoneError,
  deadline: InvalidCallError,
  "constraint-conflict": ConstraintError,
  "constraint-violated": ConstraintError,
  "bad-request": InvalidCallError,
  "invalid-host": InvalidCallError,
  "head-too-large": InvalidCallError,
  overloaded: UnavailableError,
  "shutting-down": UnavailableError,
  timeout: UnavailableError,
  "invalid-argument": InvalidCallError,
  misuse: InvalidCallError,
  unsupported: InvalidCallError,
  limit: InvalidCallError,
  "not-found": InvalidCallError,
  "method-not-allowed": InvalidCallError,
  "too-large": InvalidCallError,
  "unsupported-media-type": InvalidCallError,
  "idempotency-mismatch": InvalidCallError,
  "invalid-session": InvalidSessionError,
  unauthenticated: AccessError,
  forbidden: AccessError,
};

interface $Request {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: string;
  readonly idempotencyKey?: string | undefined;
}

interface $Answer {
  readonly status: number;
  readonly json: unknown;
}

class $Connection {
  readonly #base: string;
  readonly #options: ClientOptions;
  readonly session: Session;

  constructor(url: string | URL, options: ClientOptions) {
    this.#base = String(url).replace(/\/+$/, "");
    this.#options = options;
    this.session = options.session ?? new Session();
  }

  with(session: Session): [string, ClientOptions] {
    return [this.#base, { ...this.#options, session }];
  }

  async call<T>(
    transaction: string,
    params: readonly (readonly [string, $Json])[],
    result: $Codec<T, never>,
    options: CallOptions | EarlyOptions = {},
  ): Promise<T | Early<T>> {
    const query = $query({ deadline_ms: options.deadlineMs, until: options.until });
    const retries = options.retries ?? this.#options.retries ?? 0;
    const request: $Request = {
      method: "POST",
      path: `/v1/transactions/${encodeURIComponent(transaction)}${query}`,
      body: $stringify(Object.fromEntries(params)),
      idempotencyKey: options.idempotencyKey ?? (retries > 0 ? $newKey() : undefined),
    };
    const { json, status } = await this.#run(request, retries, options);
    return $reading(status, () => {
      const members = $members(json, "");
      const follows = $texts(members["follows"] ?? []);
      if (options.until === undefined) return result.decode(members["result"], "result");
      const isThere = follows.length === 0 || members["result"] !== null;
      return { result: isThere ? result.decode(members["result"], "result") : undefined, follows };
    });
  }

  async show<F>(handle: Handle<F>, options: ShowOptions = {}): Promise<F | null> {
    const path = `/v1/objects/${handle.$path}${$query({ limit: options.limit })}`;
    const retries = options.retries ?? this.#options.retries ?? 0;
    const { json, status } = await this.#run({ method: "GET", path }, retries, options);
    return status === 404 ? null : $reading(status, () => handle.$fields.decode(json, handle.$kind));
  }

  /** Makes a request in its session, again and again if that is wanted. */
  async #run(request: $Request, retries: number, options: CallOptions | EarlyOptions): Promise<$Answer> {
    const session = options.session ?? this.session;
    const stop = $stopper(options.signal, options.timeoutMs ?? this.#options.timeoutMs ?? $TIMEOUT_MS);
    try {
      await session.$enter(stop.signal);
      try {
        for (let attempt = 0; ; attempt += 1) {
          try {
            return await this.#once(request, session, stop.signal);
          } catch (error) {
            if (attempt >= retries || !$isWorthwhile(error, request)) throw error;
            await $unlessAborted($pause(attempt, error.retryAfter), stop.signal);
          }
        }
      } finally {
        session.$leave();
      }
    } catch (error) {
      throw stop.explain(error);
    } finally {
      stop.clear();
    }
  }

  async #once(request: $Request, session: Session, signal: AbortSignal): Promise<$Answer> {
    const headers: Record<string, string> = { Accept: "application/json, application/problem+json" };
    const { token } = this.#options;
    const bearer = typeof token === "function" ? await $unlessAborted(token(), signal) : token;
    if (bearer !== undefined) headers["Authorization"] = `Bearer ${bearer}`;
    const sent = session.token;
    if (sent !== "") headers["Mingle-Session"] = sent;
    if (request.idempotencyKey !== undefined) headers["Idempotency-Key"] = request.idempotencyKey;
    if (request.body !== undefined) headers["Content-Type"] = "application/json";
    const init = { method: request.method, headers, body: request.body ?? null, signal };
    const send = this.#options.fetch ?? fetch;
    let response: Response;
    let text: string;
    try {
      response = await send(this.#base + request.path, init);
      const learned = response.headers.get("Mingle-Session");
      if (learned !== null) session.$learn(sent, learned);
      text = await response.text();
    } catch (cause) {
      if (signal.aborted) throw cause;
      throw $noAnswer(`no answer from ${this.#base}: ${$shown(cause)}`, request, cause);
    }
    const json = $parsed(text);
    if (response.status === 200 && json !== undefined) return { status: 200, json };
    const error = $problem(response, json, request);
    if (request.method === "GET" && error.code === "not-found") return { status: 404, json };
    throw error;
  }
}

/** Whether the same request may do better, and does nothing twice. */
function $isWorthwhile(error: unknown, request: $Request): error is MingleError {
  if (!(error instanceof MingleError)) return false;
  return error.retryable || (error instanceof UnknownOutcomeError && $runsOnce(request));
}

/** Whether a request does nothing more when it is made again. */
function $runsOnce(request: $Request): boolean {
  return request.method === "GET" || request.idempotencyKey !== undefined;
}

function $noAnswer(message: string, request: $Request, cause: unknown): NoAnswerError {
  return new NoAnswerError(message, { code: "no-answer", retryable: $runsOnce(request), cause });
}

/** The error that an answer tells of. */
function $problem(response: Response, json: unknown, request: $Request): MingleError {
  const { status } = response;
  const seconds = Number(response.headers.get("Retry-After") ?? "");
  const retryAfter = seconds > 0 ? seconds : undefined;
  const members = typeof json === "object" && json !== null ? (json as $Members) : {};
  const text = (name: string): string | undefined => {
    const member = members[name];
    return typeof member === "string" ? member : undefined;
  };
  const code = text("code");
  if (code === undefined) {
    // Somebody between us and the server may have answered, and may have passed the call on.
    const retryable = [429, 502, 503, 504].includes(status) && $runsOnce(request);
    const message = `the answer with status ${status} is none of a server of Mingle`;
    return new ProtocolError(message, { code: "protocol", status, retryable, retryAfter });
  }
  const committed = Array.isArray(members["committed"]) ? members["committed"].map(String) : [];
  const retryable = members["retryable"] === true;
  const kind = Object.hasOwn($errors, code) ? $errors[code] : undefined;
  const about = { code, status, committed, retryable, retryAfter };
  return new (kind ?? MingleError)(
    text("detail") ?? text("title") ?? code,
    { ...about, requireCode: text("require_code"), store: text("store") },
  );
}

/** A signal that stops a call in time, or when its caller says so. */
function $stopper(caller: AbortSignal | undefined, timeoutMs: number) {
  const controller = new AbortController();
  const onAbort = () => controller.abort(caller?.reason);
  if (caller?.aborted === true) onAbort();
  caller?.addEventListener("abort", onAbort);
  const message = `no answer within ${timeoutMs} ms`;
  const late = new NoAnswerError(message, { code: "no-answer" });
  const timer = setTimeout(() => controller.abort(late), Math.min(timeoutMs, $TIMER_MS_MAX));
  return {
    signal: controller.signal,
    explain: (error: unknown): unknown => (controller.signal.aborted ? controller.signal.reason : error),
    clear: (): void => {
      clearTimeout(timer);
      caller?.removeEventListener("abort", onAbort);
    },
  };
}

/** What a promise gives, unless the signal comes first. */
async function $unlessAborted<T>(promise: T | Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) throw signal.reason;
  let onAbort = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort);
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Longer each time, and not the same for all; at least what the server asks for. */
function $pause(attempt: number, retryAfter: number | undefined): Promise<void> {
  const longest = Math.min($PAUSE_MS * 2 ** attempt, $PAUSE_MS_MAX);
  const drawn = longest * (0.5 + Math.random() / 2);
  const pause = Math.min(Math.max(drawn, (retryAfter ?? 0) * 1000), $TIMER_MS_MAX);
  return new Promise((resolve) => setTimeout(resolve, pause));
}

function $newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function $query(members: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(members)) {
    if (value !== undefined) query.set(name, String(value));
  }
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}

/** The path of an object whose key is a text. Where that would be taken for something else, it is quoted. */
function $pathOfText(kind: string, key: $Json): string {
  const isPlain = typeof key === "string" && !/^(\.{0,2}$|")/.test(key);
  return `${encodeURIComponent(kind)}/${encodeURIComponent(isPlain ? key : JSON.stringify(key))}`;
}

/** The path of an object whose key is something else. */
function $pathOfJson(kind: string, key: $Json): string {
  return `${encodeURIComponent(kind)}/${encodeURIComponent($stringify(key))}`;
}

/** As `JSON.stringify`, which writes -0 as 0. */
function $stringify(json: $Json): string {
  if (Object.is(json, -0)) return "-0.0";
  if (json instanceof JsonNumber) return json.text;
  if (typeof json !== "object" || json === null) return JSON.stringify(json);
  if ($isList(json)) return `[${json.map($stringify).join(",")}]`;
  const members = Object.entries(json).map(([name, item]) => `${JSON.stringify(name)}:${$stringify(item)}`);
  return `{${members.join(",")}}`;
}

function $isList(json: $Json): json is readonly $Json[] {
  return Array.isArray(json);
}

function $parsed(text: string): unknown {
  try {
    return $exactly(text);
  } catch {
    return undefined;
  }
}

/** The sign and the digits of a number without zeros at either end, and the place of its point. */
function $digits(text: string): string {
  const [, sign, whole = "", part = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE](.+))?$/.exec(text) ?? [];
  const digits = (whole + part).replace(/^0+/, "");
  const point = whole.length + Number(exponent) - (whole + part).length + digits.length;
  return `${sign}${digits.replace(/0+$/, "")}e${point}`;
}

function $isExact(number: string): boolean {
  // A number of JavaScript keeps 15 digits.
  return number.length <= 15 || $digits(number) === $digits(String(Number(number)));
}

/** As `JSON.parse`, with a `JsonNumber` in place of a number that would be rounded. */
function $exactly(text: string): unknown {
  let name = "$number";
  while (text.includes(name)) name += "$";
  const marked = text.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (found) =>
    found.startsWith('"') || $isExact(found) ? found : `{"${name}":"${found}"}`,
  );
  if (marked === text) return JSON.parse(text) as unknown;
  return JSON.parse(marked, (_, value: unknown) => {
    const isMarked = typeof value === "object" && value !== null && Object.hasOwn(value, name);
    return isMarked ? new JsonNumber((value as Record<string, string>)[name] ?? "") : value;
  }) as unknown;
}

function $shown(value: unknown): string {
  return value instanceof Error ? value.message : String(value);
}

type $Json = null | boolean | number | string | JsonNumber | readonly $Json[] | { readonly [name: string]: $Json };
type $Members = { readonly [name: string]: unknown };

/** How values of a type are written as JSON and read from it. */
interface $Codec<T, In = T> {
  readonly encode: (value: In) => $Json;
  readonly decode: (json: unknown, path: string) => T;
}

/** JSON that is not what the program's types say. */
class $Mismatch extends Error {}

function $reading<T>(status: number, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    if (!(cause instanceof $Mismatch)) throw cause;
    throw new ProtocolError(cause.message, { code: "protocol", status, cause });
  }
}

function $expected(what: string, json: unknown, path: string): never {
  const found = (JSON.stringify(json) ?? "nothing").slice(0, 40);
  throw new $Mismatch(`expected ${what} as ${path}, found ${found}`);
}

function $members(json: unknown, path: string): $Members {
  const isObject = typeof json === "object" && json !== null && !Array.isArray(json);
  return isObject ? (json as $Members) : $expected("an object", json, path);
}

function $items(json: unknown, path: string): readonly unknown[] {
  return Array.isArray(json) ? (json as readonly unknown[]) : $expected("a list", json, path);
}

function $texts(json: unknown): readonly string[] {
  return $items(json, "follows").map((item) => $string.decode(item, "follows"));
}

/** Refuses a value that cannot be sent, or not exactly. */
function $refuse(what: string, found: unknown): never {
  throw new TypeError(`expected ${what}, found ${typeof found} ${$shown(found).slice(0, 40)}`);
}

/** An argument, or a part of one, as JSON; an error names it. */
function $given<In>(name: string, codec: $Codec<unknown, In>, value: In): $Json {
  try {
    return codec.encode(value);
  } catch (cause) {
    const message = `${name}: ${$shown(cause)}`;
    throw cause instanceof RangeError ? new RangeError(message) : new TypeError(message);
  }
}

function $plain<T extends boolean | string>(what: string): $Codec<T> {
  return {
    encode: (value) => (typeof value === what ? value : $refuse(`a ${what}`, value)),
    decode: (json, path) => (typeof json === what ? (json as T) : $expected(`a ${what}`, json, path)),
  };
}

/** An integer as JSON: beyond 2^53 as text, since not all readers of JSON keep it exact there. */
function $intJson(value: bigint): $Json {
  if (!$isInt(value)) throw new RangeError(`expected an integer of 64 bits, found ${value}`);
  const isExact = value >= -(2n ** 53n) && value <= 2n ** 53n;
  return isExact ? Number(value) : value.toString();
}

function $isInt(value: bigint): boolean {
  return BigInt.asIntN(64, value) === value;
}

/** The tag of a value, which is the same in all windows and frames. */
function $tag(value: unknown): string {
  return Object.prototype.toString.call(value).slice(8, -1);
}

const $bool = $plain<boolean>("boolean");
const $string = $plain<string>("string");
const $none: $Codec<void> = { encode: () => null, decode: () => undefined };

const $int: $Codec<bigint, bigint | number> = {
  encode: (value) => {
    if (typeof value === "bigint") return $intJson(value);
    if (typeof value !== "number") return $refuse("a bigint or a number", value);
    if (!Number.isSafeInteger(value)) {
      throw new RangeError(`expected an integer that a number holds exactly, or a bigint; found ${value}`);
    }
    return value + 0;
  },
  decode: (json, path) => {
    // Beyond that a number may stand for several integers.
    if (typeof json === "number" && Number.isInteger(json) && Math.abs(json) <= 2 ** 53) return BigInt(json);
    if (typeof json === "string" && /^-?\d{1,19}$/.test(json) && $isInt(BigInt(json))) return BigInt(json);
    return $expected("an int", json, path);
  },
};

const $float: $Codec<number> = {
  encode: (value) => {
    if (typeof value !== "number") return $refuse("a number", value);
    return Number.isFinite(value) ? value : String(value);
  },
  decode: (json, path) => {
    if (typeof json === "number") return json;
    const isWord = json === "NaN" || json === "Infinity" || json === "-Infinity";
    return isWord ? Number(json) : $expected("a float", json, path);
  },
};

const $bytes: $Codec<Uint8Array> = {
  encode: (value) => {
    if ($tag(value) !== "Uint8Array") return $refuse("a Uint8Array", value);
    let text = "";
    // An argument for each byte: not too many at once.
    for (let at = 0; at < value.length; at += 0x2000) {
      text += String.fromCharCode(...value.subarray(at, at + 0x2000));
    }
    return btoa(text);
  },
  decode: (json, path) => {
    try {
      return Uint8Array.from(atob($string.decode(json, path)), (char) => char.charCodeAt(0));
    } catch (cause) {
      return cause instanceof $Mismatch ? $expected("bytes", json, path) : $expected("base64", json, path);
    }
  },
};

/** The quotient, cut towards the past. */
function $floorDivide(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return a % b < 0n ? quotient - 1n : quotient;
}

/** A plain date where it holds the time exactly. */
function $dateOf(epochMicroseconds: bigint): Date {
  const date = new Date(Number($floorDivide(epochMicroseconds, 1000n)));
  const isExact = epochMicroseconds % 1000n === 0n && !Number.isNaN(date.getTime());
  return isExact ? date : new ExactTime(epochMicroseconds);
}

const $time: $Codec<Date> = {
  encode: (value) => {
    if ($tag(value) !== "Date") return $refuse("a Date", value);
    if (value instanceof ExactTime) return `${$intJson(value.epochMicroseconds)}us`;
    const ms = value.getTime();
    if (Number.isNaN(ms)) throw new RangeError("expected a time, found an invalid Date");
    const text = value.toISOString();
    // RFC 3339 has years of four digits; beyond them stand microseconds.
    return text.length === 24 ? text : `${BigInt(ms) * 1000n}us`;
  },
  decode: (json, path) => {
    const text = $string.decode(json, path);
    const far = /^(-?\d+)us$/.exec(text)?.[1];
    if (far !== undefined) return $dateOf(BigInt(far));
    const [, whole, fraction] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6})0*)?Z$/.exec(text) ?? [];
    const second = new Date(`${whole}Z`);
    // A Date takes the 30th of February for another day.
    const isSame = !Number.isNaN(second.getTime()) && second.toISOString().slice(0, 19) === whole;
    if (!isSame) return $expected("a time", json, path);
    return $dateOf(BigInt(second.getTime()) * 1000n + BigInt((fraction ?? "").padEnd(6, "0")));
  },
};

/** The days of a month in the Gregorian calendar, whose years repeat after 400. */
function $daysIn(year: number, month: number): number {
  return new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate();
}

/** Years of more than four digits, and those before 0000, have a sign. */
function $isDay(text: string): boolean {
  const [, year, month, day] = /^(\d{4}|\+[1-9]\d{4,6}|-(?!0000)\d{4}|-[1-9]\d{4,6})-(\d\d)-(\d\d)$/.exec(text) ?? [];
  const [y, m, d] = [Number(year), Number(month), Number(day)];
  return m >= 1 && m <= 12 && d >= 1 && d <= $daysIn(y, m);
}

const $day: $Codec<string> = {
  encode: (value) => {
    if (typeof value !== "string") return $refuse("a string", value);
    if (!$isDay(value)) throw new RangeError(`expected a date such as 2026-01-31, found ${value}`);
    return value;
  },
  decode: (json, path) => {
    const text = $string.decode(json, path);
    return $isDay(text) ? text : $expected("a date", json, path);
  },
};

/** At most 38 digits, without zeros at either end. */
function $isDecimal(text: string): boolean {
  const [, whole, part] = /^-?(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  if (whole === undefined) return false;
  const digits = whole.replace(/^0+/, "") + (part ?? "").replace(/0+$/, "");
  return digits.length <= 38 && (part ?? "").replace(/0+$/, "").length <= 38;
}

const $decimal: $Codec<string> = {
  encode: (value) => {
    if (typeof value !== "string") return $refuse("a string", value);
    if (!$isDecimal(value)) throw new RangeError(`expected a decimal such as -19.90, found ${value}`);
    return value;
  },
  decode: (json, path) => {
    const text = $string.decode(json, path);
    return $isDecimal(text) ? text : $expected("a decimal", json, path);
  },
};

/** A part of a document, without what JSON does not have. */
function $document(value: Json): Json {
  if (value === null || typeof value === "boolean" || typeof value === "string") return value;
  if (value instanceof JsonNumber) return value;
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new RangeError(`expected a number of JSON, found ${value}`);
    return value;
  }
  if ($isList(value)) return value.map($document);
  if (typeof value !== "object") return $refuse("a JSON document", value);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) return $refuse("a JSON document", value);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, $document(item)]));
}

const $json: $Codec<Json> = { encode: $document, decode: (json) => json as Json };

/** Documents that could be taken for something else have a member around them. */
const $someJson: $Codec<Some<Json>> = {
  encode: (value) =>
    typeof value === "object" && value !== null && "some" in value
      ? { some: $document(value.some) }
      : $refuse("{ some: … }", value),
  decode: (json) => {
    const isObject = typeof json === "object" && json !== null && !Array.isArray(json);
    const isWrapped = isObject && Object.keys(json).length === 1 && "some" in json;
    return { some: (isWrapped ? (json as Some<Json>).some : json) as Json };
  },
};

function $oneOf<T extends string>(name: string, values: readonly T[]): $Codec<T> {
  const find = (found: unknown): T | undefined => values.find((value) => value === found);
  const what = `a value of ${name}`;
  return {
    encode: (value) => find(value) ?? $refuse(what, value),
    decode: (json, path) => find(json) ?? $expected(what, json, path),
  };
}

function $option<T, In>(inner: $Codec<T, In>): $Codec<T | null, In | null | undefined> {
  return {
    encode: (value) => (value === null || value === undefined ? null : inner.encode(value)),
    decode: (json, path) => (json === null || json === undefined ? null : inner.decode(json, path)),
  };
}

function $some<T, In>(inner: $Codec<T, In>): $Codec<Some<T>, Some<In>> {
  return {
    encode: (value) =>
      typeof value === "object" && value !== null && "some" in value
        ? { some: inner.encode(value.some) }
        : $refuse("{ some: … }", value),
    decode: (json, path) => ({ some: inner.decode($members(json, path)["some"], `${path}.some`) }),
  };
}

function $rushed<T, In>(inner: $Codec<T, In>): $Codec<Rushed<T>, never> {
  return {
    encode: (never) => never,
    decode: (json, path) => {
      const found = $members(json, path);
      const level = $string.decode(found["level"], `${path}.level`);
      return level === "late" ? { level } : { level, value: inner.decode(found["value"], `${path}.value`) };
    },
  };
}

function $list<T, In>(inner: $Codec<T, In>): $Codec<T[], readonly In[]> {
  return {
    encode: (value) =>
      Array.isArray(value)
        ? value.map((item: In, at) => $given(`[${at}]`, inner, item))
        : $refuse("an array", value),
    decode: (json, path) => $items(json, path).map((item, at) => inner.decode(item, `${path}[${at}]`)),
  };
}

function $pairs<K, V>(key: $Codec<K, never>, value: $Codec<V, never>): $Codec<[K, V][], never> {
  return {
    encode: (never) => never,
    decode: (json, path) =>
      $items(json, path).map((pair, at): [K, V] => {
        const [first, second] = $items(pair, `${path}[${at}]`);
        return [key.decode(first, `${path}[${at}]`), value.decode(second, `${path}[${at}]`)];
      }),
  };
}

function $map<K, V>(key: $Codec<K, never>, value: $Codec<V, never>): $Codec<Map<K, V>, never> {
  const pairs = $pairs(key, value);
  return { encode: (never) => never, decode: (json, path) => new Map(pairs.decode(json, path)) };
}

function $named<V>(value: $Codec<V, never>): $Codec<Map<string, V>, never> {
  const entries = (json: unknown, path: string): Iterable<[string, V]> =>
    Object.entries($members(json, path)).map(([name, item]) => [name, value.decode(item, `${path}.${name}`)]);
  return { encode: (never) => never, decode: (json, path) => new Map(entries(json, path)) };
}

/** For each property the name that the program has for it, and what it holds. */
type $Properties<T> = { readonly [K in keyof T]-?: readonly [string, $Codec<T[K], never>] };
type $Encoders<T> = { readonly [K in keyof T]-?: readonly [string, $Codec<T[K], Input<T[K]>>] };

function $fields<T>(properties: () => $Properties<T>): $Codec<T, never> {
  const decode = (json: unknown, path: string): T => {
    const members = $members(json, path);
    const read = Object.entries<readonly [string, $Codec<unknown, never>]>(properties());
    return Object.fromEntries(
      read.map(([property, [name, codec]]) => [property, codec.decode(members[name], `${path}.${name}`)]),
    ) as T;
  };
  return { encode: (never) => never, decode };
}

function $struct<T>(properties: () => $Encoders<T>): $Codec<T, Input<T>> {
  const encode = (value: Input<T>): $Json => {
    if (typeof value !== "object" || value === null) return $refuse("an object", value);
    const read = Object.entries<readonly [string, $Codec<unknown, never>]>(properties());
    const values = value as Readonly<Record<string, never>>;
    return Object.fromEntries(read.map(([property, [name, codec]]) => [name, $given(property, codec, values[property] as never)]));
  };
  return { encode, decode: $fields<T>(properties).decode };
}

function $handle<Key, H extends Handle<unknown>>(
  kind: string,
  key: () => $Codec<Key, never>,
  make: (key: Key) => H,
): $Codec<H> {
  const isOne = (value: Partial<H> | null | undefined): boolean => value?.$kind === kind;
  const encode = (value: H): $Json => (isOne(value) ? value.toJSON() : $refuse(`the handle of a ${kind}`, value));
  return { encode, decode: (json, path) => make(key().decode(json, path)) };
}

/** The key of a handle as it is received: its integers are bigints, and exact. */
function $key<Key, In>(codec: $Codec<Key, In>, key: In): Key {
  return codec.decode(codec.encode(key), "key");
}

/** Whether two handles name one object. */
function $same(one: Handle<unknown>, other: Handle<unknown>): boolean {
  return one.$kind === other.$kind && $stringify(one.toJSON()) === $stringify(other.toJSON());
}
