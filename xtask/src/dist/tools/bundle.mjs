// Bundles the extension for VS Code into one file, takes the bundled packages out of its manifest, and writes down
// their licences. Arguments: the source, and the folder of the extension.

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const [source, folder] = process.argv.slice(2);
const modules = join(dirname(fileURLToPath(import.meta.url)), "node_modules");

const { metafile } = await build({
  absWorkingDir: dirname(modules),
  entryPoints: [source],
  outfile: join(folder, "extension.js"),
  bundle: true,
  external: ["vscode"],
  format: "cjs",
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
  minify: true,
  nodePaths: [modules],
  platform: "node",
  target: "node18",
});

const packages = new Set();
for (const path of Object.keys(metafile.inputs)) {
  const found = path.match(/^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//);
  if (found) packages.add(join(dirname(modules), found[1]));
}

let notices = "The extension contains these packages.\n";
for (const path of [...packages].sort()) {
  const { name, version, license } = JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
  const file = readdirSync(path).find((entry) => /^licen[cs]e/i.test(entry));
  if (file === undefined) throw new Error(`${name} has no text of its licence`);
  const text = readFileSync(join(path, file), "utf8").trim();
  notices += `\n${"=".repeat(80)}\n${name} ${version}: ${license}\n\n${text}\n`;
}
if (packages.size === 0) throw new Error("nothing was bundled");
writeFileSync(join(folder, "THIRD-PARTY-NOTICES.txt"), notices);

const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
delete manifest.dependencies;
writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
