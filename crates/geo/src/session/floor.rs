//! Floors, by which the sessions of one process see each other's writes.
//!
//! A client with a pool of connections has a session for each, and expects to read on one what was
//! acknowledged on another. Without more, a session sees the commits of others once they are stable
//! in the data center, some milliseconds later. So the process keeps the join of all commit vectors
//! that it acknowledged, and its sessions begin their transactions there. Such a snapshot is never
//! refused; at most a transaction waits for others that are being prepared, and for a strong one of
//! the process that has not arrived here.

use super::Session;
use crate::flaw::Flaw;
use crate::vector::Vector;

/// The writes that a process has acknowledged at one incarnation of a data center.
///
/// # Examples
///
/// ```
/// use mingle_geo::session::Floor;
/// use mingle_geo::{DcId, Session, SessionConfig, Timestamp, Vector};
/// use mingle_model::Origin;
///
/// let mut session = Session::new(SessionConfig::new(Origin(1), DcId(0), 1));
/// let mut floor = Floor::default();
/// // Its commit was answered:
/// floor.raise(&session, &Vector::ZERO.with(DcId(0), Timestamp(7)));
/// session.start_above(&floor);
/// assert_eq!(session.past_vec()[DcId(0)], Timestamp(7));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Floor {
    vector: Vector,
    /// The latest epoch of any part of it.
    epoch: u32,
}

impl Floor {
    /// Raises it to a commit of a session, which is about to be acknowledged.
    pub fn raise(&mut self, session: &Session, commit_vec: &Vector) {
        self.vector.join(commit_vec);
        self.epoch = self.epoch.max(session.epoch);
    }

    /// Returns the join of the commit vectors.
    pub fn vector(&self) -> Vector {
        self.vector
    }

    /// Returns the latest epoch of any part of it, see [`members`](crate::members).
    pub fn epoch(&self) -> u32 {
        self.epoch
    }
}

impl Session {
    /// Lets the next transaction see everything that the floor's process has acknowledged; the floor
    /// must be of this session's incarnation of its data center. It has no effect while a transaction
    /// or a call is under way, nor on a session that must attach first.
    pub fn start_above(&mut self, floor: &Floor) {
        let is_ignored = self.config.planted.is(Flaw::ProcessFloorIgnored);
        let is_between = self.is_attached && self.is_idle() && self.running.is_none();
        if is_between && !is_ignored {
            self.past_vec.join(&floor.vector);
            // All of its past is at this data center, which knows the epoch of the floor.
            self.epoch = self.epoch.max(floor.epoch);
            self.newest = self.newest.max(self.epoch);
        }
    }
}
