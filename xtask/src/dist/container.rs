//! The container files, which copy the commands into an image of Debian.

use std::path::Path;

use super::{Dist, elf, files, source};
use crate::run::Outcome;

const TEXT: &str = include_str!("Containerfile");
const SERVER: &str = include_str!("service/Containerfile.mingled");

/// The base image: its name, the version of its C library, and those of its shared libraries that
/// are always installed.
const BASE: &str = "debian:13-slim";
const BASE_GLIBC: (u32, u32) = (2, 41);
const BASE_LIBRARIES: [&str; 5] =
    ["libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libgcc_s.so.1"];

/// Writes the container file, with the files beside it that it copies.
pub fn make(dist: &Dist) -> Outcome {
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        files::copy(&source(name), &dist.folder.join(name))?;
    }
    files::write(&dist.folder.join("Containerfile"), TEXT)
}

/// Writes the container file of `mingled`. [`make`] has written the files beside it.
pub fn make_server(dist: &Dist) -> Outcome {
    files::write(&dist.folder.join("Containerfile.mingled"), SERVER)
}

/// Checks the container file of `mingle`.
pub fn test(dist: &Dist) -> Outcome {
    check(dist, TEXT, &dist.binary())
}

/// Checks the container file of `mingled`.
pub fn test_server(dist: &Dist) -> Outcome {
    check(dist, SERVER, &dist.server())
}

/// Checks that every file that a container file copies exists, and that the image has everything
/// the command needs. No image is built.
fn check(dist: &Dist, text: &'static str, command: &Path) -> Outcome {
    let image = lines(text, "FROM ").next().ok_or("there is no FROM")?;
    if image != BASE {
        return Err(format!("it begins with {image}, and what is known is {BASE}"));
    }
    let mut count = 0;
    for line in lines(text, "COPY ") {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (_, sources) = words.split_last().ok_or("COPY has no words")?;
        for name in sources {
            files::read(&dist.folder.join(name))?;
            count += 1;
        }
    }
    let needs = elf::needs(&files::read(command)?)?;
    fits(&needs)?;
    let (major, minor) = needs.glibc;
    let libraries = needs.libraries.join(", ");
    eprintln!(
        "    {count} files to copy; needs {libraries}, glibc {major}.{minor}: {BASE} has them"
    );
    (count > 0).then_some(()).ok_or_else(|| "nothing is copied".into())
}

fn lines(text: &'static str, instruction: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter_map(move |line| line.strip_prefix(instruction))
}

/// True if the image has everything that a program needs.
fn fits(needs: &elf::Needs) -> Outcome {
    let missing = needs.libraries.iter().find(|name| !BASE_LIBRARIES.contains(&name.as_str()));
    if let Some(name) = missing {
        return Err(format!("{BASE} has no {name}"));
    }
    let ((major, minor), (base_major, base_minor)) = (needs.glibc, BASE_GLIBC);
    let fits = needs.glibc <= BASE_GLIBC;
    let why =
        || format!("the command needs glibc {major}.{minor}, {BASE} has {base_major}.{base_minor}");
    fits.then_some(()).ok_or_else(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_fits_if_it_has_the_libraries() {
        let needs = |library: &str, glibc| elf::Needs { libraries: vec![library.into()], glibc };
        assert_eq!(fits(&needs("libc.so.6", (2, 36))), Ok(()));
        assert!(fits(&needs("libc.so.6", (2, 99))).is_err());
        assert!(fits(&needs("libssl.so.3", (2, 36))).is_err());
    }
}
