// Form fields for the types of the language. Each field has an element, `text()`, which returns the
// value as JSON text, and `set(value)`.

import { print } from "./json.js";

export function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// Keys of objects that were seen on this page, offered where a key is typed.
const known = new Map();

export function remember(object, key) {
  if (key === undefined || key === null || typeof key === "object") return;
  if (!known.has(object)) {
    const list = element("datalist", { id: `known-${object}` });
    document.body.append(list);
    known.set(object, { list, keys: new Set() });
  }
  const { list, keys } = known.get(object);
  const text = String(key);
  if (keys.has(text)) return;
  keys.add(text);
  list.append(element("option", { value: text }));
}

// The attributes of the input of each plain type, and the values that are JSON as they are typed.
const PLAIN = {
  int: { attributes: { inputmode: "numeric", placeholder: "0" }, raw: /^-?\d+$/ },
  float: { attributes: { inputmode: "decimal", placeholder: "0.0" }, raw: /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/ },
  decimal: { attributes: { inputmode: "decimal", placeholder: "0.00" } },
  bytes: { attributes: { placeholder: "base64" } },
  time: { attributes: { placeholder: "2026-01-31T12:00:00Z" } },
  date: { attributes: { type: "date" } },
  string: { attributes: {} },
};

function plain(shape, name, suggestions) {
  const { attributes, raw } = PLAIN[shape.kind] ?? PLAIN.string;
  const input = element("input", { name, autocomplete: "off", ...attributes });
  if (suggestions) input.setAttribute("list", `known-${suggestions}`);
  const parts = [input];
  if (shape.kind === "time") {
    const now = element("button", { type: "button", class: "small" }, "now");
    now.addEventListener("click", () => { input.value = new Date().toISOString(); });
    parts.push(now);
  }
  return {
    element: parts.length === 1 ? input : element("span", { class: "row" }, ...parts),
    // A value of another form is sent as text, and the server's error names the expected type.
    text: () => (raw?.test(input.value.trim()) ? input.value.trim() : JSON.stringify(input.value)),
    set: (value) => { input.value = value ?? ""; },
  };
}

function bool(name) {
  const input = element("input", { name, type: "checkbox", role: "switch" });
  return {
    element: input,
    text: () => String(input.checked),
    set: (value) => { input.checked = value === true; },
  };
}

// A JSON document. A text that is none is sent as it is, and the server's error says where it is wrong.
function json(name) {
  const input = element("textarea", { name, rows: "3", spellcheck: "false", placeholder: "{ }" });
  return {
    element: input,
    text: () => input.value.trim() || "null",
    set: (value) => { input.value = value === undefined ? "" : print(value); },
  };
}

function choice(shape, name) {
  const options = shape.values.map((value) => element("option", { value }, value));
  const input = element("select", { name }, ...options);
  return {
    element: input,
    text: () => JSON.stringify(input.value),
    set: (value) => { input.value = value ?? shape.values[0]; },
  };
}

function reference(shape, structs, name) {
  const inner = field(shape.key, structs, name, shape.object);
  const keep = (value) => { remember(shape.object, value); return value; };
  return {
    element: inner.element,
    text: () => {
      const text = inner.text();
      keep(text.startsWith("\"") ? JSON.parse(text) : text);
      return text;
    },
    set: (value) => inner.set(keep(value)),
  };
}

function option(shape, structs, name) {
  const given = element("input", { type: "checkbox", "aria-label": `${name} is given` });
  const holder = element("span", { class: "row" }, given, "none");
  let inner = null;
  const isNested = shape.of.kind === "option" || shape.of.kind === "json";
  function give(isGiven) {
    given.checked = isGiven;
    inner = isGiven ? inner ?? field(shape.of, structs, name) : inner;
    holder.replaceChildren(given, isGiven ? inner.element : "none");
  }
  given.addEventListener("change", () => give(given.checked));
  return {
    element: holder,
    text: () => {
      if (!given.checked) return "null";
      return isNested ? `{"some":${inner.text()}}` : inner.text();
    },
    set: (value) => {
      const isGiven = value !== null && value !== undefined;
      give(isGiven);
      const isWrapped = isNested && isGiven && typeof value === "object" && "some" in value;
      if (isGiven) inner.set(isWrapped ? value.some : value);
    },
  };
}

function list(shape, structs, name) {
  const items = [];
  const rows = element("ol", { class: "items" });
  const more = element("button", { type: "button", class: "small" }, "add");
  function add(value) {
    const item = field(shape.of, structs, name);
    if (value !== undefined) item.set(value);
    const less = element("button", { type: "button", class: "small", "aria-label": "remove" }, "×");
    const row = element("li", {}, item.element, less);
    less.addEventListener("click", () => {
      items.splice(items.indexOf(item), 1);
      row.remove();
    });
    items.push(item);
    rows.append(row);
  }
  more.addEventListener("click", () => add());
  return {
    element: element("div", {}, rows, more),
    text: () => `[${items.map((item) => item.text()).join(",")}]`,
    set: (value) => {
      items.length = 0;
      rows.replaceChildren();
      (value ?? []).forEach(add);
    },
  };
}

function struct(shape, structs, name) {
  const fields = (structs[shape.name] ?? [])
    .map((part) => ({ ...part, field: field(part.shape, structs, `${name}-${part.name}`) }));
  const labels = fields.map((part) => element("label", {}, part.name, part.field.element));
  return {
    element: element("fieldset", {}, element("legend", {}, shape.name), ...labels),
    text: () => {
      const members = fields.map((part) => `${JSON.stringify(part.name)}:${part.field.text()}`);
      return `{${members.join(",")}}`;
    },
    set: (value) => fields.forEach((part) => part.field.set(value?.[part.name])),
  };
}

export function field(shape, structs, name, suggestions) {
  switch (shape.kind) {
    case "bool": return bool(name);
    case "enum": return choice(shape, name);
    case "json": return json(name);
    case "ref": return reference(shape, structs, name);
    case "option": return option(shape, structs, name);
    case "list": return list(shape, structs, name);
    case "struct": return struct(shape, structs, name);
    default: return plain(shape, name, suggestions);
  }
}

// The arguments of a call on one line.
export function onOneLine(value) {
  return print(value).replace(/\n\s*/g, " ");
}
