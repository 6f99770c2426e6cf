//! The promises that must hold after a run.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use mingle::Error;

use super::answers::answers;
use super::calls::{Kind, Object, PLACES};
use super::deletes::sheets;
use super::history::{Again, End, History, Operation};
use super::visibility::seen_from_then_on;

/// A promise that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The broken promise.
    pub promise: &'static str,
    /// A description of the violation.
    pub how: String,
}

pub(super) fn broken(promise: &'static str, how: String) -> Broken {
    Broken { promise, how }
}

/// Checks all promises.
///
/// # Errors
///
/// The first promise that did not hold.
pub fn check(history: &History, patience: Duration) -> Result<(), Broken> {
    converged(history)?;
    all_or_nothing(history)?;
    marks(history)?;
    answers(history)?;
    serial(history)?;
    seen_from_then_on(history)?;
    isolated(history)?;
    places(history)?;
    super::takes::stocks(history)?;
    sheets(history)?;
    keyed(history)?;
    bounded(history, patience)?;
    if let Some(what) = history.stuck.first() {
        return Err(broken("P7 bounded waits", format!("{what} never came to rest")));
    }
    if !history.residue.is_empty() {
        let count = history.residue.len();
        let some = &history.residue[..count.min(8)];
        let how = format!("{count} things are left behind, such as {}", some.join("; "));
        return Err(broken("clean-up", how));
    }
    Ok(())
}

/// Checks that all replicas hold the same contents in the end.
fn converged(history: &History) -> Result<(), Broken> {
    for (object, replicas) in &history.finals {
        for (at, replica) in replicas.iter().enumerate().skip(1) {
            if *replica != replicas[0] {
                let how = format!(
                    "{object:?}: replica 1 has {:?}, replica {} has {replica:?}",
                    replicas[0],
                    at + 1
                );
                return Err(broken("P1 convergence", how));
            }
        }
    }
    Ok(())
}

/// Returns `true` if a call with this end must have taken effect, `false` if it must not have;
/// `None` if both are permitted.
fn certainty(operation: &Operation) -> Option<bool> {
    match &operation.end {
        End::Done { .. } => Some(true),
        End::Unheard | End::Failed(Error::Unknown { .. } | Error::Cancelled) => None,
        End::Failed(Error::Incomplete { .. } | Error::ResultGone { .. }) => Some(true),
        End::Failed(_) => Some(false),
    }
}

/// P3: every write of a transaction is there exactly once, or none is.
fn all_or_nothing(history: &History) -> Result<(), Broken> {
    let mut counts: HashMap<(Object, &str), usize> = HashMap::new();
    for (object, replicas) in &history.finals {
        for entry in replicas.iter().take(1).flat_map(|replica| &replica.entries) {
            *counts.entry((*object, entry)).or_default() += 1;
        }
    }
    for operation in &history.operations {
        let tag = operation.call.tag_text();
        let writes = operation.call.writes();
        let found: Vec<usize> = writes
            .iter()
            .map(|object| counts.get(&(*object, tag.as_str())).copied().unwrap_or(0))
            .collect();
        let describe = || {
            format!(
                "{:?} {tag} that ended as {:?} is in {writes:?} {found:?} times",
                operation.call.kind, operation.end
            )
        };
        if found.iter().any(|count| *count > 1) {
            return Err(broken("P3 once", describe()));
        }
        let is_there = found.contains(&1);
        if is_there && found.contains(&0) {
            return Err(broken("P3 all or nothing", describe()));
        }
        if certainty(operation).is_some_and(|expected| !writes.is_empty() && expected != is_there) {
            return Err(broken("P3 outcome", describe()));
        }
    }
    sums(history)
}

/// Checks that counters and balances agree with the logs.
fn sums(history: &History) -> Result<(), Broken> {
    let by_tag = history.by_tag();
    for (object, replicas) in &history.finals {
        let Some(replica) = replicas.first() else { continue };
        let counted =
            replica.entries.iter().filter_map(|entry| by_tag.get(entry)).filter(|index| {
                let call = &history.operations[**index].call;
                match object {
                    Object::Account(_) => call.is_deposit(),
                    Object::Slot(_) => call.kind == Kind::Claim,
                    Object::Shelf(_) | Object::Ledger(_) | Object::Pad(_) | Object::Sheet(_) => {
                        false
                    }
                    Object::Board(_) | Object::Inbox(_) => true,
                }
            });
        // The stock of a shelf is checked by itself.
        if matches!(object, Object::Shelf(_)) {
            continue;
        }
        let expected = counted.count() as i64;
        if replica.count != expected {
            let how = format!("{object:?} counts {}, but its log {expected}", replica.count);
            return Err(broken("P3 once", how));
        }
    }
    Ok(())
}

/// Checks that a value read or drawn in one phase is the same in all later phases, whichever
/// process runs them.
fn marks(history: &History) -> Result<(), Broken> {
    let mut drawn: HashMap<&str, (&str, Object)> = HashMap::new();
    for (object, replicas) in &history.finals {
        for entry in replicas.iter().take(1).flat_map(|replica| &replica.entries) {
            let Some((tag, value)) = entry.split_once(' ') else { continue };
            let (known, place) = *drawn.entry(tag).or_insert((value, *object));
            if known != value {
                let how = format!("{tag} drew {known} in {place:?} and {value} in {object:?}");
                return Err(broken("P3 one transaction", how));
            }
        }
    }
    for operation in history.operations.iter().filter(|operation| operation.call.marks()) {
        let tag = operation.call.tag_text();
        let at = |object: Object| {
            let replicas = history.finals.get(&object)?;
            replicas.first()?.marks.get(&tag).copied()
        };
        let board = at(Object::Board(operation.call.board));
        let inbox = at(Object::Inbox(operation.call.inbox));
        let mut found = vec![board, inbox];
        let is_answered = board.is_some_and(|mark| mark >= 0);
        if operation.call.kind == Kind::Order || operation.call.kind == Kind::Hurry && is_answered {
            let log = history.log(Object::Shelf(operation.call.shelf));
            found.push(log.iter().position(|entry| *entry == tag).map(|at| at as i64));
        }
        if let End::Done { mark, has_rest: false, .. } = &operation.end {
            found.push(Some(*mark));
        }
        if found.iter().any(|mark| *mark != found[0]) {
            let how = format!("{:?} {tag} left different marks: {found:?}", operation.call.kind);
            return Err(broken("P3 one transaction", how));
        }
    }
    Ok(())
}

/// P1 at the strong stores: each read is a prefix of the final log and contains the writes that had
/// ended before.
fn serial(history: &History) -> Result<(), Broken> {
    for operation in &history.operations {
        let End::Done { seen, .. } = &operation.end else { continue };
        for (object, entries) in seen.iter().filter(|(object, _)| !object.store().is_causal()) {
            let log = history.log(*object);
            if !log.starts_with(entries) {
                let how = format!(
                    "{:?} read {entries:?} in {object:?}, whose log is {log:?}",
                    operation.call.kind
                );
                return Err(broken("P1 serializable", how));
            }
            for other in &history.operations {
                let is_before = matches!(other.end, End::Done { has_rest: false, .. })
                    && other.ended < operation.began
                    && other.call.writes().contains(object);
                if is_before && !entries.contains(&other.call.tag_text()) {
                    let how = format!(
                        "{} had ended before {:?} read {object:?} without it",
                        other.call.tag_text(),
                        operation.call.kind
                    );
                    return Err(broken("P1 linearizable", how));
                }
            }
        }
    }
    Ok(())
}

/// The access of a transaction to an object at a strong store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access<'a> {
    /// A write at this place of the log.
    Wrote(usize),
    /// A read that saw these entries.
    Read(&'a [String]),
}

/// P5: isolated transactions that conflict at both strong stores have the same order at both.
fn isolated(history: &History) -> Result<(), Broken> {
    let isolated: Vec<&Operation> =
        history.operations.iter().filter(|o| o.call.is_isolated()).collect();
    for (at, one) in isolated.iter().enumerate() {
        for other in &isolated[at + 1..] {
            let account = Object::Account(one.call.account);
            let shelf = Object::Shelf(one.call.shelf);
            if other.call.account != one.call.account || other.call.shelf != one.call.shelf {
                continue;
            }
            let orders = [account, shelf].map(|object| order(history, one, other, object));
            if let [Some(bank), Some(shop)] = orders
                && bank != shop
            {
                let how = format!(
                    "{:?} {} and {:?} {} are ordered one way at the bank and the other way at the shop",
                    one.call.kind, one.call.tag, other.call.kind, other.call.tag
                );
                return Err(broken("P5 isolated", how));
            }
        }
    }
    Ok(())
}

fn access<'a>(history: &History, operation: &'a Operation, object: Object) -> Option<Access<'a>> {
    let tag = operation.call.tag_text();
    if operation.call.writes().contains(&object) {
        return history.log(object).iter().position(|entry| *entry == tag).map(Access::Wrote);
    }
    match &operation.end {
        End::Done { seen, .. } => {
            seen.iter().find(|(read, _)| *read == object).map(|(_, entries)| Access::Read(entries))
        }
        _ => None,
    }
}

/// True if `one` comes before `other` at an object; `None` if they do not conflict there.
fn order(history: &History, one: &Operation, other: &Operation, object: Object) -> Option<bool> {
    match (access(history, one, object)?, access(history, other, object)?) {
        (Access::Wrote(one), Access::Wrote(other)) => Some(one < other),
        (Access::Wrote(_), Access::Read(entries)) => Some(entries.contains(&one.call.tag_text())),
        (Access::Read(entries), Access::Wrote(_)) => {
            Some(!entries.contains(&other.call.tag_text()))
        }
        (Access::Read(_), Access::Read(_)) => None,
    }
}

/// Checks that an endorsed value read at a strong store still holds when the write takes effect.
fn places(history: &History) -> Result<(), Broken> {
    for (object, replicas) in &history.finals {
        if let (Object::Slot(_), Some(replica)) = (object, replicas.first())
            && replica.count > PLACES
        {
            let how = format!("{object:?} has {} of {PLACES} places taken", replica.count);
            return Err(broken("endorsement", how));
        }
    }
    Ok(())
}

/// P7: every call ends in bounded time.
fn bounded(history: &History, patience: Duration) -> Result<(), Broken> {
    for operation in &history.operations {
        let took = operation.ended.saturating_sub(operation.began);
        if took > patience && operation.end != End::Unheard {
            let how = format!("{:?} {} took {took:?}", operation.call.kind, operation.call.tag);
            return Err(broken("P7 bounded waits", how));
        }
    }
    Ok(())
}

/// Checks that a call repeated by its key gets the same answer as the first time.
fn keyed(history: &History) -> Result<(), Broken> {
    for operation in &history.operations {
        if let Some(Again::Otherwise(how)) = &operation.again {
            let how = format!("{:?} {}: {how}", operation.call.kind, operation.call.tag);
            return Err(broken("keyed calls", how));
        }
    }
    Ok(())
}

/// Counts by name the calls of each kind that took effect, were refused and so on.
pub fn counts(history: &History) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut count = |name: String| *counts.entry(name).or_default() += 1;
    for operation in &history.operations {
        let end = match &operation.end {
            End::Done { has_rest: true, .. } => "answered early",
            End::Done { .. } => "done",
            End::Unheard => "unheard",
            End::Failed(error) => match error {
                Error::Require { .. } => "refused",
                Error::Conflict { .. } => "gave up on conflicts",
                Error::Waiting { .. } => "gave up waiting",
                Error::Incomplete { .. } => "incomplete",
                Error::Unknown { .. } => "unknown",
                Error::Parked { .. } => "parked",
                Error::ResultGone { .. } => "result gone",
                Error::Store(_) => "store away",
                _ => "failed otherwise",
            },
        };
        count(format!("call {end}"));
        if operation.call.is_keyed {
            count("keyed call".into());
        }
        match &operation.again {
            Some(Again::Same) => count("keyed call, answered again".into()),
            Some(Again::Unanswered) => count("keyed call, again without an answer".into()),
            Some(Again::Late) => count("keyed call, made again without a first answer".into()),
            Some(Again::Otherwise(_)) | None => {}
        }
        if let End::Done { mark, has_rest, .. } = &operation.end {
            count(format!("{:?}", operation.call.kind));
            let answer = super::answers::kind(&operation.call, *mark);
            if let Some(answer) = answer.filter(|_| !has_rest) {
                count(answer.into());
            }
        }
    }
    counts
}
