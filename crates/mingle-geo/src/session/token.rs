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
    /// The epoch of that vector, see [`members`](crate::members).
    pub epoch: u32,
}

impl Session {
    /// A session with another's past: it must be attached before it does anything.
    pub fn resume(config: SessionConfig, token: &Token) -> Self {
        let Token { past_vec, epoch, .. } = *token;
        Self { past_vec, epoch, is_attached: false, ..Self::new(config) }
    }

    /// Adds another session's past to this one's: tokens join. What may not be here yet has to be
    /// attached to first. Of two epochs the older counts for both, so where a data center has come back
    /// meanwhile, more may be said to be lost than is.
    pub fn join(&mut self, token: &Token) {
        if !self.past_vec.covers(&token.past_vec) {
            let is_empty = self.past_vec == Vector::ZERO;
            self.epoch = if is_empty { token.epoch } else { self.epoch.min(token.epoch) };
            self.past_vec.join(&token.past_vec);
            self.is_attached = false;
        }
    }

    /// What another session needs to go on from here.
    pub fn token(&self) -> Token {
        let SessionConfig { dc, incarnation, .. } = self.config;
        Token { dc, incarnation, past_vec: self.past_vec, epoch: self.epoch }
    }
}
