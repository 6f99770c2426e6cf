//! The processes of the other data centers: which are connected, and when to dial.

use std::collections::BTreeMap;

use mingle_geo::DcId;
use mingle_geo::wire::Hello;

use super::refusal::{Code, Refused};

/// The delay before the second attempt to connect, in milliseconds; it doubles.
const RETRY_MS: u64 = 50;

/// The maximum of this delay.
const RETRY_MS_MAX: u64 = 2_000;

/// The peers of a process. Of two processes, that of the higher data center dials.
///
/// A peer is known by its start: its incarnation, its boot number, and a random number of the process.
/// A later start takes the place of an earlier one when that has lost its connection; from then on the
/// earlier one is refused.
#[derive(Clone, Debug)]
pub struct Peers {
    own: DcId,
    all: BTreeMap<DcId, Peer>,
}

#[derive(Clone, Debug, Default)]
struct Peer {
    /// The last start that was accepted.
    start: Option<Start>,
    /// The connection that stands.
    connection: Option<u64>,
    is_dialing: bool,
    dial_at_us: u64,
    failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Start {
    incarnation: u32,
    boot: u32,
    process: u64,
}

impl Start {
    fn of(hello: &Hello) -> Self {
        let Hello { incarnation, boot, process, .. } = *hello;
        Self { incarnation, boot, process }
    }

    fn rank(self) -> (u32, u32) {
        (self.incarnation, self.boot)
    }
}

impl Peers {
    /// Returns the peers of a data center, none of them connected.
    pub fn new(own: DcId, others: impl IntoIterator<Item = DcId>) -> Self {
        Self { own, all: others.into_iter().map(|dc| (dc, Peer::default())).collect() }
    }

    /// Decides on a connection whose HELLO has come. Returns the connection that it replaces.
    ///
    /// # Errors
    ///
    /// The reason why this is not the right process.
    pub fn meet(&mut self, hello: &Hello, connection: u64) -> Result<Option<u64>, Refused> {
        let dc = hello.dc;
        let known: Vec<String> = self.all.keys().map(ToString::to_string).collect();
        let Some(peer) = self.all.get_mut(&dc) else {
            let why = format!("{dc} is no peer of {}, expected {}", self.own, known.join(", "));
            return Err(Refused::new(Code::Place, why));
        };
        let found = Start::of(hello);
        if let Some(last) = peer.start.filter(|last| *last != found) {
            let (dies, lives) = (shown(found), shown(last));
            if found.rank() == last.rank() {
                let why = format!(
                    "two processes of {dc} run with {dies}: the folder of one is a copy. Stop one of \
                     them"
                );
                return Err(Refused::new(Code::Copy, why));
            }
            if found.rank() < last.rank() {
                let why = format!("{dc} was started again: this is {dies}, and {lives} is known");
                return Err(Refused::new(Code::Outdated, why));
            }
            if peer.connection.is_some() {
                let why = format!("{dc} is connected as {lives}, and this is {dies}");
                return Err(Refused::new(Code::Running, why));
            }
        }
        peer.start = Some(found);
        (peer.is_dialing, peer.failures) = (false, 0);
        Ok(peer.connection.replace(connection))
    }

    /// Returns the connection to a data center.
    pub fn connection(&self, dc: DcId) -> Option<u64> {
        self.all.get(&dc)?.connection
    }

    /// Notes the end of a connection. Returns the data center, if the connection was the one that
    /// stood.
    pub fn closed(&mut self, now_us: u64, connection: u64) -> Option<DcId> {
        let mut all = self.all.iter_mut();
        let (dc, peer) = all.find(|(_, peer)| peer.connection == Some(connection))?;
        peer.connection = None;
        peer.dial_at_us = now_us + RETRY_MS * 1_000;
        Some(*dc)
    }

    /// Returns the data centers to dial now; each attempt ends with [`meet`](Self::meet) or
    /// [`not_dialed`](Self::not_dialed).
    pub fn due(&mut self, now_us: u64) -> Vec<DcId> {
        let own = self.own;
        let due = self.all.iter_mut().filter(|(dc, peer)| {
            **dc < own && peer.connection.is_none() && !peer.is_dialing && peer.dial_at_us <= now_us
        });
        due.map(|(dc, peer)| {
            peer.is_dialing = true;
            *dc
        })
        .collect()
    }

    /// Notes that an attempt to connect failed.
    pub fn not_dialed(&mut self, now_us: u64, dc: DcId) {
        if let Some(peer) = self.all.get_mut(&dc) {
            let delay_ms = (RETRY_MS << peer.failures.min(10)).min(RETRY_MS_MAX);
            peer.failures += 1;
            peer.is_dialing = false;
            peer.dial_at_us = now_us + delay_ms * 1_000;
        }
    }
}

fn shown(start: Start) -> String {
    let Start { incarnation, boot, process } = start;
    format!("start {boot} of incarnation {incarnation} (process {process:016x})")
}
