//! A store that keeps all promises, since nothing in it can fail: data centers that see each
//! other's transactions whole, in causal order. It answers from the states of the real store's
//! types, and records its calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_checker::geo::{
    Action, Attached, Call, Commit, Content, End, Item, Loss, Op, OpId, Outcome, Run, Session,
    System, Transaction, Vector, View, What,
};
use mingle_geo::{Cause, DcId, State, Timestamp, Version};
use mingle_model::{Origin, TransactionId};

use super::translate;

type States = BTreeMap<Item, Arc<State>>;

/// An operation of a transaction, as it is sent.
type Travelling = (Item, mingle_geo::Op, Option<OpId>);

/// A committed transaction.
#[derive(Clone)]
struct Sent {
    commit: Commit,
    updates: Vec<Travelling>,
}

/// A data center.
#[derive(Clone, Default)]
struct Site {
    seen: Vector,
    states: States,
    is_lost: bool,
}

/// A client's session.
struct Client {
    dc: u8,
    past_vec: Vector,
    open: Option<Open>,
    sequence: u64,
    /// Its commits since it began or continued with loss.
    own: Vec<(TransactionId, Vector)>,
}

/// A running transaction.
struct Open {
    begin_us: u64,
    snapshot: Vector,
    has_read: bool,
    states: States,
    actions: Vec<Action>,
    updates: Vec<Travelling>,
}

/// The model store; see the module.
pub struct Store {
    sites: Vec<Site>,
    sent: Vec<Vec<Sent>>,
    clients: Vec<Client>,
    pub run: Run,
    pub now_us: u64,
}

impl Store {
    /// Creates three data centers of one partition, one of which may be lost, and a session at each
    /// named data center.
    pub fn new(dcs_of_sessions: &[u8]) -> Self {
        let dcs = 3;
        let client = |dc: &u8| Client {
            dc: *dc,
            past_vec: Vector::ZERO,
            open: None,
            sequence: 0,
            own: Vec::new(),
        };
        let sessions =
            (0..dcs_of_sessions.len() as u64).map(|id| Session { id, calls: Vec::new() });
        let run = Run {
            system: System {
                dc_count: dcs as u8,
                losses_max: 1,
                partition_count: 1,
                ..System::default()
            },
            sessions: sessions.collect(),
            ..Run::default()
        };
        Self {
            sites: vec![Site::default(); dcs],
            sent: vec![Vec::new(); dcs],
            clients: dcs_of_sessions.iter().map(client).collect(),
            run,
            now_us: 0,
        }
    }

    pub fn dc_of(&self, client: usize) -> u8 {
        self.clients[client].dc
    }

    pub fn is_open(&self, client: usize) -> bool {
        self.clients[client].open.is_some()
    }

    /// True if the running transaction changed an item by an operation with an id.
    pub fn has_identified(&self, client: usize, item: Item) -> bool {
        let open = self.clients[client].open.iter();
        let mut updates = open.flat_map(|open| &open.updates);
        updates.any(|(of, _, id)| *of == item && id.is_some())
    }

    fn push(&mut self, client: usize, begin_us: u64, what: What) {
        self.now_us += 10;
        let end_us = Some(self.now_us);
        self.run.sessions[client].calls.push(Call { begin_us, end_us, what });
    }

    fn open(&mut self, client: usize) -> &mut Open {
        let site = &self.sites[usize::from(self.clients[client].dc)];
        let begin_us = self.now_us;
        self.clients[client].open.get_or_insert_with(|| Open {
            begin_us,
            snapshot: site.seen,
            has_read: false,
            states: site.states.clone(),
            actions: Vec::new(),
            updates: Vec::new(),
        })
    }

    /// Reads an item in the running transaction, or begins one.
    pub fn read(&mut self, client: usize, item: Item) -> Content {
        let dc = self.clients[client].dc;
        let open = self.open(client);
        let mut state = open.states.get(&item).cloned().unwrap_or_else(|| translate::nothing(item));
        let timestamp = Timestamp(u64::MAX);
        for (index, (of, op, id)) in open.updates.iter().enumerate() {
            if *of == item {
                let version = Version { timestamp, origin: DcId(dc), index: index as u32 };
                let cause = Cause { version, seen: translate::vector(&open.snapshot) };
                let id = id.as_ref().map(translate::id);
                Arc::make_mut(&mut state).apply(&cause, op, id.as_ref());
            }
        }
        let found = translate::content(&state);
        open.has_read = true;
        open.actions.push(Action::Read { item, found: found.clone() });
        found
    }

    /// Changes an item in the running transaction, or begins one.
    pub fn update(&mut self, client: usize, item: Item, op: &Op, id: Option<OpId>) {
        let open = self.open(client);
        let state = open.states.get(&item).cloned().unwrap_or_else(|| translate::nothing(item));
        let travelling =
            state.measured(&translate::op(op), &translate::vector(&open.snapshot), &[]);
        for (of, earlier, _) in &mut open.updates {
            if *of == item && travelling.takes_back(earlier) {
                *earlier = mingle_geo::Op::Nothing;
            }
        }
        open.updates.push((item, travelling, id));
        open.actions.push(Action::Update { item, op: op.clone(), id });
    }

    fn finish(&mut self, client: usize, outcome: Outcome, commit: Option<Commit>) -> TransactionId {
        let of = &mut self.clients[client];
        let open = of.open.take().expect("a transaction runs");
        of.sequence += 1;
        let id = TransactionId { origin: Origin(client as u128 + 1), sequence: of.sequence };
        if open.has_read {
            of.past_vec.join(&open.snapshot);
        }
        if let (Outcome::Committed { commit_vec, .. }, dc) = (&outcome, of.dc) {
            of.past_vec.join(commit_vec);
            of.own.push((id, *commit_vec));
            debug_assert!(self.sites[usize::from(dc)].seen.covers(commit_vec));
        }
        let has_updates = !open.updates.is_empty();
        let transaction = Transaction {
            id,
            dc: of.dc,
            strong: None,
            snapshot: open.has_read.then_some(open.snapshot),
            actions: open.actions,
            commit_asked_us: has_updates.then_some(self.now_us),
            outcome,
            commit,
        };
        self.push(client, open.begin_us, What::Transaction(Box::new(transaction)));
        id
    }

    /// Commits the running transaction; its session is told only if `is_told`.
    pub fn commit(&mut self, client: usize, is_told: bool) -> TransactionId {
        let of = &self.clients[client];
        let (dc, open) = (of.dc, of.open.as_ref().expect("a transaction runs"));
        if open.updates.is_empty() {
            return self.finish(client, Outcome::ReadOnly, None);
        }
        let site = &mut self.sites[usize::from(dc)];
        let timestamp = site.seen.highest() + 1;
        let (snap_vec, updates) = (open.snapshot, open.updates.clone());
        let commit_vec = snap_vec.with(dc, timestamp);
        let commit = Commit { origin: dc, snap_vec, commit_vec };
        let sent = Sent { commit, updates };
        site.apply(&sent);
        self.sent[usize::from(dc)].push(sent);
        let told = Outcome::Committed { commit_vec, is_uniform: false };
        self.finish(client, if is_told { told } else { Outcome::Unknown }, Some(commit))
    }

    /// Ends the running transaction without a commit.
    pub fn end(&mut self, client: usize, outcome: Outcome) {
        self.finish(client, outcome, None);
    }

    /// Shows a data center the next transaction of another, if its causes are already there.
    pub fn deliver(&mut self, from: u8, to: u8) -> bool {
        let have = self.sites[usize::from(to)].seen;
        let of_origin = &self.sent[usize::from(from)];
        let next = of_origin.partition_point(|sent| sent.commit.timestamp() <= have.get(from));
        let Some(sent) = of_origin.get(next).cloned() else { return false };
        let is_had = |site: &Site| !site.is_lost && site.seen.covers(&sent.commit.commit_vec);
        let is_there = self.sites.iter().any(is_had);
        let site = &mut self.sites[usize::from(to)];
        if site.is_lost || from == to || !is_there || !have.covers(&sent.commit.snap_vec) {
            return false;
        }
        site.apply(&sent);
        true
    }

    /// Shows every data center all remaining transactions.
    pub fn deliver_all(&mut self) {
        let dcs = 0..self.sites.len() as u8;
        let pairs: Vec<(u8, u8)> =
            dcs.clone().flat_map(|from| dcs.clone().map(move |to| (from, to))).collect();
        while pairs.iter().filter(|(from, to)| self.deliver(*from, *to)).count() > 0 {}
    }

    /// True if two data centers have all that a session has seen.
    fn is_uniform(&self, client: usize) -> bool {
        let past_vec = &self.clients[client].past_vec;
        let having = self.sites.iter().filter(|site| !site.is_lost && site.seen.covers(past_vec));
        having.count() > 1
    }

    pub fn barrier(&mut self, client: usize) -> bool {
        let (is_uniform, dc) = (self.is_uniform(client), self.clients[client].dc);
        self.push(client, self.now_us, What::Barrier { dc, is_uniform });
        is_uniform
    }

    /// Moves a session to a data center, if all of its past is there or loss is accepted.
    pub fn attach(&mut self, client: usize, dc: u8, accepts_loss: bool) {
        let (site, of) = (&self.sites[usize::from(dc)], &mut self.clients[client]);
        let answer = if site.is_lost {
            Attached::Failed
        } else if site.seen.covers(&of.past_vec) {
            of.dc = dc;
            Attached::Resumed
        } else if accepts_loss {
            let past_vec = of.past_vec.meet(&site.seen);
            let lost = of.own.iter().filter(|(_, commit_vec)| !past_vec.covers(commit_vec));
            let lost = lost.map(|(id, _)| *id).collect();
            of.own.clear();
            (of.dc, of.past_vec) = (dc, past_vec);
            Attached::WithLoss { lost, is_complete: true, past_vec }
        } else {
            Attached::Failed
        };
        self.push(client, self.now_us, What::Attach { dc, answer });
    }

    /// Joins another session's token, if all of its past is here.
    pub fn join(&mut self, client: usize, from: usize) {
        let (past_vec, call_count) =
            (self.clients[from].past_vec, self.run.sessions[from].calls.len());
        let of = &mut self.clients[client];
        if client != from && self.sites[usize::from(of.dc)].seen.covers(&past_vec) {
            of.past_vec.join(&past_vec);
            let join = What::Join { session: from as u64, call_count, past_vec };
            self.push(client, self.now_us, join);
        }
    }

    /// Loses a data center, with all data that only it had.
    pub fn lose(&mut self, dc: u8) {
        self.sites[usize::from(dc)].is_lost = true;
        self.run.losses.push(Loss { dc, at_us: self.now_us });
        for client in 0..self.clients.len() {
            if self.clients[client].dc == dc && self.is_open(client) {
                self.end(client, Outcome::GivenUp);
            }
        }
    }

    /// Settles the run, and reads every item everywhere.
    pub fn settle(mut self, items: &[Item]) -> Run {
        for client in 0..self.clients.len() {
            if self.is_open(client) {
                self.end(client, Outcome::GivenUp);
            }
        }
        self.deliver_all();
        let sites = self.sites.iter().enumerate().filter(|(_, site)| !site.is_lost);
        let views = sites.map(|(dc, site)| {
            let shown = items.iter().map(|item| {
                let nothing = translate::nothing(*item);
                (*item, translate::content(site.states.get(item).unwrap_or(&nothing)))
            });
            View { dc: dc as u8, snapshot: site.seen, items: shown.collect() }
        });
        let views = views.collect();
        self.run.end = End { at_us: self.now_us + 1_000_000, is_settled: true, views };
        self.run
    }
}

impl Site {
    fn apply(&mut self, sent: &Sent) {
        let Commit { origin, snap_vec, commit_vec } = &sent.commit;
        for (index, (item, op, id)) in sent.updates.iter().enumerate() {
            let timestamp = Timestamp(sent.commit.timestamp());
            let version = Version { timestamp, origin: DcId(*origin), index: index as u32 };
            let cause = Cause { version, seen: translate::vector(snap_vec) };
            let state = self.states.entry(*item).or_insert_with(|| translate::nothing(*item));
            let id = id.as_ref().map(translate::id);
            Arc::make_mut(state).apply(&cause, op, id.as_ref());
        }
        self.seen.join(commit_vec);
    }
}
