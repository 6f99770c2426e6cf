//! The search alone, without the edges of saturation, gives the same answers.
//!
//! Saturation decides most small histories before the search sees them, so mistakes of the search
//! would seldom show in the verdicts.

use crate::history::{History, Kind};
use crate::index::Index;
use crate::limits::SEARCH_CANDIDATES_MAX;
use crate::serial::search::{Answer, search};
use crate::serial::units::Units;
use crate::serial::{Rules, check};
use crate::text::read_text;
use crate::weak::Found;

/// A generator that is good enough for this (Knuth's MMIX constants).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Returns transactions that read each key at most once, usually a recent value, and then write.
fn history(random: &mut Random, transactions: u64, keys: u64) -> History {
    let mut text = String::new();
    let mut written = vec![vec![0]; keys as usize];
    for id in 1..=transactions {
        let session = random.below(4);
        for (key, values) in written.iter().enumerate() {
            if random.below(2) == 0 {
                let back = random.below(3).min(values.len() as u64 - 1) as usize;
                let value = values[values.len() - 1 - back];
                text.push_str(&format_line('r', key, value, session, id));
            }
        }
        for (key, values) in written.iter_mut().enumerate() {
            if random.below(2) == 0 {
                let value = values.len() as u64;
                values.push(value);
                text.push_str(&format_line('w', key, value, session, id));
            }
        }
    }
    read_text(&text).expect("a history")
}

fn format_line(kind: char, key: usize, value: u64, session: u64, id: u64) -> String {
    format!("{kind}({key},{value},{session},{id})\n")
}

/// The given order is valid exactly if each read finds the last write before it. A search without
/// other choices would find the same order.
#[test]
fn the_given_order_is_recognised_without_search() {
    let (mut given, mut not) = (0, 0);
    for is_split in [false, true] {
        let rules = Rules { is_split, real_time: false };
        for seed in 0..2_000 {
            let mut random = Random(seed);
            let history = history(&mut random, 4, 2);
            let index = Index::new(&history).expect("every read has a writer");
            let mut last = std::collections::HashMap::new();
            let is_right = history.transactions().iter().all(|transaction| {
                transaction.operations.iter().all(|operation| match operation.kind {
                    Kind::Read => *last.get(&operation.key).unwrap_or(&0) == operation.value,
                    Kind::Write => last.insert(operation.key, operation.value).is_none_or(|_| true),
                })
            });
            let found = super::given::order(&Units::new(&index, rules));
            assert_eq!(found.is_some(), is_right, "seed {seed}\n{history:?}");
            if is_right {
                // The check examines no candidate.
                assert!(matches!(check(&index, rules, 0), Found::Order(..)), "seed {seed}");
                given += 1;
            } else {
                not += 1;
            }
        }
    }
    assert!(given > 200 && not > 200, "{given} and {not}");
}

#[test]
fn the_search_alone_agrees() {
    for is_split in [false, true] {
        let rules = Rules { is_split, real_time: false };
        let (mut satisfied, mut violated) = (0, 0);
        for seed in 0..6_000 {
            let mut random = Random(seed);
            let (transactions, keys) = (4 + random.below(4), 1 + random.below(3));
            let history = history(&mut random, transactions, keys);
            let index = Index::new(&history).expect("every read has a writer");
            let alone = match search(&Units::new(&index, rules), SEARCH_CANDIDATES_MAX) {
                Answer::Order(_) => true,
                Answer::None => false,
                Answer::Unknown(reason) => panic!("seed {seed}: {reason}"),
            };
            let whole = matches!(check(&index, rules, SEARCH_CANDIDATES_MAX), Found::Order(..));
            assert_eq!(alone, whole, "seed {seed}, split: {is_split}\n{history:?}");
            if alone { satisfied += 1 } else { violated += 1 }
        }
        assert!(satisfied > 200 && violated > 200, "{satisfied} and {violated}");
    }
}
