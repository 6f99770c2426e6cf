//! Connections between data centers, for stores in which the order matters: consensus expects that
//! messages over one connection arrive in order, or that both ends are told that it was lost.

use std::collections::BTreeMap;
use std::time::Duration;

use mingle_geo::DcId;

/// The connections of a store, by pair of data centers, the lesser first.
#[derive(Default)]
pub struct Lines(BTreeMap<(DcId, DcId), Line>);

#[derive(Default)]
struct Line {
    /// Number of times it was lost.
    life: u64,
    is_lost: bool,
    /// Arrival time of the message sent last, in each direction: to the lesser data center, to the
    /// other.
    arrives: [Duration; 2],
}

impl Lines {
    fn line(&mut self, one: DcId, other: DcId) -> &mut Line {
        self.0.entry((one.min(other), one.max(other))).or_default()
    }

    /// Returns the arrival time of a message due at `due`, and the current life of the connection;
    /// none while the connection is lost.
    pub fn carry(&mut self, from: DcId, to: DcId, due: Duration) -> Option<(Duration, u64)> {
        let line = self.line(from, to);
        if line.is_lost {
            return None;
        }
        let arrives = &mut line.arrives[usize::from(from < to)];
        *arrives = due.max(*arrives);
        Some((*arrives, line.life))
    }

    /// True if messages sent on this life of a connection still arrive.
    pub fn is_alive(&mut self, one: DcId, other: DcId, life: u64) -> bool {
        let line = self.line(one, other);
        !line.is_lost && line.life == life
    }

    /// Notes that a message was lost, and the connection with it.
    pub fn lose(&mut self, one: DcId, other: DcId) {
        let line = self.line(one, other);
        if !line.is_lost {
            *line = Line { life: line.life + 1, is_lost: true, ..Line::default() };
        }
    }

    /// Restores lost connections where `can` allows it; returns these.
    pub fn mend(&mut self, can: impl Fn(DcId, DcId) -> bool) -> Vec<(DcId, DcId)> {
        let mut mended = Vec::new();
        for (pair, line) in &mut self.0 {
            if line.is_lost && can(pair.0, pair.1) {
                line.is_lost = false;
                mended.push(*pair);
            }
        }
        mended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: DcId = DcId(0);
    const B: DcId = DcId(1);

    #[test]
    fn what_is_sent_later_does_not_arrive_earlier() {
        let mut lines = Lines::default();
        let ms = Duration::from_millis;
        assert_eq!(lines.carry(A, B, ms(30)), Some((ms(30), 0)));
        assert_eq!(lines.carry(A, B, ms(20)), Some((ms(30), 0)));
        assert_eq!(lines.carry(B, A, ms(20)), Some((ms(20), 0)), "the other way is another one");
    }

    #[test]
    fn nothing_of_a_lost_connection_arrives_on_the_next() {
        let mut lines = Lines::default();
        let (_, life) = lines.carry(A, B, Duration::ZERO).expect("it stands");
        lines.lose(B, A);
        lines.lose(A, B);
        assert!(lines.carry(A, B, Duration::ZERO).is_none() && !lines.is_alive(A, B, life));
        assert_eq!(lines.mend(|_, _| false), []);
        assert_eq!(lines.mend(|_, _| true), [(A, B)]);
        assert_eq!(lines.mend(|_, _| true), []);
        assert!(!lines.is_alive(A, B, life));
        let (_, life) = lines.carry(B, A, Duration::ZERO).expect("it stands again");
        assert!(lines.is_alive(A, B, life));
    }
}
