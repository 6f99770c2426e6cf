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
/// sender.acknowledge(60, receiver.next());
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

    /// Removes the messages below `next`, of which is known at `now_us` that they have arrived. The time
    /// for the others begins anew: a link that is never idle sends nothing twice.
    pub fn acknowledge(&mut self, now_us: u64, next: u64) {
        while self.kept.front().is_some_and(|(number, _)| *number < next) {
            self.kept.pop_front();
            self.sent_us = now_us;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_is_never_idle_sends_nothing_twice() {
        let (mut sender, mut receiver) = (Sender::default(), Receiver::default());
        for now_us in (0..1_000).step_by(10) {
            assert!(receiver.accepts(sender.send(now_us, now_us)));
            // The acknowledgement of the message before arrives, so one is always under way.
            sender.acknowledge(now_us, receiver.next() - 1);
            assert!(sender.due(now_us, 40).is_empty(), "at {now_us}");
        }
        assert_eq!(sender.due(1_040, 40), [(99, 990)]);
    }
}
