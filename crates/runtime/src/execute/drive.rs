//! The driver of a phase, between the machine that computes it and the store that it visits.

use std::borrow::Cow;

use mingle_model::{Name, Origin, Stamp, TransactionId};
use mingle_store::{Answer, Data, Read, Session as StoreSession, Transaction, Write};

use crate::api::call::PhaseReport;
use crate::api::error::Error;
use crate::execute::Executor;
use crate::execute::attempt::{Step, Visit};
use crate::execute::execution::Execution;
use crate::execute::preflight::Question;
use crate::execute::turns::Turns;
use crate::interpreter::machine::{Machine, Need};
use crate::mutants::Mutant;
use crate::protocol::intent::PinnedAnswers;

/// The smallest id.
const FIRST: TransactionId = TransactionId { origin: Origin(0), sequence: 0 };

/// The reads that a phase sends at once.
struct Asking<'a> {
    reads: &'a [Read],
    /// True if the phase needs nothing more of its store.
    is_last: bool,
}

impl Visit {
    /// Returns the reads with their answers.
    pub(crate) fn read(&self) -> Vec<(Read, Data)> {
        let answers = self.answers.iter().flatten().cloned();
        self.reads.iter().cloned().zip(answers).collect()
    }

    /// Ends the run of a machine that needs more than its store's data.
    fn stops_at(&mut self, need: Need) -> Result<Need, Option<Step>> {
        match need {
            Need::Answer(asked) => {
                self.asked = Some(Box::new(asked));
                Err(None)
            }
            Need::Hold(asked) => Err(Some(Step::Hold(Box::new(asked)))),
            need => Ok(need),
        }
    }

    /// True if the answers to the attempt's questions end it.
    pub(crate) fn is_settled(&self) -> bool {
        self.taken.is_some() || self.is_fenced || self.is_hold_lost
    }

    /// Drops the awaited transactions that were seen here from the wait set.
    pub(crate) fn note_satisfied(&mut self, execution: &mut Execution) {
        for id in std::mem::take(&mut self.satisfied) {
            if let Some(awaited) = execution.wait_set.is_over(&self.name, id) {
                execution.satisfied.push((self.name.clone(), id, awaited));
            }
        }
    }

    /// At the end, drops the questions about awaited transactions, if all answers were of weaker levels and nothing is
    /// written: these answers promise nothing about them.
    fn drop_waits(&mut self, need: &Need) {
        let is_weaker = self.lent.as_ref().is_some_and(|lent| !lent.is_used());
        if is_weaker && self.leaves_nothing && matches!(need, Need::Done) {
            let is_wait =
                |asked: &Question| matches!(asked, Question::Witness(..) | Question::Floor(_));
            self.questions.retain(|(_, asked)| !is_wait(asked));
        }
    }

    /// True if the store may end its transaction with the last reads of the phase: nothing is
    /// written there, and no answer leads to more reads.
    fn ends_with_reads(&self) -> bool {
        let leads_on = |asked: &Question| matches!(asked, Question::OwnWitness);
        self.leaves_nothing && !self.questions.iter().any(|(_, asked)| leads_on(asked))
    }
}

/// Creates the store session for a phase of a transaction.
pub(crate) fn session_of(
    execution: &Execution,
    replica: Option<Name>,
    after: Stamp,
) -> StoreSession {
    let transaction = Some(execution.call.plan.name.clone());
    StoreSession { replica, after, transaction, ..StoreSession::default() }
}

impl Executor {
    /// Returns the stamp that a replica must have seen before it serves a phase.
    pub(crate) fn after(
        &self,
        execution: &Execution,
        store: usize,
        pinned: Option<&Stamp>,
    ) -> Stamp {
        let mut after = execution.wait_set.seen_at(self.stores.stamped(store));
        if let Some(pinned) = pinned {
            after.join(pinned);
        }
        if execution.has_begun() { self.stores.all[store].kept(&after) } else { after }
    }

    /// Runs the machine to its end, unless an answer stops it.
    pub(crate) async fn drive(
        &self,
        machine: &mut Machine<'_>,
        pinned: Option<&PinnedAnswers>,
        visit: &mut Visit,
        transaction: &mut dyn Transaction,
        (turns, report): (&mut Turns<'_>, &mut PhaseReport),
    ) -> Result<Option<Step>, Error> {
        loop {
            let mut need = self.compute(machine, turns).await?;
            need = match visit.stops_at(need) {
                Ok(need) => need,
                Err(step) => return Ok(step),
            };
            let reads = match &mut need {
                Need::Read(reads) if pinned.is_none() => std::mem::take(reads),
                _ => Vec::new(),
            };
            let is_blind = self.stores.mutant == Mutant::QueriesBlind;
            if !is_blind && machine.has_queries(&reads) {
                let all = Read::Witnesses { from: FIRST, limit: usize::MAX };
                visit.questions.push((all, Question::OpenRows));
            }
            visit.drop_waits(&need);
            let mut answers = Vec::new();
            if !reads.is_empty() || !visit.questions.is_empty() {
                let is_last = match need {
                    Need::Read(_) => machine.reads_last(),
                    Need::Flush(_) | Need::Answer(_) | Need::Hold(_) => false,
                    Need::Turn | Need::Done | Need::StartOver => true,
                };
                let asking = Asking { reads: &reads, is_last: is_last && visit.ends_with_reads() };
                let (found, stopped) = self.ask(visit, asking, transaction, report).await?;
                if stopped.is_some() || visit.is_settled() {
                    return Ok(Some(stopped.unwrap_or(Step::Again)));
                }
                answers = found;
            }
            match need {
                Need::Read(_) => {
                    if let Some(pinned) = pinned {
                        answers = pinned.answers.get(visit.batch).cloned().unwrap_or_default();
                    }
                    visit.batch += 1;
                    if visit.keeps_answers {
                        visit.reads.extend(reads);
                        visit.answers.push(answers.clone());
                    }
                    machine.supply(answers)?;
                }
                Need::Flush(writes) => {
                    report.round_trips += 1;
                    self.flush(visit, writes, transaction).await?;
                }
                Need::Turn | Need::Done | Need::Answer(_) | Need::Hold(_) => return Ok(None),
                Need::StartOver => return Ok(Some(Step::StartOver)),
            }
        }
    }

    /// Sends writes before the commit.
    async fn flush(
        &self,
        visit: &mut Visit,
        writes: Vec<Write>,
        transaction: &mut dyn Transaction,
    ) -> Result<(), Error> {
        visit.flushed.extend(writes.iter().cloned());
        let flushing = transaction.flush(writes);
        self.stores.traced(visit.store, "flush", flushing).await.map_err(Error::Store)
    }

    /// Asks the attempt's questions together with reads of the phase, and judges the answers.
    async fn ask(
        &self,
        visit: &mut Visit,
        Asking { reads, is_last }: Asking<'_>,
        transaction: &mut dyn Transaction,
        report: &mut PhaseReport,
    ) -> Result<(Vec<Data>, Option<Step>), Error> {
        let asked = std::mem::take(&mut visit.questions);
        let all: Cow<'_, [Read]> = match &*asked {
            [] => Cow::Borrowed(reads),
            asked => asked.iter().map(|(read, _)| read).chain(reads).cloned().collect(),
        };
        let at_once = self.stores.all[visit.store].capabilities().operations_per_round_trip.max(1);
        let mut answers: Vec<Answer> = Vec::new();
        let mut parts = all.chunks(at_once).peekable();
        while let Some(part) = parts.next() {
            report.round_trips += 1;
            let reading = if is_last && parts.peek().is_none() {
                transaction.read_last(part)
            } else {
                transaction.read(part)
            };
            let reading = self.stores.traced(visit.store, "read", reading);
            let found = reading.await.map_err(Error::Store)?;
            if answers.is_empty() {
                answers = found;
            } else {
                answers.extend(found);
            }
        }
        let mut stopped = None;
        let own = if asked.is_empty() {
            answers
        } else {
            let own = answers.split_off(asked.len());
            stopped = self.judge(visit, &asked, answers, transaction).await?;
            own
        };
        let mut found = Vec::with_capacity(own.len());
        for answer in own {
            visit.version = visit.version.max(answer.version.0);
            visit.rows.extend(answer.witnesses);
            found.push(answer.data);
        }
        Ok((found, stopped))
    }
}
