//! The counter workload of MixT §8.2, with its transactions over both stores (§8.3).

use mingle_model::random::Random;
use mingle_model::{Ref, Value};

/// Counters at both stores, under the same names.
pub const PROGRAM: &str = "\
store far: linearizable;
store near: causal;

object Strong in far {
    key number: int;
    hits: counter;
}

object Weak in near {
    key number: int;
    hits: counter;
}

transaction read_strong(strong: ref Strong) -> int {
    return strong.hits.value();
}

transaction add_strong(strong: ref Strong) {
    strong.hits.add(1);
}

transaction read_weak(weak: ref Weak) -> int {
    return weak.hits.value();
}

transaction add_weak(weak: ref Weak) {
    weak.hits.add(1);
}

transaction read_both(strong: ref Strong, weak: ref Weak) -> int {
    return strong.hits.value() + weak.hits.value();
}

transaction add_both(strong: ref Strong, weak: ref Weak) {
    strong.hits.add(1);
    weak.hits.add(1);
}
";

/// Reads, in percent of the calls (MixT, Figure 15).
pub const READS: usize = 70;

/// The percentage of calls before which a client draws anew to be causal or not.
pub const REDRAWS: usize = 50;

/// The stores that a call visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visits {
    /// The linearizable store.
    Strong,
    /// The causal store.
    Weak,
    /// Both stores: the first call after a client has changed from one to the other.
    Both,
}

/// A call to be made.
#[derive(Clone, Debug)]
pub struct Drawn {
    pub visits: Visits,
    pub transaction: &'static str,
    pub arguments: Vec<Value>,
}

/// The distribution of names for reads: the `n`-th has a weight of one in `n` (Zipf).
pub struct Zipf(Vec<f64>);

impl Zipf {
    pub fn new(names: usize) -> Self {
        let mut sum = 0.0;
        let sums = (1..=names).map(|n| {
            sum += 1.0 / n as f64;
            sum
        });
        Self(sums.collect())
    }

    fn names(&self) -> usize {
        self.0.len()
    }

    fn draw(&self, random: &mut Random) -> usize {
        // The upper 53 bits are a fraction below one.
        let fraction = (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        let point = fraction * self.0.last().copied().unwrap_or_default();
        self.0.partition_point(|sum| *sum <= point)
    }
}

/// The consecutive calls of a client.
pub struct Client {
    random: Random,
    /// Causal calls, in percent.
    share: usize,
    is_causal: bool,
}

impl Client {
    pub fn new(seed: u64, share: usize) -> Self {
        let mut random = Random::new(seed);
        let is_causal = random.below(100) < share;
        Self { random, share, is_causal }
    }

    pub fn draw(&mut self, zipf: &Zipf) -> Drawn {
        let random = &mut self.random;
        let was_causal = self.is_causal;
        if random.below(100) < REDRAWS {
            self.is_causal = random.below(100) < self.share;
        }
        let visits = match (was_causal, self.is_causal) {
            (false, false) => Visits::Strong,
            (true, true) => Visits::Weak,
            _ => Visits::Both,
        };
        let reads = random.below(100) < READS;
        let number = if reads { zipf.draw(random) } else { random.below(zipf.names()) };
        let object = |kind: &str| Value::Ref(Ref::new(kind, Value::Int(number as i64)));
        let arguments = match visits {
            Visits::Strong => vec![object("Strong")],
            Visits::Weak => vec![object("Weak")],
            Visits::Both => vec![object("Strong"), object("Weak")],
        };
        let transaction = match (visits, reads) {
            (Visits::Strong, true) => "read_strong",
            (Visits::Strong, false) => "add_strong",
            (Visits::Weak, true) => "read_weak",
            (Visits::Weak, false) => "add_weak",
            (Visits::Both, true) => "read_both",
            (Visits::Both, false) => "add_both",
        };
        Drawn { visits, transaction, arguments }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_kept() {
        let zipf = Zipf::new(400_000);
        for share in [0, 60, 100] {
            let mut client = Client::new(7, share);
            let (mut causal, mut both, mut reads, mut first) = (0, 0, 0, 0);
            for _ in 0..100_000 {
                let drawn = client.draw(&zipf);
                causal += usize::from(client.is_causal);
                both += usize::from(drawn.visits == Visits::Both);
                reads += usize::from(drawn.transaction.starts_with("read"));
                let weak = Value::Ref(Ref::new("Weak", Value::Int(0)));
                first += usize::from(drawn.arguments.contains(&weak));
            }
            let about = |found: usize, percent: f64| (found as f64 / 1_000.0 - percent).abs() < 1.5;
            assert!(about(causal, share as f64), "{causal} of share {share}");
            assert!(about(reads, READS as f64), "{reads}");
            let goes_over = (share * (100 - share)) as f64 * 2.0 * REDRAWS as f64 / 1e4;
            assert!(about(both, goes_over), "{both} of share {share}");
            assert!(share == 0 || first > 1_000, "the first name is read often, not {first} times");
        }
    }
}
