//! The reads and writes of each transaction.

use std::sync::Arc;

use mingle_geo::certify::{Access, Touch};
use mingle_geo::{Key, Op, State, Update};
use mingle_model::Value;

use super::super::workload::{Job, Step};
use super::rows::REGIONS;
use super::{BID, BUY, CLOSE, Call, REGISTER, Rows};

/// The number of bidders, or dealings, that are looked up besides a list.
const LOOKED_UP: usize = 3;

/// Returns the next step of a transaction, given the states that it has just read.
pub fn step(rows: &Rows, call: Call, job: &mut Job, found: &[Arc<State>]) -> Step {
    let round = job.rounds;
    job.rounds += 1;
    if round == 0 {
        return Step::Read(first_reads(rows, call, job));
    }
    if call.is_update() {
        return update(call, job, found);
    }
    if round == 1
        && let Some(keys) = more_reads(call, found)
    {
        return Step::Read(keys);
    }
    job.is_done = true;
    Step::Commit { updates: Vec::new(), touches: Vec::new() }
}

fn first_reads(rows: &Rows, call: Call, job: &Job) -> Vec<Key> {
    let [item, user, other] = job.subjects;
    match call {
        Call::BrowseCategories => vec![Rows::categories(user % REGIONS)],
        Call::BrowseRegions => vec![Rows::regions(user % REGIONS)],
        Call::SearchItemsByCategory => vec![Rows::category_page(item)],
        Call::SearchItemsByRegion => vec![Rows::region_page(item)],
        Call::ViewItem => {
            let seller = Rows::user(rows.seller(item));
            vec![Rows::item(item), Rows::bids(item), Rows::stock(item), seller]
        }
        Call::ViewUserInfo => vec![Rows::user(user), Rows::rating(user), Rows::comments(user)],
        Call::ViewBidHistory => vec![Rows::item(item), Rows::bids(item)],
        Call::BuyNow => vec![Rows::item(item), Rows::stock(item), Rows::user(user)],
        Call::PutBid => vec![Rows::item(item), Rows::bids(item), Rows::user(user)],
        Call::PutComment => vec![Rows::item(item), Rows::user(user), Rows::user(rows.seller(item))],
        Call::AboutMe => {
            vec![Rows::user(user), Rows::rating(user), Rows::comments(user), Rows::dealings(user)]
        }
        Call::RegisterItem => vec![Rows::user(user)],
        Call::StoreComment => vec![Rows::user(other), Rows::rating(other)],
        Call::RegisterUser => vec![Rows::nickname(user)],
        Call::StoreBuyNow => vec![Rows::item(item), Rows::stock(item), Rows::winner(item)],
        Call::StoreBid => vec![Rows::item(item), Rows::bids(item), Rows::winner(item)],
        Call::CloseAuction => vec![Rows::bids(item), Rows::winner(item)],
    }
}

/// Returns the numbers of a log's last lines, the newest first.
fn last_numbers(log: &Arc<State>) -> Vec<i64> {
    let lines = log.as_log().into_iter().flat_map(|log| log.iter().rev());
    lines.filter_map(Value::as_int).take(LOOKED_UP).collect()
}

fn more_reads(call: Call, found: &[Arc<State>]) -> Option<Vec<Key>> {
    let keys: Vec<Key> = match call {
        Call::ViewBidHistory => {
            let bids = last_numbers(&found[1]).into_iter();
            bids.map(|bid| Rows::user(bid as u64 & 0xffff_ffff)).collect()
        }
        Call::AboutMe => {
            let dealings = last_numbers(&found[3]).into_iter();
            dealings.map(|item| Rows::item(item as u64)).collect()
        }
        _ => return None,
    };
    (!keys.is_empty()).then_some(keys)
}

/// Returns the highest bid of a log; 0 if there is none.
pub fn highest(bids: &Arc<State>) -> i64 {
    let lines = bids.as_log().into_iter().flat_map(mingle_geo::types::Log::iter);
    lines.filter_map(Value::as_int).max().unwrap_or(0)
}

fn is_set(register: &Arc<State>) -> bool {
    register.as_register().is_some_and(|register| register.value().is_some())
}

fn write(key: Key, op: Op) -> Update {
    Update { key, op, id: None }
}

fn number(number: u64) -> Value {
    Value::Int(number as i64)
}

fn touch(key: Key, label: &str) -> Vec<Touch> {
    vec![Touch { key, access: Access::Write, label: Some(label.into()) }]
}

fn update(call: Call, job: &mut Job, found: &[Arc<State>]) -> Step {
    let [item, user, other] = job.subjects;
    let (updates, touches) = match call {
        Call::RegisterItem => (register_item(item, user), Vec::new()),
        Call::StoreComment => {
            let comment = Value::Bytes(vec![b'c'; 40].into());
            let comment = write(Rows::comments(other), Op::Append(comment));
            (vec![comment, write(Rows::rating(other), Op::Add(1))], Vec::new())
        }
        Call::RegisterUser => {
            // `user` is the nickname here, and `item` the new user.
            let nickname = Rows::nickname(user);
            let owner = write(nickname.clone(), Op::Write(number(item)));
            let profile = write(Rows::user(item), Op::Write(Rows::profile()));
            let updates = if is_set(&found[0]) { Vec::new() } else { vec![owner, profile] };
            (updates, touch(nickname, REGISTER))
        }
        Call::StoreBuyNow => {
            let left = found[1].as_counter().map_or(0, mingle_geo::types::Counter::value);
            let mut updates = Vec::new();
            if left > 0 && !is_set(&found[2]) {
                updates.push(write(Rows::stock(item), Op::Add(-1)));
                updates.push(write(Rows::dealings(user), Op::Append(number(item))));
            }
            (updates, touch(Rows::stock(item), BUY))
        }
        Call::StoreBid => {
            let mut updates = Vec::new();
            if !is_set(&found[2]) {
                let amount = (highest(&found[1]) >> 32) + 1 + other as i64;
                let bid = Value::Int(Rows::bid(amount, user));
                updates.push(write(Rows::bids(item), Op::Append(bid)));
                updates.push(write(Rows::dealings(user), Op::Append(number(item))));
            }
            (updates, touch(Rows::bids(item), BID))
        }
        _ => {
            let winner = write(Rows::winner(item), Op::Write(Value::Int(highest(&found[0]))));
            let updates = if is_set(&found[1]) { Vec::new() } else { vec![winner] };
            (updates, touch(Rows::bids(item), CLOSE))
        }
    };
    job.is_done = !updates.is_empty();
    Step::Commit { updates, touches }
}

fn register_item(item: u64, user: u64) -> Vec<Update> {
    vec![
        write(Rows::item(item), Op::Write(Rows::description())),
        write(Rows::stock(item), Op::Add(super::rows::STOCK)),
        write(Rows::category_page(item), Op::Insert(number(item))),
        write(Rows::region_page(item), Op::Insert(number(item))),
        write(Rows::dealings(user), Op::Append(number(item))),
    ]
}
