//! Random runs of a store that keeps all promises.

use mingle_checker::geo::{Item, ItemKind, Op, OpId, Outcome, Run, check};
use mingle_model::random::Random;
use mingle_model::{Origin, TransactionId, Value};

use super::store::Store;

/// The parameters of random runs.
#[derive(Clone, Copy)]
pub struct Shape {
    pub steps: usize,
    pub sessions: usize,
    /// Items of each type.
    pub items: u64,
    /// One in this many operations has an id; 0 for none.
    pub ids: usize,
    pub has_loss: bool,
    /// One in this many steps delivers.
    pub delivers: usize,
}

pub const SMALL: Shape =
    Shape { steps: 120, sessions: 5, items: 1, ids: 0, has_loss: false, delivers: 3 };

const KINDS: [ItemKind; 5] =
    [ItemKind::Register, ItemKind::Counter, ItemKind::Set, ItemKind::Map, ItemKind::Log];

pub fn items(shape: &Shape) -> Vec<Item> {
    KINDS.iter().flat_map(|kind| (0..shape.items).map(|key| Item { kind: *kind, key })).collect()
}

/// Returns an operation; registers and logs get new values.
pub fn op(random: &mut Random, item: Item, fresh: i64) -> Op {
    let value = Value::Int(random.below(3) as i64);
    match (item.kind, random.below(8)) {
        (ItemKind::Register, _) if item.key % 2 == 1 => Op::Write(Value::Int(fresh)),
        (ItemKind::Register, 0) => Op::Erase,
        (ItemKind::Register, _) => Op::Write(Value::Int(fresh)),
        (ItemKind::Counter, 0) => Op::Reset,
        (ItemKind::Counter, _) => Op::Add(fresh),
        (ItemKind::Set, 0) => Op::Clear,
        (ItemKind::Set, 1 | 2) => Op::Remove(value),
        (ItemKind::Set, _) => Op::Insert(value),
        (ItemKind::Map, 0) => Op::Empty,
        (ItemKind::Map, 1 | 2) => Op::Delete(value),
        (ItemKind::Map, 3 | 4) => Op::Put(value, Value::Int(fresh)),
        (ItemKind::Map, _) => Op::Increment(value, fresh),
        (ItemKind::Log, 0) if item.key.is_multiple_of(2) => Op::Clear,
        (ItemKind::Log, _) => Op::Append(Value::Int(fresh)),
        (ItemKind::Item, _) => unreachable!("see the tests of items"),
    }
}

/// Returns an operation and its id, the same for every run of it.
pub fn identified(random: &mut Random, item: Item) -> (Op, OpId) {
    let number = random.below(4) as i64;
    let value = Value::Int(number % 2);
    let op = match item.kind {
        ItemKind::Register => Op::Write(Value::Int(-1 - number)),
        ItemKind::Counter => Op::Add(100 + number),
        ItemKind::Set => Op::Insert(value),
        ItemKind::Map if number < 2 => Op::Put(value, Value::Int(-1 - number)),
        ItemKind::Map => Op::Increment(value, 100 + number),
        ItemKind::Log => Op::Append(Value::Int(-1 - number)),
        ItemKind::Item => unreachable!("operations on these items have no ids"),
    };
    let place = KINDS.iter().position(|kind| *kind == item.kind).expect("a kind") as u32;
    let transaction = TransactionId { origin: Origin(500), sequence: number as u64 + 1 };
    (op, OpId { transaction, phase: place, position: item.key as u32 })
}

/// Returns a sound run.
pub fn run(seed: u64, shape: &Shape) -> Run {
    let mut random = Random::new(seed);
    let dcs: Vec<u8> = (0..shape.sessions).map(|session| (session % 3) as u8).collect();
    let mut store = Store::new(&dcs);
    let (items, mut fresh, mut lost) = (items(shape), 0, None);
    for step in 0..shape.steps {
        store.now_us += random.below(2_000) as u64;
        if shape.has_loss && step == shape.steps / 2 {
            let dc = random.below(3) as u8;
            store.lose(dc);
            lost = Some(dc);
        }
        if random.one_in(shape.delivers) {
            let (from, to) = (random.below(3) as u8, random.below(3) as u8);
            while store.deliver(from, to) && !random.one_in(3) {}
            continue;
        }
        let client = random.below(shape.sessions);
        if lost == Some(store.dc_of(client)) {
            store.attach(client, random.below(3) as u8, random.one_in(2));
            continue;
        }
        fresh += 1;
        act(&mut random, &mut store, client, shape, &items, fresh);
    }
    store.settle(&items)
}

fn act(
    random: &mut Random,
    store: &mut Store,
    client: usize,
    shape: &Shape,
    items: &[Item],
    fresh: i64,
) {
    let item = *random.pick(items);
    match random.below(16) {
        0..=4 => {
            store.read(client, item);
        }
        5..=10 if shape.ids > 0 && random.one_in(shape.ids) => {
            let (op, id) = identified(random, item);
            store.update(client, item, &op, Some(id));
        }
        5..=10 => {
            let op = op(random, item, fresh);
            // A repeated run by id repeats the whole transaction, so no run may be removed by its
            // own transaction while another run stands.
            let takes_back = matches!(op, Op::Reset | Op::Delete(_) | Op::Empty);
            if !(takes_back && store.has_identified(client, item)) {
                store.update(client, item, &op, None);
            }
        }
        _ if store.is_open(client) => match random.below(12) {
            0 => store.end(client, Outcome::GivenUp),
            1 => store.end(client, Outcome::Unknown),
            2 => {
                store.commit(client, false);
            }
            _ => {
                store.commit(client, true);
            }
        },
        11 | 12 => {
            store.barrier(client);
        }
        13 | 14 => store.join(client, random.below(shape.sessions)),
        _ => store.attach(client, random.below(3) as u8, random.one_in(4)),
    }
}

#[test]
fn sound_runs_keep_all_promises() {
    for seed in 0..1_000 {
        let shape = Shape { has_loss: seed % 3 == 0, items: 1 + seed % 2, ..SMALL };
        let report = check(&run(seed, &shape));
        assert!(report.is_kept(), "seed {seed}: {report}");
        assert!(report.counts.reads > 0, "seed {seed}: {report}");
    }
}

#[test]
fn runs_in_which_operations_repeat_keep_all_promises() {
    for seed in 1_000..2_000 {
        let shape = Shape { ids: 2, has_loss: seed % 3 == 0, ..SMALL };
        let report = check(&run(seed, &shape));
        assert!(report.is_kept(), "seed {seed}: {report}");
    }
}
