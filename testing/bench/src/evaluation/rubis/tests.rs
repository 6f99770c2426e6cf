//! The mix, the conflicts, and the invariants that strong transactions preserve.

use std::collections::BTreeMap;

use mingle_geo::certify::Touch;
use mingle_geo::{Baseline, Key};
use mingle_model::Value;
use mingle_model::random::Random;

use super::super::model::{Model, Setup};
use super::super::times::Times;
use super::super::workload::{Step, Workload};
use super::rows::STOCK;
use super::{Call, MIX, Rows, Rubis, steps};

#[test]
fn of_a_hundred_transactions_fifteen_update_and_ten_are_strong() {
    let of = |is: &dyn Fn(Call) -> bool| -> usize {
        MIX.iter().filter(|(_, call, _)| is(*call)).map(|(weight, ..)| weight).sum()
    };
    assert_eq!((of(&|_| true), of(&Call::is_update), of(&Call::is_strong)), (1_000, 150, 100));
    let count = |is: &dyn Fn(Call) -> bool| MIX.iter().filter(|(_, call, _)| is(*call)).count();
    // Eleven read; closeAuction comes in addition to the five that update.
    assert_eq!((count(&|call| !call.is_update()), count(&Call::is_update)), (11, 6));
    assert_eq!(count(&Call::is_strong), 4);
    // The drawn transactions follow the mix.
    let (mut rubis, mut random) = (Rubis::new(500, 500), Random::new(4));
    let mut drawn: BTreeMap<usize, usize> = BTreeMap::new();
    for _ in 0..20_000 {
        *drawn.entry(rubis.next(&mut random).kind).or_default() += 1;
    }
    for (kind, (weight, _, name)) in MIX.iter().enumerate() {
        let found = drawn.get(&kind).copied().unwrap_or(0) as f64;
        let expected = (*weight * 20) as f64;
        assert!((found - expected).abs() < 6.0 * expected.sqrt(), "{name}: {found} of {expected}");
    }
}

/// Returns the declared accesses of a strong transaction to an item, a user and a number.
fn touches(call: Call, subjects: [u64; 3]) -> Vec<Touch> {
    let mut rubis = Rubis::new(50, 50);
    let kind = MIX.iter().position(|(_, of, _)| *of == call).expect("it is in the mix");
    let mut job = super::Job { kind, subjects, ..super::Job::default() };
    let Step::Read(keys) = rubis.step(&mut job, &[]) else { panic!("{call:?} reads first") };
    let empty = |key: &Key| std::sync::Arc::new(mingle_geo::State::new(key.kind));
    let found: Vec<_> = keys.iter().map(empty).collect();
    let Step::Commit { touches, .. } = rubis.step(&mut job, &found) else { panic!("{call:?}") };
    touches
}

#[test]
fn three_pairs_conflict_where_they_are_about_the_same_thing() {
    let strong = [Call::RegisterUser, Call::StoreBuyNow, Call::StoreBid, Call::CloseAuction];
    let conflicts = Rubis::new(50, 50).conflicts();
    for a in strong {
        for b in strong {
            let conflict = |one: [u64; 3], other: [u64; 3]| {
                let (one, other) = (touches(a, one), touches(b, other));
                one.iter().any(|a| other.iter().any(|b| conflicts.between(a, b)))
            };
            let expected = matches!(
                (a, b),
                (Call::RegisterUser, Call::RegisterUser)
                    | (Call::StoreBuyNow, Call::StoreBuyNow)
                    | (Call::StoreBid, Call::CloseAuction)
                    | (Call::CloseAuction, Call::StoreBid)
            );
            assert_eq!(conflict([7, 8, 1], [7, 8, 2]), expected, "{a:?} and {b:?}");
            assert!(!conflict([7, 8, 1], [9, 3, 2]), "{a:?} and {b:?} of two items");
        }
    }
}

/// Returns the number of items sold too often, and of auctions whose winner is not the highest
/// bidder.
fn wrong(system: Baseline) -> (usize, usize, usize) {
    let times = Times::recorded();
    let setup = Setup { clients: 60, think_us: 10_000, ..Setup::new(system, 3, times) };
    let rubis = Rubis::new(60, 60);
    let mut model = Model::new(setup, Box::new(rubis)).expect("the settings are sound");
    model.elect().expect("somebody leads");
    model.start_clients();
    model.run_for(2_000_000_000);
    model.stop_clients();
    model.run_for(1_500_000_000);
    let (mut oversold, mut unjust, mut closed) = (0, 0, 0);
    for item in 0..60 {
        let stock = model.shown(0, &Rows::stock(item));
        let left = stock.as_counter().expect("a counter").value();
        assert!(left <= i128::from(STOCK));
        oversold += usize::from(left < 0);
        let winner = model.shown(0, &Rows::winner(item));
        let winner = winner.as_register().and_then(|register| register.value().cloned());
        let Some(winner) = winner.as_ref().and_then(Value::as_int) else { continue };
        closed += 1;
        unjust += usize::from(winner != steps::highest(&model.shown(0, &Rows::bids(item))));
    }
    (oversold, unjust, closed)
}

#[test]
fn nothing_is_oversold_and_the_highest_bidder_wins() {
    for system in [Baseline::UniStore, Baseline::RedBlue, Baseline::Strong] {
        let (oversold, unjust, closed) = wrong(system);
        assert!(closed > 5, "{}: hardly any auction is closed", system.name());
        assert_eq!((oversold, unjust), (0, 0), "{}", system.name());
    }
}

#[test]
fn causal_transactions_alone_do_not_keep_it_so() {
    let (oversold, unjust, _) = wrong(Baseline::Causal);
    assert!(oversold > 0 && unjust > 0, "{oversold} oversold, {unjust} unjust");
}
