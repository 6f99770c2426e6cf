//! The pending events, ordered by time and then by the order in which they were queued.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A queue of events at simulated times, in microseconds.
#[derive(Debug)]
pub(super) struct Queue<T> {
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// The events; they stay in place, because messages are large.
    slots: Vec<Option<T>>,
    free: Vec<u32>,
    sequence: u64,
}

impl<T> Queue<T> {
    pub fn new() -> Self {
        Self { heap: BinaryHeap::new(), slots: Vec::new(), free: Vec::new(), sequence: 0 }
    }

    pub fn push(&mut self, at_us: u64, event: T) {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(None);
                (self.slots.len() - 1) as u32
            }
        };
        self.slots[slot as usize] = Some(event);
        self.sequence += 1;
        self.heap.push(Reverse((at_us, self.sequence, slot)));
    }

    /// Returns the time of the next event.
    pub fn next_us(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at_us, ..))| *at_us)
    }

    pub fn pop(&mut self) -> Option<(u64, T)> {
        let Reverse((at_us, _, slot)) = self.heap.pop()?;
        let event = self.slots[slot as usize].take().expect("each place is in the heap once");
        self.free.push(slot);
        Some((at_us, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_as_they_were_put_in() {
        let mut queue = Queue::new();
        for (at_us, event) in [(5, 'c'), (1, 'a'), (5, 'd'), (3, 'b')] {
            queue.push(at_us, event);
        }
        let mut order = Vec::new();
        while let Some((_, event)) = queue.pop() {
            order.push(event);
        }
        assert_eq!(order, ['a', 'b', 'c', 'd']);
    }
}
