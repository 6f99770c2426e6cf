//! One connection: statements that are prepared once, and pipelines of statements.

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

/// One message to the server: a statement and its parameters.
#[derive(Clone, Debug)]
pub struct Step {
    /// The statement; it is prepared unless it is a control statement without parameters.
    pub sql: Sql,
    /// Its parameters.
    pub params: Vec<Param>,
    /// Types of its parameters, if the statement does not determine them.
    pub types: Arc<[SqlType]>,
    /// True if it is sent unprepared: `BEGIN`, `COMMIT` and the like.
    pub is_control: bool,
    /// True if it may be sent as a part of another statement: it changes rows, and its result is
    /// not needed.
    pub is_part: bool,
}

impl Step {
    /// Creates a statement with parameters.
    pub fn new(sql: impl Into<Sql>, params: Vec<Param>) -> Self {
        let (sql, types) = (sql.into(), Arc::default());
        Self { sql, params, types, is_control: false, is_part: false }
    }

    /// Creates a statement that may be sent as a part of another one.
    pub fn part(sql: impl Into<Sql>, params: Vec<Param>) -> Self {
        Self { is_part: true, ..Self::new(sql, params) }
    }

    /// Wraps steps into a transaction at READ COMMITTED. It causes no serialization conflict, and
    /// each step sees everything committed before it.
    pub fn beside(steps: Vec<Self>) -> Vec<Self> {
        let begin = Self::control("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE");
        [vec![begin], steps, vec![Self::commit()]].concat()
    }

    /// Creates a control statement such as `BEGIN` or `COMMIT`. It must be a single statement,
    /// because a pipeline sends it like a prepared one.
    pub fn control(sql: impl Into<Sql>) -> Self {
        Self { is_control: true, ..Self::new(sql, Vec::new()) }
    }

    /// Returns `COMMIT`.
    pub fn commit() -> Self {
        static COMMIT: LazyLock<Sql> = LazyLock::new(|| "COMMIT".into());
        Self::control(COMMIT.clone())
    }
}

/// The server's answer to a step.
pub type StepResult = Result<Vec<Row>, Wrong>;

fn plain(result: Result<Vec<tokio_postgres::Row>, tokio_postgres::Error>) -> StepResult {
    Ok(result?.into_iter().map(Row::Plain).collect())
}

/// A connection and its prepared statements.
pub struct Connection {
    /// Dropped before the line, which then tells the server that nothing more comes.
    client: Client,
    line: Line,
    world: Arc<dyn World>,
    /// True if a separate task moves its line.
    is_attended: AtomicBool,
    statements: Mutex<HashMap<Sql, Statement>>,
}

impl Connection {
    /// Creates a connection over a client and its line.
    pub fn new(client: Client, line: Line, world: Arc<dyn World>) -> Self {
        let is_attended = AtomicBool::new(false);
        Self { client, line, world, is_attended, statements: Mutex::default() }
    }

    /// Returns the client, for arbitrary requests. A separate task moves the line from now on,
    /// which is slower.
    pub fn client(&self) -> &Client {
        if let Some(moving) = self.line.take() {
            self.is_attended.store(true, Ordering::Relaxed);
            self.world.spawn(moving);
        }
        &self.client
    }

    /// True if a separate task moves the line.
    pub fn is_attended(&self) -> bool {
        self.is_attended.load(Ordering::Relaxed)
    }

    /// True if the connection is closed, after receiving everything that the server has sent.
    pub fn is_closed(&self) -> bool {
        self.line.hear();
        self.is_known_closed()
    }

    /// True if the connection is closed, as far as received.
    pub fn is_known_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Sends a statement without a result.
    pub async fn say(&self, sql: &str) -> Result<(), tokio_postgres::Error> {
        self.line.drive(self.client.batch_execute(sql)).await
    }

    /// True if the connection has so many statements that it should be replaced.
    pub fn is_full(&self) -> bool {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).len() > STATEMENTS_MAX
    }

    /// Forgets all prepared statements: a table has changed.
    pub fn forget(&self) {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// True if all these steps are prepared.
    pub fn is_prepared(&self, steps: &[Step]) -> bool {
        let known = self.statements.lock().unwrap_or_else(PoisonError::into_inner);
        steps.iter().all(|step| step.is_control || known.contains_key(&step.sql))
    }

    /// Prepares the statements that are not prepared yet, all in one round trip.
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

    /// Returns the prepared statement of a step, unless it is sent unprepared.
    fn prepared(&self, step: &Step) -> Option<Statement> {
        let known = || self.statements.lock().unwrap_or_else(PoisonError::into_inner);
        if step.is_control { None } else { known().get(&step.sql).cloned() }
    }

    /// Sends all steps at once and returns the server's answer to each; they must be prepared.
    /// Steps after a failed one are skipped. The first poll sends all steps; before it, none is
    /// sent.
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

    /// Like [`Connection::run`], with independent steps: a failure does not skip later steps.
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

/// Like [`Connection::run`], on the host's connection: no statement stays prepared there.
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

/// Futures whose answers arrive in their order. The first poll starts all of them in order, so that
/// their messages are sent together.
struct Pipeline<F: Future> {
    waiting: Vec<Option<Pin<Box<F>>>>,
    results: Vec<Option<F::Output>>,
    /// The index of the first future that has not been answered.
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
                    // The futures behind it are answered later.
                    Poll::Pending => return Poll::Pending,
                }
                *waiting = None;
            }
            this.front += 1;
        }
        Poll::Ready(this.results.iter_mut().filter_map(Option::take).collect())
    }
}
