//! `mingled` as a service: its Debian package with a unit for systemd.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Dist, VERSION, debian, expect, files, notices, source};
use crate::run::{Outcome, output, wait};

/// The files of the package that are not built.
const FILES: [(&str, &str); 3] = [
    (include_str!("service/mingled.service"), "usr/lib/systemd/system/mingled.service"),
    (include_str!("service/mingled.sysusers"), "usr/lib/sysusers.d/mingled.conf"),
    (include_str!("service/mingled.toml"), EXAMPLE),
];

/// The example of a file of settings.
const EXAMPLE: &str = "usr/share/doc/mingled/examples/mingled.toml";

/// The scripts that run when the package is installed and removed.
const SCRIPTS: [(&str, &str); 2] = [
    (include_str!("service/postinst"), "DEBIAN/postinst"),
    (include_str!("service/prerm"), "DEBIAN/prerm"),
];

/// The last fields of the package's description.
const ABOUT: &str = "Recommends: systemd
Section: database
Priority: optional
Description: a geo-replicated store for clients of Redis and programs of Mingle
 The server mingled is a data center of a store with causal and strong
 transactions over the same data: a client writes at home, and only what needs
 an order waits for other data centers. It is served by a unit of systemd once
 /etc/mingled/mingled.toml is there.
";

/// The time in which the server answers and stops.
const PATIENCE: Duration = Duration::from_secs(30);

/// Puts the files in Debian's places and has `dpkg-deb` pack them.
pub fn make_debian(dist: &Dist) -> Outcome {
    let root = dist.workshop("debian-mingled")?;
    let program = root.join("usr/bin/mingled");
    files::copy(&dist.server(), &program)?;
    files::set_executable(&program)?;
    let licences = root.join("usr/share/doc/mingled/third-party-licences");
    files::copy(&dist.folder.join(notices::FILE), &licences)?;
    for page in ["CHANGELOG.md", "docs/mingled.md"] {
        let name = Path::new(page).file_name().ok_or("a page has no name")?;
        files::copy(&source(page), &root.join("usr/share/doc/mingled").join(name))?;
    }
    files::write(&root.join("usr/share/doc/mingled/copyright"), debian::copyright()?)?;
    for (text, path) in FILES {
        files::write(&root.join(path), text)?;
    }
    for (text, path) in SCRIPTS {
        files::write(&root.join(path), text)?;
        files::set_executable(&root.join(path))?;
    }
    debian::pack(dist, &root, "mingled", &dist.server(), ABOUT)
}

/// Runs the server: it answers a client, and ends when it is asked to.
pub fn test(dist: &Dist) -> Outcome {
    serves(dist, &dist.server())
}

/// Unpacks the package, checks its example, and runs its server.
pub fn test_debian(dist: &Dist) -> Outcome {
    let folder = debian::unpack(dist, "mingled")?;
    let program = folder.join("usr/bin/mingled");
    let mut check = Command::new(&program);
    let summary = output(check.arg("check-config").arg(folder.join(EXAMPLE)))?;
    expect(&summary, "folder        /var/lib/mingled")?;
    serves(dist, &program)
}

/// Has systemd check the unit, over the files of the package.
pub fn test_unit(dist: &Dist) -> Outcome {
    let folder = debian::unpack(dist, "mingled")?;
    let unit = folder.join("usr/lib/systemd/system/mingled.service");
    let program = folder.join("usr/bin/mingled");
    // The program is not installed here, so the unit names the unpacked one.
    let text = files::read_text(&unit)?.replace("/usr/bin/mingled", &program.to_string_lossy());
    let copy = dist.workshop("unit")?.join("mingled.service");
    files::write(&copy, text)?;
    wait(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(copy))
}

fn serves(dist: &Dist, program: &PathBuf) -> Outcome {
    let fault = |error: std::io::Error| format!("{}: {error}", program.display());
    expect(&output(Command::new(program).arg("--version"))?, &format!("mingled {VERSION}"))?;
    let folder = dist.workshop("served")?;
    let mut command = Command::new(program);
    command.args(["--listen", "127.0.0.1:0", "--dir"]).arg(folder.join("data"));
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(fault)?;
    let answered = answers(&mut child);
    // The server is stopped by its id, whether it answered or not.
    let stopped = match &answered {
        Ok(()) => wait(Command::new("kill").arg(child.id().to_string())),
        Err(_) => child.kill().map_err(fault),
    };
    let status = child.wait().map_err(fault)?;
    answered.and(stopped)?;
    status.success().then_some(()).ok_or_else(|| format!("it ended with {status}"))
}

/// Asks a server, and looks at the reply.
fn answers(child: &mut std::process::Child) -> Outcome {
    let fault = |error: std::io::Error| format!("no answer: {error}");
    let mut line = String::new();
    let out = child.stdout.take().ok_or("it has no output")?;
    BufReader::new(out).read_line(&mut line).map_err(fault)?;
    let address = line.split([' ', ',']).nth(2).ok_or_else(|| format!("it printed `{line}`"))?;
    let mut stream = TcpStream::connect(address).map_err(fault)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(fault)?;
    stream.write_all(b"SET a 1\r\nINCR a\r\nQUIT\r\n").map_err(fault)?;
    let mut replies = String::new();
    stream.read_to_string(&mut replies).map_err(fault)?;
    expect(&replies, "+OK\r\n:2\r\n+OK\r\n")
}
