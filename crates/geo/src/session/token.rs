//! The portable state of a session.

use serde::{Deserialize, Serialize};

use super::{Session, SessionConfig};
use crate::timestamp::DcId;
use crate::vector::Vector;

/// The state that a session takes to another process. The process that hands it out must sign it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The data center that the session used.
    pub dc: DcId,
    /// The incarnation of the data center.
    pub incarnation: u32,
    /// The join of the vectors that it read or wrote.
    pub past_vec: Vector,
    /// The epoch of `past_vec`, see [`members`](crate::members); after a join, the earliest one.
    pub epoch: u32,
    /// The latest epoch of any part of `past_vec`.
    pub newest: u32,
}

impl Session {
    /// Creates a session with another's past: it must attach before it does anything.
    pub fn resume(config: SessionConfig, token: &Token) -> Self {
        let Token { past_vec, epoch, newest, .. } = *token;
        Self { past_vec, epoch, newest, is_attached: false, ..Self::new(config) }
    }

    /// Joins another session's past into this one's. The session must then attach, since part of
    /// the past may not be here. The older of two epochs counts for both; so if a data center has
    /// come back meanwhile, more may be reported lost than is, and none of it as certain.
    pub fn join(&mut self, token: &Token) {
        if token.past_vec == Vector::ZERO {
            return;
        }
        // An entry of another epoch may belong to another incarnation, so a higher entry does not
        // include it.
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

    /// Returns the token that another session needs to continue from here.
    pub fn token(&self) -> Token {
        let SessionConfig { dc, incarnation, .. } = self.config;
        Token { dc, incarnation, past_vec: self.past_vec, epoch: self.epoch, newest: self.newest }
    }
}
