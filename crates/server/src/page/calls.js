// Calling transactions: the form, the events of a call, its answer, and crashes on request.

import { element, field, onOneLine } from "./forms.js";
import { parse, print } from "./json.js";
import { Timeline, milliseconds } from "./timeline.js";

// The longest wait for a process that starts again, and the time between two looks, in milliseconds.
const BACK_WITHIN = 60_000;
const LOOK_EVERY = 200;

async function readEvents(response, onOne) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const found = /^event: (.*)\ndata: (.*)$/s.exec(block);
      if (found) onOne(found[1], parse(found[2]));
    }
  }
}

// Sends a call and hands its events to the timeline. Returns its answer, or null if the server ended
// before there was one.
async function send(transaction, body, client, timeline, headers) {
  let answer = null;
  try {
    const response = await fetch(`/v1/transactions/${encodeURIComponent(transaction.name)}`, {
      method: "POST",
      headers: client.headers({
        "Content-Type": "application/json", Accept: "text/event-stream", ...headers,
      }),
      body,
    });
    if (!response.headers.get("content-type").startsWith("text/event-stream")) {
      return { status: response.status, body: parse(await response.text()) };
    }
    await readEvents(response, (name, data) => {
      if (name === "answer") answer = data;
      else timeline.on(name, data);
    });
  } catch (error) {
    if (!headers["Mingle-Crash"]) throw error;
  }
  if (answer?.session) client.session = answer.session;
  if (answer) timeline.draw(answer.at_ms);
  return answer;
}

function textOf(answer) {
  const { status, body } = answer;
  if (status !== 200) return `${body.code}: ${body.detail}`;
  return body.result === null ? "done" : print(body.result);
}

function show(out, answer, timeline) {
  const took = answer.at_ms === undefined ? "" : `  (${milliseconds(answer.at_ms)})`;
  out.dataset.ok = String(answer.status === 200);
  out.textContent = textOf(answer) + took;
  if (answer.status !== 200) timeline.fail();
}

async function untilBack(begun) {
  while (performance.now() - begun < BACK_WITHIN) {
    try {
      if ((await fetch("/healthz")).ok) return true;
    } catch {
      // It does not listen yet.
    }
    await new Promise((resolve) => { setTimeout(resolve, LOOK_EVERY); });
  }
  return false;
}

// Makes the same call until its answer is not one that asks to come again.
async function repeat(transaction, body, client, timeline, key) {
  const begun = performance.now();
  for (;;) {
    const answer = await send(transaction, body, client, timeline, { "Idempotency-Key": key });
    if (!answer) throw new Error("the call had no answer");
    const isOver = performance.now() - begun > BACK_WITHIN;
    if (answer.status === 200 || !answer.body.retryable || isOver) return answer;
    await new Promise((resolve) => { setTimeout(resolve, LOOK_EVERY); });
  }
}

// Crashes the process at a step of a call, waits for the next process, and makes the call again.
async function crash(transaction, body, client, timeline, story, step) {
  const tell = (text) => story.append(element("li", {}, text));
  story.replaceChildren();
  const key = crypto.randomUUID();
  const headers = { "Idempotency-Key": key, "Mingle-Crash": step };
  const first = await send(transaction, body, client, timeline, headers);
  if (first) {
    tell("The call ended before that step, so nothing crashed.");
    return first;
  }
  const begun = performance.now();
  const stores = timeline.crash(step);
  const until = stores.length ? `${stores.join(" and ")} had committed` : "no store had committed";
  tell(`The process crashed: its memory and its connections are gone; ${until}.`);
  if (!await untilBack(begun)) {
    tell("No process listens here again. Is `mingle dev` still there?");
    return { status: 0, body: { code: "crashed", detail: "the server does not come back" } };
  }
  tell(`A new process listens, after ${milliseconds(performance.now() - begun)}.`);
  const again = await repeat(transaction, body, client, timeline, key);
  if (again.status === 200) {
    if (again.repeated) timeline.recover();
    tell(again.repeated
      ? "The same call, with the same Idempotency-Key, got the answer of the first: it took effect once."
      : "The same call, with the same Idempotency-Key, ran now: the first had left nothing.");
  } else {
    tell("The same call, with the same Idempotency-Key, failed.");
  }
  return again;
}

export function transactionCard(transaction, client, history) {
  const out = element("output", { class: "answer" });
  const story = element("ol", { class: "story", "aria-live": "polite" });
  const fields = transaction.params.map((param) => ({
    name: param.name, type: param.type, field: field(param.shape, client.structs, `param-${param.name}`),
  }));
  const body = () => {
    const members = fields.map((part) => `${JSON.stringify(part.name)}:${part.field.text()}`);
    return `{${members.join(",")}}`;
  };
  const keep = (text, answer, step) => history.add({
    transaction: transaction.name, arguments: onOneLine(parse(text)), text: textOf(answer), step,
    isGood: answer.status === 200, took: answer.at_ms,
    again: () => {
      const values = parse(text);
      fields.forEach((part) => part.field.set(values[part.name]));
      card.scrollIntoView({ behavior: "smooth" });
    },
  });
  const run = async (one) => {
    const text = body();
    out.textContent = "";
    timeline.clear();
    const answer = await one(text);
    show(out, answer, timeline);
    return [text, answer];
  };
  const onCrash = (step) => client.guarded(out, async () => {
    const [text, answer] = await run((text) => crash(transaction, text, client, timeline, story, step));
    keep(text, answer, step);
  });
  const timeline = new Timeline(transaction, client.canCrash ? onCrash : null);
  const labels = fields.map((part) =>
    element("label", {}, `${part.name}: ${part.type}`, part.field.element));
  const form = element("form", {}, ...labels, element("button", {}, "call"));
  client.submits(form, out, async () => {
    story.replaceChildren();
    const [text, answer] = await run((text) => send(transaction, text, client, timeline, {}));
    keep(text, answer);
  });
  const card = element("article", { id: `transaction-${transaction.name}` },
    element("h3", {}, transaction.signature),
    element("p", { class: "docs" }, transaction.docs), form, out, timeline.element, story);
  return card;
}
