//! Transactions in one data center.

mod index;
mod list;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mingle_geo::{DcId, Key};
use mingle_model::{Name, Stamp, TransactionId, Version, WitnessRow};
use mingle_store::{
    Answer, BoxFuture, Commit, Committed, Data, Read, StoreError, Transaction, Write,
};

use super::build::{Left, build};
use super::client::Client;
use super::cluster::Replicas;
use super::fetch::{self, Fetch, Found};
use super::store::Shared;
use super::touch::{Use, Uses};
use super::{answer, judge, name};
use crate::builtin::{self, Question};
use crate::writing;

/// Number of items that a scan reads at once.
const SCAN_ITEMS: usize = 1_000;

/// A transaction in one data center.
pub struct GeoTransaction {
    pub(super) shared: Arc<Shared>,
    pub(super) dc: DcId,
    /// The stamp that the data center must have first.
    pub(super) after: Stamp,
    /// Its name in the program, if it has one.
    pub(super) transaction: Option<Name>,
    pub(super) client: Option<Client>,
    pub(super) flushed: Vec<Write>,
    /// Items that the flushed writes change.
    pub(super) own: BTreeSet<Key>,
    /// The version of the last answer.
    pub(super) seen: u64,
    /// The items that it uses, for certification in a strong store.
    pub(super) uses: Uses,
    /// True if it is a part of a transaction over several stores, which begins and ends it.
    pub(super) is_part: bool,
    /// True if it reads at a weaker level than the store's: it is not certified, and needs no other data
    /// center.
    pub(super) is_weaker: bool,
    /// True if it is a strong transaction of a causal store.
    pub(super) is_upgraded: bool,
    /// Its questions, and their answers without its own writes where those are known.
    pub(super) given: Vec<(Question, Option<(Data, u64)>)>,
}

impl GeoTransaction {
    /// Creates a transaction that has done nothing yet.
    pub fn new(shared: &Arc<Shared>, dc: DcId, after: Stamp, transaction: Option<Name>) -> Self {
        let is_upgraded = shared.is_mixed() && shared.lists(transaction.as_ref());
        Self {
            shared: Arc::clone(shared),
            dc,
            after,
            transaction,
            is_upgraded,
            client: None,
            flushed: Vec::new(),
            own: BTreeSet::new(),
            seen: 0,
            uses: Uses::default(),
            is_part: false,
            is_weaker: false,
            given: Vec::new(),
        }
    }

    /// True if it is one of a store whose transactions are all strong.
    pub(super) fn is_strong(&self) -> bool {
        self.shared.is_strong() && !self.is_weaker
    }

    /// True if it is certified.
    pub(super) fn is_certified(&self) -> bool {
        (self.shared.is_strong() || self.is_upgraded) && !self.is_weaker
    }

    /// Takes the snapshot, unless that was done.
    pub(super) async fn settle(&mut self) -> Result<&mut Client, StoreError> {
        let client = match self.client.take() {
            Some(client) => client,
            None => {
                let is_certified = self.is_certified();
                let mut client = self.shared.client_of(self.dc, &self.after, is_certified).await?;
                if is_certified {
                    let begun = client.begin_strong();
                    begun.map_err(|trouble| self.shared.trouble(trouble, None))?;
                }
                let rows = fetch::rows(&self.shared.core.layout, None);
                let rows = rows.map_err(|why| self.shared.core.refused(why))?;
                let read = client.read(vec![rows]).await;
                read.map_err(|trouble| self.shared.trouble(trouble, None))?;
                client
            }
        };
        Ok(self.client.insert(client))
    }

    pub(super) fn stamp(&self) -> Stamp {
        let client = self.client.as_ref();
        client.map_or_else(Stamp::default, |client| self.shared.stamp_of(&client.past(), client))
    }

    pub(super) async fn answers(&mut self, reads: &[Read]) -> Result<Vec<Answer>, StoreError> {
        let shared = Arc::clone(&self.shared);
        let refused = |why| shared.core.refused(why);
        let layout = &shared.core.layout;
        let mut fetch = Fetch::default();
        fetch.add(fetch::rows(layout, None).map_err(refused)?);
        for read in reads {
            if let Some(item) = fetch::item(layout, read).map_err(refused)? {
                fetch.add(item);
            }
            if let Some(object) = read.object() {
                fetch.add(fetch::rows(layout, Some(object)).map_err(refused)?);
            }
        }
        let found = self.read(fetch).await?;
        let mut answers = Vec::with_capacity(reads.len());
        for read in reads {
            let (data, version) = match read {
                Read::Query { operation, arguments } => {
                    let builtin =
                        builtin::find(&shared.core.builtins, operation).map_err(refused)?;
                    let question = builtin.question(arguments, layout).map_err(refused)?;
                    let (data, version) = self.query(question).await?;
                    (Data::Result(builtin.result(data, layout)), version)
                }
                Read::Records { kind, from, limit } => {
                    (self.records(*kind, from, *limit).await?, 0)
                }
                Read::Witnesses { from, limit } => {
                    (Data::Witnesses(self.rows_from(*from, *limit).await?), 0)
                }
                read => {
                    let item = fetch::item(layout, read).map_err(refused)?;
                    let item = item.expect("a read is of an item, or was answered above");
                    let answer = answer::data(read, found.get(&item));
                    self.uses.read(read, &item);
                    self.note_given(Question::Read(read.clone()), &answer);
                    answer
                }
            };
            let witnesses = self.witnesses(read, &found).map_err(refused)?;
            answers.push(Answer { data, version: Version(version), witnesses });
        }
        self.seen = answers.last().map_or(self.seen, |answer| answer.version.0);
        Ok(answers)
    }

    fn witnesses(&self, read: &Read, found: &Found) -> Result<Vec<WitnessRow>, String> {
        let layout = &self.shared.core.layout;
        if matches!(read, Read::Record(_) | Read::Records { .. } | Read::Witnesses { .. }) {
            return Ok(Vec::new());
        }
        let mut rows = match read.object() {
            Some(object) => answer::rows(found.get(&fetch::rows(layout, Some(object))?)),
            None => Vec::new(),
        };
        rows.extend(answer::rows(found.get(&fetch::rows(layout, None)?)));
        Ok(rows)
    }

    pub(super) async fn read(&mut self, fetch: Fetch) -> Result<Found, StoreError> {
        let shared = Arc::clone(&self.shared);
        let client = self.settle().await?;
        shared.read(client, fetch).await
    }

    /// Answers a query. A declared one is strong: it sees all that any running data center has acknowledged. An index
    /// is read on the transaction's snapshot.
    async fn query(&mut self, question: Question) -> Result<(Data, u64), StoreError> {
        if self.is_strong() || matches!(question, Question::Index(..)) {
            let answer = self.ask(question.clone()).await?;
            self.note_given(question, &answer);
            return Ok(answer);
        }
        let shared = Arc::clone(&self.shared);
        let layout = &shared.core.layout;
        let left = self.left().await?;
        let mut client = shared.client(self.dc, &self.after).await?;
        let acknowledged = shared.net.with(|inner| inner.acknowledged());
        let reached = client.reach(&acknowledged).await;
        reached.map_err(|trouble| shared.trouble(trouble, None))?;
        let flushed = build(layout, &self.flushed, None, &left, &BTreeSet::new());
        let written = client.write(flushed.map_err(|why| shared.core.refused(why))?);
        written.map_err(|trouble| shared.trouble(trouble, None))?;
        let mut own = Self::new(&shared, self.dc, self.after.clone(), None);
        own.client = Some(client);
        own.own.clone_from(&self.own);
        let answer = own.ask(question).await;
        // What it has used, an upgraded transaction has used.
        own.uses.iter().for_each(|(key, how)| self.uses.add(key.clone(), *how));
        answer
    }

    /// Answers a query on this transaction's snapshot.
    pub(super) async fn ask(&mut self, question: Question) -> Result<(Data, u64), StoreError> {
        match question {
            Question::Keys(kind) => self.keys(&kind).await,
            Question::Index(index, arguments) => self.index(&index, &arguments).await,
            // The store is not opened with draws.
            Question::Draw(kind) => {
                Err(self.shared.core.refused(format!("it draws no numbers for {kind}")))
            }
            Question::Read(read) => {
                let core = &self.shared.core;
                let mut fetch = Fetch::default();
                let item = fetch::item(&core.layout, &read).map_err(|why| core.refused(why))?;
                let item = item.expect("a query reads one item");
                fetch.add(item.clone());
                let found = self.read(fetch).await?;
                self.uses.read(&read, &item);
                Ok(answer::data(&read, found.get(&item)))
            }
        }
    }

    async fn records(
        &mut self,
        kind: mingle_store::RecordKind,
        from: &[u8],
        limit: usize,
    ) -> Result<Data, StoreError> {
        let prefix = name::records(kind);
        let first = name::record(&mingle_store::RecordKey { kind, key: from.into() });
        let mut records = Vec::new();
        self.scan(first, &prefix, |key, state| {
            if records.len() == limit {
                return false;
            }
            if let Some(value) = answer::record(state) {
                records.push((name::record_key(&key.name).into(), value));
            }
            true
        })
        .await?;
        Ok(Data::Records(records))
    }

    async fn rows_from(
        &mut self,
        from: TransactionId,
        limit: usize,
    ) -> Result<Vec<WitnessRow>, StoreError> {
        let prefix = name::rows_by_transaction(None);
        let first = Key::new(mingle_geo::Kind::Set, name::rows_by_transaction(Some(from)));
        let mut rows: Vec<WitnessRow> = Vec::new();
        self.scan(first, &prefix, |_, state| {
            let found = answer::rows(state);
            let Some(row) = found.first() else { return true };
            let is_next = rows.last().is_none_or(|last| last.id != row.id);
            if is_next && rows.len() >= limit {
                return false;
            }
            rows.extend(found);
            true
        })
        .await?;
        Ok(rows)
    }

    /// Visits the items from `first` on whose names begin with `prefix`, while `visit` returns
    /// true.
    async fn scan(
        &mut self,
        mut first: Key,
        prefix: &[u8],
        mut visit: impl FnMut(&Key, &mingle_geo::State) -> bool,
    ) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        let dc = self.dc;
        self.settle().await?;
        loop {
            let (from, begin) = (shared.space.key(first.clone()), [shared.space.prefix(), prefix]);
            let items =
                |inner: &mut dyn Replicas| inner.items(dc, &from, &begin.concat(), SCAN_ITEMS);
            let found = shared.net.with(items).ok_or_else(|| shared.down(dc))?.into_iter();
            let mut keys: Vec<Key> = found.map(|key| shared.space.own(key)).collect();
            let is_last = keys.len() < SCAN_ITEMS;
            let fits = |key: &&Key| key.kind == first.kind && key.name.starts_with(prefix);
            let own = self.own.range(first.clone()..).take_while(fits);
            keys.extend(own.cloned());
            keys.sort_unstable();
            keys.dedup();
            if !is_last {
                keys.truncate(SCAN_ITEMS);
            }
            let Some(last) = keys.last() else { return Ok(()) };
            let next = [&last.name, &[0][..]].concat();
            let next = Key::new(first.kind, next);
            let mut fetch = Fetch::default();
            for key in &keys {
                fetch.add(key.clone());
            }
            let client = self.settle().await?;
            let found = shared.read(client, fetch).await?;
            for key in &keys {
                if !visit(key, found.get(key)) {
                    return Ok(());
                }
            }
            if is_last {
                return Ok(());
            }
            first = next;
        }
    }

    /// Returns the witness rows of the transactions that flushed writes forget.
    pub(super) async fn left(&mut self) -> Result<Left, StoreError> {
        let forgotten = self.flushed.iter().filter_map(|write| match write {
            Write::Forget(id) => Some(*id),
            _ => None,
        });
        let forgotten: BTreeSet<TransactionId> = forgotten.collect();
        let mut left = BTreeMap::new();
        for id in forgotten {
            let prefix = name::rows_by_transaction(Some(id));
            self.uses.add(name::list(&prefix), Use::Write);
            let mut rows = Vec::new();
            let first = Key::new(mingle_geo::Kind::Set, &prefix);
            self.scan(first, &prefix, |_, state| {
                rows.extend(answer::rows(state));
                true
            })
            .await?;
            left.insert(id, rows);
        }
        Ok(left)
    }

    pub(super) fn prepare(&mut self, writes: Vec<Write>) -> Result<(), StoreError> {
        let core = &self.shared.core;
        let writes = writing::prepare(core, writes, self.flushed.len());
        let writes = writes.map_err(|why| core.refused(why))?;
        self.shared.check_indexed(&writes).map_err(|why| core.refused(why))?;
        self.flushed.extend(writes);
        Ok(())
    }

    /// Makes writes visible to this transaction's own reads only.
    async fn show(&mut self, writes: Vec<Write>) -> Result<(), StoreError> {
        self.settle().await?;
        let before = self.flushed.len();
        self.prepare(writes)?;
        let left = self.left().await?;
        let shared = Arc::clone(&self.shared);
        let none = BTreeSet::new();
        let built = build(&shared.core.layout, &self.flushed[before..], None, &left, &none);
        let updates = built.map_err(|why| shared.core.refused(why))?;
        self.own.extend(updates.iter().map(|update| update.key.clone()));
        let client = self.settle().await?;
        client.write(updates).map_err(|trouble| shared.trouble(trouble, None))
    }

    async fn conclude(mut self, mut commit: Commit) -> Result<Committed, StoreError> {
        if self.is_part {
            let reason = "a part of a transaction over several stores cannot end alone";
            return Err(self.shared.core.refused(reason.into()));
        }
        if self.is_strong() {
            return self.certify(commit).await;
        }
        if self.is_upgraded_by(&commit) {
            return self.certify_upgraded(commit).await;
        }
        self.prepare(std::mem::take(&mut commit.writes))?;
        let shared = Arc::clone(&self.shared);
        if self.is_weaker && !(self.flushed.is_empty() && commit.is_empty()) {
            let reason = "a transaction at a weaker level than the store's only reads";
            return Err(shared.core.refused(reason.into()));
        }
        commit.writes = std::mem::take(&mut self.flushed);
        let fits = writing::check_size(&commit.writes);
        fits.map_err(|why| shared.core.refused(why))?;
        if commit.is_empty() {
            self.settle().await?;
            return Ok(Committed { version: Version(self.seen), stamp: self.stamp() });
        }
        if self.client.is_some() {
            self.settle().await?.take_back();
        }
        self.own.clear();
        if let Some(id) = commit.id
            && !shared.fates.begin(id, shared.core.world.elapsed())
        {
            return Err(shared.core.barred(id));
        }
        let _pass = shared.gate(self.dc).pass().await;
        let committed = self.commit_now(&commit).await;
        if let Some(id) = commit.id {
            shared.note_end(id, &committed, self.client.as_ref());
        }
        committed
    }

    /// Judges the commit's conditions by the current state of the data center; removals take only
    /// values that the transaction's snapshot has.
    async fn commit_now(&mut self, commit: &Commit) -> Result<Committed, StoreError> {
        let shared = Arc::clone(&self.shared);
        let refused = |why| shared.core.refused(why);
        let layout = &shared.core.layout;
        let mut judge = shared.client(self.dc, &self.after).await?;
        let last = shared.last(self.dc);
        judge.reach(&last).await.map_err(|trouble| shared.trouble(trouble, commit.id))?;
        let mut fetch = Fetch::default();
        fetch.add(fetch::rows(layout, None).map_err(refused)?);
        judge::fetch(layout, commit, &mut fetch).map_err(refused)?;
        shared.fetch_outcome(commit.id, &mut fetch);
        let found = shared.read(&mut judge, fetch).await?;
        if self.client.is_none() {
            // Nothing was read before: this is the snapshot.
            self.client = Some(judge);
        } else {
            shared.give_back(judge);
        }
        if let Some(objection) = judge::object(layout, commit, &found) {
            return Err(objection);
        }
        shared.check_outcome(commit.id, &found)?;
        self.flushed.clone_from(&commit.writes);
        let left = self.left().await?;
        let none = BTreeSet::new();
        let mut updates =
            build(layout, &commit.writes, commit.operation, &left, &none).map_err(refused)?;
        shared.check_count(&updates)?;
        shared.add_outcome(commit.id, &mut updates);
        if updates.is_empty() {
            return Ok(Committed { version: Version(self.seen), stamp: self.stamp() });
        }
        let client = self.settle().await?;
        client.write(updates).map_err(|trouble| shared.trouble(trouble, None))?;
        let done = client.commit().await.map_err(|trouble| shared.trouble(trouble, commit.id))?;
        shared.committed_by(client, &done.commit_vec);
        let stamp = shared.stamp_of(&done.commit_vec, client);
        shared.raise_floors(&commit.writes);
        let (timestamp, origin) = (done.commit_vec[self.dc], self.dc);
        let version = mingle_geo::Version { timestamp, origin, index: 0 };
        Ok(Committed { version: Version(version.digest()), stamp })
    }
}

impl Drop for GeoTransaction {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            self.shared.give_back(client);
        }
    }
}

impl Transaction for GeoTransaction {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        Box::pin(self.answers(reads))
    }

    fn read_last<'a>(
        &'a mut self,
        reads: &'a [Read],
    ) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        if self.is_certified() && !self.is_part {
            return Box::pin(self.answer_last(reads));
        }
        Box::pin(self.answers(reads))
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.show(writes))
    }

    fn commit(
        self: Box<Self>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        Box::pin(async move {
            let (shared, dc, has_id) = (Arc::clone(&self.shared), self.dc, commit.id.is_some());
            let committed = self.conclude(commit).await?;
            if has_id {
                shared.sweep_after(dc).await;
            }
            Ok(committed)
        })
    }
}
