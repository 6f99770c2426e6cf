//! The faults of a burst, and their probabilities.

use std::fmt;
use std::time::Duration;

use mingle_model::random::Random;

use crate::delay::fraction;

/// A fault of one burst of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Only the burst's beginning reaches the server: a random length of at least one byte, and
    /// never the whole (a burst of one byte is lost whole). Then both connections are closed.
    CutRequest,
    /// The whole burst reaches the server. When the server begins to answer, ends its stream, or
    /// does neither for 5 seconds, both connections are closed; the client sees nothing of the
    /// answer.
    LoseAnswer,
    /// For this time nothing is read or passed on in either direction; then the connection
    /// continues.
    Hang(Duration),
}

/// The probability of each fault for a burst; at most one fault occurs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// The probability of [`Fault::CutRequest`].
    pub cut_request: f64,
    /// The probability of [`Fault::LoseAnswer`].
    pub lose_answer: f64,
    /// The probability of [`Fault::Hang`].
    pub hang: f64,
    /// The duration of such a hang.
    pub hang_for: Duration,
}

impl Rates {
    pub(crate) fn sample(&self, random: &mut Random) -> Option<Fault> {
        let drawn = fraction(random);
        let faults = [
            (self.cut_request, Fault::CutRequest),
            (self.lose_answer, Fault::LoseAnswer),
            (self.hang, Fault::Hang(self.hang_for)),
        ];
        let mut bound = 0.0;
        faults.into_iter().find_map(|(rate, fault)| {
            bound += rate;
            (drawn < bound).then_some(fault)
        })
    }
}

/// A predicate that is true for the matching burst.
type Predicate = Box<dyn Fn(&[u8]) -> bool + Send>;

/// A fault that waits for its burst.
pub(crate) struct Planned {
    pub matches: Predicate,
    pub fault: Fault,
}

impl fmt::Debug for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fault.fmt(f)
    }
}

/// The events that a proxy has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Accepted connections.
    pub connections: u64,
    /// Accepted connections that were closed because the server did not accept one.
    pub unreachable: u64,
    /// Bursts that clients sent, with or without a fault.
    pub bursts: u64,
    /// Requests that were passed on only in part.
    pub requests_cut: u64,
    /// Answers that the server began and the client did not see.
    pub answers_lost: u64,
    /// Requests that were to lose their answer, but that the server did not answer in time.
    pub never_answered: u64,
    /// Hangs of a connection, one for each burst with that fault.
    pub hangs: u64,
    /// Connections that were open when all were cut.
    pub connections_cut: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_as_frequent_as_they_should() {
        let hang_for = Duration::from_millis(5);
        let rates = Rates { cut_request: 0.1, lose_answer: 0.2, hang: 0.3, hang_for };
        let mut random = Random::new(3);
        let drawn: Vec<_> = (0..100_000).map(|_| rates.sample(&mut random)).collect();
        let share = |fault| drawn.iter().filter(|drawn| **drawn == fault).count() as f64 / 1e5;
        let expected = [
            (Some(Fault::CutRequest), 0.1),
            (Some(Fault::LoseAnswer), 0.2),
            (Some(Fault::Hang(hang_for)), 0.3),
            (None, 0.4),
        ];
        for (fault, rate) in expected {
            assert!((share(fault) - rate).abs() < 0.01, "{fault:?}: {}", share(fault));
        }
        let never = Rates::default();
        assert!((0..1000).all(|_| never.sample(&mut random).is_none()));
    }
}
