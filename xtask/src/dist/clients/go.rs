//! The Go runtime as a module: the archive that a module proxy serves.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{copy_program, write_client};
use crate::dist::serving::Served;
use crate::dist::zip::Zip;
use crate::dist::{Dist, VERSION, expect, files, source};
use crate::run::{Outcome, output, wait};

const README: &str = include_str!("go.md");

/// The script that tests a client; its argument is the address.
const SCRIPT: &str = r#"package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"till/bank"

	runtime "MODULE"
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		panic(err)
	}
}

func run(ctx context.Context, address string) error {
	client, err := bank.NewClient(address, bank.ClientConfig{})
	if err != nil {
		return err
	}
	ana, err := client.OpenAccount(ctx, "1", bank.Customer{Name: "ana"})
	if err != nil {
		return err
	}
	balance, err := client.Deposit(ctx, ana, 100)
	if err != nil {
		return err
	}
	_, err = client.Deposit(ctx, ana, -1)
	var failed *runtime.Error
	if !errors.As(err, &failed) || !errors.Is(err, bank.ErrRequire) {
		return fmt.Errorf("expected an error of the program, found %w", err)
	}
	fmt.Println(failed.RequireCode, balance, runtime.Version)
	return nil
}
"#;

/// Writes the archive.
pub fn make(dist: &Dist) -> Outcome {
    let module = module(dist)?;
    let runtime = output(dist.command().args(["gen", "go-runtime"]))?;
    let readme = README.replace("MODULE", &module).replace("VERSION", VERSION);
    let mut content = vec![
        ("go.mod".to_owned(), manifest(&module).into_bytes()),
        ("mingleclient.go".to_owned(), runtime.into_bytes()),
        ("README.md".to_owned(), readme.into_bytes()),
    ];
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        content.push((name.to_owned(), files::read(&source(name))?));
    }
    let mut zip = Zip::default();
    for (name, bytes) in &content {
        zip.add(&format!("{module}@v{VERSION}/{name}"), bytes)?;
    }
    files::write(&path(dist), zip.finish()?)
}

/// Serves the archive to Go as a module proxy does, and calls a served program with a client.
pub fn test(dist: &Dist) -> Outcome {
    let (folder, module) = (dist.workshop("go-tried")?, module(dist)?);
    let proxy = folder.join("proxy").join(&module).join("@v");
    std::fs::create_dir_all(&proxy).map_err(|error| format!("{}: {error}", proxy.display()))?;
    files::copy(&path(dist), &proxy.join(format!("v{VERSION}.zip")))?;
    files::write(&proxy.join(format!("v{VERSION}.mod")), manifest(&module))?;
    let about = format!("{{\"Version\": \"v{VERSION}\"}}");
    files::write(&proxy.join(format!("v{VERSION}.info")), about)?;
    let application = folder.join("till");
    let client = application.join("bank");
    std::fs::create_dir_all(&client).map_err(|error| format!("{}: {error}", client.display()))?;
    write_client(dist, "go", &client.join("bank.go"))?;
    let needs = format!("module till\n\ngo 1.24\n\nrequire {module} v{VERSION}\n");
    files::write(&application.join("go.mod"), needs)?;
    files::write(&application.join("main.go"), SCRIPT.replace("MODULE", &module))?;
    wait(go(&folder, &application).args(["build", "-o", "till", "."]))?;
    let served = Served::start(dist, &copy_program(&folder)?)?;
    let found = output(Command::new(application.join("till")).arg(&served.url))?;
    expect(&found, &format!("invalid 100 {VERSION}"))
}

/// Returns the command of Go in a folder, with the proxy as the only source of modules.
fn go(folder: &Path, application: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(application).envs([
        ("GOPROXY", format!("file://{}", folder.join("proxy").display())),
        ("GOMODCACHE", folder.join("modules").display().to_string()),
        // The modules of the cache can be deleted like other files.
        ("GOFLAGS", "-mod=mod -modcacherw".to_owned()),
        ("GONOSUMDB", "*".to_owned()),
        ("GOTOOLCHAIN", "local".to_owned()),
    ]);
    command
}

fn module(dist: &Dist) -> Result<String, String> {
    Ok(output(dist.command().args(["gen", "go-module"]))?.trim().to_owned())
}

fn manifest(module: &str) -> String {
    format!("module {module}\n\ngo 1.24\n")
}

fn path(dist: &Dist) -> PathBuf {
    dist.folder.join(format!("mingle-client-go-{VERSION}.zip"))
}
