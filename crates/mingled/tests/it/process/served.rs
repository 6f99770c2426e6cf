//! Data centers in child processes, which answer lines of their parent.

use std::io::BufRead as _;

use super::*;
use crate::child::{Running, tell};

/// A data center in a child process: answers each line of its parent.
pub fn serve(part: &str) {
    let mut words = part.split(' ');
    let mut word = || words.next().expect("the parent tells it");
    let (folder, dc, address) = (word(), word(), word());
    let (dc, is_founding) = (dc.parse().expect("a number"), address.ends_with(":0"));
    let peers = words
        .enumerate()
        .map(|(dc, address)| (DcId(dc as u8), address.parse().expect("an address")));
    let settings = settings(folder.as_ref(), dc, 3, is_founding);
    let link = settings.link;
    let settings = Settings {
        peers: peers.collect(),
        limits: mingle_geo_node::Limits { checkpoint_after: 400 },
        link: mingle_geo_node::link::Settings { ping_ms: 100, silent_ms: 1_500, ..link },
        ..settings
    };
    let mut listener = TcpListener::bind(address);
    // Another connection may have the port for a moment.
    until("the port is free", || {
        if listener.is_err() {
            listener = TcpListener::bind(address);
        }
        listener.is_ok()
    });
    let listener = listener.expect("it is bound");
    let address = listener.local_addr().expect("it is bound");
    let process = Process::start(settings, listener).unwrap_or_else(|error| panic!("{error}"));
    let session = process.session();
    tell(&format!("ready {address}"));
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("the parent writes lines");
        let answer = match *line.split(' ').collect::<Vec<_>>() {
            ["add", name, all] => add(&session, &[name, all], 1).map(|()| "added".to_owned()),
            ["fill", name, amount] => fill(&session, name, amount.parse().expect("a number")),
            ["take", name] => take(&session, name).map(|took| format!("took {took}")),
            ["value", name] => {
                value(&session, name).map(|found| found.to_string()).map_err(CommitError::Session)
            }
            ["connected"] => Ok(connected(&process)),
            _ => panic!("the parent asks `{line}`"),
        };
        match answer {
            Err(CommitError::Session(SessionError::Stopped)) => {
                tell(&format!("stopped: {}", process.join()));
                return;
            }
            answer => tell(&answer.unwrap_or_else(|error| format!("error: {error}"))),
        }
    }
}

fn connected(process: &Process) -> String {
    let status = process.status().expect("it runs");
    let connected: Vec<String> = status.connected.iter().map(ToString::to_string).collect();
    format!("connected: {}", connected.join(" "))
}

fn fill(session: &Session, name: &str, amount: i64) -> Result<String, CommitError> {
    session.begin_strong().map_err(CommitError::Session)?;
    session.write(counter(name), Op::Add(amount)).map_err(CommitError::Session)?;
    session.commit().map(|_| "filled".to_owned())
}

/// Three data centers, each in a child process or down.
pub struct Served {
    folders: tempfile::TempDir,
    pub children: [Option<Running>; 3],
    addresses: [String; 3],
}

impl Served {
    /// Founds all data centers.
    pub fn new() -> Self {
        let mut served = Self {
            folders: tempfile::tempdir().expect("a folder"),
            children: [const { None }; 3],
            addresses: std::array::from_fn(|_| "127.0.0.1:0".to_owned()),
        };
        (0..3).for_each(|dc| served.start(dc));
        served
    }

    pub fn start(&mut self, dc: usize) {
        self.start_by("exec \"$@\"", dc);
    }

    /// Starts a data center through a shell script.
    pub fn start_by(&mut self, script: &str, dc: usize) {
        let folder = self.folders.path().join(format!("d{dc}"));
        let peers = self.addresses[..dc].join(" ");
        let part = format!("{} {dc} {} {peers}", folder.display(), self.addresses[dc]);
        let mut child = Running::start_by(script, part.trim());
        let ready = child.line().unwrap_or_else(|| panic!("d{dc} does not start"));
        let address = ready.strip_prefix("ready ").expect("it is ready");
        address.clone_into(&mut self.addresses[dc]);
        self.children[dc] = Some(child);
    }

    pub fn ask(&mut self, dc: usize, line: &str) -> String {
        self.children[dc].as_mut().expect("it runs").ask(line)
    }

    pub fn value(&mut self, dc: usize, name: &str) -> u64 {
        let mut found = String::new();
        until(&format!("d{dc} reads {name}"), || {
            found = self.ask(dc, &format!("value {name}"));
            found.parse::<u64>().is_ok()
        });
        found.parse().expect("it is a number")
    }

    /// Waits until these values are equal at all data centers and fit; returns them.
    pub fn converge<const N: usize>(
        &mut self,
        names: [&str; N],
        mut fits: impl FnMut([u64; N]) -> bool,
    ) -> [u64; N] {
        let mut found = [0; N];
        until("they converge", || {
            found = names.map(|name| self.value(0, name));
            fits(found) && (1..3).all(|dc| names.map(|name| self.value(dc, name)) == found)
        });
        found
    }
}
