//! The crates that users depend on, as packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Dist, VERSION, files, target};
use crate::run::{Outcome, cargo, output, root, wait};

/// Packages all published crates, without checking the contents.
pub fn make(_: &Dist) -> Outcome {
    let (published, others) = members()?;
    wait(package(&others).arg("--no-verify"))?;
    eprintln!("    {} crates: {}", published.len(), published.join(", "));
    Ok(())
}

/// Compiles each crate from its package. The package must also have every file that its code
/// includes.
pub fn test(_: &Dist) -> Outcome {
    let (published, others) = members()?;
    // The compiled code is not run, so it needs no debug information.
    wait(package(&others).env("CARGO_PROFILE_DEV_DEBUG", "0"))?;
    published.iter().try_for_each(|name| check_includes(name))
}

/// Returns the command that packages all crates but `others`. It does not list the tests that are
/// left out.
fn package(others: &[String]) -> Command {
    let mut command = cargo(&["package", "--workspace", "--allow-dirty", "--quiet"]);
    for name in others {
        command.args(["--exclude", name]);
    }
    command
}

/// Does everything that publishing does except the upload. Crates with `publish = false` are left
/// out.
pub fn publish_dry_run() -> Outcome {
    wait(&mut cargo(&["publish", "--workspace", "--dry-run", "--no-verify", "--allow-dirty"]))
}

/// Returns the names of the workspace's crates: the published ones, and those whose manifests say
/// `publish = false`.
fn members() -> Result<(Vec<String>, Vec<String>), String> {
    let (mut published, mut others) = (Vec::new(), Vec::new());
    for folder in ["adapters", "crates", "testing"] {
        let folder = root().join(folder);
        let entries =
            std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for entry in entries.filter_map(Result::ok) {
            let manifest = files::read_text(&entry.path().join("Cargo.toml"))?;
            let name = manifest.lines().find_map(|line| line.strip_prefix("name = \""));
            let name =
                name.and_then(|rest| rest.strip_suffix('"')).ok_or("a manifest without a name")?;
            let is_published = !manifest.lines().any(|line| line == "publish = false");
            if is_published { &mut published } else { &mut others }.push(name.to_owned());
        }
    }
    others.push("xtask".into());
    published.sort();
    others.sort();
    Ok((published, others))
}

/// Unpacks a crate and looks for each file that its code includes.
fn check_includes(name: &str) -> Outcome {
    let packages = target()?.join("package");
    let archive = packages.join(format!("{name}-{VERSION}.crate"));
    let unpacked = packages.join(format!("{name}-{VERSION}"));
    files::remove(&unpacked)?;
    output(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&packages))?;
    for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        files::read(&unpacked.join(file))?;
    }
    for path in files::below(&unpacked)? {
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        for included in included(&path, &files::read_text(&path)?) {
            if !included.is_file() {
                let shown = path.strip_prefix(&packages).unwrap_or(&path).display();
                return Err(format!(
                    "{shown} includes {}, which is not in the package",
                    included.display()
                ));
            }
        }
    }
    Ok(())
}

/// Returns the files that Rust code includes by their names.
fn included(path: &Path, text: &str) -> Vec<PathBuf> {
    let folder = path.parent().unwrap_or(path);
    let mut found = Vec::new();
    for word in ["include_str!(\"", "include_bytes!(\"", "include!(\""] {
        let parts = text.split(word).skip(1);
        found.extend(parts.filter_map(|rest| Some(folder.join(rest.split_once('"')?.0))));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn included_files_are_found() {
        let text = "const A: &str = include_str!(\"a.txt\");\n#![doc = include_str!(\"../b.md\")]";
        let found = included(Path::new("x/src/lib.rs"), text);
        assert_eq!(found, [PathBuf::from("x/src/a.txt"), PathBuf::from("x/src/../b.md")]);
    }

    #[test]
    fn test_only_crates_are_not_published() {
        let (published, others) = members().expect("the workspace is there");
        assert!(published.iter().any(|name| name == "mingle-cli"), "{published:?}");
        for name in ["mingle-bench", "mingle-services", "mingle-sim", "xtask"] {
            assert!(others.iter().any(|other| other == name), "{others:?}");
        }
    }
}
