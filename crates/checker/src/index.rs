//! A history with small numbers for its keys and transactions, and each read led back to its
//! writer: the input of all checkers.

use std::collections::{BTreeMap, HashMap};

use crate::history::{History, INITIAL, Kind, Outcome, Transaction};
use crate::verdict::{Anomaly, BadRead};

/// The transaction, first in every order, that writes all initial values.
pub(crate) const INIT: usize = 0;

/// A transaction that took effect.
#[derive(Debug)]
pub(crate) struct Node {
    /// Its index in the history; none for [`INIT`].
    pub source: Option<usize>,
    /// The number of its chain; session order orders a chain.
    pub chain: usize,
    /// Its position in the chain.
    pub position: usize,
    /// The node directly before it in its session.
    pub after: usize,
    /// The keys that it reads from other transactions, each with the writer, in the order of the
    /// reads.
    pub reads: Vec<(usize, usize)>,
    /// The keys of `reads`, sorted, each with its place there.
    pub read_places: Vec<(usize, usize)>,
    /// The keys that it writes, sorted, each with its place in the recorded order of the key.
    pub writes: Vec<(usize, Option<u64>)>,
}

impl Node {
    /// Returns the place of a key in `reads`, if the transaction reads it from another.
    pub fn read_place(&self, key: usize) -> Option<usize> {
        let found = self.read_places.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        Some(self.read_places[found].1)
    }

    /// True if the transaction reads the key from another.
    pub fn is_reader_of(&self, key: usize) -> bool {
        self.read_place(key).is_some()
    }

    /// True if the transaction writes the key.
    pub fn is_writer_of(&self, key: usize) -> bool {
        self.writes.binary_search_by_key(&key, |(key, _)| *key).is_ok()
    }
}

/// The writers of one key, by chain, in the order of the chain.
pub(crate) type Writers = Vec<(usize, Vec<usize>)>;

/// The index of a history; see the module.
#[derive(Debug)]
pub(crate) struct Index<'h> {
    pub history: &'h History,
    /// [`INIT`], then the transactions that took effect, in the order of the history.
    pub nodes: Vec<Node>,
    pub chains: usize,
    /// The keys as they are in the history.
    pub keys: Vec<i64>,
    /// For each key, its writers; [`INIT`] first.
    pub writers: Vec<Writers>,
    /// For each key, true if a write of it has a version.
    is_versioned: Vec<bool>,
}

impl<'h> Index<'h> {
    /// Leads each read back to its writer.
    ///
    /// # Errors
    ///
    /// The first read that no order can explain: its value was not committed before, or differs
    /// from the transaction's own earlier write or read.
    pub fn new(history: &'h History) -> Result<Self, Anomaly> {
        let sites = sites(history);
        let live = live(history);
        let mut builder = Builder::new(history, &live);
        for (index, transaction) in history.transactions().iter().enumerate() {
            if live[index] {
                builder.add(index, transaction, &sites)?;
            }
        }
        Ok(builder.finish())
    }

    /// Returns the transaction of a node; none for [`INIT`].
    pub fn transaction(&self, node: usize) -> Option<&'h Transaction> {
        self.nodes[node].source.map(|source| &self.history.transactions()[source])
    }

    /// Returns the nodes of transactions that took effect.
    pub fn live(&self) -> impl Iterator<Item = (usize, &Node)> {
        self.nodes.iter().enumerate().skip(1)
    }

    /// Returns the writers of a key that have a place in its recorded order, in that order, and
    /// whether these are all writers. [`INIT`] is the first; a single other writer needs no record.
    pub fn recorded(&self, key: usize) -> Recorded {
        let others = self.writers[key].iter().flat_map(|(_, writers)| writers);
        let others: Vec<usize> = others.copied().filter(|writer| *writer != INIT).collect();
        let numbered = others.iter().filter_map(|other| Some((self.number(*other, key)?, *other)));
        let mut numbered: Vec<(u64, usize)> = numbered.collect();
        numbered.sort_unstable();
        let is_used = numbered.len() > 1;
        if others.len() == 1 {
            numbered = vec![(0, others[0])];
        }
        let is_complete = numbered.len() == others.len();
        let order = std::iter::once(INIT).chain(numbered.into_iter().map(|(_, node)| node));
        Recorded { order: order.collect(), is_complete, is_used }
    }

    /// Returns the place of a writer in the recorded order of a key: by versions if any write of
    /// the key has one, and otherwise by the order of commits.
    fn number(&self, writer: usize, key: usize) -> Option<u64> {
        if self.is_versioned[key] {
            let writes = &self.nodes[writer].writes;
            let place = writes.binary_search_by_key(&key, |(key, _)| *key).ok()?;
            writes[place].1
        } else {
            self.transaction(writer)?.commit
        }
    }

    /// Returns the recorded place of each write, by the index of its transaction and the key in the
    /// history.
    pub fn recorded_numbers(&self) -> HashMap<(usize, i64), u64> {
        let writes =
            self.nodes.iter().enumerate().flat_map(|(node, Node { source, writes, .. })| {
                writes.iter().filter_map(move |(key, _)| {
                    Some((((*source)?, self.keys[*key]), self.number(node, *key)?))
                })
            });
        writes.collect()
    }
}

/// The recorded order of a key's writes.
pub(crate) struct Recorded {
    pub order: Vec<usize>,
    /// True if all writers are in the order.
    pub is_complete: bool,
    /// True if it contains more than the fact that the initial value comes first.
    pub is_used: bool,
}

/// The place of a value's write.
struct Site {
    /// The index of the transaction.
    transaction: usize,
    /// True if the transaction did not write the key again.
    is_last: bool,
}

fn sites(history: &History) -> HashMap<(i64, i64), Site> {
    let mut sites = HashMap::new();
    for (index, transaction) in history.transactions().iter().enumerate() {
        let mut last: HashMap<i64, i64> = HashMap::new();
        for operation in &transaction.operations {
            if operation.kind == Kind::Write {
                let (key, value) = (operation.key, operation.value);
                let before = last.insert(key, value);
                if let Some(site) = before.and_then(|before| sites.get_mut(&(key, before))) {
                    let site: &mut Site = site;
                    site.is_last = false;
                }
                sites.insert((key, value), Site { transaction: index, is_last: true });
            }
        }
    }
    sites
}

/// Marks the transactions that took effect: committed ones, and unknown ones from which a
/// transaction that took effect read. (Leaving out any other makes no model harder to satisfy.)
pub(crate) fn live(history: &History) -> Vec<bool> {
    let sites = sites(history);
    let transactions = history.transactions();
    let is_committed = |transaction: &Transaction| transaction.outcome == Outcome::Committed;
    let mut live: Vec<bool> = transactions.iter().map(is_committed).collect();
    let mut open: Vec<usize> = (0..live.len()).filter(|index| live[*index]).collect();
    while let Some(index) = open.pop() {
        for operation in &transactions[index].operations {
            let site = match operation.kind {
                Kind::Read => sites.get(&(operation.key, operation.value)),
                Kind::Write => None,
            };
            if let Some(&Site { transaction, .. }) = site
                && !live[transaction]
                && transactions[transaction].outcome == Outcome::Unknown
            {
                live[transaction] = true;
                open.push(transaction);
            }
        }
    }
    live
}

struct Builder<'h> {
    history: &'h History,
    /// The node of each transaction.
    node_of: Vec<usize>,
    nodes: Vec<Node>,
    /// The length of each chain.
    lengths: Vec<usize>,
    /// For each session its chain, and the last transaction that orders the next.
    sessions: HashMap<i64, (usize, usize)>,
    keys: Vec<i64>,
    key_of: HashMap<i64, usize>,
}

impl<'h> Builder<'h> {
    fn new(history: &'h History, live: &[bool]) -> Self {
        let mut next = INIT;
        let number = |is_live: &bool| {
            next += usize::from(*is_live);
            next
        };
        let init = Node {
            source: None,
            chain: 0,
            position: 0,
            after: INIT,
            reads: Vec::new(),
            read_places: Vec::new(),
            writes: Vec::new(),
        };
        Self {
            history,
            node_of: live.iter().map(number).collect(),
            nodes: vec![init],
            lengths: vec![1],
            sessions: HashMap::new(),
            keys: Vec::new(),
            key_of: HashMap::new(),
        }
    }

    fn key(&mut self, key: i64) -> usize {
        let next = self.keys.len();
        let number = *self.key_of.entry(key).or_insert(next);
        if number == next {
            self.keys.push(key);
        }
        number
    }

    /// Returns the chain of the next transaction, and the node that it follows.
    fn place(&mut self, transaction: &Transaction) -> (usize, usize) {
        let node = self.nodes.len();
        let known = self.sessions.get(&transaction.session).copied();
        if transaction.outcome == Outcome::Unknown {
            // It may have taken effect long after its session continued, so later transactions of
            // the session do not follow it: it has a chain of its own.
            self.lengths.push(0);
            return (self.lengths.len() - 1, known.map_or(INIT, |(_, last)| last));
        }
        let (chain, last) = known.unwrap_or_else(|| {
            self.lengths.push(0);
            (self.lengths.len() - 1, INIT)
        });
        self.sessions.insert(transaction.session, (chain, node));
        (chain, last)
    }

    fn add(
        &mut self,
        index: usize,
        transaction: &Transaction,
        sites: &HashMap<(i64, i64), Site>,
    ) -> Result<(), Anomaly> {
        let mut own: HashMap<i64, i64> = HashMap::new();
        let mut read: HashMap<i64, i64> = HashMap::new();
        let mut reads = Vec::new();
        // Only the last write of a key counts.
        let mut writes: BTreeMap<usize, Option<u64>> = BTreeMap::new();
        for operation in &transaction.operations {
            let (key, value) = (operation.key, operation.value);
            let bad = |what| Err(Anomaly::Read { transaction: transaction.id, key, value, what });
            if operation.kind == Kind::Write {
                own.insert(key, value);
                let number = self.key(key);
                writes.insert(number, operation.version);
                continue;
            }
            if let Some(&expected) = own.get(&key) {
                if expected != value {
                    return bad(BadRead::NotOwn { expected });
                }
                continue;
            }
            if let Some(&before) = read.get(&key) {
                if before != value {
                    return bad(BadRead::NotRepeatable { before });
                }
                continue;
            }
            match self.writer(index, key, value, sites) {
                Ok(writer) => reads.push((self.key(key), writer)),
                Err(what) => return bad(what),
            }
            read.insert(key, value);
        }
        let places = reads.iter().enumerate().map(|(place, (key, _))| (*key, place));
        let mut read_places: Vec<(usize, usize)> = places.collect();
        read_places.sort_unstable();
        let writes = writes.into_iter().collect();
        let (chain, after) = self.place(transaction);
        let position = self.lengths[chain];
        self.lengths[chain] += 1;
        let source = Some(index);
        self.nodes.push(Node { source, chain, position, after, reads, read_places, writes });
        Ok(())
    }

    /// Returns the node that wrote a value.
    fn writer(
        &self,
        reader: usize,
        key: i64,
        value: i64,
        sites: &HashMap<(i64, i64), Site>,
    ) -> Result<usize, BadRead> {
        if value == INITIAL {
            return Ok(INIT);
        }
        let site = sites.get(&(key, value)).ok_or(BadRead::OutOfThinAir)?;
        let writer = &self.history.transactions()[site.transaction];
        if site.transaction == reader {
            Err(BadRead::Future)
        } else if writer.outcome == Outcome::Aborted {
            Err(BadRead::Aborted { writer: writer.id })
        } else if site.is_last {
            Ok(self.node_of[site.transaction])
        } else {
            Err(BadRead::Intermediate { writer: writer.id })
        }
    }

    fn finish(self) -> Index<'h> {
        let mut writers: Vec<Writers> = self.keys.iter().map(|_| vec![(0, vec![INIT])]).collect();
        let mut is_versioned = vec![false; self.keys.len()];
        // The index of a chain among the writers of a key.
        let mut places: HashMap<(usize, usize), usize> = HashMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            for (key, version) in &node.writes {
                is_versioned[*key] |= version.is_some();
                let by_chain = &mut writers[*key];
                // The initial values are the first entry, as a chain of their own.
                let place = *places.entry((*key, node.chain)).or_insert(by_chain.len());
                match by_chain.get_mut(place) {
                    Some((_, writers)) => writers.push(index),
                    None => by_chain.push((node.chain, vec![index])),
                }
            }
        }
        let (history, nodes, keys) = (self.history, self.nodes, self.keys);
        Index { history, nodes, chains: self.lengths.len(), keys, writers, is_versioned }
    }
}
