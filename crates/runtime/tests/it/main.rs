//! Tests of splitting: split programs compute the same as the programs as written.

mod answers;
mod concurrent;
mod embedded;
mod endorsed;
mod harness;
mod model_store;
mod turns;
mod uniques;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use harness::{Verdict, differ_or_panic, interferes_or_panics};
use mingle_lang::flow::Rules;
use mingle_lang::generate;
use mingle_lang::split::Mutation;
use model_store::LAST_READS;

/// The number of programs that a test makes: a few thousand, or for `MINGLE_SPLIT_SECONDS` seconds,
/// or `MINGLE_SPLIT_PROGRAMS` many, starting at the seed in `MINGLE_SPLIT_SEED`.
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
    let mut taken = 0_u64;
    for seed in Seeds::new(3_000) {
        made += 1;
        match differ_or_panic(seed, Rules::default(), Mutation::None) {
            Verdict::Rejected => rejected += 1,
            Verdict::Agreed { took_effect: took, phases, is_taken } => {
                taken += u64::from(is_taken);
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
        "{made} programs, {rejected} rejected, {took_effect} took effect, {many_phases} with three or more phases, {taken} met a taken value, {} reads known to be the last",
        LAST_READS.load(Ordering::Relaxed)
    );
    // Programs that are not run prove nothing.
    assert!(
        took_effect * 4 > made && many_phases * 10 > made,
        "the generator makes too little that runs"
    );
    assert!(LAST_READS.load(Ordering::Relaxed) * 4 > took_effect, "last reads are seldom known");
}

#[test]
fn weaker_data_never_shows_in_stronger_stores() {
    let (mut made, mut took_effect) = (0_u64, 0_u64);
    for seed in Seeds::new(2_000) {
        made += 1;
        match interferes_or_panics(seed, Rules::default(), Mutation::None) {
            Verdict::Rejected => {}
            Verdict::Agreed { took_effect: took, .. } => took_effect += u64::from(took),
            Verdict::Differed(how) => {
                panic!(
                    "MINGLE_SPLIT_SEED={seed} MINGLE_SPLIT_PROGRAMS=1: {how}\n{}",
                    generate::program(seed)
                )
            }
        }
    }
    println!("{made} programs, {took_effect} of which wrote something");
    assert!(took_effect * 4 > made, "the generator makes too little that writes");
}

#[test]
fn the_embedded_engine_does_what_programs_say() {
    let (mut made, mut took_effect) = (0_u64, 0_u64);
    for seed in Seeds::new(600) {
        made += 1;
        match std::panic::catch_unwind(|| embedded::differ_embedded(seed)) {
            Ok(Verdict::Rejected) => {}
            Ok(Verdict::Agreed { took_effect: took, .. }) => took_effect += u64::from(took),
            other => {
                panic!(
                    "MINGLE_SPLIT_SEED={seed} MINGLE_SPLIT_PROGRAMS=1: {other:?}\n{}",
                    generate::program(seed)
                )
            }
        }
    }
    println!("{made} programs, {took_effect} of which took effect");
    assert!(took_effect * 4 > made, "the generator makes too little that runs");
}

#[test]
fn runs_at_once_do_what_programs_say() {
    let (mut made, mut endorsed, mut aged) = (0_u64, 0_u64, 0_u64);
    for seed in Seeds::new(2_500) {
        made += 1;
        let shown = concurrent::judge_or_panic(seed, Rules::default(), Mutation::None)
            .unwrap_or_else(|how| {
                panic!(
                    "MINGLE_SPLIT_SEED={seed} MINGLE_SPLIT_PROGRAMS=1: {how}\n{}",
                    generate::program(seed)
                )
            });
        endorsed += u64::from(shown.endorses && shown.judged > 0);
        aged += shown.aged;
    }
    println!("{made} programs, {endorsed} with endorsements, {aged} runs met what had changed");
    assert!(endorsed * 20 > made && aged * 100 > made, "too little happens in between");
}

/// Returns the flow rules with one switched off.
fn without(change: impl FnOnce(&mut Rules)) -> Rules {
    let mut rules = Rules::default();
    change(&mut rules);
    rules
}

/// Returns parts of the compiler and the interpreter, each broken in one way.
fn mutants() -> Vec<(&'static str, Rules, Mutation)> {
    let rule = |name, rules| (name, rules, Mutation::None);
    let splitter = |name, mutation| (name, Rules::default(), mutation);
    vec![
        rule("a value's provenance is not checked", without(|rules| rules.values = false)),
        rule("an effect's context is forgotten", without(|rules| rules.contexts = false)),
        rule("a ref's provenance is not checked", without(|rules| rules.refs = false)),
        rule("what may fail may depend on anything", without(|rules| rules.failures = false)),
        rule("a `return` adds no context", without(|rules| rules.returns = false)),
        rule(
            "a condition does not flow into what it merges",
            without(|rules| rules.merges = false),
        ),
        splitter("a phase skips a recorded condition", Mutation::ConditionNotReplayed),
        splitter("what a branch assigned is not recorded", Mutation::MergeNotRecorded),
        splitter("later phases run on after a `return`", Mutation::ReturnForgotten),
        splitter("stores are visited as declared", Mutation::OrderAsDeclared),
        splitter("a `require` runs in the last phase", Mutation::RequireLate),
        splitter("local statements ignore their context", Mutation::ContextIgnored),
        splitter("reads pass writes of the same field", Mutation::ReadsPassWrites),
        splitter("statements pass assignments of their variables", Mutation::VariablesPass),
        splitter("a loop replays its first value", Mutation::LoopReplaysFirst),
        splitter("reads do not see the transaction's writes", Mutation::OverlayIgnored),
        splitter("slots are taken for computed again", Mutation::AllComputedAgain),
    ]
}

#[test]
fn every_mutant_is_caught() {
    // Mutants panic a lot, and this test looks for these panics. Panics of other tests, which run
    // beside this one, are still shown.
    let here = std::thread::current().id();
    let shown = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() != here {
            shown(panic);
        }
    }));
    let mut survivors = Vec::new();
    for (name, rules, mutation) in mutants() {
        let caught = (1..20_000).find(|seed| {
            matches!(differ_or_panic(*seed, rules, mutation), Verdict::Differed(_))
                || matches!(interferes_or_panics(*seed, rules, mutation), Verdict::Differed(_))
        });
        match caught {
            Some(seed) => println!("{name}: caught by seed {seed}"),
            None => survivors.push(name),
        }
    }
    drop(std::panic::take_hook());
    assert!(survivors.is_empty(), "not caught: {survivors:?}");
}

#[test]
fn what_ages_between_phases_is_noticed() {
    let mutants = [
        (without(|rules| rules.separation = false), Mutation::None),
        (Rules::default(), Mutation::AgreementIgnored),
    ];
    for (rules, mutation) in mutants {
        let caught = (1..4_000).find(|seed| concurrent::judge(*seed, rules, mutation).is_err());
        println!("{rules:?}, {mutation:?}: caught by seed {caught:?}");
        assert!(caught.is_some(), "not caught: {rules:?}, {mutation:?}");
    }
}
