//! Service times: the time of a replica's handler for each kind of input.
//!
//! Measured in this process: each input is decoded and handled, and its outputs and durable records
//! are encoded. A line over the size is fitted to each kind's times, since one message may carry
//! one transaction or fifty. Outliers, caused by other work of the machine, are left out.

use std::fmt::Write as _;

use mingle_geo::certify::GroupMessage;
use mingle_geo::{Envelope, Input, Message, Output, Record};

/// The kinds of handled inputs. `RedBlue`'s service has kinds of its own, because it has more to
/// search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Tick,
    TickStrong,
    TickServed,
    Read,
    CommitOne,
    Prepare,
    Commit,
    Barrier,
    KnownVec,
    SiblingVecs,
    Replicate,
    Certify,
    Decided,
    Advance,
    Propose,
    Consensus,
    Serve,
    Held,
    TickService,
    ServiceCertify,
    ServicePropose,
    ServiceConsensus,
    Other,
}

impl Kind {
    pub const ALL: [Self; 23] = [
        Self::Tick,
        Self::TickStrong,
        Self::TickServed,
        Self::Read,
        Self::CommitOne,
        Self::Prepare,
        Self::Commit,
        Self::Barrier,
        Self::KnownVec,
        Self::SiblingVecs,
        Self::Replicate,
        Self::Certify,
        Self::Decided,
        Self::Advance,
        Self::Propose,
        Self::Consensus,
        Self::Serve,
        Self::Held,
        Self::TickService,
        Self::ServiceCertify,
        Self::ServicePropose,
        Self::ServiceConsensus,
        Self::Other,
    ];

    /// Returns the kind of an input to a replica with this part in certification.
    pub fn of(input: &Input, part: Part) -> Self {
        let is_service = part == Part::Service;
        match input {
            Input::Tick => match part {
                Part::None => Self::Tick,
                Part::Own => Self::TickStrong,
                Part::Served => Self::TickServed,
                Part::Service => Self::TickService,
            },
            Input::Message { message, .. } => match message {
                Message::Read(_) => Self::Read,
                Message::CommitOne(_) => Self::CommitOne,
                Message::Prepare(_) => Self::Prepare,
                Message::Commit(_) => Self::Commit,
                Message::Barrier(_) => Self::Barrier,
                Message::KnownVecLocal(_) | Message::UniformVecLocal(_) => Self::KnownVec,
                Message::SiblingVecs(_) => Self::SiblingVecs,
                Message::Replicate(_) => Self::Replicate,
                Message::Serve(_) => Self::Serve,
                Message::Held(_) => Self::Held,
                Message::Group(message) => match message {
                    GroupMessage::Certify(_) if is_service => Self::ServiceCertify,
                    GroupMessage::Propose(_) if is_service => Self::ServicePropose,
                    GroupMessage::Consensus(_) if is_service => Self::ServiceConsensus,
                    GroupMessage::Certify(_) => Self::Certify,
                    GroupMessage::Propose(_) => Self::Propose,
                    GroupMessage::Consensus(_) => Self::Consensus,
                    GroupMessage::Decided { .. } => Self::Decided,
                    GroupMessage::Advance { .. } => Self::Advance,
                    _ => Self::Other,
                },
                _ => Self::Other,
            },
            _ => Self::Other,
        }
    }
}

/// The part of a replica in certification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The replica does not certify.
    None,
    /// The replica certifies for its own partition.
    Own,
    /// Another replica certifies for this partition.
    Served,
    /// The replica certifies for all partitions.
    Service,
}

/// This many bytes of the consensus count as one part.
const PART_BYTES: usize = 128;

/// Returns the size of an input: its keys, operations or transactions.
pub fn size_in(input: &Input) -> usize {
    let Input::Message { message, .. } = input else { return 0 };
    size_of_message(message)
}

fn size_of_message(message: &Message) -> usize {
    match message {
        Message::Read(read) => read.keys.len(),
        Message::CommitOne(commit) => commit.updates.len(),
        Message::Prepare(prepare) => prepare.updates.len(),
        Message::Replicate(replicate) => replicate.transactions.len(),
        Message::Serve(serve) => serve.transactions.as_ref().map_or(0, Vec::len),
        Message::Group(GroupMessage::Certify(proposal)) => {
            proposal.touches.len() + proposal.updates.len()
        }
        Message::Group(GroupMessage::Propose(entries)) => entries.len(),
        Message::Group(GroupMessage::Consensus(bytes)) => bytes.len() / PART_BYTES,
        _ => 0,
    }
}

/// Returns the size of an output: messages with their contents, and delivered transactions.
pub fn size_out(output: &Output) -> usize {
    let of = |envelope: &Envelope| 1 + size_of_message(&envelope.message);
    match output {
        Output::Send(envelope) => of(envelope),
        Output::Persist(persist) => {
            let delivered = persist.records.iter().map(|record| match record {
                Record::Delivered(interval) => interval.transactions.len(),
                _ => 0,
            });
            persist.then.iter().map(of).sum::<usize>() + delivered.sum::<usize>()
        }
        Output::Alarm(_) => 0,
    }
}

/// A time as a function of the size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Line {
    pub fixed_ns: f64,
    pub each_ns: f64,
}

/// The service times of all kinds.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    lines: Vec<Line>,
    /// The factor by which simulated cores are slower than the measured one.
    slower: f64,
}

/// The service times measured once on the machine of `docs/geo-evaluation.md`; with them the
/// model's figures are the same each time.
const RECORDED: &str = include_str!("times.txt");

impl Times {
    /// Returns the times of `times.txt`.
    pub fn recorded() -> Self {
        Self::parse(RECORDED).expect("the recorded times are sound")
    }

    /// Parses lines of a kind, its fixed time and its time per part, in nanoseconds.
    ///
    /// # Errors
    ///
    /// The malformed line, or the missing kind.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines: Vec<Option<Line>> = vec![None; Kind::ALL.len()];
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let place = Kind::ALL.iter().position(|kind| words[0] == format!("{kind:?}"));
            let number = |at: usize| {
                let number = words.get(at).and_then(|word| word.parse::<f64>().ok());
                number.filter(|number| (0.0..1e9).contains(number))
            };
            let (Some(place), Some(fixed_ns), Some(each_ns)) = (place, number(1), number(2)) else {
                return Err(format!("a line of service times is not understood: {line}"));
            };
            lines[place] = Some(Line { fixed_ns, each_ns });
        }
        let lines = lines.into_iter().zip(Kind::ALL);
        let lines = lines.map(|(line, kind)| line.ok_or(format!("there is no time of {kind:?}")));
        Ok(Self { lines: lines.collect::<Result<_, _>>()?, slower: 1.0 })
    }

    /// Makes the cores slower by a factor.
    #[must_use]
    pub fn slower(mut self, times: f64) -> Self {
        self.slower *= times;
        self
    }

    /// Returns the service time in nanoseconds, at least one.
    pub fn cost_ns(&self, kind: Kind, size: usize) -> u64 {
        let line = self.lines[kind as usize];
        (((line.fixed_ns + line.each_ns * size as f64) * self.slower) as u64).max(1)
    }

    /// Returns for each kind the line that gives the lower time for the mean sampled size, because
    /// it was less disturbed.
    #[must_use]
    pub fn least(&self, other: &Self, samples: &Samples) -> Self {
        let both = self.lines.iter().zip(&other.lines).zip(&samples.0);
        let lines = both.map(|((one, other), samples)| {
            let sizes: f64 = samples.iter().map(|(size, _)| f64::from(*size)).sum();
            let size = sizes / samples.len().max(1) as f64;
            let mean = |line: &Line| line.fixed_ns + line.each_ns * size;
            if mean(other) < mean(one) { *other } else { *one }
        });
        Self { lines: lines.collect(), slower: self.slower }
    }

    /// Formats the times as [`parse`](Self::parse) reads them.
    pub fn shown(&self) -> String {
        let mut text = String::from("# kind, fixed ns, ns for each part\n");
        for (kind, line) in Kind::ALL.iter().zip(&self.lines) {
            let _ = writeln!(text, "{kind:?} {:.0} {:.0}", line.fixed_ns, line.each_ns);
        }
        text
    }
}

/// The maximum number of samples kept of a kind.
const SAMPLES_MAX: usize = 40_000;

/// A kind with fewer samples keeps its recorded time.
const SAMPLES_MIN: usize = 50;

/// The samples of each kind: size and nanoseconds.
#[derive(Clone, Debug)]
pub struct Samples(Vec<Vec<(u32, u32)>>);

impl Default for Samples {
    fn default() -> Self {
        Self(vec![Vec::new(); Kind::ALL.len()])
    }
}

impl Samples {
    pub fn push(&mut self, kind: Kind, size: usize, ns: u64) {
        let samples = &mut self.0[kind as usize];
        if samples.len() < SAMPLES_MAX {
            samples.push((size as u32, u32::try_from(ns).unwrap_or(u32::MAX)));
        }
    }

    /// Adds the samples of another run.
    pub fn add(&mut self, other: Self) {
        for (samples, more) in self.0.iter_mut().zip(other.0) {
            samples.extend(more);
        }
    }

    /// Fits the lines; takes those of `otherwise` for kinds with few samples.
    pub fn fit(&self, otherwise: &Times) -> Times {
        let lines = self.0.iter().zip(&otherwise.lines).map(|(samples, recorded)| {
            if samples.len() < SAMPLES_MIN { *recorded } else { fit(samples) }
        });
        Times { lines: lines.collect(), slower: 1.0 }
    }
}

/// Fits a line by least squares, and again without the values far above it.
fn fit(samples: &[(u32, u32)]) -> Line {
    let mut by_time: Vec<u32> = samples.iter().map(|(_, ns)| *ns).collect();
    by_time.sort_unstable();
    let most = by_time[(by_time.len() - 1) * 99 / 100];
    let first = least_squares(samples.iter().filter(|(_, ns)| *ns <= most));
    let is_usual = |(size, ns): &&(u32, u32)| {
        f64::from(*ns) <= 3.0 * (first.fixed_ns + first.each_ns * f64::from(*size)) + 1_000.0
    };
    least_squares(samples.iter().filter(is_usual))
}

fn least_squares<'a>(samples: impl Iterator<Item = &'a (u32, u32)>) -> Line {
    let (mut n, mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (size, ns) in samples {
        let (size, ns) = (f64::from(*size), f64::from(*ns));
        (n, x, y, xx, xy) = (n + 1.0, x + size, y + ns, xx + size * size, xy + size * ns);
    }
    if n == 0.0 {
        return Line::default();
    }
    let spread = n * xx - x * x;
    let each_ns = if spread > 1e-9 { (n * xy - x * y) / spread } else { 0.0 };
    let fixed_ns = (y - each_ns * x) / n;
    if each_ns < 0.0 {
        return Line { fixed_ns: y / n, each_ns: 0.0 };
    }
    if fixed_ns < 0.0 {
        return Line { fixed_ns: 0.0, each_ns: xy / xx };
    }
    Line { fixed_ns, each_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_again_whatever_the_machine_did_meanwhile() {
        let mut samples = Samples::default();
        for index in 0..2_000u64 {
            let size = index % 7;
            // Once in a while another process ran.
            let pause = if index % 150 == 0 { 400_000 } else { 0 };
            samples.push(Kind::Read, size as usize, 900 + 150 * size + pause);
        }
        let times = samples.fit(&Times::recorded());
        assert!((times.cost_ns(Kind::Read, 0) as f64 - 900.0).abs() < 20.0, "{}", times.shown());
        assert!((times.cost_ns(Kind::Read, 6) as f64 - 1_800.0).abs() < 40.0, "{}", times.shown());
        let recorded = Times::recorded();
        assert_eq!(times.cost_ns(Kind::Serve, 3), recorded.cost_ns(Kind::Serve, 3));
        assert_eq!(recorded.clone().slower(10.0).cost_ns(Kind::Read, 1) / 10, {
            recorded.cost_ns(Kind::Read, 1)
        });
    }

    #[test]
    fn what_is_shown_is_read_again() {
        let times = Times::recorded();
        assert_eq!(Times::parse(&times.shown()), Ok(times));
        assert!(Times::parse("Read 5").is_err());
        assert!(Times::parse("Read 5 1").unwrap_err().contains("no time of"));
    }
}
