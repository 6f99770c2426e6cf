"use strict";

// The client's session and its API token. Both end with the page.
let session = null;
const tokenField = document.getElementById("token");
const status = document.getElementById("status");

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function headers(more) {
  const all = { ...more };
  if (tokenField.value) all.Authorization = `Bearer ${tokenField.value}`;
  if (session) all["Mingle-Session"] = session;
  return all;
}

// Text is typed without quotes, all other values as JSON. A value that does not parse is sent
// unchanged, and the server's error names the expected type.
function argument(text, isText) {
  if (isText) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function milliseconds(value) {
  return `${value.toFixed(value < 10 ? 2 : 0)} ms`;
}

function describe(phase) {
  const trips = phase.round_trips.fixed;
  const parts = [`${trips} round trip${trips === 1 ? "" : "s"}`];
  const more = phase.round_trips.per_iteration.length;
  if (more) parts[0] += `, more in ${more} loop${more === 1 ? "" : "s"}`;
  if (phase.reads.length) parts.push(`reads ${phase.reads.join(", ")}`);
  if (phase.writes.length) parts.push(`writes ${phase.writes.join(", ")}`);
  if (phase.records.length) parts.push(`keeps ${phase.records.join(", ")} for later phases`);
  return parts.join("; ");
}

function phaseItem(phase) {
  const store = phase.store ? `${phase.store} (${phase.level})` : "no store";
  return element("li", { "data-state": "idle" },
    element("strong", {}, store), ` ${phase.mode}s `,
    element("span", { class: "does" }, describe(phase)),
    element("span", { class: "live" }));
}

function show(items, index, state, text) {
  const item = items[index];
  if (!item) return;
  item.dataset.state = state;
  item.querySelector(".live").textContent = text;
}

// Each event of a call, as the server tells of it.
function onEvent(name, data, items, out) {
  if (name === "began") {
    show(items, data.phase, "runs", `runs, since ${milliseconds(data.at_ms)}`);
  } else if (name === "waits") {
    show(items, data.phase, "waits", `waits for ${data.transactions.join(", ")}`);
  } else if (name === "retries") {
    show(items, data.phase, "retries", `try ${data.attempts} failed: ${data.reason}`);
  } else if (name === "committed") {
    const took = [`committed in ${milliseconds(data.took_ms)}`,
      `${data.attempts} attempt${data.attempts === 1 ? "" : "s"}`,
      `${data.round_trips} round trip${data.round_trips === 1 ? "" : "s"}`];
    if (data.waited_ms > 0) took.push(`waited ${milliseconds(data.waited_ms)} for others`);
    if (data.was_done) took.push("somebody else had run it");
    show(items, data.phase, "committed", took.join(", "));
  } else if (name === "starts-over") {
    items.forEach((item) => { item.dataset.state = "idle"; });
  } else if (name === "answer") {
    if (data.session) session = data.session;
    answer(out, data.status, data.body, data.at_ms, items);
  }
}

function answer(out, code, body, took, items) {
  const isGood = code === 200;
  const text = isGood ? JSON.stringify(body.result) : `${body.code}: ${body.detail}`;
  out.dataset.ok = String(isGood);
  out.textContent = took === undefined ? text : `${text}  (${milliseconds(took)})`;
  if (!isGood) {
    items.filter((item) => ["runs", "waits", "retries"].includes(item.dataset.state))
      .forEach((item) => { item.dataset.state = "failed"; });
  }
}

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
      if (found) onOne(found[1], JSON.parse(found[2]));
    }
  }
}

async function call(transaction, form, items, out) {
  const body = {};
  for (const param of transaction.params) {
    const field = form.elements[`param-${param.name}`];
    if (field.value === "" && param.type.startsWith("option<")) continue;
    body[param.name] = argument(field.value, param.is_text);
  }
  items.forEach((_, index) => show(items, index, "idle", ""));
  out.textContent = "";
  const response = await fetch(`/v1/transactions/${encodeURIComponent(transaction.name)}`, {
    method: "POST",
    headers: headers({ "Content-Type": "application/json", Accept: "text/event-stream" }),
    body: JSON.stringify(body),
  });
  if (!response.ok || !response.headers.get("content-type").startsWith("text/event-stream")) {
    answer(out, response.ok ? 500 : response.status, await response.json(), undefined, items);
    return;
  }
  await readEvents(response, (name, data) => onEvent(name, data, items, out));
}

function guarded(action, out) {
  return (event) => {
    event.preventDefault();
    action().catch((error) => {
      out.dataset.ok = "false";
      out.textContent = `the server cannot be reached: ${error.message}`;
    });
  };
}

function transactionCard(transaction) {
  const items = transaction.phases.map(phaseItem);
  const out = element("output", { class: "answer" });
  const form = element("form", {});
  for (const param of transaction.params) {
    form.append(element("label", {}, `${param.name}: ${param.type}`,
      element("input", { name: `param-${param.name}`, autocomplete: "off" })));
  }
  form.append(element("button", {}, "call"));
  form.addEventListener("submit", guarded(() => call(transaction, form, items, out), out));
  return element("article", { id: `transaction-${transaction.name}` },
    element("h3", {}, transaction.signature),
    element("p", { class: "docs" }, transaction.docs),
    element("ol", { class: "phases" }, ...items), form, out);
}

async function look(object, form, out) {
  const key = encodeURIComponent(form.elements.key.value);
  const response = await fetch(`/v1/objects/${encodeURIComponent(object.name)}/${key}`, {
    headers: headers({}),
  });
  const body = await response.json();
  session = response.headers.get("mingle-session") ?? session;
  out.dataset.ok = String(response.ok);
  out.textContent = response.ok ? JSON.stringify(body, null, 2) : `${body.code}: ${body.detail}`;
}

function objectCard(object) {
  const out = element("output", { class: "answer" });
  const form = element("form", {},
    element("label", {}, object.key, element("input", { name: "key", autocomplete: "off" })),
    element("button", {}, "show"));
  form.addEventListener("submit", guarded(() => look(object, form, out), out));
  return element("article", { id: `object-${object.name}` },
    element("h3", {}, `${object.name} in ${object.store}`),
    element("p", { class: "docs" }, object.docs), form, out);
}

async function load() {
  const response = await fetch("/v1/program", { headers: headers({}) });
  const program = await response.json();
  if (!response.ok) {
    status.textContent = `${program.code}: ${program.detail}`;
    return;
  }
  document.getElementById("program").textContent = program.text;
  document.getElementById("transactions").replaceChildren(
    element("h2", {}, "Transactions"), ...program.transactions.map(transactionCard));
  document.getElementById("objects").replaceChildren(
    element("h2", {}, "Objects"), ...program.objects.map(objectCard));
  status.textContent = "";
  document.body.dataset.ready = "true";
}

tokenField.addEventListener("change", load);
load().catch((error) => { status.textContent = `the server cannot be reached: ${error.message}`; });
