// Starts `mingle lsp` and connects the editor to it.

"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

// The server links codes of diagnostics to pages of this scheme and gives their text.
const EXPLAIN_SCHEME = "mingle-explain";

let client;

function createClient(command) {
  const run = { command, args: ["lsp"] };
  return new LanguageClient(
    "mingle",
    "Mingle",
    { run, debug: run },
    {
      documentSelector: [
        { scheme: "file", language: "mingle" },
        { scheme: "untitled", language: "mingle" },
      ],
      initializationOptions: { explainScheme: EXPLAIN_SCHEME },
    },
  );
}

async function start() {
  const command = vscode.workspace.getConfiguration("mingle").get("command", "mingle");
  client = createClient(command);
  try {
    await client.start();
  } catch (error) {
    vscode.window.showErrorMessage(
      `Mingle: cannot start "${command} lsp": ${error.message}. ` +
        `The setting "mingle.command" says where the command is.`,
    );
  }
}

async function stop() {
  const stopped = client;
  client = undefined;
  if (stopped?.isRunning()) {
    await stopped.stop();
  }
}

/** Gives the page of a diagnostic's code: `mingle-explain:/M0302.md`. */
const explanations = {
  async provideTextDocumentContent(uri) {
    const code = uri.path.replace(/^\//, "").replace(/\.md$/, "");
    return client?.sendRequest("mingle/explain", { code });
  },
};

async function activate(context) {
  context.subscriptions.push(
    vscode.workspace.registerTextDocumentContentProvider(EXPLAIN_SCHEME, explanations),
    vscode.commands.registerCommand("mingle.restart", async () => {
      await stop();
      await start();
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
