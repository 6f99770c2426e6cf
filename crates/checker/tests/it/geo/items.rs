//! Items of any type: the store's state against the meaning that the checkers give to the visible
//! operations, on random causal histories with deadlines.
//!
//! Replicas fold, settle and join their states at random times. Snapshots are any vectors between
//! the folded one and the one that a replica knows.

use std::collections::BTreeMap;

use mingle_checker::geo::{
    Action, Call, Commit, Content, Element, Item, ItemKind, ItemOp, Op, OpId, Outcome, Place,
    Promise, Run, STRONG, Session, Side, Strong, System, Transaction, Vector, What, check_some,
};
use mingle_geo::types::Recent;
use mingle_geo::{Cause, DcId, Kind, State, Timestamp, Version};
use mingle_model::random::Random;
use mingle_model::{Origin, TransactionId, Value};

use super::translate;

const ITEM: Item = Item { kind: ItemKind::Item, key: 0 };
const DCS: u8 = 3;
const COLUMNS: [u8; 4] = [0, 1, 2, STRONG];

/// A committed transaction, as replicas get it.
#[derive(Clone)]
struct Sent {
    commit: Commit,
    ops: Vec<mingle_geo::Op>,
    /// The id of its only operation, if it has one.
    id: Option<mingle_geo::OpId>,
}

impl Sent {
    fn version(&self, index: usize) -> Version {
        let (timestamp, origin) = (Timestamp(self.commit.timestamp()), DcId(self.commit.origin));
        Version { timestamp, origin, index: index as u32 }
    }

    fn apply(&self, state: &mut State) {
        let seen = translate::vector(&self.commit.snap_vec);
        for (index, op) in self.ops.iter().enumerate() {
            let cause = Cause { version: self.version(index), seen };
            state.apply(&cause, op, self.id.as_ref());
        }
    }
}

/// A replica: a folded state, and the transactions that are not folded.
struct Site {
    known: Vector,
    base_at: Vector,
    base: State,
    sent: Vec<Sent>,
}

impl Site {
    fn state(&self, snapshot: &Vector) -> State {
        let mut state = self.base.clone();
        let held = self.sent.iter().filter(|sent| snapshot.covers(&sent.commit.commit_vec));
        let mut held: Vec<&Sent> = held.collect();
        held.sort_by_key(|sent| sent.version(0));
        for sent in held {
            sent.apply(&mut state);
        }
        state
    }

    /// Returns the largest snapshot within this one that contains all that its entries reach.
    fn closed(&self, mut snapshot: Vector) -> Vector {
        let is_gap = |sent: &&Sent, snapshot: &Vector| {
            let Commit { origin, commit_vec, .. } = &sent.commit;
            sent.commit.timestamp() <= snapshot.get(*origin) && !snapshot.covers(commit_vec)
        };
        while let Some(gap) = self.sent.iter().find(|sent| is_gap(sent, &snapshot)) {
            snapshot = snapshot.with(gap.commit.origin, gap.commit.timestamp() - 1);
        }
        snapshot
    }

    /// Returns the form in which a transaction's operation is replicated.
    fn measured(&self, op: &mingle_geo::Op, snapshot: &Vector) -> mingle_geo::Op {
        let reached = self
            .sent
            .iter()
            .filter(|sent| sent.commit.timestamp() <= snapshot.get(sent.commit.origin));
        let recent = reached.flat_map(|sent| {
            sent.ops.iter().enumerate().map(|(index, op)| Recent {
                version: sent.version(index),
                op,
                id: sent.id.as_ref(),
                is_held: snapshot.covers(&sent.commit.commit_vec),
            })
        });
        let recent: Vec<Recent<'_>> = recent.collect();
        self.state(snapshot).measured(op, &translate::vector(snapshot), &recent)
    }
}

/// The data centers, and the record of their transactions.
struct World {
    random: Random,
    now_us: u64,
    sites: Vec<Site>,
    /// By origin; the last is strong.
    sent: BTreeMap<u8, Vec<Sent>>,
    /// The transactions by timestamp and origin.
    names: BTreeMap<(u64, u8), TransactionId>,
    strong_at: u64,
    fresh: i64,
    /// The operations that have ids.
    named: BTreeMap<u32, ItemOp>,
    /// The weight of folds and joins; a transaction has 4.
    folds: usize,
    run: Run,
}

impl World {
    fn new(seed: u64) -> Self {
        let site = || Site {
            known: Vector::ZERO,
            base_at: Vector::ZERO,
            base: State::new(Kind::Item),
            sent: Vec::new(),
        };
        let system =
            System { dc_count: DCS, losses_max: 1, partition_count: 1, ..System::default() };
        Self {
            random: Random::new(seed),
            now_us: 20,
            sites: (0..DCS).map(|_| site()).collect(),
            sent: COLUMNS.iter().map(|column| (*column, Vec::new())).collect(),
            names: BTreeMap::new(),
            strong_at: 0,
            fresh: 0,
            named: BTreeMap::new(),
            folds: 1 + (seed % 8) as usize,
            run: Run { system, ..Run::default() },
        }
    }

    fn step(&mut self) {
        self.now_us += self.random.below(4) as u64;
        let dc = self.random.below(usize::from(DCS)) as u8;
        match self.random.below(10 + self.folds) {
            0..=3 => self.transact(dc),
            4..=7 => self.receive(dc),
            8 | 9 => self.raise(dc),
            _ if self.random.one_in(3) => self.join(dc),
            _ => self.fold(dc),
        }
        // A look at everything that the replica knows.
        self.look(dc, self.sites[usize::from(dc)].known);
    }

    /// Returns a time around the present.
    fn around(&mut self) -> u64 {
        (self.now_us + self.random.below(12) as u64).saturating_sub(6)
    }

    /// Draws a snapshot that a replica can read.
    fn snapshot(&mut self, dc: u8) -> Vector {
        let Self { random, sites, .. } = self;
        let site = &sites[usize::from(dc)];
        let entries = COLUMNS.map(|column| {
            let (least, most) = (site.base_at.get(column), site.known.get(column));
            let entry = match random.below(4) {
                0 => least + random.bits() % (most - least + 1),
                1 => least,
                _ => most,
            };
            (column, entry)
        });
        Vector::of(entries)
    }

    fn look(&mut self, dc: u8, snapshot: Vector) {
        let state = self.sites[usize::from(dc)].state(&snapshot);
        let found = self.found(&state, snapshot.get(dc), None);
        let actions = vec![Action::Read { item: ITEM, found }];
        self.record(dc, snapshot, actions, None);
    }

    fn found(&self, state: &State, own_entry: u64, own: Option<TransactionId>) -> Content {
        let name = |version: Version| {
            let key = (version.timestamp.0, version.origin.0);
            let transaction = self.names.get(&key).copied().or(own).expect("it is committed");
            Element { transaction, index: version.index as usize }
        };
        translate::item(state, Timestamp(own_entry).micros(), name)
    }

    fn next_id(&self) -> TransactionId {
        TransactionId { origin: Origin(self.run.sessions.len() as u128 + 1), sequence: 1 }
    }

    fn record(&mut self, dc: u8, snapshot: Vector, actions: Vec<Action>, commit: Option<Commit>) {
        let outcome = match commit {
            Some(Commit { commit_vec, .. }) => Outcome::Committed { commit_vec, is_uniform: false },
            None => Outcome::ReadOnly,
        };
        let strong = commit.filter(|commit| commit.origin == STRONG).map(|_| Strong::default());
        let transaction = Transaction {
            id: self.next_id(),
            dc,
            strong,
            snapshot: Some(snapshot),
            actions,
            outcome,
            commit,
            commit_asked_us: None,
        };
        let what = What::Transaction(Box::new(transaction));
        let calls = vec![Call { begin_us: self.now_us, end_us: Some(self.now_us), what }];
        self.run.sessions.push(Session { id: self.run.sessions.len() as u64 + 1, calls });
    }

    /// Runs a transaction that reads the item after each operation.
    fn transact(&mut self, dc: u8) {
        let snapshot = self.snapshot(dc);
        let id = self.next_id();
        let mut state = self.sites[usize::from(dc)].state(&snapshot);
        let (mut ops, mut actions): (Vec<mingle_geo::Op>, Vec<Action>) = (Vec::new(), Vec::new());
        let number = self.random.one_in(4).then(|| self.random.below(10) as u32);
        let op_id = number.map(op_id);
        let count = if number.is_some() { 1 } else { 1 + self.random.below(3) };
        for index in 0..count {
            let (op, geo) = match number {
                Some(number) => self.named_op(number),
                None => self.op(&state, snapshot.get(dc), id),
            };
            let version =
                Version { timestamp: Timestamp(u64::MAX), origin: DcId(dc), index: index as u32 };
            let cause = Cause { version, seen: translate::vector(&snapshot) };
            let geo_id = op_id.as_ref().map(translate::id);
            state.apply_own(&cause, &geo, geo_id.as_ref());
            let geo = without_own(geo, &mut ops);
            let measured = self.sites[usize::from(dc)].measured(&geo, &snapshot);
            for earlier in &mut ops {
                if measured.takes_back(earlier) {
                    *earlier = mingle_geo::Op::Nothing;
                }
            }
            ops.push(measured);
            actions.push(Action::Update { item: ITEM, op: Op::Item(op), id: op_id });
            let found = self.found(&state, snapshot.get(dc), Some(id));
            actions.push(Action::Read { item: ITEM, found });
        }
        let is_strong = self.random.one_in(4);
        let origin = if is_strong { STRONG } else { dc };
        let last =
            if is_strong { self.strong_at } else { self.sites[usize::from(dc)].known.get(dc) };
        let least = last.max(snapshot.highest()) + 1;
        let timestamp = least.max(self.now_us << 12);
        let commit_vec = snapshot.with(origin, timestamp);
        let commit = Commit { origin, snap_vec: snapshot, commit_vec };
        let sent = Sent { commit, ops, id: op_id.as_ref().map(translate::id) };
        self.names.insert((timestamp, origin), id);
        self.sent.get_mut(&origin).expect("a column").push(sent.clone());
        if is_strong {
            self.strong_at = timestamp;
        } else {
            let site = &mut self.sites[usize::from(dc)];
            site.known = site.known.with(dc, timestamp);
            site.sent.push(sent);
        }
        self.record(dc, snapshot, actions, Some(commit));
    }

    /// Returns the operation of an id, the same each time.
    fn named_op(&mut self, number: u32) -> (ItemOp, mingle_geo::Op) {
        if !self.named.contains_key(&number) {
            let op = self.plain_op();
            self.named.insert(number, op);
        }
        let op = self.named[&number].clone();
        let geo = translate::item_op(&op, |_| unreachable!("it pulls nothing"));
        (op, geo)
    }

    /// Draws an operation on an item that its transaction sees in this state.
    fn op(
        &mut self,
        state: &State,
        own_entry: u64,
        own: TransactionId,
    ) -> (ItemOp, mingle_geo::Op) {
        if self.random.one_in(8) {
            return self.pull(state, own_entry, own);
        }
        let op = self.plain_op();
        let geo = translate::item_op(&op, |_| unreachable!("it pulls nothing"));
        (op, geo)
    }

    /// Draws an operation that removes no elements.
    fn plain_op(&mut self) -> ItemOp {
        self.fresh += 1;
        let key = Value::Int(self.random.below(2) as i64);
        let place = match self.random.below(5) {
            0..=2 => Place::Value,
            3 => Place::Field(key.clone()),
            _ => Place::Score(key.clone()),
        };
        let value = if self.random.one_in(8) { "x".into() } else { Value::Int(self.fresh) };
        let around = self.around();
        let side = *self.random.pick(&[Side::Left, Side::Right]);
        match self.random.below(14) {
            0 => ItemOp::Set(value),
            1 => ItemOp::Delete,
            2 | 3 => ItemOp::Put(place, value),
            4..=6 => ItemOp::Add(place, self.fresh),
            7 => ItemOp::Drop(place),
            8 => ItemOp::Insert(key),
            9 => ItemOp::Remove(key),
            10 => ItemOp::Push(side, Value::Int(self.random.below(2) as i64)),
            11 => ItemOp::Expire(None),
            _ => ItemOp::Expire(Some(around)),
        }
    }

    /// Removes some of the elements that are in the list.
    fn pull(
        &mut self,
        state: &State,
        own_entry: u64,
        own: TransactionId,
    ) -> (ItemOp, mingle_geo::Op) {
        let item = state.as_item().expect("an item").at(Timestamp(own_entry).micros());
        let versions: Vec<Version> = item.elements().map(|element| element.version).collect();
        let versions: Vec<Version> =
            versions.into_iter().filter(|_| self.random.one_in(2)).collect();
        let name = |version: &Version| {
            let key = (version.timestamp.0, version.origin.0);
            let transaction = self.names.get(&key).copied().unwrap_or(own);
            Element { transaction, index: version.index as usize }
        };
        let op = ItemOp::Pull(versions.iter().map(name).collect());
        (op, mingle_geo::Op::Item(mingle_geo::types::item::ItemOp::Pull(versions)))
    }

    /// Receives the next transactions of a column, or its heartbeat.
    fn receive(&mut self, dc: u8) {
        let column = *self.random.pick(&COLUMNS);
        if column == dc {
            return;
        }
        let most = match column {
            STRONG => self.strong_at,
            _ => self.sites[usize::from(column)].known.get(column),
        };
        let site = &mut self.sites[usize::from(dc)];
        let (have, next) = (site.known.get(column), self.sent[&column].iter());
        let mut next = next.filter(|sent| sent.commit.timestamp() > have);
        for _ in 0..=self.random.below(4) {
            if let Some(sent) = next.next() {
                site.sent.push(sent.clone());
                site.known = site.known.with(column, sent.commit.timestamp());
            } else {
                site.known = site.known.with(column, most.max(site.known.get(column)));
            }
        }
    }

    /// Raises the clock of a data center, or that of strong transactions.
    fn raise(&mut self, dc: u8) {
        let now = self.now_us << 12;
        if self.random.one_in(3) {
            self.strong_at = self.strong_at.max(now);
        } else {
            let known = &mut self.sites[usize::from(dc)].known;
            *known = known.with(dc, known.get(dc).max(now));
        }
    }

    fn fold(&mut self, dc: u8) {
        let snapshot = self.snapshot(dc);
        let site = &mut self.sites[usize::from(dc)];
        let snapshot = site.closed(snapshot);
        site.base = site.state(&snapshot);
        site.base_at = snapshot;
        site.sent.retain(|sent| !snapshot.covers(&sent.commit.commit_vec));
        let least = COLUMNS.map(|column| Timestamp(snapshot.get(column)).micros());
        let most_us = least.into_iter().min().unwrap_or(0);
        let horizon_us = most_us - self.random.below(2).min(most_us as usize) as u64;
        site.base.settle(horizon_us);
    }

    /// Takes another replica's folded state.
    fn join(&mut self, dc: u8) {
        let from = self.random.below(usize::from(DCS));
        if from == usize::from(dc) {
            return;
        }
        let (other, other_at) = (self.sites[from].base.clone(), self.sites[from].base_at);
        let site = &mut self.sites[usize::from(dc)];
        site.base.join(&translate::vector(&site.base_at), &other, &translate::vector(&other_at));
        site.base_at.join(&other_at);
        site.known.join(&other_at);
        let base_at = site.base_at;
        site.sent.retain(|sent| !base_at.covers(&sent.commit.commit_vec));
    }
}

/// Takes back the pushes of the same transaction that an operation pulls, as a session does.
fn without_own(mut op: mingle_geo::Op, ops: &mut [mingle_geo::Op]) -> mingle_geo::Op {
    if let mingle_geo::Op::Item(mingle_geo::types::item::ItemOp::Pull(elements)) = &mut op {
        elements.retain(|element| {
            let is_own = element.timestamp == Timestamp(u64::MAX);
            if is_own {
                ops[element.index as usize] = mingle_geo::Op::Nothing;
            }
            !is_own
        });
    }
    op
}

fn op_id(number: u32) -> OpId {
    let transaction = TransactionId { origin: Origin(u128::MAX), sequence: 1 };
    OpId { transaction, phase: 0, position: number }
}

/// Runs a random history of some steps, and returns the problems.
fn problems(seed: u64, steps: usize) -> Option<String> {
    let mut world = World::new(seed);
    for _ in 0..steps {
        world.step();
    }
    let report = check_some(&world.run, &[Promise::ReturnValues]);
    (!report.is_kept()).then(|| report.to_string())
}

#[test]
fn states_of_items_are_what_their_operations_mean() {
    for seed in 0..3_000 {
        if let Some(found) = problems(seed, 60) {
            let steps = (1..=60).find(|steps| problems(seed, *steps).is_some()).unwrap_or(60);
            let least = problems(seed, steps).unwrap_or(found);
            panic!("seed {seed}, {steps} steps: {least}");
        }
    }
}

/// A read that finds nothing, or another deadline, is wrong.
#[test]
fn other_contents_of_items_are_found() {
    let mut changed = 0;
    for seed in 0..200 {
        let mut world = World::new(seed);
        (0..40).for_each(|_| world.step());
        let nothing = Content::Item { body: None, deadline_us: None };
        let calls = world.run.sessions.iter_mut().rev().flat_map(|session| &mut session.calls);
        let reads = calls.filter_map(|call| match &mut call.what {
            What::Transaction(transaction) => transaction.actions.last_mut(),
            _ => None,
        });
        let mut founds = reads.filter_map(|action| match action {
            Action::Read { found, .. } if *found != nothing => Some(found),
            _ => None,
        });
        let Some(found) = founds.next() else { continue };
        match (seed % 2, &mut *found) {
            (0, Content::Item { deadline_us, .. }) => {
                *deadline_us = Some(deadline_us.map_or(1, |at_us| at_us + 1));
            }
            _ => *found = nothing,
        }
        changed += 1;
        let report = check_some(&world.run, &[Promise::ReturnValues]);
        assert!(!report.is_kept(), "seed {seed}");
    }
    assert!(changed > 150, "{changed} changed");
}
