//! The facts that all answers show.

use std::sync::atomic::Ordering;

use mingle_geo::Delay;
use serde::Serialize;

use super::super::Shared;
use crate::process::{Center, CenterState, HeldBack, Progress};

/// The state of a data center, as its process and its server see it.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    /// The version of the server.
    pub version: &'static str,
    /// The name of the data center, such as `d0`.
    pub data_center: String,
    /// The cluster's number, in hexadecimal digits.
    pub cluster: String,
    /// The number of this start.
    pub boot: u32,
    pub uptime_seconds: u64,
    pub is_ready: bool,
    pub partitions: u16,
    /// The time at which commits of new connections are acknowledged.
    pub durability: String,
    /// The beginnings of the names whose writes are strong, as text.
    pub strong_only: Vec<String>,
    pub clients: Clients,
    pub data_centers: Vec<DataCenter>,
    /// What holds back transactions for longer than usual.
    pub held_back: Vec<Held>,
    /// The number of operations that are not folded, and their approximate bytes.
    pub unfolded_operations: usize,
    pub unfolded_bytes: usize,
    /// The approximate bytes of transactions that are kept for other data centers.
    pub kept_bytes: usize,
    /// The last ends of connections and alarms, the latest at the end.
    pub notes: Vec<String>,
    /// The number of all notes.
    pub noted: u64,
    /// The number of frames dropped because they were repeated or of another connection.
    pub replayed_frames: u64,
}

/// The clients of a server.
#[derive(Clone, Debug, Serialize)]
pub struct Clients {
    pub address: String,
    pub connected: usize,
    pub at_most: usize,
    pub accepted: u64,
    pub refused: u64,
    pub requests: u64,
    /// The number of requests that took long, for `SLOWLOG`.
    pub slow_requests: u64,
    /// The number of wrong passwords, and of requests that a user may not send.
    pub wrong_passwords: u64,
    pub denied: u64,
    /// The number of lines that the audit log lacks.
    pub audit_failures: u64,
}

/// A data center, as this one sees it.
#[derive(Clone, Debug, Serialize)]
pub struct DataCenter {
    pub name: String,
    pub state: String,
    /// The time at which the state began, in milliseconds since 1970.
    pub since_ms: u64,
    pub incarnation: u32,
    /// The age of its latest state that is here.
    pub lag_ms: Option<u64>,
    /// The reason why there is no connection.
    pub why: Option<String>,
    /// The ages of the latest of its transactions that are uniform here, and folded; none if it was given up, or none
    /// has come that far.
    pub uniform_age_ms: Option<u64>,
    pub folded_age_ms: Option<u64>,
}

/// Transactions that are held back.
#[derive(Clone, Debug, Serialize)]
pub struct Held {
    /// `uniformity` or `folding`.
    pub stage: String,
    /// The data center whose transactions they are, or `strong`.
    pub of: String,
    /// The time from which they are held back, in milliseconds since 1970; none if none has come that far.
    pub since_ms: Option<u64>,
    pub why: String,
}

impl Facts {
    /// Collects the facts; `None` if the process has stopped.
    pub fn of(shared: &Shared) -> Option<Self> {
        let status = shared.process.status()?;
        let settings = &shared.settings;
        let own = status.centers.iter().find(|center| center.dc == settings.dc);
        let patterns = settings.strong_only.iter();
        Some(Self {
            version: env!("CARGO_PKG_VERSION"),
            data_center: settings.dc.to_string(),
            cluster: format!("{:032x}", settings.cluster),
            boot: status.boot,
            uptime_seconds: shared.started.elapsed().as_secs(),
            is_ready: own.is_some_and(|own| own.state == CenterState::Here),
            partitions: settings.partition_count,
            durability: settings.durability.to_string(),
            strong_only: patterns.map(|it| String::from_utf8_lossy(it).into_owned()).collect(),
            clients: Clients {
                address: shared.address.to_string(),
                connected: shared.connections().len(),
                at_most: settings.connections_max,
                accepted: shared.accepted.load(Ordering::Relaxed),
                refused: shared.refused.load(Ordering::Relaxed),
                requests: shared.requests.load(Ordering::Relaxed),
                slow_requests: shared.slow.noted(),
                wrong_passwords: shared.audit.wrong_passwords(),
                denied: shared.audit.denied(),
                audit_failures: shared.audit.failed(),
            },
            data_centers: status
                .centers
                .into_iter()
                .map(|center| DataCenter::of(center, &status.progress))
                .collect(),
            held_back: status.progress.held_back().into_iter().map(Held::of).collect(),
            unfolded_operations: status.progress.unfolded.0,
            unfolded_bytes: status.progress.unfolded.1,
            kept_bytes: status.progress.kept_bytes,
            notes: status.notes,
            noted: status.noted,
            replayed_frames: status.replayed,
        })
    }

    /// Returns the reason why clients are not served; `None` if they are.
    pub fn why_not_ready(&self) -> Option<String> {
        if self.is_ready {
            return None;
        }
        let own = self.data_centers.iter().find(|it| it.name == self.data_center);
        let state = own.map_or("unknown", |own| own.state.as_str());
        Some(format!("{} is {state}, expected here", self.data_center))
    }
}

impl DataCenter {
    fn of(center: Center, progress: &Progress) -> Self {
        let Center { dc, state, since_ms, incarnation, lag_ms, why } = center;
        let age_ms = |delays: &[Delay]| {
            let delay = delays.iter().find(|delay| delay.origin == dc)?;
            progress.age_ms(delay)
        };
        let (uniform_age_ms, folded_age_ms) = (age_ms(&progress.uniform), age_ms(&progress.folded));
        let (name, state) = (dc.to_string(), state.to_string());
        Self { name, state, since_ms, incarnation, lag_ms, why, uniform_age_ms, folded_age_ms }
    }
}

impl Held {
    fn of(held: HeldBack) -> Self {
        let HeldBack { stage, origin, since_ms, why } = held;
        Self { stage: stage.to_string(), of: origin.to_string(), since_ms, why }
    }
}
