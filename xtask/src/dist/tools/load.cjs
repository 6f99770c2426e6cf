// Loads the extension in the place of the editor, whose own module is one in which everything exists.

"use strict";

const Module = require("node:module");

const anything = new Proxy(class {}, {
  get: (target, name) => (name === "prototype" ? target.prototype : anything),
  apply: () => anything,
  construct: () => ({}),
});

const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? anything : load(name, ...rest));

console.log(Object.keys(require(process.argv[2])).sort().join(", "));
