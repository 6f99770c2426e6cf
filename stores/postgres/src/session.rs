//! One connection: statements that are prepared once, and pipelines of them.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll};

use mingle_store::World;
use rustc_hash::FxHashMap as HashMap;
use tokio_postgres::types::{ToSql, Type as SqlType};
use tokio_postgres::{Client, Statement};

use crate::error::Wrong;
use crate::limits::STATEMENTS_MAX;
use crate::line::Line;
use crate::pipeline::announcement;
use crate::text::Sql;
use crate::wire::{Param, Row};

/// One message to the server: a statement and what it takes.
#[derive(Clone, Debug)]
pub struct Step {
    /// The statement; prepared unless it takes nothing and is for control alone.
    pub sql: Sql,
    /// Its parameters.
    pub params: Vec<Param>,
    /// Types of its parameters, where the statement does not say them itself.
    pub types: Arc<[SqlType]>,
    /// Whether it goes unprepared: `BEGIN`, `COMMIT` and the like.
    pub is_control: bool,
    /// Whether it may go out as a part of another statement: it changes rows, and nobody needs what
    /// it gives.
    pub is_part: bool,
}

impl Step {
    /// A statement with parameters.
    pub fn new(sql: impl Into<Sql>, params: Vec<Param>) -> Self {
        let (sql, types) = (sql.into(), Arc::default());
        Self { sql, params, types, is_control: false, is_part: false }
    }

    /// A statement that may go out as a part of another one.
    pub fn part(sql: impl Into<Sql>, params: Vec<Param>) -> Self {
        Self { is_part: true, ..Self::new(sql, params) }
    }

    /// Steps as a transaction in nobody's way, and that sees what was committed before each of them.
    pub fn beside(steps: Vec<Self>) -> Vec<Self> {
        let begin = Self::control("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE");
        [vec![begin], steps, vec![Self::commit()]].concat()
    }

    /// `BEGIN`, `COMMIT` and the like; one statement, as it is sent as a prepared one in a pipeline.
    pub fn control(sql: impl Into<Sql>) -> Self {
        Self { is_control: true, ..Self::new(sql, Vec::new()) }
    }

    /// `COMMIT`.
    pub fn commit() -> Self {
        static COMMIT: LazyLock<Sql> = LazyLock::new(|| "COMMIT".into());
        Self::control(COMMIT.clone())
    }
}

/// What the server says to a step.
pub type StepResult = Result<Vec<Row>, Wrong>;

fn plain(result: Result<Vec<tokio_postgres::Row>, tokio_postgres::Error>) -> StepResult {
    Ok(result?.into_iter().map(Row::Plain).collect())
}

/// A connection and its prepared statements.
pub struct Connection {
    /// Dropped before the line, which then says to the server that nothing more comes.
    client: Client,
    line: Line,
    world: Arc<dyn World>,
    /// Whether a task moves its line.
    is_attended: AtomicBool,
    statements: Mutex<HashMap<Sql, Statement>>,
}

impl Connection {
    /// Over a client and its line.
    pub fn new(client: Client, line: Line, world: Arc<dyn World>) -> Self {
        let is_attended = AtomicBool::new(false);
        Self { client, line, world, is_attended, statements: Mutex::default() }
    }

    /// The client, for whatever one may ask of it: from now on a task moves the line, which takes
    /// longer.
    pub fn client(&self) -> &Client {
        if let Some(moving) = self.line.take() {
            self.is_attended.store(true, Ordering::Relaxed);
            self.world.spawn(moving);
        }
        &self.client
    }

    /// Whether a task moves the line.
    pub fn is_attended(&self) -> bool {
        self.is_attended.load(Ordering::Relaxed)
    }

    /// Whether it can be used no more, as far as the server has said so by now.
    pub fn is_closed(&self) -> bool {
        self.line.hear();
        self.is_known_closed()
    }

    /// Whether it can be used no more, as far as was heard.
    pub fn is_known_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Says what has no answer.
    pub async fn say(&self, sql: &str) -> Result<(), tokio_postgres::Error> {
        self.line.drive(self.client.batch_execute(sql)).await
    }

    /// Whether it has so many statements that it had better begin anew.
    pub fn is_full(&self) -> bool {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).len() > STATEMENTS_MAX
    }

    /// Prepares all statements anew: a table has changed.
    pub fn forget(&self) {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Whether all of them are prepared.
    pub fn is_prepared(&self, steps: &[Step]) -> bool {
        let known = self.statements.lock().unwrap_or_else(PoisonError::into_inner);
        steps.iter().all(|step| step.is_control || known.contains_key(&step.sql))
    }

    /// Prepares what is not prepared yet, all in one round trip.
    pub async fn prepare(&self, steps: &[Step]) -> Result<(), Wrong> {
        let mut missing: Vec<&Step> = Vec::new();
        let mut seen: HashSet<&Sql> = HashSet::new();
        {
            let known = self.statements.lock().unwrap_or_else(PoisonError::into_inner);
            for step in steps.iter().filter(|step| !step.is_control) {
                if !known.contains_key(&step.sql) && seen.insert(&step.sql) {
                    missing.push(step);
                }
            }
        }
        let announced = announcement(missing.len());
        let prepare = |step: Option<&Step>| {
            let step = step.map(|step| (step.sql.clone(), Arc::clone(&step.types)));
            let announced = &announced;
            async move {
                let Some((sql, types)) = step else {
                    return self.client.batch_execute(announced).await.map(|()| None);
                };
                self.client.prepare_typed(&sql, &types).await.map(Some)
            }
        };
        let announce = (missing.len() > 1).then_some(None);
        let is_announced = usize::from(announce.is_some());
        let all = announce.into_iter().chain(missing.iter().map(|step| Some(*step)));
        let prepared = self.line.drive(Pipeline::new(all.map(prepare))).await;
        let prepared = prepared.into_iter().skip(is_announced).filter_map(Result::transpose);
        let mut known = self.statements.lock().unwrap_or_else(PoisonError::into_inner);
        for (step, statement) in missing.into_iter().zip(prepared) {
            known.insert(step.sql.clone(), statement?);
        }
        Ok(())
    }

    /// The statement of a step, unless it goes unprepared.
    fn prepared(&self, step: &Step) -> Option<Statement> {
        let known = || self.statements.lock().unwrap_or_else(PoisonError::into_inner);
        if step.is_control { None } else { known().get(&step.sql).cloned() }
    }

    /// Sends all steps at once, which must be prepared, and gives what the server says to each: what follows one
    /// that failed was skipped. They are sent as a whole when this is first polled, or not at all.
    pub async fn run(&self, steps: &[Step]) -> Vec<StepResult> {
        if let [step] = steps {
            let statement = self.prepared(step);
            return vec![self.line.drive(Box::pin(self.send(step, statement))).await];
        }
        let announce = Step::control(announcement(steps.len()));
        let all = || std::iter::once(&announce).chain(steps);
        let statements: Vec<Option<Statement>> = all().map(|step| self.prepared(step)).collect();
        let sent = all().zip(statements).map(|(step, statement)| self.send(step, statement));
        let mut results = self.line.drive(Pipeline::new(sent)).await;
        results.split_off(1.min(results.len()))
    }

    /// As [`Connection::run`], where each step is for itself: none is skipped since another failed.
    pub async fn run_each(&self, steps: &[Step]) -> Vec<StepResult> {
        let statements = steps.iter().map(|step| self.prepared(step));
        let sent = steps.iter().zip(statements).map(|(step, known)| self.send(step, known));
        self.line.drive(Pipeline::new(sent)).await
    }

    async fn send(&self, step: &Step, statement: Option<Statement>) -> StepResult {
        let params: Vec<&(dyn ToSql + Sync)> =
            step.params.iter().map(|param| param as &(dyn ToSql + Sync)).collect();
        match statement {
            Some(statement) => plain(self.client.query(&statement, &params).await),
            None => plain(self.client.batch_execute(&step.sql).await.map(|()| Vec::new())),
        }
    }
}

/// As [`Connection::run`] on a connection of somebody else's: nothing stays prepared there.
pub async fn run_unprepared(client: &Client, steps: &[Step]) -> Vec<StepResult> {
    let send = |step: &Step| {
        let typed = step.params.iter().enumerate().map(|(at, param)| {
            let given = step.types.get(at).cloned();
            (param.clone(), given.unwrap_or_else(|| param.sql_type()))
        });
        let (typed, sql): (Vec<(Param, SqlType)>, _) = (typed.collect(), step.sql.clone());
        let is_control = step.is_control;
        async move {
            if is_control {
                return plain(client.batch_execute(&sql).await.map(|()| Vec::new()));
            }
            let params: Vec<(&(dyn ToSql + Sync), SqlType)> = typed
                .iter()
                .map(|(param, sql_type)| (param as &(dyn ToSql + Sync), sql_type.clone()))
                .collect();
            plain(client.query_typed(&sql, &params).await)
        }
    };
    Pipeline::new(steps.iter().map(send)).await
}

/// Futures whose answers come in their order. The first poll starts all of them in order, so that
/// what they send goes out together.
struct Pipeline<F: Future> {
    waiting: Vec<Option<Pin<Box<F>>>>,
    results: Vec<Option<F::Output>>,
    /// All before this one have answered.
    front: usize,
    is_started: bool,
}

impl<F: Future> Pipeline<F> {
    fn new(futures: impl Iterator<Item = F>) -> Self {
        let waiting: Vec<_> = futures.map(|future| Some(Box::pin(future))).collect();
        let results = waiting.iter().map(|_| None).collect();
        Self { waiting, results, front: 0, is_started: false }
    }
}

impl<F: Future> Unpin for Pipeline<F> {}

impl<F: Future> Future for Pipeline<F> {
    type Output = Vec<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let starts = !std::mem::replace(&mut this.is_started, true);
        if starts {
            for (waiting, result) in this.waiting.iter_mut().zip(&mut this.results) {
                let Some(future) = waiting else { continue };
                if let Poll::Ready(found) = future.as_mut().poll(context) {
                    *result = Some(found);
                    *waiting = None;
                }
            }
        }
        while let Some(waiting) = this.waiting.get_mut(this.front) {
            if let Some(future) = waiting {
                match future.as_mut().poll(context) {
                    Poll::Ready(found) => this.results[this.front] = Some(found),
                    // Those behind it are answered later.
                    Poll::Pending => return Poll::Pending,
                }
                *waiting = None;
            }
            this.front += 1;
        }
        Poll::Ready(this.results.iter_mut().filter_map(Option::take).collect())
    }
}
