//! The TypeScript runtime as an npm package: JavaScript, and the types beside it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{copy_program, repository, write_client};
use crate::dist::editor::tools;
use crate::dist::serving::Served;
use crate::dist::{Dist, VERSION, expect, files, source};
use crate::run::{Outcome, output, wait};

const README: &str = include_str!("typescript.md");

/// The script that tests a client; its argument is the address.
const SCRIPT: &str = r#"
import { Client, Customer, RequireError } from "./bank.js";
import * as runtime from "mingle-client";

const client = new Client(process.argv[2] ?? "");
const ana = await client.openAccount("1", new Customer("ana"));
const balance: bigint = await client.deposit(ana, 100);
const kept: runtime.Session = client.session;
try {
  await client.deposit(ana, -1);
} catch (error) {
  if (!(error instanceof RequireError) || !(error instanceof runtime.RequireError)) throw error;
  console.log(error.requireCode, balance, kept.token !== "");
}
"#;

/// Compiles the runtime and packs it.
pub fn make(dist: &Dist) -> Outcome {
    let folder = dist.workshop("npm")?;
    let runtime = output(dist.command().args(["gen", "typescript-runtime"]))?;
    files::write(&folder.join("index.ts"), runtime)?;
    // The manifest says that the module is an ES module, so it is written before the compiler runs.
    files::write(&folder.join("package.json"), manifest()?)?;
    compile(dist, &folder, &["--declaration", "--lib", "es2022,dom,dom.iterable", "index.ts"])?;
    files::write(&folder.join("README.md"), README)?;
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        files::copy(&source(name), &folder.join(name))?;
    }
    let mut pack = Command::new("npm");
    pack.args(["pack", "--loglevel=error", "--pack-destination"]).arg(&dist.folder);
    output(pack.current_dir(&folder))?;
    files::read(&path(dist)).map(drop)
}

/// Installs the package in an application and calls a served program with a client.
pub fn test(dist: &Dist) -> Outcome {
    let folder = dist.workshop("npm-tried")?;
    files::write(&folder.join("package.json"), "{ \"private\": true, \"type\": \"module\" }\n")?;
    let mut install = Command::new("npm");
    install.args(["install", "--offline", "--no-audit", "--no-fund", "--loglevel=error"]);
    wait(install.arg(path(dist)).current_dir(&folder))?;
    let mut import = Command::new("node");
    let script = "import('mingle-client').then((it) => console.log(typeof it.Session))";
    expect(&output(import.args(["-e", script]).current_dir(&folder))?, "function")?;
    write_client(dist, "typescript", &folder.join("bank.ts"))?;
    // The test does not cover the types of Node.
    let process = "declare const process: { argv: readonly string[] };";
    files::write(&folder.join("main.ts"), format!("{process}\n{SCRIPT}"))?;
    let strict = ["--noUnusedLocals", "--exactOptionalPropertyTypes", "--verbatimModuleSyntax"];
    let rest = ["--lib", "es2022,dom,dom.iterable", "main.ts"];
    compile(dist, &folder, &[strict.as_slice(), &rest].concat())?;
    let served = Served::start(dist, &copy_program(&folder)?)?;
    let mut run = Command::new("node");
    let found = output(run.arg("main.js").arg(&served.url).current_dir(&folder))?;
    expect(&found, "invalid 100n true")
}

/// Runs the compiler of TypeScript in a folder.
fn compile(dist: &Dist, folder: &Path, words: &[&str]) -> Outcome {
    let compiler = tools(dist)?.join("node_modules/typescript/bin/tsc");
    let fixed = ["--strict", "--target", "es2022", "--module", "nodenext"];
    wait(Command::new("node").arg(compiler).args(fixed).args(words).current_dir(folder))
}

fn path(dist: &Dist) -> PathBuf {
    dist.folder.join(format!("mingle-client-{VERSION}.tgz"))
}

fn manifest() -> Result<String, String> {
    Ok(format!(
        "{{
  \"name\": \"mingle-client\",
  \"version\": \"{VERSION}\",
  \"description\": \"The runtime of TypeScript clients for Mingle programs\",
  \"license\": \"MIT OR Apache-2.0\",
  \"repository\": {{ \"type\": \"git\", \"url\": \"{}\" }},
  \"keywords\": [\"transactions\", \"consistency\", \"database\"],
  \"type\": \"module\",
  \"sideEffects\": false,
  \"engines\": {{ \"node\": \">=20\" }},
  \"exports\": {{ \".\": {{ \"types\": \"./index.d.ts\", \"default\": \"./index.js\" }} }},
  \"files\": [\"index.js\", \"index.d.ts\", \"LICENSE-APACHE\", \"LICENSE-MIT\"]
}}
",
        repository()?
    ))
}
