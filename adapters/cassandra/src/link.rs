//! The connection to the cluster: one driver session, and one [`Site`] for each data center.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use mingle_store::{BoxFuture, World};
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::errors::{ExecutionError, TranslationError};
use scylla::policies::address_translator::{AddressTranslator, UntranslatedPeer};
use scylla::policies::load_balancing::DefaultPolicy;
use scylla::policies::retry::{FallthroughRetryPolicy, RetryPolicy};
use scylla::policies::speculative_execution::SimpleSpeculativeExecutionPolicy;
use scylla::response::PagingState;
use scylla::response::query_result::{QueryResult, QueryRowsResult};
use scylla::statement::Consistency;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::value::{CqlValue, Row};

use crate::bind::{bind, blob, record};
use crate::change::{Change, RecordPlace, is_of_one_partition};
use crate::config::CassandraConfig;
use crate::error::Failed;
use crate::limits::{AGAIN_AFTER, BATCH_BYTES_MAX, PAGE_ROWS, PARTITION_BYTES_MAX, STATEMENTS_MAX};
use crate::scalar::Scalar;
use crate::statement::Statement;

/// The longest wait until all nodes agree on a change of the schema: 4 minutes. Other clients
/// change the schema meanwhile: a busy cluster agrees seldom, and a store should rather open late
/// than fail.
const AGREEMENT_TIMEOUT: Duration = Duration::from_mins(4);

/// Connects to a cluster.
pub async fn connect(config: &CassandraConfig) -> Result<Session, String> {
    let mut builder = SessionBuilder::new()
        .known_nodes(&config.nodes)
        .connection_timeout(config.connect_timeout)
        .keepalive_interval(Duration::from_secs(5))
        .keepalive_timeout(Duration::from_secs(5))
        .schema_agreement_timeout(AGREEMENT_TIMEOUT)
        .fetch_schema_metadata(true);
    if !config.addresses.is_empty() {
        let addresses = Addresses(config.addresses.clone());
        builder = builder.address_translator(Arc::new(addresses));
    }
    if let Some((user, password)) = &config.credentials {
        builder = builder.user(user, password);
    }
    #[cfg(feature = "tls")]
    if config.tls {
        builder = builder.tls_context(Some(crate::tls::config(config)?));
    }
    builder.build().await.map_err(|error| error.to_string())
}

/// The addresses at which nodes are reached, by the address that they announce.
struct Addresses(BTreeMap<IpAddr, SocketAddr>);

impl AddressTranslator for Addresses {
    fn translate_address<'own, 'peer, 'all>(
        &'own self,
        peer: &'peer UntranslatedPeer<'_>,
    ) -> BoxFuture<'all, Result<SocketAddr, TranslationError>>
    where
        'own: 'all,
        'peer: 'all,
        Self: 'all,
    {
        let told = peer.untranslated_address();
        let reached = self.0.get(&told.ip()).copied().unwrap_or(told);
        Box::pin(std::future::ready(Ok(reached)))
    }
}

/// The way to one data center.
pub struct Site {
    session: Arc<Session>,
    world: Arc<dyn World>,
    /// The store's name in its tables.
    area: String,
    datacenter: String,
    statements: Vec<PreparedStatement>,
    /// Statements on foreign tables, by text.
    others: Mutex<BTreeMap<String, PreparedStatement>>,
    read_consistency: Consistency,
    write_consistency: Consistency,
    patience: Duration,
    /// True if the driver may ask a second node before the first has answered.
    speculates: bool,
    profile: scylla::client::execution_profile::ExecutionProfileHandle,
}

/// The result of a compare-and-set.
pub enum Taken {
    /// It was set.
    Set,
    /// It was not set; the existing row, by column.
    Not(BTreeMap<String, CqlValue>),
}

/// The rows of an answer.
#[derive(Default)]
struct Answered {
    /// Names of the columns in this answer: a table can change while a statement over it is cached.
    columns: Vec<String>,
    rows: Vec<Row>,
}

impl Site {
    /// Prepares the statements over a keyspace.
    pub async fn prepare(
        session: &Arc<Session>,
        world: &Arc<dyn World>,
        config: &CassandraConfig,
        datacenter: &str,
        (keyspace, area): (&str, &str),
    ) -> Result<Self, Failed> {
        let profile = profile(config, datacenter);
        let profile = profile.into_handle();
        let mut statements = Vec::with_capacity(Statement::ALL.len());
        for statement in Statement::ALL {
            let prepared = session.prepare(statement.text(keyspace)).await;
            let mut prepared = prepared.map_err(|error| match error {
                scylla::errors::PrepareError::AllAttemptsFailed { first_attempt } => {
                    Failed::No(first_attempt.to_string().into())
                }
                other => Failed::Unsent(other.to_string()),
            })?;
            prepared.set_execution_profile_handle(Some(profile.clone()));
            prepared.set_is_idempotent(!statement.is_conditional());
            if statement.is_conditional() {
                prepared.set_retry_policy(Some(once()));
            }
            prepared.set_page_size(PAGE_ROWS);
            prepared.set_use_cached_result_metadata(false);
            let is_read = statement.is_read();
            prepared.set_consistency(if is_read {
                config.read_consistency
            } else {
                config.write_consistency
            });
            statements.push(prepared);
        }
        Ok(Self {
            session: Arc::clone(session),
            world: Arc::clone(world),
            area: area.to_owned(),
            datacenter: datacenter.to_owned(),
            statements,
            others: Mutex::default(),
            read_consistency: config.read_consistency,
            write_consistency: config.write_consistency,
            patience: config.answer_timeout,
            speculates: config.speculate_after.is_some(),
            profile,
        })
    }

    /// Returns the data center and its nodes; nodes without a connection are marked.
    pub fn place(&self) -> String {
        let state = self.session.get_cluster_state();
        let nodes = state.get_nodes_info().iter();
        let own = nodes.filter(|node| node.datacenter.as_ref() == Some(&self.datacenter));
        let named = own.map(|node| {
            let lost = if node.is_connected() { "" } else { " (no connection)" };
            format!("{}{lost}", node.address)
        });
        format!("data center {} ({})", self.datacenter, named.collect::<Vec<_>>().join(", "))
    }

    fn statement(&self, statement: Statement) -> &PreparedStatement {
        &self.statements[statement as usize]
    }

    /// Returns all rows of a query.
    pub async fn rows(
        &self,
        statement: Statement,
        values: Vec<CqlValue>,
    ) -> Result<Vec<Row>, Failed> {
        self.rows_at(statement, values, None).await
    }

    /// Returns all rows of a query, read at the given consistency.
    pub async fn rows_at(
        &self,
        statement: Statement,
        values: Vec<CqlValue>,
        consistency: Option<Consistency>,
    ) -> Result<Vec<Row>, Failed> {
        let deadline = self.world.elapsed() + self.patience;
        let values = values.into_iter().map(Some).collect();
        let mut statement = self.statement(statement).clone();
        if let Some(consistency) = consistency {
            statement.set_consistency(consistency);
        }
        Ok(self.rows_of(&statement, values, deadline).await?.rows)
    }

    /// Returns the columns and all rows of a query over a foreign table.
    pub async fn query(
        &self,
        text: &str,
        values: Vec<Option<CqlValue>>,
    ) -> Result<(Vec<String>, Vec<Row>), Failed> {
        let deadline = self.world.elapsed() + self.patience;
        let mut statement = self.cql(text).await?;
        statement.set_consistency(self.read_consistency);
        let answered = self.rows_of(&statement, values, deadline).await;
        if matches!(answered, Err(Failed::No(_))) {
            // The table may have been replaced.
            self.others.lock().unwrap_or_else(PoisonError::into_inner).remove(text);
        }
        answered.map(|Answered { columns, rows }| (columns, rows))
    }

    /// Returns the prepared statement for a foreign table.
    async fn cql(&self, text: &str) -> Result<PreparedStatement, Failed> {
        let others = || self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = others().get(text) {
            return Ok(known.clone());
        }
        let prepared = Box::pin(self.session.prepare(text)).await;
        let mut prepared =
            prepared.map_err(|error| Failed::from(ExecutionError::PrepareError(error)))?;
        prepared.set_execution_profile_handle(Some(self.profile.clone()));
        prepared.set_is_idempotent(true);
        prepared.set_page_size(PAGE_ROWS);
        // The table's columns at preparation can differ from those of later rows.
        prepared.set_use_cached_result_metadata(false);
        others().insert(text.to_owned(), prepared.clone());
        Ok(prepared)
    }

    async fn rows_of(
        &self,
        statement: &PreparedStatement,
        values: Vec<Option<CqlValue>>,
        deadline: Duration,
    ) -> Result<Answered, Failed> {
        let mut all = Answered::default();
        let mut paging = PagingState::start();
        let mut pause = AGAIN_AFTER;
        loop {
            let asking = self.session.execute_single_page(statement, &values, paging.clone());
            // The future is large, and many futures contain it.
            match Box::pin(asking).await.map_err(Failed::from) {
                Ok((found, next)) => {
                    let found = found
                        .into_rows_result()
                        .map_err(|error| Failed::No(format!("no rows came: {error}").into()))?;
                    let columns = columns_of(&found);
                    if !all.rows.is_empty() && all.columns != columns {
                        // The table was changed between two pages.
                        (all, paging) = (Answered::default(), PagingState::start());
                        let changed = Failed::Unsent("the table is being changed".into());
                        self.wait(changed, &mut pause, deadline).await?;
                        continue;
                    }
                    all.columns = columns;
                    let typed = found
                        .rows::<Row>()
                        .map_err(|error| Failed::No(error.to_string().into()))?;
                    for row in typed {
                        all.rows.push(row.map_err(|error| Failed::No(error.to_string().into()))?);
                    }
                    match next.into_paging_control_flow() {
                        std::ops::ControlFlow::Continue(state) => paging = state,
                        std::ops::ControlFlow::Break(()) => return Ok(all),
                    }
                }
                Err(failed) => self.wait(failed, &mut pause, deadline).await?,
            }
        }
    }

    /// Waits before the next try; returns the error if another try is useless.
    async fn wait(
        &self,
        failed: Failed,
        pause: &mut Duration,
        deadline: Duration,
    ) -> Result<(), Failed> {
        if matches!(failed, Failed::No(_)) || self.world.elapsed() + *pause > deadline {
            return Err(failed);
        }
        self.world.sleep(*pause).await;
        *pause *= 2;
        Ok(())
    }

    /// Applies mutations: first long values, to which no cell refers yet; then the rest, in one
    /// logged batch if it fits.
    pub async fn apply(&self, changes: &[Change]) -> Result<(), Failed> {
        let (chunks, rest): (Vec<&Change>, Vec<&Change>) =
            changes.iter().partition(|change| matches!(change, Change::PutChunk { .. }));
        for some in chunks.chunks(16) {
            let sent = join_all(
                some.iter().map(|change| self.batch(vec![change], self.write_consistency)),
            );
            sent.await.into_iter().collect::<Result<Vec<()>, Failed>>()?;
        }
        for (place, batch) in split(rest).into_iter().enumerate() {
            let sent = self.batch(batch, self.write_consistency).await;
            sent.map_err(|failed| if place > 0 { failed.in_doubt() } else { failed })?;
        }
        Ok(())
    }

    /// Applies mutations of one partition at the given consistency.
    pub async fn apply_at(
        &self,
        changes: &[Change],
        consistency: Consistency,
    ) -> Result<(), Failed> {
        self.batch(changes.iter().collect(), consistency).await
    }

    async fn batch(&self, changes: Vec<&Change>, consistency: Consistency) -> Result<(), Failed> {
        let is_one = is_of_one_partition(&changes);
        let kind = if is_one { BatchType::Unlogged } else { BatchType::Logged };
        let mut batch = Batch::new(kind);
        batch.set_is_idempotent(true);
        batch.set_execution_profile_handle(Some(self.profile.clone()));
        batch.set_retry_policy(Some(once()));
        batch.set_consistency(consistency);
        let mut values: Vec<Vec<Option<CqlValue>>> = Vec::with_capacity(changes.len());
        for change in &changes {
            if let Change::Cql { text, values: scalars, time } = change {
                if time.is_some() {
                    batch.set_timestamp(*time);
                }
                batch.append_statement(self.cql(text).await?);
                values.push(scalars.iter().map(Scalar::bound).collect());
                continue;
            }
            let (statement, bound) = bind(&self.area, change);
            let bound = bound.into_iter().map(Some).collect();
            let statement = self.statement(statement);
            batch.append_statement(statement.clone());
            values.push(bound);
        }
        let deadline = self.world.elapsed() + self.patience;
        let (mut pause, mut was_lost) = (AGAIN_AFTER, None);
        loop {
            let sent = Box::pin(self.session.batch(&batch, &values)).await;
            let Err(mut failed) = sent.map_err(Failed::from) else { return Ok(()) };
            if self.speculates {
                // With two attempts under way, this is the result of only one.
                failed = failed.in_doubt();
            }
            if matches!(failed, Failed::Lost(_)) {
                was_lost = Some(failed.clone());
            }
            // A later refusal does not prove that an earlier lost attempt had no effect.
            let waited = self.wait(failed, &mut pause, deadline).await;
            waited.map_err(|failed| was_lost.clone().unwrap_or(failed))?;
        }
    }

    /// Compares and sets. After a timeout the effect is unknown.
    pub async fn take(&self, statement: Statement, values: Vec<CqlValue>) -> Result<Taken, Failed> {
        let statement = self.statement(statement);
        let found = Box::pin(self.session.execute_unpaged(statement, &values)).await?;
        taken(found)
    }

    /// Sets records of one partition, unless the first exists already.
    pub async fn take_records(
        &self,
        first: (&RecordPlace, &[u8], &[u8]),
        others: &[(&RecordPlace, &[u8])],
    ) -> Result<Taken, Failed> {
        let mut batch = Batch::new(BatchType::Unlogged);
        batch.set_execution_profile_handle(Some(self.profile.clone()));
        batch.set_retry_policy(Some(once()));
        let take = self.statement(Statement::TakeRecord);
        batch.set_consistency(take.get_consistency().unwrap_or_default());
        batch.append_statement(take.clone());
        let (place, value, redo) = first;
        let mut values = vec![[vec![blob(value), blob(redo)], record(place)].concat()];
        for (place, value) in others {
            batch.append_statement(self.statement(Statement::TakeParts).clone());
            values.push([vec![blob(value)], record(place)].concat());
        }
        taken(self.session.batch(&batch, &values).await?)
    }
}

/// Returns the policy for writes: this crate repeats them, not the driver. The driver reports only
/// its last attempt, and a missing connection there does not show the effect of an earlier lost
/// attempt.
fn once() -> Arc<dyn RetryPolicy> {
    Arc::new(FallthroughRetryPolicy::new())
}

fn profile(config: &CassandraConfig, datacenter: &str) -> ExecutionProfile {
    let policy = DefaultPolicy::builder()
        .prefer_datacenter(datacenter.to_owned())
        .token_aware(true)
        .permit_dc_failover(false)
        .build();
    let mut profile = ExecutionProfile::builder()
        .load_balancing_policy(policy)
        .consistency(config.read_consistency)
        .serial_consistency(Some(config.serial_consistency))
        .request_timeout(Some(config.answer_timeout / 2));
    if let Some(retry_interval) = config.speculate_after {
        let policy = SimpleSpeculativeExecutionPolicy { max_retry_count: 1, retry_interval };
        profile = profile.speculative_execution_policy(Some(Arc::new(policy)));
    }
    profile.build()
}

fn columns_of(found: &QueryRowsResult) -> Vec<String> {
    found.column_specs().iter().map(|column| column.name().to_owned()).collect()
}

fn taken(found: QueryResult) -> Result<Taken, Failed> {
    let odd = |error: String| Failed::Lost(format!("an odd answer to compare-and-set: {error}"));
    let rows = found.into_rows_result().map_err(|error| odd(error.to_string()))?;
    let row = rows.first_row::<Row>().map_err(|error| odd(error.to_string()))?;
    let columns = columns_of(&rows).into_iter().zip(row.columns);
    let columns: BTreeMap<String, CqlValue> =
        columns.filter_map(|(name, column)| Some((name, column?))).collect();
    match columns.get("[applied]") {
        Some(CqlValue::Boolean(true)) => Ok(Taken::Set),
        Some(CqlValue::Boolean(false)) => Ok(Taken::Not(columns)),
        _ => Err(odd("it does not say whether it was applied".into())),
    }
}

/// True if mutations take several batches, so that a crash can leave only a part of them.
pub fn takes_several(changes: &[Change]) -> bool {
    let is_chunk = |change: &&Change| matches!(change, Change::PutChunk { .. });
    split(changes.iter().filter(|change| !is_chunk(change)).collect()).len() > 1
}

/// Splits mutations into batches: those of one partition stay together, and records come last.
fn split(changes: Vec<&Change>) -> Vec<Vec<&Change>> {
    let bytes = |changes: &[&Change]| changes.iter().map(|change| change.bytes()).sum::<usize>();
    let fits = |changes: &[&Change]| {
        let is_one = is_of_one_partition(changes);
        let most = if is_one { PARTITION_BYTES_MAX } else { BATCH_BYTES_MAX };
        bytes(changes) <= most && changes.len() <= STATEMENTS_MAX
    };
    if changes.is_empty() {
        return Vec::new();
    }
    let mut sorted = changes;
    sorted.sort_by_key(|change| change.partition());
    if fits(&sorted) {
        return vec![sorted];
    }
    let mut batches: Vec<Vec<&Change>> = Vec::new();
    for partition in sorted.chunk_by(|a, b| a.partition() == b.partition()) {
        if let Some(last) = batches.last_mut() {
            let both = [&last[..], partition].concat();
            if fits(&both) {
                *last = both;
                continue;
            }
        }
        let mut batch: Vec<&Change> = Vec::new();
        for change in partition {
            batch.push(change);
            if !fits(&batch) && batch.len() > 1 {
                let next = batch.pop().expect("it was just pushed");
                batches.push(std::mem::replace(&mut batch, vec![next]));
            }
        }
        batches.push(batch);
    }
    batches
}
