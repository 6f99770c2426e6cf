//! The Debian package: the command with completions, manual pages and licences.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Dist, VERSION, elf, expect, files, notices, source};
use crate::run::{Outcome, output, wait};

/// The Debian package of each shared library. If the command needs another library, its package
/// must be looked up.
const LIBRARIES: [(&str, &str); 5] = [
    ("libc.so.6", "libc6"),
    ("libm.so.6", "libc6"),
    ("ld-linux-x86-64.so.2", "libc6"),
    ("ld-linux-aarch64.so.1", "libc6"),
    ("libgcc_s.so.1", "libgcc-s1"),
];

/// Puts the files in Debian's places and has `dpkg-deb` pack them.
pub fn make(dist: &Dist) -> Outcome {
    let root = dist.workshop("debian")?;
    let install = [
        ("mingle", "usr/bin/mingle"),
        (notices::FILE, "usr/share/doc/mingle/third-party-licences"),
    ];
    for (from, to) in install {
        files::copy(&dist.folder.join(from), &root.join(to))?;
    }
    files::set_executable(&root.join("usr/bin/mingle"))?;
    let completions = dist.folder.join("completions");
    for (from, to) in [
        ("bash/mingle", "usr/share/bash-completion/completions/mingle"),
        ("zsh/_mingle", "usr/share/zsh/vendor-completions/_mingle"),
        ("fish/mingle.fish", "usr/share/fish/vendor_completions.d/mingle.fish"),
    ] {
        files::copy(&completions.join(from), &root.join(to))?;
    }
    files::copy_all(&dist.folder.join("man"), &root.join("usr/share/man/man1"))?;
    files::copy(&source("CHANGELOG.md"), &root.join("usr/share/doc/mingle/CHANGELOG.md"))?;
    files::write(&root.join("usr/share/doc/mingle/copyright"), copyright()?)?;
    pack(dist, &root, "mingle", &dist.binary(), ABOUT)
}

/// The last fields of the package's description.
const ABOUT: &str = "Recommends: ca-certificates
Section: database
Priority: optional
Description: mixed-consistency transactions over the stores that you have
 The command mingle checks, explains, formats, runs and serves transactions
 that touch stores of different consistency levels. The compiler proves that
 weaker data never decides what happens to stronger data, and splits each
 transaction into one phase for each store.
";

/// Packs a folder as the package of this name, which has this program and these last fields.
pub fn pack(dist: &Dist, root: &Path, name: &str, program: &Path, about: &str) -> Outcome {
    let size: usize =
        files::below(root)?.iter().map(|path| files::read(path).map_or(0, |it| it.len())).sum();
    files::write(&root.join("DEBIAN/control"), control(name, program, size, about)?)?;
    let mut command = Command::new("dpkg-deb");
    command.args(["--root-owner-group", "--build"]).arg(root).arg(path(dist, name)?);
    wait(&mut command)
}

/// Unpacks the package of this name; returns the folder.
pub fn unpack(dist: &Dist, name: &str) -> Result<PathBuf, String> {
    let folder = dist.workshop(&format!("{name}-unpacked"))?;
    let path = path(dist, name)?;
    wait(Command::new("dpkg-deb").arg("--extract").arg(&path).arg(&folder))?;
    let about = output(Command::new("dpkg-deb").arg("--field").arg(&path))?;
    let fields = [format!("Package: {name}\n"), format!("Version: {VERSION}\n")];
    for field in fields.iter().map(String::as_str).chain(["Depends: libc6 (>= "]) {
        expect(&about, field)?;
    }
    files::read(&folder.join(format!("usr/share/doc/{name}/copyright")))?;
    Ok(folder)
}

/// Unpacks the package and runs its command.
pub fn test(dist: &Dist) -> Outcome {
    let folder = unpack(dist, "mingle")?;
    files::read(&folder.join("usr/share/man/man1/mingle.1"))?;
    let command = folder.join("usr/bin/mingle");
    expect(&output(Command::new(&command).arg("--version"))?, &format!("mingle {VERSION}"))?;
    output(Command::new(&command).arg("check").arg(source("examples/bank.mingle"))).map(drop)
}

/// Returns the path of a package.
fn path(dist: &Dist, name: &str) -> Result<PathBuf, String> {
    Ok(dist.folder.join(format!("{name}_{VERSION}_{}.deb", architecture()?)))
}

/// Returns Debian's name for the architecture that this program runs on.
fn architecture() -> Result<&'static str, String> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Ok("amd64"),
        ("linux", "aarch64") => Ok("arm64"),
        (os, other) => Err(format!("expected Linux on x86_64 or aarch64, found {os} on {other}")),
    }
}

fn control(name: &str, program: &Path, bytes: usize, about: &str) -> Result<String, String> {
    let depends = depends(&elf::needs(&files::read(program)?)?)?;
    Ok(format!(
        "Package: {name}
Version: {VERSION}
Architecture: {}
Maintainer: The Mingle authors <mingle@mingle.example>
Installed-Size: {}
Depends: {depends}
{about}",
        architecture()?,
        bytes.div_ceil(1024),
    ))
}

/// Returns the packages that the command depends on.
fn depends(needs: &elf::Needs) -> Result<String, String> {
    let mut packages = Vec::new();
    for library in &needs.libraries {
        let known = LIBRARIES.iter().find(|(name, _)| name == library);
        let (_, package) =
            known.ok_or_else(|| format!("which package of Debian brings {library}?"))?;
        let version = match *package {
            "libc6" => format!("libc6 (>= {}.{})", needs.glibc.0, needs.glibc.1),
            other => other.to_owned(),
        };
        if !packages.contains(&version) {
            packages.push(version);
        }
    }
    packages.sort();
    Ok(packages.join(", "))
}

/// Returns the file in which Debian expects the licences.
pub fn copyright() -> Result<String, String> {
    let mit = files::read_text(&source("LICENSE-MIT"))?;
    Ok(format!(
        "Mingle is licensed under either of the Apache License, Version 2.0, which is in
/usr/share/common-licenses/Apache-2.0, or the MIT licence below, at your option.
What it contains of others, and under which licences, is in third-party-licences.

{mit}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_become_packages() {
        let needs = |libraries: &[&str]| elf::Needs {
            libraries: libraries.iter().map(|name| (*name).to_owned()).collect(),
            glibc: (2, 34),
        };
        let found = depends(&needs(&["libgcc_s.so.1", "libm.so.6", "libc.so.6"]));
        assert_eq!(found, Ok("libc6 (>= 2.34), libgcc-s1".into()));
        assert!(depends(&needs(&["libssl.so.3"])).is_err());
    }
}
