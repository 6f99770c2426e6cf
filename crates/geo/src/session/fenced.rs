//! Answers of a data center that is given up.

use super::{Call, Session};
use crate::error::Refusal;
use crate::flaw::Flaw;
use crate::message::{BarrierReply, Handout, Message, OutcomeReply, PrepareAck, ReadReply, Vote};

/// Returns the refusal if the message says that the data center is given up.
pub fn fenced(message: &Message) -> Option<Refusal> {
    let (Message::ReadReply(ReadReply { result: Err(refusal), .. })
    | Message::OutcomeReply(OutcomeReply { result: Err(refusal), .. })
    | Message::BarrierReply(BarrierReply { result: Err(refusal), .. })
    | Message::PrepareAck(PrepareAck { vote: Vote::Unknown(refusal), .. })) = message
    else {
        return None;
    };
    matches!(refusal, Refusal::Fenced { .. }).then(|| refusal.clone())
}

impl Session {
    /// Returns a refusal if another incarnation has replaced the one that the session uses.
    pub(super) fn replaced(&self, handout: &Handout) -> Option<Refusal> {
        let (dc, incarnation) = (self.config.dc, handout.incarnation);
        let is_seen = !self.config.planted.is(Flaw::IncarnationsMixed);
        (is_seen && incarnation > self.config.incarnation)
            .then_some(Refusal::Fenced { dc, incarnation })
    }
}

impl Call {
    /// True if the message answers this call.
    pub fn is_answered_by(&self, message: &Message) -> bool {
        match (self, message) {
            (Self::Reading(reading), Message::ReadReply(reply)) => reading.awaits(reply.request),
            (
                Self::Committing(committing),
                Message::OutcomeReply(OutcomeReply { id, .. })
                | Message::PrepareAck(PrepareAck { id, .. }),
            ) => committing.id() == *id,
            (Self::Certifying(certifying), Message::BarrierReply(reply)) => {
                certifying.request == reply.request
            }
            (
                Self::Settling { request, .. } | Self::Barrier { request, .. },
                Message::BarrierReply(reply),
            ) => *request == reply.request,
            _ => false,
        }
    }
}
