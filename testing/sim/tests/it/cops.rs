//! Seeds of the reference protocols, and the planted faults that they find.

use mingle_sim::cops::{Flaw, Plan, Protocol, Verdict, judged, shrunk};

/// The seeds of each protocol that hold.
const SEEDS: u64 = 300;

/// The seeds among which one finds each planted fault.
const FINDING_SEEDS: u64 = 60;

/// The same for a fault that needs two reads of a transaction amid its phases, one before its commit and
/// one after.
const FINDING_SEEDS_RARE: u64 = 1_000;

/// The protocols in which a planted fault can do harm.
fn protocols(flaw: Flaw) -> &'static [Protocol] {
    const CHECKED: &[Protocol] =
        &[Protocol::Cops, Protocol::CopsRt, Protocol::CopsCd, Protocol::Eiger, Protocol::Log];
    match flaw {
        Flaw::SignedNodeIds | Flaw::NotRetried => &Protocol::ALL,
        Flaw::DepsUnchecked | Flaw::DepCheckByNewer => CHECKED,
        Flaw::DepCheckWithoutDeadline | Flaw::ReadForgotten => {
            &[Protocol::Cops, Protocol::CopsRt, Protocol::CopsCd, Protocol::Eiger]
        }
        Flaw::OneRound | Flaw::PrematureCollection => &[Protocol::CopsRt],
        Flaw::MergeByArrival | Flaw::ConflictIgnored => &[Protocol::CopsCd],
        Flaw::EmptySliceWithoutInterval
        | Flaw::MatchedByPosition
        | Flaw::StrictLargestEvt
        | Flaw::NotYetReused
        | Flaw::CounterInTransaction
        | Flaw::TransactionNotRetried
        | Flaw::TombstoneForgotten
        | Flaw::PendingIgnored
        | Flaw::ReadWaits
        | Flaw::OlderNotApplied => &[Protocol::Eiger],
    }
}

/// The paths that the seeds of a protocol must take.
fn expected(protocol: Protocol) -> &'static [&'static str] {
    const FAULTS: &[&str] = &["data center lost", "packet lost"];
    const CHECKS: &[&str] = &[
        "data center lost",
        "packet lost",
        "dependency check that waited",
        "dependency check sent again",
    ];
    match protocol {
        Protocol::Eventual => FAULTS,
        Protocol::EventualColumns => {
            &["data center lost", "packet lost", "tombstone read", "absent column in a slice"]
        }
        Protocol::Cops => CHECKS,
        Protocol::CopsRt => &[
            "data center lost",
            "dependency check that waited",
            "dependency check sent again",
            "second round of a read-only transaction",
            "dependencies of a version collected",
        ],
        Protocol::CopsCd => &[
            "data center lost",
            "dependency check that waited",
            "dependency check sent again",
            "concurrent versions merged",
        ],
        Protocol::Eiger => &[
            "data center lost",
            "packet lost",
            "dependency check that waited",
            "dependency check sent again",
            "second round of a read-only transaction",
            "commit check at a coordinator",
            "write transaction over several servers",
            "replicated transaction below a newer value",
            "tombstone read",
            "absent column in a slice",
            "read-only transaction begun again",
        ],
        Protocol::Log => &["data center lost", "packet lost", "dependency check that waited"],
    }
}

#[test]
fn seeds_hold_and_take_every_path() {
    for protocol in Protocol::ALL {
        let (name, mut sum) = (protocol.name(), Verdict::default());
        for seed in 1..=SEEDS {
            match judged(&Plan::draw(protocol, seed)) {
                Ok(verdict) => sum.add(verdict),
                Err(broken) => panic!(
                    "{}: {}\ncargo xtask sim cops --protocol {name} --seed {seed} --seeds 1",
                    broken.promise, broken.how
                ),
            }
        }
        for point in expected(protocol) {
            assert!(sum.covered.contains_key(point), "{name} never reaches: {point}");
        }
    }
}

#[test]
fn every_planted_fault_is_found_in_each_protocol_that_it_harms() {
    for flaw in Flaw::ALL {
        for protocol in protocols(flaw) {
            let (planted, name) = (flaw.name(), protocol.name());
            let finds = |seed: &u64| judged(&Plan::draw(*protocol, *seed).with(flaw)).is_err();
            let seeds = match flaw {
                Flaw::NotYetReused => FINDING_SEEDS_RARE,
                _ => FINDING_SEEDS,
            };
            let found = (1..=seeds).find(finds);
            let seed = found
                .unwrap_or_else(|| panic!("{planted} is not found in {seeds} seeds of {name}"));
            assert!(judged(&Plan::draw(*protocol, seed)).is_ok(), "{name}, seed {seed}");
        }
    }
}

#[test]
fn one_seed_always_runs_the_same() {
    for protocol in Protocol::ALL {
        let runs = [0, 1].map(|_| judged(&Plan::draw(protocol, 7)).expect("the seed holds"));
        assert!(runs[0].answered > 0);
        assert_eq!(runs[0].answered, runs[1].answered);
        assert_eq!(runs[0].covered, runs[1].covered);
    }
}

#[test]
fn a_failing_plan_shrinks_to_a_few_calls() {
    let plan = |seed| Plan::draw(Protocol::Cops, seed).with(Flaw::DepsUnchecked);
    let seed = (1..=FINDING_SEEDS).find(|seed| judged(&plan(*seed)).is_err()).expect("one fails");
    let small = shrunk(&plan(seed), 400);
    assert!(judged(&small).is_err());
    assert!(small.steps.len() <= 4, "{} calls are left of seed {seed}", small.steps.len());
}
