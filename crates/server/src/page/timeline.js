// The phases of a transaction, and how one call went through them.

import { element } from "./forms.js";

export function milliseconds(value) {
  return `${value.toFixed(value < 10 ? 2 : 0)} ms`;
}

function count(number, what) {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

// What a phase does, a line for each kind.
function describe(phase) {
  const trips = phase.round_trips;
  const loops = trips.per_iteration.length;
  const parts = [count(trips.fixed, "round trip") + (loops ? `, more in ${count(loops, "loop")}` : "")];
  if (phase.worker) parts.push("runs in a worker beside the store");
  if (phase.reads.length) parts.push(`reads ${phase.reads.join(", ")}`);
  if (phase.writes.length) parts.push(`writes ${phase.writes.join(", ")}`);
  if (phase.records.length) parts.push(`keeps ${phase.records.join(", ")} for later phases`);
  return parts.map((part) => element("span", { class: "does" }, part));
}

function phaseRow(phase, index) {
  const store = phase.store ? `${phase.store} (${phase.level})` : "no store";
  const bar = element("span", { class: "bar", "aria-hidden": "true" });
  const row = element("li", { "data-state": "idle" },
    element("span", { class: "number" }, String(index + 1)),
    element("strong", {}, store), ...describe(phase),
    bar, element("span", { class: "live" }));
  return { row, bar, began: null, ended: null, waited: 0, retries: [] };
}

function stepRow(step, onCrash) {
  const row = element("li", { class: "step" });
  if (onCrash) {
    const button = element("button", { type: "button", class: "small crash", "data-step": step.step },
      "crash here");
    button.addEventListener("click", () => onCrash(step.step));
    row.append(button, " ");
  }
  row.append(element("span", {}, `A crash here leaves: ${step.leaves}`));
  return row;
}

// The last event of a phase as text, and the state that it leaves.
function told(name, data) {
  switch (name) {
    case "began": return ["runs", `runs, since ${milliseconds(data.at_ms)}`];
    case "waits": return ["waits", `waits for ${data.transactions.join(", ")}`];
    case "retries": return ["retries", `try ${data.attempts} failed: ${data.reason}`];
    default: {
      const parts = [`committed in ${milliseconds(data.took_ms)}`,
        count(data.attempts, "attempt"), count(data.round_trips, "round trip")];
      if (data.waited_ms > 0) parts.push(`waited ${milliseconds(data.waited_ms)} for others`);
      if (data.was_done) parts.push("another process had run it");
      return ["committed", parts.join(", ")];
    }
  }
}

export class Timeline {
  // `onCrash` is called with a step at which the process is to crash; without it none can be chosen.
  constructor(transaction, onCrash) {
    this.phases = transaction.phases.map(phaseRow);
    const steps = new Map(transaction.steps.map((step) => [step.step, stepRow(step, onCrash)]));
    const rows = this.phases.flatMap(({ row }, index) =>
      [steps.get(`before ${index}`), row, steps.get(`after ${index}`)]);
    this.element = element("ol", { class: "phases" }, ...rows.filter((row) => row));
    this.stores = transaction.phases.map((phase) => phase.store ?? "no store");
  }

  clear() {
    for (const phase of this.phases) {
      Object.assign(phase, { began: null, ended: null, waited: 0, retries: [] });
      phase.row.dataset.state = "idle";
      phase.row.querySelector(".live").textContent = "";
      phase.bar.replaceChildren();
    }
  }

  // Takes in an event of a call.
  on(name, data) {
    if (name === "starts-over") {
      this.clear();
      return;
    }
    const phase = this.phases[data.phase];
    if (!phase) return;
    const [state, text] = told(name, data);
    phase.row.dataset.state = state;
    phase.row.querySelector(".live").textContent = text;
    if (name === "began") phase.began = data.at_ms;
    if (name === "retries") phase.retries.push(data.at_ms);
    if (name === "committed") {
      phase.ended = data.at_ms;
      phase.waited = data.waited_ms;
    }
  }

  // Marks what a crash at a step leaves: phases that have committed, and phases that have not. Returns
  // the stores of the first. The last events of the call may not have arrived.
  crash(step) {
    const [moment, index] = step.split(" ");
    const done = Number(index) + (moment === "after" ? 1 : 0);
    this.phases.forEach(({ row }, place) => {
      row.dataset.state = place < done ? "committed" : "failed";
      row.querySelector(".live").textContent = place < done ? "committed before the crash" : "not yet";
    });
    return this.stores.slice(0, done);
  }

  // Marks the phases that the next process has run.
  recover() {
    for (const { row } of this.phases.filter(({ row }) => row.dataset.state === "failed")) {
      row.dataset.state = "committed";
      row.querySelector(".live").textContent = "committed after the crash";
    }
  }

  // Marks phases that have not ended.
  fail() {
    for (const { row } of this.phases) {
      if (["runs", "waits", "retries"].includes(row.dataset.state)) row.dataset.state = "failed";
    }
  }

  // Draws each phase on the time of the whole call.
  draw(total) {
    if (!(total > 0)) return;
    const place = (part, from, to) => {
      part.style.left = `${(100 * from) / total}%`;
      part.style.width = `${Math.max(0.6, (100 * (to - from)) / total)}%`;
      return part;
    };
    for (const phase of this.phases) {
      if (phase.began === null) continue;
      const ended = phase.ended ?? total;
      const parts = [place(element("i", { class: "ran" }), phase.began, ended)];
      if (phase.waited > 0) {
        const until = Math.min(ended, phase.began + phase.waited);
        parts.push(place(element("i", { class: "waited" }), phase.began, until));
      }
      phase.retries.forEach((at) => parts.push(place(element("i", { class: "retry" }), at, at)));
      phase.bar.replaceChildren(...parts);
    }
  }
}
