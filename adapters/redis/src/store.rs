//! The store, and opening it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mingle_model::{Level, Name, TransactionId};
use mingle_store::catalog::{Catalog, Changed};
use mingle_store::{
    BoxFuture, Capabilities, DataStore, Once, Outcome, Session, StoreError, StoreSchema,
    Transaction, World,
};
use redis::Value as Reply;

use crate::config::{OpenError, RedisConfig};
use crate::index::Indexes;
use crate::layout::Layout;
use crate::limits::{CATALOG_TRIES_MAX, READS_MAX};
use crate::link::{Failed, Link};
use crate::mapping::Mapped;
use crate::operation::{Info, Operation, Operations};
use crate::reply;
use crate::request::Request;
use crate::script::Scripts;
use crate::server::Server;
use crate::transaction::RedisTransaction;
use crate::witness;

/// A store at one server.
pub struct Redis {
    core: Arc<Core>,
    capabilities: Capabilities,
    warnings: Vec<String>,
}

/// The state that a store shares with its transactions.
pub(crate) struct Core {
    pub store: Name,
    pub layout: Layout,
    pub operations: Operations,
    pub prefix: String,
    /// The time that outcomes are kept, in milliseconds.
    pub keep: String,
    pub link: Link,
    pub scripts: Scripts,
    /// Versions of writes that were flushed and are not committed: above all others, each used
    /// once.
    tentative: AtomicU64,
}

/// A bound above all versions of the server.
const TENTATIVE: u64 = 1 << 63;

impl Core {
    pub fn refused(&self, reason: impl Into<String>) -> StoreError {
        StoreError::Refused { store: self.store.clone(), reason: reason.into() }
    }

    pub fn unavailable(&self, reason: impl Into<String>) -> StoreError {
        StoreError::Unavailable { store: self.store.clone(), reason: reason.into() }
    }

    pub fn unknown(&self, id: Option<TransactionId>) -> StoreError {
        StoreError::Unknown { store: self.store.clone(), id }
    }

    /// Returns the error for a request that changes nothing.
    pub fn failed(&self, failed: &Failed) -> StoreError {
        match failed {
            Failed::No(reason) => self.refused(reason),
            Failed::Unsent(reason) | Failed::Lost(reason) | Failed::Later(reason) => {
                self.unavailable(reason)
            }
        }
    }

    pub fn next_tentative(&self) -> u64 {
        self.tentative.fetch_add(1, Ordering::Relaxed)
    }

    /// Starts a request with the prefix.
    pub fn request(&self) -> Request {
        let mut request = Request::default();
        request.word(self.prefix.as_str());
        request
    }
}

impl Redis {
    /// Connects to the server and opens the store that `schema` describes.
    ///
    /// Needs a tokio runtime with I/O and time, like all later calls.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached, or cannot keep the promises of the level; when the
    /// program changes a stored declaration; when a mapping or the body of an operation does not
    /// fit.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn open(
    /// #     schema: mingle_store::StoreSchema,
    /// #     world: std::sync::Arc<dyn mingle_store::World>,
    /// # ) -> Result<(), mingle_store_redis::OpenError> {
    /// use mingle_store_redis::{Redis, RedisConfig};
    ///
    /// let config = RedisConfig::at("redis://127.0.0.1:6379");
    /// let store = Redis::connect(config, schema, world).await?;
    /// for warning in store.warnings() {
    ///     eprintln!("{warning}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect(
        config: RedisConfig,
        schema: StoreSchema,
        world: Arc<dyn World>,
    ) -> Result<Arc<Self>, OpenError> {
        let Checked { prefix, mapped, indexes, mut operations, link } =
            Checked::new(&config, &schema, Arc::clone(&world))?;
        let layout = Layout::new(&schema, mapped, indexes);
        let store = schema.store.clone();
        let place = link.place();
        let unavailable = |failed: Failed| OpenError::Unavailable {
            store: store.clone(),
            reason: format!("{place} does not answer: {}", failed.reason()),
        };
        let server = Server::ask(&link).await.map_err(unavailable)?;
        let warnings = judge(&config, &schema, &server)?;
        check_operations(&link, &store, &mut operations).await?;
        let scripts = Scripts::load(&link).await.map_err(unavailable)?;
        let core = Core {
            store: store.clone(),
            layout,
            operations,
            prefix,
            keep: config.keep_outcomes.as_millis().to_string(),
            link,
            scripts,
            tentative: AtomicU64::new(TENTATIVE),
        };
        core.declare(&schema).await?;
        core.keep_indexes(&schema, &*world).await?;
        let capabilities = capabilities(&config, &schema);
        Ok(Arc::new(Self { core: Arc::new(core), capabilities, warnings }))
    }

    /// Checks that a store can be opened, as far as possible without its server.
    ///
    /// # Errors
    ///
    /// As [`Redis::connect`].
    pub fn check(
        config: &RedisConfig,
        schema: &StoreSchema,
        world: Arc<dyn World>,
    ) -> Result<(), OpenError> {
        Checked::new(config, schema, world).map(|_| ())
    }

    /// Returns the commits that a crash or a failover could lose, as far as known: one sentence
    /// each. Empty if acknowledged commits are safe.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

impl Core {
    /// Adds the program's declarations to the catalog, unless they are there.
    async fn declare(&self, schema: &StoreSchema) -> Result<(), OpenError> {
        let unavailable = |failed: Failed| OpenError::Unavailable {
            store: schema.store.clone(),
            reason: failed.reason().to_owned(),
        };
        let odd = |reason: String| OpenError::Config { store: schema.store.clone(), reason };
        let key = format!("{}!catalog", self.prefix);
        let kinds = format!("{}!kinds", self.prefix);
        for _ in 0..CATALOG_TRIES_MAX {
            let found = self.link.ask(&["HGETALL", &kinds]).await.map_err(unavailable)?;
            let counts = counts(found).map_err(odd)?;
            let kept = self.link.ask(&["GET", &key]).await.map_err(unavailable)?;
            let kept = reply::text(kept).map_err(odd)?;
            let mut catalog = match kept.as_str() {
                "" => Catalog::new(schema),
                kept => Catalog::decode(kept).ok_or_else(|| {
                    odd(format!("{key} holds no catalog that this version understands"))
                })?,
            };
            let merged = self.check_kept(schema, &counts).and_then(|()| catalog.merge(schema));
            merged.map_err(|Changed { what, kept, wanted }| OpenError::Changed {
                store: schema.store.clone(),
                what,
                kept,
                wanted,
            })?;
            let wanted = catalog.encode();
            if wanted == kept {
                return Ok(());
            }
            let mut request = Request::default();
            for word in [&key, &kept, &wanted] {
                request.word(word.as_str());
            }
            let run = self.link.run(&self.scripts.catalog, &request);
            if run.await.map_err(unavailable)? == Reply::Int(1) {
                return Ok(());
            }
        }
        Err(odd("others change its catalog all the time".into()))
    }
}

impl Core {
    /// Checks that no object kept in Mingle's own keys is now declared elsewhere. `counts` holds
    /// the number of objects of each kind.
    fn check_kept(
        &self,
        schema: &StoreSchema,
        counts: &BTreeMap<String, u64>,
    ) -> Result<(), Changed> {
        let changed = |name: &str, kept: String, wanted| {
            Err(Changed { what: format!("object {name}"), kept, wanted })
        };
        for (name, _) in counts.iter().filter(|(_, count)| **count > 0) {
            let declared = schema.schema.objects.get(name.as_str());
            if let Some(other) = declared.filter(|declared| declared.store != schema.store) {
                let kept = format!("in {}", schema.store);
                return changed(name, kept, format!("in {}", other.store));
            }
            let mapped = self.layout.kinds.get(name.as_str()).and_then(|kind| kind.mapped.as_ref());
            if let Some(mapped) = mapped {
                return changed(name, "in keys of our own".into(), mapped.text());
            }
        }
        Ok(())
    }
}

fn counts(found: Reply) -> Result<BTreeMap<String, u64>, String> {
    let found = reply::strings(found)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pairs = found.chunks_exact(2);
    Ok(pairs.map(|pair| (text(&pair[0]), text(&pair[1]).parse().unwrap_or(0))).collect())
}

fn check(config: &RedisConfig, schema: &StoreSchema, prefix: &str) -> Result<(), OpenError> {
    let refuse = |reason: String| Err(OpenError::Config { store: schema.store.clone(), reason });
    if !matches!(schema.level, Level::Linearizable | Level::Snapshot) {
        return refuse(format!(
            "its level is {}, but a server of Redis is one copy, which is linearizable or snapshot; \
             its replicas promise no order that causal or eventual would need",
            schema.level
        ));
    }
    if prefix.is_empty() {
        return refuse("the prefix of its keys is empty".into());
    }
    if config.url.starts_with("rediss") && !cfg!(feature = "tls") {
        return refuse("its address wants TLS, which this build has not (feature `tls`)".into());
    }
    if config.keep_outcomes.as_millis() == 0 {
        return refuse("`keep_outcomes` is 0, so no outcome could be asked for".into());
    }
    Ok(())
}

/// Returns the warnings, if the operator accepts every missing promise.
fn judge(
    config: &RedisConfig,
    schema: &StoreSchema,
    server: &Server,
) -> Result<Vec<String>, OpenError> {
    let store = schema.store.clone();
    let unfit = |reason| OpenError::Unfit { store: store.clone(), reason };
    server.check().map_err(unfit)?;
    let loses = server.loses(config.known_durable);
    if let Some(why) = loses.as_ref().filter(|_| !config.accept_loss) {
        let reason = format!(
            "the server may lose what it acknowledged: {why}. Set it to appendonly yes and \
             appendfsync always, or accept that with `accept_loss`"
        );
        return Err(unfit(reason));
    }
    let warnings = loses.into_iter().chain(server.failover());
    Ok(warnings
        .map(|why| format!("store {store}: the server may lose what it acknowledged: {why}"))
        .collect())
}

/// The results of the checks before the server is asked.
pub(crate) struct Checked {
    prefix: String,
    mapped: BTreeMap<Name, Mapped>,
    indexes: Indexes,
    pub(crate) operations: Operations,
    pub(crate) link: Link,
}

impl Checked {
    pub(crate) fn new(
        config: &RedisConfig,
        schema: &StoreSchema,
        world: Arc<dyn World>,
    ) -> Result<Self, OpenError> {
        let prefix = config.prefix_of(&schema.store);
        check(config, schema, &prefix)?;
        let mapped = mapped(config, schema, &prefix)?;
        let refuse = |reason| OpenError::Config { store: schema.store.clone(), reason };
        schema.refuse_draws("a store of Redis").map_err(refuse)?;
        let indexes = Indexes::new(schema, |kind| mapped.contains_key(kind)).map_err(refuse)?;
        let operations = parse(schema)?;
        let link = Link::new(config, world)
            .map_err(|reason| OpenError::Config { store: schema.store.clone(), reason })?;
        Ok(Self { prefix, mapped, indexes, operations, link })
    }
}

fn mapped(
    config: &RedisConfig,
    schema: &StoreSchema,
    prefix: &str,
) -> Result<BTreeMap<Name, Mapped>, OpenError> {
    let mut all: BTreeMap<Name, Mapped> = BTreeMap::new();
    for (name, mapping) in &config.objects {
        let refuse = |reason: String| OpenError::Mapping {
            store: schema.store.clone(),
            object: name.as_str().into(),
            reason,
        };
        let declared = schema.schema.objects.get(name.as_str());
        let declared = declared.filter(|declared| declared.store == schema.store);
        let declared = declared.ok_or_else(|| refuse("no such object lives here".into()))?;
        let mapped = Mapped::new(mapping, declared, prefix).map_err(refuse)?;
        for (other, known) in &all {
            let meets = known.check_patterns(&mapped);
            meets.map_err(|why| refuse(format!("{why}, the former of object {other}")))?;
        }
        all.insert(declared.name.clone(), mapped);
    }
    Ok(all)
}

fn parse(schema: &StoreSchema) -> Result<Operations, OpenError> {
    let parse = |(name, declared): (&Name, &mingle_store::StoreOperation)| {
        let body = declared.body.as_deref();
        let parsed = body.map(|body| Operation::parse(name, declared, body)).transpose();
        let operation = parsed.map_err(|reason| OpenError::Operation {
            store: schema.store.clone(),
            operation: name.clone(),
            reason,
        })?;
        Ok((name.clone(), operation))
    };
    schema.operations.iter().map(parse).collect()
}

pub(crate) async fn check_operations(
    link: &Link,
    store: &Name,
    operations: &mut Operations,
) -> Result<(), OpenError> {
    for (name, operation) in operations {
        let Some(operation) = operation else { continue };
        let refuse = |reason: String| OpenError::Operation {
            store: store.clone(),
            operation: name.clone(),
            reason,
        };
        let asked = link.ask(&["COMMAND", "INFO", operation.command()]).await;
        let found = asked.map_err(|failed| refuse(failed.reason().to_owned()))?;
        let entry = reply::array(found).map_err(refuse)?.into_iter().next();
        operation.check(entry.and_then(Info::parse)).map_err(refuse)?;
    }
    Ok(())
}

fn capabilities(config: &RedisConfig, schema: &StoreSchema) -> Capabilities {
    Capabilities {
        store: schema.store.clone(),
        level: schema.level,
        atomic_commit: true,
        serializable: true,
        once: Once::Serial,
        may_lose_answers: true,
        floor_suffices: false,
        replicas: Vec::new(),
        weaker_answers: Vec::new(),
        operations_per_round_trip: READS_MAX,
        round_trip: config.round_trip,
    }
}

impl DataStore for Redis {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn place(&self, _replica: Option<&Name>) -> Option<String> {
        Some(self.core.link.place())
    }

    fn begin<'a>(
        &'a self,
        _session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        let transaction: Box<dyn Transaction> =
            Box::new(RedisTransaction::new(Arc::clone(&self.core)));
        Box::pin(std::future::ready(Ok(transaction)))
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        Box::pin(async move {
            let mut request = self.core.request();
            request.lists(&[]);
            for word in [witness::id(id), witness::origin(id), witness::number(id)] {
                request.word(word);
            }
            request.word(self.core.keep.as_str());
            let answer = self.core.link.look(&self.core.scripts.outcome, &request).await;
            let answer = answer.map_err(|failed| self.core.failed(&failed))?;
            let odd = |why: String| self.core.refused(why);
            let [fate] = reply::parts(answer).map_err(odd)?;
            match reply::text(fate).map_err(odd)?.as_str() {
                "committed" => Ok(Outcome::Committed),
                "barred" => Ok(Outcome::NotCommitted),
                _ => Ok(Outcome::Unknown),
            }
        })
    }
}
