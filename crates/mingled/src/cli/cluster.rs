//! Several data centers on this machine.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use super::founded::{known_cluster, new_cluster, new_key};
use super::label;
use super::signals::Signals;
use super::{Cluster, Shape};

/// The interval at which the end of a data center is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// The time in which a data center must stop.
const STOP: Duration = Duration::from_secs(10);

/// The key of tokens, in the folder of the cluster.
const TOKEN_KEY: &str = "token-key";

/// The data centers, which are stopped with this value. If this process is killed, they end with their
/// standard input.
struct Children(Vec<(u8, Child)>);

/// The lines of a data center that has started.
struct Started {
    /// The address for clients.
    address: String,
    /// The line with the status page.
    page: String,
    /// The address for programs, if they are served.
    programs: Option<String>,
}

impl Started {
    /// Reads the lines; none if the data center has ended before it served.
    fn read(out: Option<ChildStdout>, has_programs: bool) -> std::io::Result<Option<Self>> {
        let (mut line, mut page, mut programs) = (String::new(), String::new(), String::new());
        if let Some(out) = out {
            let mut out = BufReader::new(out);
            out.read_line(&mut line)?;
            out.read_line(&mut page)?;
            if has_programs {
                out.read_line(&mut programs)?;
            }
        }
        let address = line.strip_prefix("listening on ").and_then(|line| line.split(',').next());
        let programs = programs.trim_end().strip_prefix("programs of Mingle at ");
        let programs = programs.and_then(|line| line.split(',').next());
        let started = address.filter(|_| !has_programs || programs.is_some()).map(|address| Self {
            address: address.to_owned(),
            page: page.trim_end().to_owned(),
            programs: programs.map(str::to_owned),
        });
        Ok(started)
    }
}

/// Runs the data centers until a signal comes, or one of them ends.
pub fn run(of: &Cluster) -> Result<(), String> {
    let mut signals = Signals::catch()?;
    let first = of.dir.join("d0");
    let cluster = known_cluster(&first)?.unwrap_or_else(new_cluster);
    new_key(&of.dir.join(TOKEN_KEY))?;
    let peers = free_addresses(of.dcs)?;
    let mut children = Children(Vec::new());
    let mut servers = Vec::new();
    for dc in 0..of.dcs {
        let Started { address, page, programs } = children.start(of, dc, cluster, &peers)?;
        let port = address.rsplit(':').next().unwrap_or_default();
        println!("d{dc} listens on {address}; try: redis-cli -p {port} datacenters; {page}");
        servers.extend(programs.map(|programs| format!("d{dc} = \"{programs}\"")));
    }
    match servers.as_slice() {
        [] => {}
        [_] => println!("a program's binding: address = {}", &servers[0]["d0 = ".len()..]),
        _ => println!("a program's binding: servers = {{ {} }}", servers.join(", ")),
    }
    println!("{} data centers run; Ctrl-C stops them", of.dcs);
    while !signals.wait(LOOK) {
        children.check()?;
    }
    children.stop()
}

/// Returns free addresses for the connections between data centers.
fn free_addresses(count: u8) -> Result<Vec<SocketAddr>, String> {
    let fault = |error: std::io::Error| format!("no free port on 127.0.0.1: {error}");
    let listeners: Result<Vec<TcpListener>, _> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
    let listeners = listeners.map_err(fault)?;
    listeners.iter().map(|listener| listener.local_addr().map_err(fault)).collect()
}

impl Children {
    /// Starts a data center, and waits until it serves.
    fn start(
        &mut self,
        of: &Cluster,
        dc: u8,
        cluster: u128,
        peers: &[SocketAddr],
    ) -> Result<Started, String> {
        let fault = |error: std::io::Error| format!("data center d{dc} cannot be started: {error}");
        let address = |first: u16| {
            let port = if first == 0 { 0 } else { first.saturating_add(dc.into()) };
            format!("127.0.0.1:{port}")
        };
        let peers: Vec<String> = peers.iter().map(ToString::to_string).collect();
        let Shape { partitions, strong_only, labels, durability, clients_max, slow_ms } = &of.shape;
        let mut command = Command::new(std::env::current_exe().map_err(fault)?);
        command
            .args([
                "serve",
                "--ends-with-input",
                "--dc",
                &dc.to_string(),
                "--listen",
                &address(of.port),
                "--status",
                &address(of.status_port),
            ])
            .args(["--peers", &peers.join(","), "--cluster", &format!("{cluster:032x}")])
            .args(["--partitions", &partitions.to_string()])
            .args(["--clients-max", &clients_max.to_string()])
            .args(["--slow-ms", &slow_ms.to_string()])
            .args(["--durability", &durability.to_string()])
            .args(["--delay", &format!("{}us", of.between.as_micros() / 2)])
            .arg("--dir")
            .arg(of.dir.join(format!("d{dc}")));
        command.arg("--token-key").arg(of.dir.join(TOKEN_KEY));
        if let Some(port) = of.engine_port {
            command.arg("--engine").arg(address(port));
        }
        for declared in labels {
            command.arg(format!("--label={}", label::shown(declared)));
        }
        for pattern in strong_only {
            command.arg(format!("--strong-only={pattern}"));
        }
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(fault)?;
        self.0.push((dc, child));
        let Some((_, child)) = self.0.last_mut() else { return Err("no child".into()) };
        let out = child.stdout.take();
        let ended = || format!("data center d{dc} ended at its start; its error is above");
        Started::read(out, of.engine_port.is_some()).map_err(fault)?.ok_or_else(ended)
    }

    fn check(&mut self) -> Result<(), String> {
        for (dc, child) in &mut self.0 {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(format!("data center d{dc} ended: {status}"));
            }
        }
        Ok(())
    }

    /// Stops all data centers, and waits for them.
    fn stop(&mut self) -> Result<(), String> {
        for (_, child) in &mut self.0 {
            terminate(child);
        }
        let until = Instant::now() + STOP;
        let mut late = Vec::new();
        for (dc, mut child) in self.0.drain(..) {
            loop {
                match child.try_wait() {
                    Ok(None) if Instant::now() < until => std::thread::sleep(LOOK / 10),
                    Ok(None) => {
                        late.push(format!("d{dc}"));
                        // It may have ended meanwhile.
                        let _ = child.kill();
                        let _ = child.wait();
                        break;
                    }
                    _ => break,
                }
            }
        }
        if late.is_empty() {
            return Ok(());
        }
        Err(format!("killed after {} s without an end: {}", STOP.as_secs(), late.join(", ")))
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        // After an error, which is reported.
        let _ = self.stop();
    }
}

/// Asks a process to stop.
fn terminate(child: &mut Child) {
    let pid = rustix::process::Pid::from_child(child);
    // It may have ended already.
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
}
