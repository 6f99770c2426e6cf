//! The invariants between the calls made and the data in the stores: no call lost, halved or doubled.

use std::collections::BTreeMap;

/// Each account and slot begins with this balance.
pub const INITIAL: i64 = 1_000_000;

/// Objects of each kind.
pub const OBJECTS: usize = 400;

/// The stores that a call writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    /// PostgreSQL alone.
    Bank,
    /// PostgreSQL and Redis.
    Two,
    /// PostgreSQL, Redis and Cassandra.
    Three,
}

impl Sort {
    pub fn title(self) -> &'static str {
        match self {
            Self::Bank => "PostgreSQL",
            Self::Two => "PostgreSQL, Redis",
            Self::Three => "all three",
        }
    }
}

/// A store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Store {
    Bank,
    Cache,
    Feed,
}

/// The caller's knowledge of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// The call took effect, at some stores perhaps after the answer.
    Done,
    /// The call did not take effect, and never will.
    Refused,
    /// The call may or may not have taken effect.
    Unknown,
}

/// A transfer: from an account to an account, or of the amount to a slot and to a page.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub id: i64,
    pub sort: Sort,
    pub from: i64,
    pub to: i64,
    pub page: i64,
    pub amount: i64,
}

impl Call {
    /// The objects that the call changes, each with the amount added to its balance; the call leaves its id at
    /// each of them. A page has no balance: its lines stand for the amounts.
    pub fn effects(&self) -> Vec<(Store, i64, i64)> {
        let amount = self.amount;
        match self.sort {
            Sort::Bank => vec![(Store::Bank, self.from, -amount), (Store::Bank, self.to, amount)],
            Sort::Two => vec![(Store::Bank, self.from, -amount), (Store::Cache, self.to, amount)],
            Sort::Three => vec![
                (Store::Bank, self.from, -2 * amount),
                (Store::Cache, self.to, amount),
                (Store::Feed, self.page, amount),
            ],
        }
    }
}

/// The data in the stores, as read by the stores' own clients.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// The number of times that the id of a call stands at an object.
    pub lines: BTreeMap<(Store, i64, i64), usize>,
    /// Balances of accounts and slots.
    pub balances: BTreeMap<(Store, i64), i64>,
}

/// The result of the comparison.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The number of calls without an answer that took effect, and of those that did not.
    pub unknown_done: usize,
    pub unknown_not: usize,
    /// A sentence for each violation.
    pub violations: Vec<String>,
}

/// Compares the data in the stores with the calls that were made.
pub fn judge(calls: &[(Call, Answer)], held: &Held) -> Verdict {
    let mut verdict = Verdict::default();
    let mut lines = held.lines.clone();
    let mut balances: BTreeMap<(Store, i64), i64> =
        held.balances.keys().map(|key| (*key, INITIAL)).collect();
    for (call, answer) in calls {
        let effects = call.effects();
        let counts: Vec<usize> = effects
            .iter()
            .map(|(store, object, _)| lines.remove(&(*store, *object, call.id)).unwrap_or(0))
            .collect();
        let places = counts.iter().filter(|count| **count > 0).count();
        let mut violated = |how: &str| {
            verdict.violations.push(format!("{how}: {call:?} ({answer:?}): {counts:?}"));
        };
        if counts.iter().any(|count| *count > 1) {
            violated("doubled");
        }
        match (answer, places) {
            (_, places) if places > 0 && places < effects.len() => violated("halved"),
            (Answer::Done, 0) => violated("lost"),
            (Answer::Refused, 1..) => violated("refused, and yet there"),
            (Answer::Unknown, 0) => verdict.unknown_not += 1,
            (Answer::Unknown, _) => verdict.unknown_done += 1,
            _ => {}
        }
        for ((store, object, amount), count) in effects.iter().zip(&counts) {
            if let Some(balance) = balances.get_mut(&(*store, *object)) {
                *balance += amount * *count as i64;
            }
        }
    }
    for ((store, object, id), count) in lines {
        verdict.violations.push(format!("foreign: {store:?} {object} has call {id} {count} times"));
    }
    for (place, expected) in balances {
        let found = held.balances[&place];
        if found != expected {
            verdict
                .violations
                .push(format!("balance of {place:?}: {found}, by its lines {expected}"));
        }
    }
    verdict.violations.extend(sum(calls, held));
    verdict
}

/// Returns a violation if transfers changed the total of all balances and of the amounts at pages.
fn sum(calls: &[(Call, Answer)], held: &Held) -> Option<String> {
    let amounts: BTreeMap<i64, i64> =
        calls.iter().map(|(call, _)| (call.id, call.amount)).collect();
    let pages = held.lines.iter().filter(|((store, _, _), _)| *store == Store::Feed);
    let at_pages: i64 =
        pages.map(|((_, _, id), count)| amounts.get(id).unwrap_or(&0) * *count as i64).sum();
    let found = held.balances.values().sum::<i64>() + at_pages;
    let expected = INITIAL * held.balances.len() as i64;
    (found != expected)
        .then(|| format!("the sum of all transfers: {found}, at the beginning {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: i64, sort: Sort) -> Call {
        Call { id, sort, from: 1, to: 2, page: 3, amount: 5 }
    }

    /// The data after each of these calls has taken effect once.
    fn after(calls: &[Call]) -> Held {
        let mut held = Held::default();
        for object in 0..5 {
            held.balances.insert((Store::Bank, object), INITIAL);
            held.balances.insert((Store::Cache, object), INITIAL);
        }
        calls
            .iter()
            .flat_map(|call| call.effects().into_iter().map(|effect| (call.id, effect)))
            .for_each(|(id, (store, object, amount))| {
                *held.lines.entry((store, object, id)).or_default() += 1;
                if let Some(balance) = held.balances.get_mut(&(store, object)) {
                    *balance += amount;
                }
            });
        held
    }

    #[test]
    fn each_call_is_there_once_or_not_at_all() {
        let calls = [call(1, Sort::Bank), call(2, Sort::Two), call(3, Sort::Three)];
        let answered = [
            (calls[0], Answer::Done),
            (calls[1], Answer::Unknown),
            (calls[2], Answer::Done),
            (call(4, Sort::Three), Answer::Unknown),
            (call(5, Sort::Two), Answer::Refused),
        ];
        let verdict = judge(&answered, &after(&calls));
        assert_eq!(verdict, Verdict { unknown_done: 1, unknown_not: 1, violations: Vec::new() });
    }

    #[test]
    fn each_violation_is_noticed() {
        let calls = [call(1, Sort::Bank), call(2, Sort::Three)];
        let done = calls.map(|call| (call, Answer::Done));
        let whole = after(&calls);
        type Change = fn(&mut Held);
        let cases: [(&str, Change); 6] = [
            ("lost", |held| held.lines.retain(|(_, _, id), _| *id != 1)),
            ("halved", |held| held.lines.retain(|(store, _, _), _| *store != Store::Feed)),
            ("doubled", |held| {
                *held.lines.get_mut(&(Store::Feed, 3, 2)).expect("it is there") += 1;
            }),
            ("foreign", |held| _ = held.lines.insert((Store::Cache, 4, 9), 1)),
            ("balance", |held| {
                *held.balances.get_mut(&(Store::Cache, 2)).expect("it is there") += 5;
            }),
            ("the sum", |held| {
                *held.balances.get_mut(&(Store::Bank, 4)).expect("it is there") -= 1;
            }),
        ];
        for (name, change) in cases {
            let mut held = whole.clone();
            change(&mut held);
            let found = judge(&done, &held).violations;
            assert!(found.iter().any(|found| found.starts_with(name)), "{name}: {found:?}");
        }
        let refused = [(calls[0], Answer::Refused), (calls[1], Answer::Done)];
        assert_eq!(judge(&refused, &whole).violations.len(), 1);
    }
}
