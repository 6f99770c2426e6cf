//! One data center.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mingle_geo::DcId;
use mingled::process::{Durability, Process, Settings, Stopped};
use mingled::resp::Limits;
use mingled::server::{self, Server, StatusPage, Tokens};
use mingled::stores::{ProgramListener, ProgramSettings, Stores};

use super::access::{Access, AccessFiles};
use super::founded::{Found, journal, key, known_cluster, new_cluster, new_key, open};
use super::label::{Declared, conflicts};
use super::signals::Signals;
use super::{Given, Shape, Single};

/// The interval at which the end of the process is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// The usual time for which a token is accepted.
pub const TOKEN_LIFETIME: Duration = Duration::from_mins(10);

/// The start of a data center.
#[derive(Clone, Debug)]
pub struct Start {
    pub folder: PathBuf,
    pub listen: SocketAddr,
    /// The address of the status page, if there is one.
    pub status: Option<SocketAddr>,
    /// The address for Mingle's programs, if there is one.
    pub engine: Option<SocketAddr>,
    pub dc: u8,
    /// The incarnation; `None` is that of the folder.
    pub incarnation: Option<u32>,
    /// The addresses for data centers; a single one has none.
    pub peers: Vec<SocketAddr>,
    pub cluster: u128,
    /// True if the process ends with its standard input.
    pub ends_with_input: bool,
    pub delay: Duration,
    pub partitions: u16,
    pub strong_only: Vec<String>,
    pub labels: Vec<Declared>,
    pub durability: Durability,
    /// The file with the key of tokens, and the time for which they are accepted.
    pub token_key: Option<PathBuf>,
    pub token_lifetime: Duration,
    pub clients_max: usize,
    /// The time after which a request is slow.
    pub slow: Duration,
    pub limits: Limits,
    /// The files of users, certificates and the audit log.
    pub access: AccessFiles,
    /// The time after which a connection without requests is closed.
    pub idle: Option<Duration>,
}

impl Start {
    /// Creates the start of a single data center in a folder of a cluster.
    fn new(folder: PathBuf, listen: SocketAddr, cluster: u128, shape: &Shape) -> Self {
        let Shape { partitions, strong_only, labels, durability, clients_max, slow_ms } =
            shape.clone();
        Self {
            folder,
            listen,
            status: None,
            engine: None,
            dc: 0,
            incarnation: None,
            peers: Vec::new(),
            cluster,
            ends_with_input: false,
            delay: Duration::ZERO,
            partitions,
            strong_only,
            labels,
            durability,
            token_key: None,
            token_lifetime: TOKEN_LIFETIME,
            clients_max,
            slow: Duration::from_millis(slow_ms),
            limits: Limits::default(),
            access: AccessFiles::default(),
            idle: None,
        }
    }
}

/// Runs a single data center.
pub fn single(of: &Single) -> Result<(), String> {
    let cluster = known_cluster(&of.dir)?.unwrap_or_else(new_cluster);
    let start = Start {
        status: of.status,
        engine: of.engine,
        access: of.access.clone(),
        ..Start::new(of.dir.clone(), of.listen, cluster, &of.shape)
    };
    // Nothing is made in a folder that belongs to another cluster.
    check(&start)?;
    let token_key = of.dir.join("token-key");
    new_key(&token_key)?;
    run(&Start { token_key: Some(token_key), ..start })
}

/// Runs a data center of several.
pub fn serve(of: &Given) -> Result<(), String> {
    // The arguments are required.
    let (Some(dir), Some(dc), Some(cluster)) = (&of.dir, of.dc, &of.cluster) else {
        return Err("expected --config, or --dir, --dc, --peers and --cluster".into());
    };
    let cluster = u128::from_str_radix(cluster, 16)
        .map_err(|_| format!("--cluster is '{cluster}', expected up to 32 hexadecimal digits"))?;
    if usize::from(dc) >= of.peers.len() {
        let count = of.peers.len();
        return Err(format!(
            "--dc is {dc}, and --peers has {count} addresses, one for each data center"
        ));
    }
    run(&Start {
        dc,
        status: of.status,
        engine: of.engine,
        incarnation: of.incarnation,
        peers: of.peers.clone(),
        ends_with_input: of.ends_with_input,
        delay: of.delay,
        token_key: of.token_key.clone(),
        access: of.access.clone(),
        ..Start::new(dir.clone(), of.listen, cluster, &of.shape)
    })
}

fn bind(address: SocketAddr, of: &str) -> Result<TcpListener, String> {
    TcpListener::bind(address)
        .map_err(|error| format!("{address} cannot be used for {of}: {error}"))
}

/// Checks the addresses for clients, for programs and of the status page, and opens the files of users and certificates.
pub fn check(start: &Start) -> Result<Access, String> {
    if let Some(open) = start.status.filter(|address| !address.ip().is_loopback()) {
        return Err(format!("{open} is not on loopback, as the status page must be"));
    }
    let access = start.access.open()?;
    access.check(start.listen, start.engine, &start.peers, &start.access)?;
    Ok(access)
}

/// Runs a data center until a signal comes or it must stop.
pub fn run(start: &Start) -> Result<(), String> {
    let access = check(start)?;
    let tokens = match &start.token_key {
        Some(file) => Some(Tokens { key: key(file)?, lifetime: start.token_lifetime }),
        None => None,
    };
    let mut signals = Signals::catch()?;
    let clients = bind(start.listen, "clients")?;
    let status = start.status.map(|address| bind(address, "the status page")).transpose()?;
    let place = start.peers.get(usize::from(start.dc)).copied();
    let others = bind(place.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0))), "data centers")?;
    let (mut settings, labels) = settings(start, &open(start)?);
    settings.tls = access.peers_tls;
    let mut of_clients = server::Settings::new(&settings);
    of_clients.labels.extend(labels);
    of_clients.connections_max = start.clients_max;
    of_clients.limits = start.limits;
    of_clients.idle = start.idle;
    of_clients.slow = Some(start.slow);
    of_clients.tokens = tokens;
    let programs = start.engine.map(|address| bind(address, "programs")).transpose()?;
    of_clients.users = access.users;
    of_clients.tls = access.tls;
    of_clients.audit = start.access.audit()?;
    let process = Process::start(settings.clone(), others).map_err(|error| error.to_string())?;
    let process = Arc::new(process);
    let of_programs = ProgramSettings {
        users: of_clients.users.clone(),
        tls: of_clients.tls.clone(),
        audit: of_clients.audit.clone(),
        ..ProgramSettings::default()
    };
    let serve = |listener| serve_programs(&settings, &process, of_programs, listener);
    let programs = programs.map(serve);
    let programs = programs.transpose()?;
    let server = Server::start(of_clients, process.clone(), clients)
        .map_err(|error| format!("clients cannot be served: {error}"))?;
    let page = status.map(|listener| StatusPage::start(&server, listener)).transpose();
    let page = page.map_err(|error| format!("the status page cannot be served: {error}"))?;
    announce(&server, page.as_ref(), programs.as_ref(), start)?;
    let input = Arc::new(AtomicBool::new(true));
    if start.ends_with_input {
        watch_input(input.clone());
    }
    let mut noted = 0;
    while !signals.wait(LOOK) && !process.has_stopped() && input.load(Ordering::Acquire) {
        noted = show_notes(&process, start.dc, noted);
    }
    show_notes(&process, start.dc, noted);
    // It asks the process, which has to have no other owner then.
    drop(page);
    drop(programs);
    server.stop();
    let stopped = Arc::into_inner(process).map_or(Stopped::Asked, Process::stop);
    match stopped {
        Stopped::Asked => Ok(()),
        stopped => Err(stopped.to_string()),
    }
}

/// Starts the listener for Mingle's programs.
fn serve_programs(
    settings: &Settings,
    process: &Process,
    of: ProgramSettings,
    listener: TcpListener,
) -> Result<ProgramListener, String> {
    let stores = Stores::start(settings, process);
    let listener = stores.and_then(|stores| ProgramListener::start(stores, of, listener));
    listener.map_err(|error| format!("programs cannot be served: {error}"))
}

/// Prints the notes that are new; returns the number of all.
fn show_notes(process: &Process, dc: u8, shown: u64) -> u64 {
    let Some(status) = process.status() else { return shown };
    let new = usize::try_from(status.noted - shown).unwrap_or(usize::MAX);
    for note in status.notes.iter().skip(status.notes.len().saturating_sub(new)) {
        // There may be no reader.
        let _ = writeln!(std::io::stderr(), "d{dc}: {note}");
    }
    status.noted
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

fn settings(start: &Start, found: &Found) -> (Settings, Vec<mingle_geo::certify::Label>) {
    let below = start.peers.iter().take(usize::from(start.dc)).enumerate();
    let peers: BTreeMap<DcId, SocketAddr> =
        below.map(|(dc, address)| (DcId(dc as u8), *address)).collect();
    let count = start.peers.len().max(1) as u8;
    let (labels, conflicts) = conflicts(&start.labels);
    let strong_only = start.strong_only.iter().map(|pattern| pattern.clone().into_bytes());
    let settings = Settings {
        is_founding: found.is_founding,
        incarnation: found.incarnation,
        partition_count: start.partitions,
        strong_only: strong_only.collect(),
        conflicts,
        peers,
        durability: start.durability,
        delay: start.delay,
        ..Settings::new(journal(&start.folder), start.cluster, DcId(start.dc), count)
    };
    (settings, labels)
}

/// Prints the lines that tell where clients and programs are served, and where the status page is.
fn announce(
    server: &Server,
    page: Option<&StatusPage>,
    programs: Option<&ProgramListener>,
    start: &Start,
) -> Result<(), String> {
    let address = server.address();
    let port = address.port();
    let folder = start.folder.display();
    let mut out = std::io::stdout();
    let page = page.map(|page| format!("status page at http://{}/\n", page.address()));
    let page = page.unwrap_or_default();
    let guard = start.access.guard();
    let programs = programs.map(|it| format!("programs of Mingle at {}, {guard}\n", it.address()));
    let programs = programs.unwrap_or_default();
    // At once: what starts data centers reads both lines and no more.
    let more = start.access.more();
    let line =
        format!("listening on {address}, data in {folder}; try: redis-cli -p {port}{more} set a 1");
    out.write_all(format!("{line}\n{page}{programs}").as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| format!("the address cannot be printed: {error}"))
}
