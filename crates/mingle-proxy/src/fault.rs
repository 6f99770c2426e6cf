//! What can happen to a burst, and how often it does.

use std::fmt;
use std::time::Duration;

use mingle_model::random::Random;

use crate::delay::fraction;

/// What happens to one burst of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Only its beginning reaches the server, at random at least one byte and never all (a burst of
    /// one byte is lost whole); then both connections are closed.
    CutRequest,
    /// It reaches the server whole. Once that has begun to answer, or has ended, or has done
    /// neither for five seconds, both connections are closed; the client sees nothing of the answer.
    LoseAnswer,
    /// For so long nothing is read or passed on, in either direction; then all goes on.
    Hang(Duration),
}

/// How often which fault happens to a burst: probabilities, of which at most one comes true.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Of [`Fault::CutRequest`].
    pub cut_request: f64,
    /// Of [`Fault::LoseAnswer`].
    pub lose_answer: f64,
    /// Of [`Fault::Hang`].
    pub hang: f64,
    /// How long such a hang lasts.
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

/// Says whether a burst is the one.
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

/// What a proxy did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that it took.
    pub connections: u64,
    /// Connections that it took, and closed since the server did not take one.
    pub unreachable: u64,
    /// Bursts that clients sent, with what happened to them or not.
    pub bursts: u64,
    /// Requests of which the beginning was passed on.
    pub requests_cut: u64,
    /// Answers that the server had begun and the client did not see.
    pub answers_lost: u64,
    /// Requests whose answer was to be lost, and that the server did not answer in time.
    pub never_answered: u64,
    /// Times that a connection hung, each for its own burst.
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
