//! Redis or Valkey: the distribution's packages, unpacked and not installed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::Error;
use crate::home::{hand_over, publish};
use crate::server::{Options, Place};
use crate::tool::{Launch, output, tool};

pub(crate) const FOLDER: &str = "redis";

/// The supported servers; the first one that the distribution has is used.
const SERVERS: [&str; 2] = ["redis", "valkey"];

/// A link to the program, and the folder with the libraries that the machine lacks.
const PROGRAM: &str = "server";
const LIBRARIES: &str = "libraries";

/// The oldest supported version.
const OLDEST: u32 = 7;

/// Maximum depth of dependencies between libraries.
const LAYERS: usize = 4;

/// Fills a folder with the unpacked packages.
pub(crate) fn fetch(folder: &Path) -> Result<(), Error> {
    let apt = Apt::new(folder)?;
    let mut refused = None;
    for name in SERVERS {
        let packages = [format!("{name}-server"), format!("{name}-tools")];
        if let Err(error) = apt.unpack(&packages) {
            refused.get_or_insert(error);
            continue;
        }
        apt.complete_libraries(&folder.join("usr/bin").join(format!("{name}-server")), &packages)?;
        std::os::unix::fs::symlink(format!("usr/bin/{name}-server"), folder.join(PROGRAM))
            .map_err(Error::of("cannot link the server"))?;
        check_version(folder)?;
        fs::remove_dir_all(&apt.work).map_err(Error::of(apt.work.display()))?;
        return publish(folder);
    }
    Err(refused.unwrap_or_else(|| Error::new("no server is known")))
}

/// Refuses a server that is too old; it prints, for example, `Redis server v=7.0.15 sha=…`.
fn check_version(folder: &Path) -> Result<(), Error> {
    let libraries = format!("LD_LIBRARY_PATH={}", folder.join(LIBRARIES).display());
    let program = folder.join(PROGRAM);
    let words = [libraries.as_ref(), program.as_os_str(), "--version".as_ref()];
    let shown = output("env", words, None)?;
    let version = shown.split_whitespace().find_map(|word| word.strip_prefix("v="));
    let major = version.and_then(|version| version.split('.').next()?.parse().ok());
    if major.is_some_and(|major: u32| major >= OLDEST) {
        return Ok(());
    }
    Err(Error::new(format!("found `{}`, expected version {OLDEST} or newer", shown.trim())))
}

/// The package manager, with folders of its own where the system's are not usable.
struct Apt<'a> {
    folder: &'a Path,
    work: PathBuf,
}

impl<'a> Apt<'a> {
    fn new(folder: &'a Path) -> Result<Self, Error> {
        let work = folder.join("apt");
        for name in ["lists/partial", "cache/archives/partial", "packages"] {
            let folder = work.join(name);
            fs::create_dir_all(&folder).map_err(Error::of(folder.display()))?;
        }
        Ok(Self { folder, work })
    }

    /// Downloads packages and unpacks them.
    fn unpack(&self, packages: &[String]) -> Result<(), Error> {
        let downloads = self.work.join("packages");
        let download = |settings: &[String]| {
            let fixed = ["-q".to_owned(), "download".to_owned()];
            output("apt-get", settings.iter().chain(&fixed).chain(packages), Some(&downloads))
        };
        if download(&[]).is_err() {
            // The system's package lists may be old or absent. Separate lists are updated instead,
            // which needs no privileges and changes nothing for other users.
            let own = [("State::Lists", "lists"), ("Cache", "cache")];
            let own =
                own.map(|(name, at)| format!("-oDir::{name}={}", self.work.join(at).display()));
            let unlocked = ["-oDebug::NoLocking=1".to_owned(), "-oAPT::Sandbox::User=".to_owned()];
            let settings: Vec<String> = own.into_iter().chain(unlocked).collect();
            let update = ["-q".to_owned(), "update".to_owned()];
            output("apt-get", settings.iter().chain(&update), None)?;
            download(&settings)?;
        }
        for entry in fs::read_dir(&downloads).map_err(Error::of(downloads.display()))? {
            let package = entry.map_err(Error::of(downloads.display()))?.path();
            let words = ["-x".as_ref(), package.as_os_str(), self.folder.as_os_str()];
            tool("dpkg-deb", words)?;
            let control = output("dpkg-deb", ["-f".as_ref(), package.as_os_str()], None)?;
            let name = field(&control, "Package").to_owned();
            let kept = self.work.join(format!("{name}.control"));
            fs::write(&kept, control).map_err(Error::of(kept.display()))?;
            fs::remove_file(&package).map_err(Error::of(package.display()))?;
        }
        Ok(())
    }

    /// Unpacks the libraries that the packages depend on, as long as some are missing.
    fn complete_libraries(&self, server: &Path, packages: &[String]) -> Result<(), Error> {
        let mut known: BTreeSet<String> = packages.iter().cloned().collect();
        let mut layer: Vec<String> = packages.to_vec();
        for _ in 0..LAYERS {
            self.gather_libraries()?;
            let missing = missing_libraries(server, &self.folder.join(LIBRARIES))?;
            if missing.is_empty() {
                return Ok(());
            }
            let mut next = Vec::new();
            for package in &layer {
                let path = self.work.join(format!("{package}.control"));
                let control = fs::read_to_string(&path).map_err(Error::of(path.display()))?;
                next.extend(libraries(&control).filter(|name| known.insert(name.clone())));
            }
            next.retain(|name| !is_installed(name));
            if next.is_empty() {
                let missing = missing.join(", ");
                return Err(Error::new(format!(
                    "the server needs {missing}, and no package has it"
                )));
            }
            self.unpack(&next)?;
            layer = next;
        }
        Err(Error::new("the server's libraries need ever more libraries"))
    }

    /// Links all unpacked libraries in one folder.
    fn gather_libraries(&self) -> Result<(), Error> {
        let gathered = self.folder.join(LIBRARIES);
        fs::create_dir_all(&gathered).map_err(Error::of(gathered.display()))?;
        let found = output("find", ["lib", "usr/lib", "-name", "*.so.*"], Some(self.folder));
        // If there are no libraries among the packages, neither folder exists.
        for path in found.unwrap_or_default().lines() {
            let path = Path::new(path);
            let link = gathered.join(path.file_name().unwrap_or_default());
            if !link.is_symlink() {
                let target = Path::new("..").join(path);
                std::os::unix::fs::symlink(target, &link).map_err(Error::of(link.display()))?;
            }
        }
        Ok(())
    }
}

/// Returns the value of a field of a package's description.
fn field<'a>(control: &'a str, name: &str) -> &'a str {
    let of_line = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':').map(str::trim);
    control.lines().find_map(of_line).unwrap_or_default()
}

/// Returns the library packages that a package depends on; the first one of alternatives.
fn libraries(control: &str) -> impl Iterator<Item = String> {
    let names =
        field(control, "Depends").split(',').filter_map(|one| one.split_whitespace().next());
    names.filter(|name| name.starts_with("lib")).map(str::to_owned)
}

fn is_installed(package: &str) -> bool {
    let status = output("dpkg-query", ["-W", "-f", "${db:Status-Status}", package], None);
    status.is_ok_and(|status| status == "installed")
}

/// Returns the libraries that a program needs and that are neither on the machine nor in the
/// folder.
fn missing_libraries(program: &Path, folder: &Path) -> Result<Vec<String>, Error> {
    let path = format!("LD_LIBRARY_PATH={}", folder.display());
    let listed = output("env", [path.as_ref(), "ldd".as_ref(), program.as_os_str()], None)?;
    let missing = listed.lines().filter(|line| line.contains("not found"));
    Ok(missing.filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect())
}

/// Creates an empty data folder.
pub(crate) fn prepare(place: &Place) -> Result<(), Error> {
    let data = place.data();
    fs::create_dir_all(&data).map_err(Error::of(data.display()))?;
    hand_over(&data)
}

/// Returns the command that runs the server: each write is on disk before it is acknowledged.
pub(crate) fn launch(files: &Path, place: &Place, options: &Options) -> Launch {
    let port = place.address.port().to_string();
    let fixed = [
        ("bind", "127.0.0.1"),
        ("port", &port),
        ("appendonly", "yes"),
        ("appendfsync", "always"),
        ("save", ""),
        ("repl-diskless-sync-delay", "0"),
    ];
    let own = options.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let settings = fixed.into_iter().chain(own);
    let settings = settings.flat_map(|(name, value)| [format!("--{name}"), value.to_owned()]);
    let mut arguments = vec![OsString::from("--dir"), place.data().into()];
    arguments.extend(settings.map(OsString::from));
    let environment = vec![("LD_LIBRARY_PATH", files.join(LIBRARIES).into())];
    Launch { program: files.join(PROGRAM), arguments, environment }
}

/// True if the answering server is ours, and has loaded its data.
pub(crate) fn is_ready(place: &Place, pid: i32) -> bool {
    let answer = || -> std::io::Result<String> {
        let patience = Duration::from_secs(2);
        let mut stream = TcpStream::connect_timeout(&place.address.into(), patience)?;
        stream.set_read_timeout(Some(patience))?;
        stream.write_all(b"INFO\r\nQUIT\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = answer().unwrap_or_default();
    let has = |wanted: &str| answer.lines().any(|line| line == wanted);
    has(&format!("process_id:{pid}")) && has("loading:0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_says_which_libraries_it_needs() {
        let control = "Package: server-tools\nPre-Depends: libnone\n\
                       Depends: adduser, liba1 (>= 1.5), libb2:any | libc3, lsb-base\n";
        assert_eq!(field(control, "Package"), "server-tools");
        assert_eq!(libraries(control).collect::<Vec<_>>(), ["liba1", "libb2:any"]);
        assert_eq!(libraries("Package: none\n").count(), 0);
    }
}
