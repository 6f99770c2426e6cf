//! The Python runtime as a wheel. A wheel is a zip archive with a list of its files and their digests.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{copy_program, repository, write_client};
use crate::dist::serving::Served;
use crate::dist::zip::Zip;
use crate::dist::{Dist, VERSION, expect, files, sha256, source};
use crate::run::{Outcome, output, wait};

const README: &str = include_str!("python.md");

/// The script that tests a client; its arguments are the address and the expected result.
const SCRIPT: &str = r#"
import sys
import bank, mingle_client

client = bank.Client(sys.argv[1])
assert bank.Client.show.__module__ == "bank" and bank.RequireError is mingle_client.RequireError
ana = client.open_account("1", bank.Customer("ana"))
assert client.deposit(ana, 100) == 100
try:
    client.deposit(ana, -1)
except bank.RequireError as error:
    print(error.require_code, mingle_client.__version__)
client.close()
"#;

/// Writes the wheel.
pub fn make(dist: &Dist) -> Outcome {
    let runtime = output(dist.command().args(["gen", "python-runtime"]))?;
    let about = format!("mingle_client-{VERSION}.dist-info");
    let mut content = vec![
        ("mingle_client/__init__.py".to_owned(), runtime.into_bytes()),
        // Tells type checkers to use the types of the package.
        ("mingle_client/py.typed".to_owned(), Vec::new()),
        (format!("{about}/METADATA"), metadata()?.into_bytes()),
        (format!("{about}/WHEEL"), wheel().into_bytes()),
    ];
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        content.push((format!("{about}/licenses/{name}"), files::read(&source(name))?));
    }
    let (mut zip, mut record) = (Zip::default(), String::new());
    for (name, bytes) in &content {
        zip.add(name, bytes)?;
        let digest = sha256::base64_url(&sha256::digest(bytes));
        record.extend([format!("{name},sha256={digest},{}\n", bytes.len())]);
    }
    let name = format!("{about}/RECORD");
    record.extend([format!("{name},,\n")]);
    zip.add(&name, record.as_bytes())?;
    files::write(&path(dist), zip.finish()?)
}

/// Installs the wheel into an environment of its own and calls a served program with a client.
pub fn test(dist: &Dist) -> Outcome {
    let folder = dist.workshop("python-tried")?;
    wait(Command::new("python3").args(["-m", "venv"]).arg(folder.join("env")))?;
    let python = folder.join("env/bin/python");
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]);
    wait(install.arg(path(dist)))?;
    write_client(dist, "python", &folder.join("bank.py"))?;
    let served = Served::start(dist, &copy_program(&folder)?)?;
    let found = run(&python, &folder, &served.url)?;
    expect(&found, &format!("invalid {VERSION}"))
}

fn run(python: &Path, folder: &Path, url: &str) -> Result<String, String> {
    let mut script = Command::new(python);
    output(script.args(["-B", "-c", SCRIPT, url]).current_dir(folder))
}

fn path(dist: &Dist) -> PathBuf {
    dist.folder.join(format!("mingle_client-{VERSION}-py3-none-any.whl"))
}

fn wheel() -> String {
    format!(
        "Wheel-Version: 1.0\nGenerator: mingle {VERSION}\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
}

fn metadata() -> Result<String, String> {
    Ok(format!(
        "Metadata-Version: 2.4
Name: mingle-client
Version: {VERSION}
Summary: The runtime of Python clients for Mingle programs
Project-URL: Repository, {}
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-APACHE
License-File: LICENSE-MIT
Requires-Python: >=3.10
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

{README}",
        repository()?
    ))
}
