//! Splitting is proved by test: split programs do what the programs say.

mod harness;
mod model_store;

use std::time::{Duration, Instant};

use harness::{Verdict, differ_or_panic};
use mingle_lang::flow::Rules;
use mingle_lang::generate;
use mingle_lang::split::Mutation;

/// How many programs a test makes: a few thousand, or for as long as `MINGLE_SPLIT_SECONDS` says,
/// or as many as `MINGLE_SPLIT_PROGRAMS` says, from the seed in `MINGLE_SPLIT_SEED` on.
struct Seeds {
    next: u64,
    left: u64,
    until: Option<Instant>,
}

impl Seeds {
    fn new(default: u64) -> Self {
        let number =
            |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let until = number("MINGLE_SPLIT_SECONDS")
            .map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let left = if until.is_some() {
            u64::MAX
        } else {
            number("MINGLE_SPLIT_PROGRAMS").unwrap_or(default)
        };
        Self { next: number("MINGLE_SPLIT_SEED").unwrap_or(1), left, until }
    }
}

impl Iterator for Seeds {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.left == 0 || self.until.is_some_and(|until| Instant::now() >= until) {
            return None;
        }
        self.left -= 1;
        self.next += 1;
        Some(self.next - 1)
    }
}

#[test]
fn split_runs_end_as_plain_runs() {
    let (mut made, mut rejected, mut took_effect, mut many_phases) = (0_u64, 0_u64, 0_u64, 0_u64);
    for seed in Seeds::new(3_000) {
        made += 1;
        match differ_or_panic(seed, Rules::default(), Mutation::None) {
            Verdict::Rejected => rejected += 1,
            Verdict::Agreed { took_effect: took, phases } => {
                took_effect += u64::from(took);
                many_phases += u64::from(phases >= 3);
            }
            Verdict::Differed(how) => {
                panic!(
                    "MINGLE_SPLIT_SEED={seed} MINGLE_SPLIT_PROGRAMS=1: {how}\n{}",
                    generate::program(seed)
                )
            }
        }
    }
    println!(
        "{made} programs, {rejected} rejected, {took_effect} took effect, {many_phases} with three or more phases"
    );
    // What is not run proves nothing.
    assert!(
        took_effect * 4 > made && many_phases * 10 > made,
        "the generator makes too little that runs"
    );
}
