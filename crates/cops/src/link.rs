//! Links between servers: messages from one server to another arrive once and in order, even if
//! connections break and lose messages.

use std::collections::VecDeque;

/// The sending end of a link: numbers its messages, and keeps each until it is acknowledged.
///
/// # Examples
///
/// ```
/// use mingle_cops::link::{Receiver, Sender};
///
/// let (mut sender, mut receiver) = (Sender::default(), Receiver::default());
/// let lost = sender.send(0, "a");
/// let number = sender.send(0, "b");
/// assert!(!receiver.accepts(number), "the message before it is missing");
/// for (number, _) in sender.due(50, 40) {
///     assert!(receiver.accepts(number));
/// }
/// assert!(!receiver.accepts(lost), "it is there already");
/// sender.acknowledge(receiver.next());
/// assert!(sender.due(100, 40).is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct Sender<M> {
    next: u64,
    sent_us: u64,
    kept: VecDeque<(u64, M)>,
}

impl<M> Default for Sender<M> {
    fn default() -> Self {
        Self { next: 0, sent_us: 0, kept: VecDeque::new() }
    }
}

impl<M: Clone> Sender<M> {
    /// Keeps a message that is sent at `now_us`, and returns its number.
    pub fn send(&mut self, now_us: u64, message: M) -> u64 {
        if self.kept.is_empty() {
            self.sent_us = now_us;
        }
        let number = self.next;
        self.next += 1;
        self.kept.push_back((number, message));
        number
    }

    /// Removes the messages below `next`, which have arrived.
    pub fn acknowledge(&mut self, next: u64) {
        while self.kept.front().is_some_and(|(number, _)| *number < next) {
            self.kept.pop_front();
        }
    }

    /// Returns the messages to send again: all that are kept, if `after_us` have passed without an
    /// acknowledgement of the oldest.
    pub fn due(&mut self, now_us: u64, after_us: u64) -> Vec<(u64, M)> {
        if self.kept.is_empty() || now_us < self.sent_us + after_us {
            return Vec::new();
        }
        self.sent_us = now_us;
        self.kept.iter().cloned().collect()
    }
}

/// The receiving end of a link.
#[derive(Clone, Copy, Debug, Default)]
pub struct Receiver(u64);

impl Receiver {
    /// True if the message with this number is the next one; then it counts as received.
    pub fn accepts(&mut self, number: u64) -> bool {
        let is_next = number == self.0;
        if is_next {
            self.0 += 1;
        }
        is_next
    }

    /// Returns the number of the next message.
    pub fn next(&self) -> u64 {
        self.0
    }
}
