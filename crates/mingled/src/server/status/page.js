"use strict";

const PERIOD_MS = 1000;
const POINTS = 120;
const seen = { rate: [], lag: [] };
let before = null;

const $ = (id) => document.getElementById(id);

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  return made;
}

function span(seconds) {
  const units = [["d", 86_400], ["h", 3_600], ["min", 60], ["s", 1]];
  const [unit, size] = units.find(([, size]) => seconds >= size) ?? ["s", 1];
  return `${Math.floor(seconds / size)} ${unit}`;
}

function lag(ms) {
  return ms < 10_000 ? `${ms} ms` : span(ms / 1000);
}

const KINDS = { here: "good", connected: "good", "coming-up": "warn", fencing: "warn", away: "bad", fenced: "bad" };

function remark(center) {
  switch (center.state) {
    case "coming-up": return "copies the data of another data center, and serves then";
    case "away": return `${center.why ?? "no connection"}. If it is lost for good: FENCE ${center.name}`;
    case "fencing": return "the others agree on a cut of its transactions";
    case "fenced": return `given up; to bring it back: ADMIT ${center.name}`;
    default: return "";
  }
}

function showCenters(centers) {
  $("centers").replaceChildren(...centers.map((center) => {
    const row = document.createElement("tr");
    const since = Math.max(0, (Date.now() - center.since_ms) / 1000);
    row.append(
      element("td", center.name),
      element("td", center.state, { "data-kind": KINDS[center.state] ?? "warn" }),
      element("td", span(since)),
      element("td", center.lag_ms === null ? "-" : lag(center.lag_ms), { class: "number" }),
      element("td", `${center.incarnation}`, { class: "number" }),
      element("td", remark(center), { class: "remark" }),
    );
    return row;
  }));
}

function showHeld(held) {
  $("held").hidden = held.length === 0;
  $("held-back").replaceChildren(...held.map(({ stage, of, since_ms, why }) => {
    const since = since_ms === null ? "from the start" : `for ${span(Math.max(0, Date.now() - since_ms) / 1000)}`;
    return element("li", `${stage} of ${of === "strong" ? "strong transactions" : `what ${of} wrote`}, ${since}: ${why}`);
  }));
}

function showFigures(facts) {
  const figures = [
    [facts.clients.address, "address for clients"],
    [`${facts.clients.connected} of ${facts.clients.at_most}`, "clients"],
    [facts.clients.requests.toLocaleString("en"), "requests"],
    [facts.clients.slow_requests.toLocaleString("en"), "slow requests"],
    [facts.clients.refused.toLocaleString("en"), "clients refused"],
    [facts.clients.wrong_passwords.toLocaleString("en"), "wrong passwords"],
    [facts.clients.denied.toLocaleString("en"), "requests denied"],
    [facts.unfolded_operations.toLocaleString("en"), "operations not folded"],
    [facts.durability, "durability"],
    [`${facts.partitions}`, "partitions"],
    [facts.strong_only.join(", ") || "none", "strong only"],
    [span(facts.uptime_seconds), `since start ${facts.boot}`],
    [facts.version, "version"],
  ];
  $("figures").replaceChildren(...figures.map(([value, name]) => {
    const figure = document.createElement("div");
    figure.append(element("b", value), element("span", name));
    return figure;
  }));
}

function draw(id, points) {
  const most = Math.max(1, ...points);
  const place = (value, index) => `${index + POINTS - points.length},${100 - (95 * value) / most}`;
  const graph = $(id);
  graph.setAttribute("viewBox", `0 0 ${POINTS - 1} 100`);
  graph.setAttribute("preserveAspectRatio", "none");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  line.setAttribute("points", points.map(place).join(" "));
  graph.replaceChildren(line);
  const last = points.at(-1) ?? 0;
  $(`${id}-now`).textContent = `${Math.round(last).toLocaleString("en")} (at most ${Math.round(most).toLocaleString("en")})`;
}

function note(id, value) {
  seen[id].push(value);
  seen[id].splice(0, seen[id].length - POINTS);
  draw(id, seen[id]);
}

function show(facts) {
  document.title = `mingled ${facts.data_center}`;
  $("name").textContent = facts.data_center;
  const own = facts.data_centers.find((center) => center.name === facts.data_center);
  const away = facts.data_centers.filter((center) => center.state === "away").map((center) => center.name);
  const state = facts.is_ready ? (away.length ? `serves; away: ${away.join(", ")}` : "serves") : `does not serve: ${own?.state ?? "unknown"}`;
  $("state").textContent = state;
  $("state").dataset.kind = facts.is_ready ? (away.length ? "warn" : "good") : "bad";
  showFigures(facts);
  showCenters(facts.data_centers);
  showHeld(facts.held_back);
  $("notes").replaceChildren(...facts.notes.slice().reverse().map((text) => element("li", text)));
  if (facts.notes.length === 0) {
    $("notes").replaceChildren(element("li", "none: no connection has ended, and there was no alarm"));
  }
  const now = performance.now();
  if (before !== null && facts.boot === before.boot) {
    note("rate", Math.max(0, facts.clients.requests - before.requests) / ((now - before.at) / 1000));
  }
  before = { requests: facts.clients.requests, at: now, boot: facts.boot };
  note("lag", Math.max(0, ...facts.data_centers.map((center) => center.lag_ms ?? 0)));
}

async function renew() {
  try {
    const answer = await fetch("status.json", { signal: AbortSignal.timeout(5000) });
    if (!answer.ok) {
      throw new Error((await answer.text()).trim());
    }
    show(await answer.json());
  } catch (error) {
    $("state").textContent = `no answer: ${error.message}`;
    $("state").dataset.kind = "bad";
    before = null;
  }
  setTimeout(renew, PERIOD_MS);
}

renew();
