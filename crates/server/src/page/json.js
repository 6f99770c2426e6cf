// JSON whose numbers stay exact: integers beyond 2^53 are of type BigInt, and other numbers that would be rounded
// keep their text.

function digits(number) {
  return number.replace(/[eE].*$/, "").replace(/[-.]/g, "").replace(/^0+|0+$/g, "");
}

export function parse(text) {
  return JSON.parse(text, (key, value, context) => {
    if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
    const source = context?.source ?? "";
    if (/^-?\d+$/.test(source)) return BigInt(source);
    return digits(source) === digits(String(value)) ? value : JSON.rawJSON?.(source) ?? value;
  });
}

function isPlain(value) {
  return value === null || typeof value !== "object" || JSON.isRawJSON?.(value) === true;
}

// The text of a value: lists of plain values on one line, all else indented.
export function print(value, indent = "") {
  if (typeof value === "bigint") return String(value);
  if (isPlain(value)) return JSON.stringify(value);
  const more = `${indent}  `;
  if (Array.isArray(value)) {
    if (value.every(isPlain)) return `[${value.map((one) => print(one)).join(", ")}]`;
    return `[\n${value.map((one) => more + print(one, more)).join(",\n")}\n${indent}]`;
  }
  const members = Object.entries(value)
    .map(([name, one]) => `${more}${JSON.stringify(name)}: ${print(one, more)}`);
  return members.length ? `{\n${members.join(",\n")}\n${indent}}` : "{}";
}
