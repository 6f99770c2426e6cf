//! What a session takes with it.

use serde::{Deserialize, Serialize};

use super::{Session, SessionConfig};
use crate::timestamp::DcId;
use crate::vector::Vector;

/// What a session takes with it to another process: to be signed by whoever hands it out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The data center that it used.
    pub dc: DcId,
    /// Which incarnation of it.
    pub incarnation: u32,
    /// What it read or wrote.
    pub past_vec: Vector,
    /// The epoch of that vector, see [`members`](crate::members); of several the first.
    pub epoch: u32,
    /// And the last of them.
    pub newest: u32,
}

impl Session {
    /// A session with another's past: it must be attached before it does anything.
    pub fn resume(config: SessionConfig, token: &Token) -> Self {
        let Token { past_vec, epoch, newest, .. } = *token;
        Self { past_vec, epoch, newest, is_attached: false, ..Self::new(config) }
    }

    /// Adds another session's past to this one's: tokens join. What may not be here yet has to be
    /// attached to first. Of two epochs the older counts for both, so where a data center has come back
    /// meanwhile, more may be said to be lost than is, and none of it for certain.
    pub fn join(&mut self, token: &Token) {
        if token.past_vec == Vector::ZERO {
            return;
        }
        // An entry of another epoch may be of another incarnation: a higher one does not hold it.
        let epochs = (token.epoch, token.newest);
        let is_same = epochs == (self.epoch, self.newest);
        if is_same && self.past_vec.covers(&token.past_vec) {
            return;
        }
        let is_empty = self.past_vec == Vector::ZERO;
        (self.epoch, self.newest) = if is_empty {
            epochs
        } else {
            (self.epoch.min(token.epoch), self.newest.max(token.newest))
        };
        self.past_vec.join(&token.past_vec);
        self.is_attached = false;
    }

    /// What another session needs to go on from here.
    pub fn token(&self) -> Token {
        let SessionConfig { dc, incarnation, .. } = self.config;
        Token { dc, incarnation, past_vec: self.past_vec, epoch: self.epoch, newest: self.newest }
    }
}
