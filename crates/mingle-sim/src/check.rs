//! What must hold after a simulation.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::time::Duration;

use mingle::{Database, Session};
use mingle_model::random::mix;
use mingle_store::wrap::history::{Event, EventCall};
use mingle_store::{Address, Read, Write};
use serde_json::Value as Json;

use crate::covered::{ACCOUNTS, Covered};

/// A digest of a recording.
pub fn digest(events: &[Event]) -> u64 {
    let mut digest = events.len() as u64;
    for event in events {
        let mut text = String::new();
        write!(text, "{event:?}").expect("writing to a string cannot fail");
        digest = text.bytes().fold(digest, |digest, byte| mix(digest ^ u64::from(byte)));
    }
    digest
}

/// A transaction that committed, as the store itself saw it.
struct Committed {
    version: u64,
    /// When it read first, and when its commit was answered.
    began: Duration,
    ended: Duration,
    reads: Vec<(Address, u64)>,
    writes: Vec<Address>,
}

/// P1 at a linearizable store: in the order of their versions, each transaction that writes read
/// the latest versions before its own, and the order agrees with real time.
///
/// # Errors
///
/// The first transaction that did not.
pub fn serial_order(events: &[Event], store: &str) -> Result<(), String> {
    let mut committed = committed(events, store);
    committed.sort_by_key(|transaction| transaction.version);
    let mut latest: HashMap<&Address, u64> = HashMap::new();
    let mut ended_last = (Duration::ZERO, 0);
    for transaction in &committed {
        for (address, version) in &transaction.reads {
            let expected = latest.get(address).copied().unwrap_or(0);
            if *version != expected {
                return Err(format!(
                    "not serializable at {store}: the transaction of version {} read {address:?} of version {version}, but the latest before it is {expected}",
                    transaction.version
                ));
            }
        }
        // Who committed later in this order must not have ended before somebody earlier began.
        if transaction.ended < ended_last.0 {
            return Err(format!(
                "not strictly serializable at {store}: version {} ended before version {} began",
                transaction.version, ended_last.1
            ));
        }
        if transaction.began > ended_last.0 {
            ended_last = (transaction.began, transaction.version);
        }
        for address in &transaction.writes {
            latest.insert(address, transaction.version);
        }
    }
    Ok(())
}

fn committed(events: &[Event], store: &str) -> Vec<Committed> {
    let mut open: BTreeMap<u64, (Duration, Vec<(Address, u64)>)> = BTreeMap::new();
    let mut committed = Vec::new();
    for event in events.iter().filter(|event| &*event.store == store) {
        match &event.call {
            EventCall::Read(reads, Ok(answers)) => {
                let entry = open.entry(event.transaction).or_insert((event.start, Vec::new()));
                for (read, answer) in reads.iter().zip(answers) {
                    if let Read::Register(address) = read {
                        entry.1.push((address.clone(), answer.version.0));
                    }
                }
            }
            EventCall::Commit { writes, result: Ok(done), .. } if !writes.is_empty() => {
                let (began, reads) =
                    open.remove(&event.transaction).unwrap_or((event.start, Vec::new()));
                let writes = writes.iter().filter_map(|write| match write {
                    Write::Assign(address, _) => Some(address.clone()),
                    _ => None,
                });
                let version = done.version.0;
                committed.push(Committed {
                    version,
                    began,
                    ended: event.end,
                    reads,
                    writes: writes.collect(),
                });
            }
            _ => {}
        }
    }
    committed
}

/// The money is all there, each history adds up to its balance, and every transfer has told both
/// owners once, at every replica.
///
/// # Errors
///
/// What is not so.
pub async fn state(database: &Database, replicas: usize, covered: &Covered) -> Result<(), String> {
    let (mut total, mut entries) = (0, 0);
    for number in 0..ACCOUNTS {
        let account = show(database, "Account", &format!("a{number}"), &Session::default()).await?;
        let balance = account["balance"].as_i64().ok_or("a balance is no int")?;
        let history = account["history"].as_array().ok_or("a history is no list")?;
        let sum: i64 = history.iter().filter_map(|entry| entry["amount"].as_i64()).sum();
        if balance < 0 || sum != balance {
            return Err(format!(
                "the history of a{number} adds up to {sum}, its balance is {balance}"
            ));
        }
        total += balance;
        entries += history.len();
    }
    if total != 100 * ACCOUNTS as i64 {
        return Err(format!(
            "there were {} at the start, and now there are {total}",
            100 * ACCOUNTS
        ));
    }
    let transfers = (entries - ACCOUNTS) / 2;
    if (transfers as u64) < covered.committed {
        return Err(format!(
            "{} transfers were acknowledged, {transfers} took effect",
            covered.committed
        ));
    }
    let mut first = None;
    for replica in 1..=replicas {
        let session = Session::at(format!("r{replica}"));
        let (mut messages, mut seen) = (0, Vec::new());
        for number in 0..ACCOUNTS {
            let customer = show(database, "Customer", &format!("owner{number}"), &session).await?;
            messages += customer["messages"].as_array().map_or(0, Vec::len);
            seen.push(customer);
        }
        let missing = (2 * transfers).abs_diff(messages);
        // Of a call whose outcome stayed unknown, the second phase may be missing.
        if messages > 2 * transfers || missing as u64 > 2 * covered.unknown {
            return Err(format!(
                "{transfers} transfers took effect, but replica r{replica} has {messages} messages"
            ));
        }
        if first.get_or_insert_with(|| seen.clone()) != &seen {
            return Err(format!("replica r{replica} has not converged with r1"));
        }
    }
    Ok(())
}

async fn show(
    database: &Database,
    kind: &str,
    key: &str,
    session: &Session,
) -> Result<Json, String> {
    let object = database.object(kind, key).map_err(|error| error.to_string())?;
    database.show(&object, session, usize::MAX).await.map_err(|error| error.to_string())
}
