// Looking at objects: one by its key, or all of a kind, page by page.

import { element, field, onOneLine, remember } from "./forms.js";
import { parse, print } from "./json.js";

// The key of an object as a part of a path: text as it is, all other keys as JSON.
function pathOf(object, text) {
  const key = text.startsWith("\"") ? JSON.parse(text) : text;
  remember(object.name, key);
  return `/v1/objects/${encodeURIComponent(object.name)}/${encodeURIComponent(key)}`;
}

// A list of objects, and what asks for its first page, or for the next one. A click on an object puts its key in the form.
function listOf(object, client, key, out) {
  const rows = element("ol", { class: "listed", hidden: "" });
  const more = element("button", { type: "button", class: "small", hidden: "" }, "more");
  let next = null;
  function row(found) {
    const value = found[object.key];
    remember(object.name, value);
    const pick = element("button", { type: "button", class: "small" }, onOneLine(value));
    pick.addEventListener("click", () => { key.set(value); out.textContent = print(found); out.dataset.ok = "true"; });
    const rest = Object.entries(found).filter(([name]) => name !== object.key);
    const shown = rest.map(([name, field]) => `${name}: ${onOneLine(field)}`).join(", ");
    return element("li", {}, pick, element("span", {}, shown));
  }
  async function page() {
    const after = next === null ? "" : `?after=${encodeURIComponent(next)}`;
    const path = `/v1/objects/${encodeURIComponent(object.name)}${after}`;
    const response = await fetch(path, { headers: client.headers({}) });
    const body = parse(await response.text());
    client.session = response.headers.get("mingle-session") ?? client.session;
    out.dataset.ok = String(response.ok);
    out.textContent = response.ok ? "" : `${body.code}: ${body.detail}`;
    if (!response.ok) return;
    rows.append(...body.objects.map(row));
    if (rows.children.length === 0) out.textContent = "There are none.";
    rows.hidden = rows.children.length === 0;
    next = body.next;
    more.hidden = next === null;
  }
  more.addEventListener("click", () => client.guarded(out, page));
  const first = () => { next = null; rows.replaceChildren(); return page(); };
  return { element: element("div", {}, rows, more), first };
}

export function objectCard(object, client) {
  const out = element("output", { class: "answer" });
  const key = field(object.shape, client.structs, "key", object.name);
  const all = element("button", { type: "button", class: "list" }, "list");
  const form = element("form", {},
    element("label", {}, object.key, key.element), element("button", {}, "show"), all);
  const list = listOf(object, client, key, out);
  all.addEventListener("click", () => client.guarded(out, list.first));
  client.submits(form, out, async () => {
    const response = await fetch(pathOf(object, key.text()), { headers: client.headers({}) });
    const body = parse(await response.text());
    client.session = response.headers.get("mingle-session") ?? client.session;
    out.dataset.ok = String(response.ok);
    out.textContent = response.ok ? print(body) : `${body.code}: ${body.detail}`;
  });
  return element("article", { id: `object-${object.name}` },
    element("h3", {}, `${object.name} in ${object.store}`),
    element("p", { class: "docs" }, object.docs), form, list.element, out);
}
