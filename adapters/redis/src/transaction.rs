//! Transactions: reads that validate earlier reads, and commits.

mod indexed;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mingle_model::{Stamp, TransactionId, Version, WitnessRow};
use mingle_store::overlay::Overlay;
use mingle_store::{
    Answer, BoxFuture, Commit, Committed, Data, Guard, Read, Refusal, StoreError, Transaction,
    Violation, ViolationKind, Write,
};
use redis::Value as Reply;

use crate::index::Indexes;
use crate::limits::{COMMIT_BYTES_MAX, READ_SET_MAX, READS_MAX, WRITES_MAX};
use crate::link::Failed;
use crate::reading::{Question, Reader};
use crate::reply;
use crate::request::{Objects, Request, Word, words};
use crate::store::Core;
use crate::witness;
use crate::writing::{Prepared, Writer};

/// A transaction: its reads and its flushed writes.
pub(crate) struct RedisTransaction {
    core: Arc<Core>,
    objects: Objects,
    /// The checks of earlier reads, and the results that they must find again.
    checks: BTreeMap<Vec<Word>, Word>,
    overlay: Overlay,
    flushed: Vec<Write>,
    /// The newest version that was read.
    seen: u64,
    /// True if an earlier read does not hold any more.
    is_over: bool,
}

/// Witness rows at the server.
#[derive(Default)]
struct Rows {
    of_store: Vec<WitnessRow>,
    /// By the number of their object.
    of_objects: BTreeMap<String, Vec<WitnessRow>>,
}

/// The questions of one batch.
struct Batch {
    /// For each read: the read that replaces it at the server, and its question; none if the server
    /// is not asked.
    asked: Vec<Option<(Read, Question)>>,
    /// The objects whose witness rows are requested.
    wanted: Vec<String>,
}

impl RedisTransaction {
    pub fn new(core: Arc<Core>) -> Self {
        Self {
            core,
            objects: Objects::default(),
            checks: BTreeMap::new(),
            overlay: Overlay::default(),
            flushed: Vec::new(),
            seen: 0,
            is_over: false,
        }
    }

    fn batch(&mut self, reads: &[Read]) -> Result<Batch, String> {
        if reads.len() > READS_MAX {
            return Err(format!("a batch has at most {READS_MAX} reads, not {}", reads.len()));
        }
        let reader = Reader {
            layout: &self.core.layout,
            operations: &self.core.operations,
            overlay: &self.overlay,
        };
        let mut asked = Vec::with_capacity(reads.len());
        let mut wanted = BTreeSet::new();
        for read in reads {
            check_visible(&self.overlay, &self.core.layout.indexes, read)?;
            if let Some(object) = read.object() {
                wanted.insert(reader.number(&mut self.objects, object)?);
            }
            // A read that does not fit is refused even if the server is not asked.
            let question = reader.question(&mut self.objects, read)?;
            asked.push(match self.overlay.base(read) {
                Some(base) if base == *read => Some((base, question)),
                Some(base) => {
                    let question = reader.question(&mut self.objects, &base)?;
                    Some((base, question))
                }
                None => None,
            });
        }
        Ok(Batch { asked, wanted: wanted.into_iter().collect() })
    }

    fn read_request(&self, batch: &Batch) -> Request {
        let mut request = self.core.request();
        request.lists(self.objects.names());
        self.add_checks(&mut request);
        let questions = batch.asked.iter().flatten().map(|(_, question)| question.words.clone());
        request.lists(&questions.collect::<Vec<_>>());
        let wanted: Vec<Word> = batch.wanted.iter().map(|number| number.clone().into()).collect();
        request.list(&wanted);
        request
    }

    fn add_checks(&self, request: &mut Request) {
        request.word(self.checks.len().to_string());
        for (check, mark) in &self.checks {
            let words = [words![check[0].clone(), mark.clone()], check[1..].to_vec()].concat();
            request.list(&words);
        }
    }

    async fn read_plain(&mut self, reads: &[Read]) -> Result<Vec<Answer>, StoreError> {
        if self.is_over {
            return Err(StoreError::Conflict);
        }
        if reads.is_empty() {
            return Ok(Vec::new());
        }
        let core = Arc::clone(&self.core);
        let batch = self.batch(reads).map_err(|why| core.refused(why))?;
        let request = self.read_request(&batch);
        let answer = core.link.look(&core.scripts.read, &request).await;
        let answer = answer.map_err(|failed| core.failed(&failed))?;
        let [status, answers, rows] = self.status(answer)?;
        debug_assert_eq!(status, Reply::BulkString(b"ok".to_vec()));
        let odd = |why: String| core.refused(why);
        let rows = read_rows(rows, &batch.wanted).map_err(odd)?;
        let mut replies = reply::array(answers).map_err(odd)?.into_iter();
        let mut found = Vec::with_capacity(reads.len());
        for (read, asked) in reads.iter().zip(batch.asked) {
            let reply = asked.is_some().then(|| replies.next().unwrap_or_default());
            found.push(self.answer(read, asked, reply, &rows).map_err(odd)?);
        }
        if self.checks.len() > READ_SET_MAX {
            let reason = format!("a transaction reads at most {READ_SET_MAX} units of one store");
            return Err(core.refused(reason));
        }
        Ok(found)
    }

    /// Returns the parts of an answer, unless it reports a failure.
    fn status<const N: usize>(&mut self, answer: Reply) -> Result<[Reply; N], StoreError> {
        let parts: [Reply; N] = reply::parts(answer).map_err(|why| self.core.refused(why))?;
        match &parts[0] {
            Reply::BulkString(status) if status == b"conflict" => {
                self.is_over = true;
                Err(StoreError::Conflict)
            }
            Reply::BulkString(status) if status == b"refused" => {
                let why = parts.get(1).cloned().and_then(|why| reply::text(why).ok());
                Err(self.core.refused(why.unwrap_or_default()))
            }
            Reply::BulkString(status) if status == b"later" => {
                let why = parts.get(1).cloned().and_then(|why| reply::text(why).ok());
                Err(self.core.unavailable(why.unwrap_or_default()))
            }
            Reply::BulkString(status) if status == b"beyond" => {
                let why = parts.get(1).cloned().and_then(|why| reply::text(why).ok());
                let violation = Violation::of(ViolationKind::Range, why.unwrap_or_default());
                Err(Refusal::from(violation).at(self.core.store.clone()))
            }
            _ => Ok(parts),
        }
    }

    fn answer(
        &mut self,
        read: &Read,
        asked: Option<(Read, Question)>,
        reply: Option<Reply>,
        rows: &Rows,
    ) -> Result<Answer, String> {
        let core = Arc::clone(&self.core);
        let reader =
            Reader { layout: &core.layout, operations: &core.operations, overlay: &self.overlay };
        let mut found = None;
        if let (Some((base, question)), Some(reply)) = (asked, reply) {
            let finding = reader.finding(&base, reply)?;
            if let Some(check) = question.check {
                self.checks.entry(check).or_insert(finding.mark);
            }
            self.seen = self.seen.max(finding.version.0);
            found = Some((finding.data, finding.version));
        }
        let (data, version) = self.overlay.answer(read, found);
        let mut witnesses = Vec::new();
        if let Some(object) = read.object() {
            let number = reader.number(&mut self.objects, object)?;
            let kept = rows.of_objects.get(&number).cloned().unwrap_or_default();
            witnesses = self.overlay.rows(Some(object), kept);
        }
        if !matches!(data, Data::Record(_) | Data::Records(_) | Data::Witnesses(_)) {
            witnesses.extend(self.overlay.rows(None, rows.of_store.clone()));
        }
        Ok(Answer { data, version, witnesses })
    }

    fn flush_now(&mut self, writes: Vec<Write>) -> Result<(), StoreError> {
        if self.is_over {
            return Err(StoreError::Conflict);
        }
        // Checked now, so that later reads find only valid writes.
        self.prepare(&writes)?;
        let version = self.core.next_tentative();
        for write in &writes {
            self.overlay.write(&self.core.layout.schema, write, version);
        }
        self.flushed.extend(writes);
        Ok(())
    }

    fn prepare(&mut self, writes: &[Write]) -> Result<Prepared, StoreError> {
        if writes.len() + self.flushed.len() > WRITES_MAX {
            return Err(self.core.refused(format!("a commit carries at most {WRITES_MAX} writes")));
        }
        let core = &self.core;
        let writer =
            Writer { layout: &core.layout, operations: &core.operations, prefix: &core.prefix };
        let mut prepared = Prepared::default();
        for (index, write) in writes.iter().enumerate() {
            let later = &writes[index + 1..];
            let added = writer.add(&mut self.objects, write, later, &mut prepared);
            added.map_err(|why| core.refused(why))?;
        }
        writer.settle(&mut prepared).map_err(|why| core.refused(why))?;
        Ok(prepared)
    }

    async fn commit_now(mut self, mut commit: Commit) -> Result<Committed, StoreError> {
        if self.is_over {
            return Err(StoreError::Conflict);
        }
        let mut writes = std::mem::take(&mut self.flushed);
        writes.append(&mut commit.writes);
        if writes.is_empty() && commit.guards.is_empty() {
            // Each batch was one atomic step, at which all earlier reads still held.
            return Ok(committed(self.seen));
        }
        let prepared = self.prepare(&writes)?;
        let own = writes.iter().filter_map(|write| match write {
            Write::Witness(row) => Some(row.id),
            _ => None,
        });
        let known: BTreeSet<TransactionId> =
            commit.known.iter().copied().chain(commit.id).chain(own).collect();
        let request = self.commit_request(&commit, &prepared, &known);
        if request.size() > COMMIT_BYTES_MAX {
            let size = request.size();
            let reason = format!("a commit takes at most {COMMIT_BYTES_MAX} bytes, not {size}");
            return Err(self.core.refused(reason));
        }
        let core = Arc::clone(&self.core);
        let answer = match core.link.run(&core.scripts.commit, &request).await {
            Ok(answer) => answer,
            Err(Failed::Lost(_)) => return Err(core.unknown(commit.id)),
            Err(failed) => return Err(core.failed(&failed)),
        };
        self.committed(answer, commit.id)
    }

    fn committed(
        &mut self,
        answer: Reply,
        id: Option<TransactionId>,
    ) -> Result<Committed, StoreError> {
        let [status, rest] = self.status(answer)?;
        let odd = |why: String| self.core.refused(why);
        match reply::text(status).map_err(odd)?.as_str() {
            "ok" => {
                let version = reply::number(rest).map_err(odd)?;
                Ok(committed(if version == 0 { self.seen } else { version }))
            }
            "witnessed" => {
                let found = reply::strings(rest).map_err(odd)?;
                let rows: Result<_, String> =
                    found.iter().map(|row| witness::decode(row)).collect();
                Err(StoreError::Witnessed { rows: rows.map_err(odd)? })
            }
            "barred" => {
                let id = id.map(|id| id.to_string()).unwrap_or_default();
                Err(self.core.refused(format!(
                    "{id} was said to be not committed, so it must not commit any more"
                )))
            }
            "torn" => {
                let why = reply::text(rest).unwrap_or_default();
                Err(self.core.refused(format!(
                    "a commit failed in the middle, and some of it stands: {why}; somebody else \
                     has changed keys that begin with {}",
                    self.core.prefix
                )))
            }
            other => Err(self.core.refused(format!("a commit was answered with {other:?}"))),
        }
    }

    fn commit_request(
        &self,
        commit: &Commit,
        prepared: &Prepared,
        known: &BTreeSet<TransactionId>,
    ) -> Request {
        let mut request = self.core.request();
        request.lists(self.objects.names());
        match commit.id {
            Some(id) => {
                for word in [witness::id(id), witness::origin(id), witness::number(id)] {
                    request.word(word);
                }
            }
            None => (0..3).for_each(|_| request.word("")),
        }
        request.word(self.core.keep.as_str());
        request.lists(&commit.guards.iter().map(guard).collect::<Vec<_>>());
        self.add_checks(&mut request);
        request.list(&known.iter().map(|id| witness::id(*id).into()).collect::<Vec<_>>());
        let flag = if prepared.has_commands { "1" } else { "" };
        // A command may write any object, so the transaction must know all rows.
        request.word(flag);
        let written = prepared.written.iter().map(|number| number.clone().into());
        request.list(&written.collect::<Vec<_>>());
        let indexes = &self.core.layout.indexes;
        let states = prepared.kinds.iter().map(|kind| words![&**kind, indexes.state(kind)]);
        request.lists(&states.collect::<Vec<_>>());
        request.word(flag);
        request.lists(&prepared.operations);
        request
    }
}

/// Refuses a read that depends on flushed writes: the server does not know them.
fn check_visible(overlay: &Overlay, indexes: &Indexes, read: &Read) -> Result<(), String> {
    let is_own = matches!(read, Read::Record(_) | Read::Records { .. } | Read::Witnesses { .. });
    let is_query =
        matches!(read, Read::Query { operation, .. } if indexes.query(operation).is_none());
    if is_query && overlay.has_data || !is_own && overlay.has_commands {
        let what = if is_query { "a query" } else { "a read after a command" };
        return Err(format!(
            "{what} of a transaction that has written here before cannot see what it wrote: the \
             server gets writes with the commit alone; query first, or in a transaction of its own"
        ));
    }
    Ok(())
}

fn guard(guard: &Guard) -> Vec<Word> {
    match guard {
        Guard::Absent(key) => words![key.kind.code().to_string(), &*key.key],
        Guard::Below(key, bound) => {
            words![key.kind.code().to_string(), &*key.key, format!("{bound:016x}")]
        }
    }
}

/// Decodes rows of the whole store, and of each requested object; empty if there are none.
fn read_rows(found: Reply, wanted: &[String]) -> Result<Rows, String> {
    let decode = |kept: Reply| -> Result<Vec<WitnessRow>, String> {
        reply::strings(kept)?.iter().map(|row| witness::decode(row)).collect()
    };
    let mut found = reply::array(found)?.into_iter();
    let of_store = found.next().map(decode).transpose()?.unwrap_or_default();
    let of_objects = wanted.iter().cloned().zip(found);
    let of_objects = of_objects.map(|(number, kept)| Ok((number, decode(kept)?)));
    Ok(Rows { of_store, of_objects: of_objects.collect::<Result<_, String>>()? })
}

fn committed(version: u64) -> Committed {
    Committed { version: Version(version), stamp: Stamp::default() }
}

impl Transaction for RedisTransaction {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        Box::pin(self.read_all(reads))
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(self.flush_now(writes)))
    }

    fn commit(
        self: Box<Self>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        Box::pin((*self).commit_now(commit))
    }
}
