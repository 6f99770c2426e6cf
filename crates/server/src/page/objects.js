// Looking at objects by their keys.

import { element, field, remember } from "./forms.js";
import { parse, print } from "./json.js";

// The key of an object as a part of a path: text as it is, all other keys as JSON.
function pathOf(object, text) {
  const key = text.startsWith("\"") ? JSON.parse(text) : text;
  remember(object.name, key);
  return `/v1/objects/${encodeURIComponent(object.name)}/${encodeURIComponent(key)}`;
}

export function objectCard(object, client) {
  const out = element("output", { class: "answer" });
  const key = field(object.shape, client.structs, "key", object.name);
  const form = element("form", {},
    element("label", {}, object.key, key.element), element("button", {}, "show"));
  client.submits(form, out, async () => {
    const response = await fetch(pathOf(object, key.text()), { headers: client.headers({}) });
    const body = parse(await response.text());
    client.session = response.headers.get("mingle-session") ?? client.session;
    out.dataset.ok = String(response.ok);
    out.textContent = response.ok ? print(body) : `${body.code}: ${body.detail}`;
  });
  return element("article", { id: `object-${object.name}` },
    element("h3", {}, `${object.name} in ${object.store}`),
    element("p", { class: "docs" }, object.docs), form, out);
}
