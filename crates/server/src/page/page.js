// The page of a program: its transactions, its objects, and the calls that were made here.

import { objectCard } from "./page/objects.js";
import { transactionCard } from "./page/calls.js";
import { element } from "./page/forms.js";
import { milliseconds } from "./page/timeline.js";

const tokenField = document.getElementById("token");
const status = document.getElementById("status");

// The number of calls that the page keeps.
const CALLS_MAX = 200;

// What all cards share. The session and the API token end with the page.
const client = {
  session: null,
  structs: {},
  canCrash: false,
  headers(more) {
    const all = { ...more };
    if (tokenField.value) all.Authorization = `Bearer ${tokenField.value}`;
    if (this.session) all["Mingle-Session"] = this.session;
    return all;
  },
  guarded(out, action) {
    action().catch((error) => {
      out.dataset.ok = "false";
      out.textContent = `the server cannot be reached: ${error.message}`;
    });
  },
  submits(form, out, action) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.guarded(out, action);
    });
  },
};

// A step as people count: from 1.
function stepName(step) {
  const [moment, index] = step.split(" ");
  return `${moment} phase ${Number(index) + 1}`;
}

const history = {
  list: document.getElementById("calls"),
  add(call) {
    const again = element("button", { type: "button", class: "small" }, "use again");
    again.addEventListener("click", call.again);
    const took = call.took === undefined ? "" : milliseconds(call.took);
    const row = element("li", { "data-ok": String(call.isGood) },
      element("span", { class: "when" }, `${new Date().toLocaleTimeString()} ${took}`),
      element("code", {}, `${call.transaction} ${call.arguments}`),
      element("span", { class: "what" }, call.text));
    if (call.step) row.append(element("span", { class: "when" }, `crashed ${stepName(call.step)}`));
    row.append(again);
    document.getElementById("no-calls").hidden = true;
    this.list.prepend(row);
    while (this.list.children.length > CALLS_MAX) this.list.lastChild.remove();
  },
};

function links(program) {
  const link = (kind, name) => element("a", { href: `#${kind}-${name}` }, name);
  return [
    element("h2", {}, "Transactions"), ...program.transactions.map(({ name }) => link("transaction", name)),
    element("h2", {}, "Objects"), ...program.objects.map(({ name }) => link("object", name)),
  ];
}

async function load() {
  const response = await fetch("/v1/program", { headers: client.headers({}) });
  const program = await response.json();
  if (!response.ok) {
    status.textContent = `${program.code}: ${program.detail}`;
    document.getElementById("token-form").hidden = false;
    return;
  }
  client.structs = program.structs;
  client.canCrash = program.can_crash;
  document.title = `${program.name} - Mingle`;
  document.getElementById("name").textContent = program.name;
  document.getElementById("token-form").hidden = !program.needs_token;
  document.getElementById("program").textContent = program.text;
  document.getElementById("links").replaceChildren(...links(program));
  document.getElementById("transactions").replaceChildren(element("h2", {}, "Transactions"),
    ...program.transactions.map((transaction) => transactionCard(transaction, client, history)));
  document.getElementById("objects").replaceChildren(element("h2", {}, "Objects"),
    ...program.objects.map((object) => objectCard(object, client)));
  status.textContent = "";
  document.body.dataset.ready = "true";
}

tokenField.addEventListener("change", load);
document.getElementById("token-form").addEventListener("submit", (event) => event.preventDefault());
load().catch((error) => { status.textContent = `the server cannot be reached: ${error.message}`; });
