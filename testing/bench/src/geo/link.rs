//! Links between data centers: batches of encoded messages that are under way for some time.

use std::collections::VecDeque;

use mingle_geo::wire::{Decoder, Encoder};
use mingle_geo::{Message, PartitionId};

/// One direction of the link between two data centers: all partitions fill one frame, which leaves
/// at the end of the thread's round.
#[derive(Debug, Default)]
pub struct Link {
    encoder: Encoder,
    decoder: Decoder,
    filling: Vec<u8>,
    under_way: VecDeque<(u64, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    /// The number of bytes sent.
    pub bytes: u64,
    /// The number of frames sent.
    pub frames: u64,
}

impl Link {
    /// Adds a message between two replicas of this partition.
    pub fn add(&mut self, partition: PartitionId, message: &Message) {
        self.encoder.put(partition, message, &mut self.filling);
    }

    /// Sends the added messages as a frame.
    pub fn seal(&mut self, due_us: u64) {
        if self.filling.is_empty() {
            return;
        }
        self.bytes += self.filling.len() as u64;
        self.frames += 1;
        let next = self.spare.pop().unwrap_or_default();
        self.under_way.push_back((due_us, std::mem::replace(&mut self.filling, next)));
    }

    /// Drops the frames under way: later messages use a new connection.
    pub fn cut(&mut self) {
        self.filling.clear();
        self.under_way.clear();
        (self.encoder, self.decoder) = (Encoder::default(), Decoder::default());
    }

    /// Returns the arrival time of the next frame.
    pub fn due_us(&self) -> Option<u64> {
        self.under_way.front().map(|(due_us, _)| *due_us)
    }

    /// Takes the messages of the frames that have arrived.
    pub fn arrive(&mut self, now_us: u64, mut take: impl FnMut(PartitionId, Message)) {
        while self.under_way.front().is_some_and(|(due_us, _)| *due_us <= now_us) {
            let Some((_, mut frame)) = self.under_way.pop_front() else { return };
            self.decoder.take(&frame, &mut take).expect("what was encoded decodes");
            frame.clear();
            self.spare.push(frame);
        }
    }
}
