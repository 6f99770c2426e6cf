//! What a data center says that is given up.

use super::Call;
use crate::error::Refusal;
use crate::message::{BarrierReply, Message, OutcomeReply, PrepareAck, ReadReply, Vote};

/// The refusal of a data center that is given up.
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

impl Call {
    /// Whether a message answers it.
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
