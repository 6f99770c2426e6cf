//! Some seeds, and the required properties of the simulation itself.

use std::collections::BTreeMap;

use mingle_sim::Flaw;
use mingle_sim::workload::setup::Plan;
use mingle_sim::workload::{judged, shrunk};

/// The coverage points that the seeds of a default run must reach: a path that is never reached is
/// not tested.
const COVERED: &[&str] = &[
    "Announce",
    "Audit",
    "BankToShop",
    "Both",
    "Browse",
    "Buy",
    "Claim",
    "Conflict at Commit",
    "Conflict at Read",
    "Credit",
    "Deposit",
    "Enroll",
    "Glance",
    "Hurry",
    "Jot",
    "Look",
    "LostAfter at Commit",
    "LostBefore at Commit",
    "Note",
    "Order",
    "Peek",
    "Pin",
    "Post",
    "ReadAccount",
    "ReadBoard",
    "ReadInbox",
    "ReadPad",
    "ReadSheet",
    "Record",
    "Refused at Commit",
    "Rush",
    "Scrap",
    "Scribble",
    "Send",
    "ShopToBank",
    "Skim",
    "Swap",
    "Tally",
    "Transfer",
    "Vouch",
    "Wipe",
    "Unavailable at Begin",
    "Unavailable at Commit",
    "Unavailable at Read",
    "answer at a weaker level",
    "answer at the store's own level",
    "answer that was late",
    "call answered early",
    "call done",
    "call incomplete",
    "call parked",
    "call refused",
    "call store away",
    "call unheard",
    "clean-ups that met a replica which lagged",
    "commits that arrived after their process",
    "deletions at a causal store",
    "deletions at a strong store",
    "died After Begin",
    "died After Commit",
    "died After Everywhere",
    "died After Read",
    "died Before Begin",
    "died Before Commit",
    "died Before Everywhere",
    "died Before Read",
    "exception: an eventual store read out of causal order",
    "keyed call",
    "keyed call, answered again",
    "keyed call, made again without a first answer",
    "one-way cuts between a process and a store",
    "one-way cuts between replicas",
    "origins that died in a call while a link of theirs was cut",
    "origins that died in a call while a link of theirs was slow",
    "processes killed while a link was cut",
    "processes with another program",
    "restarts",
    "runtime Aborted",
    "runtime Begun",
    "runtime Behind",
    "runtime Cleaned",
    "runtime Expedited",
    "runtime Fenced",
    "runtime Fixed",
    "runtime Helped",
    "runtime LeanEnded",
    "runtime Leaned",
    "runtime LeftSeen",
    "runtime Over",
    "runtime Parked",
    "runtime PassedOn",
    "runtime ReadAhead",
    "runtime ReadEarly",
    "runtime FloorStood",
    "runtime StartedOver",
    "runtime Swept",
    "runtime Taken",
    "runtime Waited",
    "runtime Witnessed",
    "runs with an eventual store in the middle",
    "transactions finished by another program",
    "transactions with reads at eventual stores, judged with all stores",
    "weaker answer without a write that its session knew",
];

fn replay(seed: u64) -> String {
    format!("cargo xtask sim --seed {seed} --seeds 1")
}

#[test]
fn seeds_hold_and_cover_what_can_happen() {
    let mut covered: BTreeMap<String, u64> = BTreeMap::new();
    for seed in 1..=120 {
        let verdict = judged(&Plan::draw(seed), Flaw::None);
        let verdict = verdict.unwrap_or_else(|broken| panic!("{}: {broken:?}", replay(seed)));
        for (name, count) in verdict.covered {
            *covered.entry(name).or_default() += count;
        }
    }
    let never: Vec<&&str> =
        COVERED.iter().filter(|name| covered.get(**name).copied().unwrap_or(0) == 0).collect();
    assert!(never.is_empty(), "never happened: {never:?}; happened: {covered:?}");
}

#[test]
fn one_seed_runs_twice_to_the_same_log() {
    for seed in [3, 14, 15, 92, 65] {
        let (once, again) =
            (judged(&Plan::draw(seed), Flaw::None), judged(&Plan::draw(seed), Flaw::None));
        assert_eq!(once, again, "seed {seed}");
    }
    let digest = |seed| judged(&Plan::draw(seed), Flaw::None).map(|verdict| verdict.digest);
    assert_ne!(digest(3), digest(4));
}

#[test]
fn a_failure_shrinks_to_a_short_schedule() {
    let flaw = Flaw::find("NoIntent").expect("it is one of them");
    let seed = (1..50).find(|seed| judged(&Plan::draw(*seed), flaw).is_err());
    let plan = Plan::draw(seed.expect("nobody finishes what has no intent"));
    let shrunk = shrunk(&plan, flaw, 200).expect("it fails");
    assert!(shrunk.events.len() <= 12, "{:?}", shrunk.events);
    assert!(shrunk.failure.starts_with("P3"), "{}", shrunk.failure);
}

/// The seed that found each planted fault, by `cargo xtask sim --planted all`.
const FOUND: &[(&str, u64)] = &[
    ("NoWitnessCheck", 2),
    ("BlindWrites", 2),
    ("NoInheritance", 9),
    ("RowsReplaced", 18),
    ("NoRowsInLastPhase", 39),
    ("IntentAfterCommit", 9),
    ("NoIntent", 2),
    ("UnguardedWitness", 7),
    ("WitnessBeforeEffects", 2),
    ("HelperSkipsFloor", 117),
    ("FloorAfterDeletion", 2),
    ("CleanedAtOneReplica", 353),
    ("MiddleValuesNotKept", 2),
    ("HelperDrawsAnew", 2),
    ("OperationsDiffer", 39),
    ("LostMeansNotCommitted", 12),
    ("LostMeansCommitted", 1),
    ("NobodyHelps", 1),
    ("SweepWithoutFence", 20774),
    ("HelperLeavesHome", 9),
    ("NothingDeleted", 1),
    ("RowsAtOwnFloor", 69),
    ("IntentNotLast", 244),
    ("SessionDropsWorklist", 9),
    ("SessionForgetsSeen", 15),
    ("SessionLeansOnNone", 26),
    ("NoTrackingSet", 67),
    ("EndorsementUnchecked", 83),
    ("RevalidatedAfterCommit", 8),
    ("NoReadWitnesses", 136),
    ("ReadersNotAwaited", 165),
    ("WholeNotAwaited", 512),
    ("AbortIgnored", 309),
    ("ThroughAtOne", 42),
    ("WeakerCalledOwn", 20),
    ("AnswersAskedAgain", 1294),
    ("AnswersUnchecked", 300),
    ("WeakerRowsIgnored", 349),
    ("QueriesBlind", 108),
    ("CommandsLeaveNoRows", 10),
    ("HoldNotSettled", 58),
    ("HoldReleasedUndecided", 58),
    ("HoldForgotten", 84),
    ("ConflictsForgotten", 1),
    ("OutcomesForgotten", 60),
    ("CommitsDropped", 1),
    ("DeletesForgotten", 10),
];

#[test]
fn planted_faults_are_found_again_with_their_seeds() {
    let names: Vec<String> = Flaw::all().map(|flaw| flaw.to_string()).collect();
    let listed: Vec<&str> = FOUND.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, listed, "each fault has its seed");
    let mut missed = Vec::new();
    for (name, seed) in FOUND {
        let plan = Plan::draw(*seed);
        let flaw = Flaw::find(name).expect("it is listed");
        match judged(&plan, flaw) {
            Ok(_) => missed.push(*name),
            Err(broken) => println!("{name}: seed {seed}: {}: {}", broken.promise, broken.how),
        }
        let sound = judged(&plan, Flaw::None);
        assert!(sound.is_ok(), "{}: it fails without {name} too: {sound:?}", replay(*seed));
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
