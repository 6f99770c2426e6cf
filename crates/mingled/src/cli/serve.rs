//! One data center.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mingle_geo::DcId;
use mingled::process::{Process, Settings, Stopped};
use mingled::server::{self, Server};

use super::signals::Signals;
use super::{Serve, Shape, Single};

/// The interval at which the end of the process is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// The file with the number of a cluster and its partitions, beside the journal.
const FOUNDED: &str = "founded";

/// The start of a data center.
struct Start<'a> {
    folder: &'a Path,
    listen: SocketAddr,
    dc: u8,
    /// The addresses for data centers; a single one has none.
    peers: &'a [SocketAddr],
    cluster: u128,
    /// True if the process ends with its standard input.
    ends_with_input: bool,
    delay: Duration,
    shape: &'a Shape,
}

/// Runs a single data center.
pub fn single(of: &Single) -> Result<(), String> {
    let cluster = known_cluster(&of.dir)?.unwrap_or_else(new_cluster);
    let start = Start {
        folder: &of.dir,
        listen: of.listen,
        dc: 0,
        peers: &[],
        cluster,
        ends_with_input: false,
        delay: Duration::ZERO,
        shape: &of.shape,
    };
    run(&start)
}

/// Runs a data center of several.
pub fn serve(of: &Serve) -> Result<(), String> {
    let cluster = u128::from_str_radix(&of.cluster, 16).map_err(|_| {
        format!("--cluster is '{}', expected up to 32 hexadecimal digits", of.cluster)
    })?;
    if usize::from(of.dc) >= of.peers.len() {
        let (dc, count) = (of.dc, of.peers.len());
        return Err(format!(
            "--dc is {dc}, and --peers has {count} addresses, one for each data center"
        ));
    }
    run(&Start {
        folder: &of.dir,
        listen: of.listen,
        dc: of.dc,
        peers: &of.peers,
        cluster,
        ends_with_input: of.ends_with_input,
        delay: of.delay,
        shape: &of.shape,
    })
}

/// Returns a random number for a new cluster.
pub fn new_cluster() -> u128 {
    let half = || u128::from(mingled::random());
    half() << 64 | half()
}

fn known(folder: &Path) -> Result<Option<String>, String> {
    let file = folder.join(FOUNDED);
    match fs::read_to_string(&file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{} cannot be read: {error}", file.display())),
    }
}

/// Returns the number of the cluster that a folder belongs to; `None` if the folder is new.
pub fn known_cluster(folder: &Path) -> Result<Option<u128>, String> {
    let Some(text) = known(folder)? else { return Ok(None) };
    let word = text.split_whitespace().next().unwrap_or_default();
    let number = u128::from_str_radix(word, 16);
    number.map(Some).map_err(|_| {
        let file = folder.join(FOUNDED);
        format!("{} begins with '{word}', expected the number of a cluster", file.display())
    })
}

/// Returns true for the first start in this folder. The shape of a data center cannot change later.
fn is_founding(start: &Start<'_>) -> Result<bool, String> {
    let Start { folder, dc, peers, cluster, shape, .. } = start;
    let shown = format!(
        "{cluster:032x} data center {dc} of {}, {} partitions\n",
        peers.len().max(1),
        shape.partitions
    );
    match known(folder)? {
        // The file is written first: a start that was interrupted founds again.
        None => {
            let write = || {
                fs::create_dir_all(folder)?;
                let file = folder.join(FOUNDED);
                let mut new = fs::File::create(file.with_extension("new"))?;
                new.write_all(shown.as_bytes())?;
                new.sync_all()?;
                fs::rename(file.with_extension("new"), file)?;
                fs::File::open(folder)?.sync_all()
            };
            write().map_err(|error| format!("{}: {error}", folder.display()))?;
            Ok(true)
        }
        Some(text) if text == shown => Ok(!journal(folder).is_dir()),
        Some(text) => Err(format!(
            "{} belongs to {}, and this start is {}: take another folder, or the same settings",
            folder.display(),
            text.trim(),
            shown.trim()
        )),
    }
}

fn journal(folder: &Path) -> PathBuf {
    folder.join("journal")
}

fn bind(address: SocketAddr, of: &str) -> Result<TcpListener, String> {
    TcpListener::bind(address)
        .map_err(|error| format!("{address} cannot be used for {of}: {error}"))
}

fn run(start: &Start<'_>) -> Result<(), String> {
    if !start.listen.ip().is_loopback() {
        return Err(format!(
            "{} is not on loopback: without passwords, clients of other machines are not accepted",
            start.listen
        ));
    }
    let mut signals = Signals::catch()?;
    let clients = bind(start.listen, "clients")?;
    let place = start.peers.get(usize::from(start.dc)).copied();
    let others = bind(place.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0))), "data centers")?;
    let settings = settings(start, is_founding(start)?);
    let mut of_clients = server::Settings::new(&settings);
    of_clients.connections_max = start.shape.clients_max;
    let process = Process::start(settings, others).map_err(|error| error.to_string())?;
    let process = Arc::new(process);
    let server = Server::start(of_clients, process.clone(), clients)
        .map_err(|error| format!("clients cannot be served: {error}"))?;
    announce(&server, start)?;
    let input = Arc::new(AtomicBool::new(true));
    if start.ends_with_input {
        watch_input(input.clone());
    }
    while !signals.wait(LOOK) && !process.has_stopped() && input.load(Ordering::Acquire) {}
    server.stop();
    let stopped = Arc::into_inner(process).map_or(Stopped::Asked, Process::stop);
    match stopped {
        Stopped::Asked => Ok(()),
        stopped => Err(stopped.to_string()),
    }
}

/// Waits for the end of the standard input in a thread, which ends with the process.
fn watch_input(is_open: Arc<AtomicBool>) {
    let watch = move || {
        // An error ends the input, too.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        is_open.store(false, Ordering::Release);
    };
    std::thread::spawn(watch);
}

fn settings(start: &Start<'_>, is_founding: bool) -> Settings {
    let below = start.peers.iter().take(usize::from(start.dc)).enumerate();
    let peers: BTreeMap<DcId, SocketAddr> =
        below.map(|(dc, address)| (DcId(dc as u8), *address)).collect();
    let count = start.peers.len().max(1) as u8;
    let strong_only = &start.shape.strong_only;
    Settings {
        is_founding,
        partition_count: start.shape.partitions,
        strong_only: strong_only.iter().map(|prefix| prefix.clone().into_bytes()).collect(),
        peers,
        delay: start.delay,
        ..Settings::new(journal(start.folder), start.cluster, DcId(start.dc), count)
    }
}

/// Prints the line that tells where clients are served.
fn announce(server: &Server, start: &Start<'_>) -> Result<(), String> {
    let address = server.address();
    let port = address.port();
    let folder = start.folder.display();
    let mut out = std::io::stdout();
    writeln!(out, "listening on {address}, data in {folder}; try: redis-cli -p {port} set a 1")
        .and_then(|()| out.flush())
        .map_err(|error| format!("the address cannot be printed: {error}"))
}
