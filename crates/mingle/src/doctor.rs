//! The examination of a binding against its servers, for an operator. It changes nothing.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use mingle_lang::Program;
use mingle_lang::hir::StoreId;
use mingle_model::Name;
use mingle_store::{Finding, Judgement, StoreSchema, World};

use crate::binding::{Binding, Engine, StoreBinding};
use crate::check::check_binding;
use crate::open::{OpenError, store_schema};

/// The findings about one store.
#[derive(Clone, Debug)]
pub struct StoreFindings {
    /// The store.
    pub store: Name,
    /// Its engine, in the words of the binding: `postgres`.
    pub engine: &'static str,
    /// The findings, in the order of the examination.
    pub findings: Vec<Finding>,
}

impl StoreFindings {
    /// Returns the worst judgement of the findings.
    pub fn worst(&self) -> Judgement {
        self.findings.iter().map(|found| found.judgement).max().unwrap_or(Judgement::Good)
    }
}

/// The results of an examination.
#[derive(Clone, Debug, Default)]
pub struct Examined {
    /// Notes about the binding and the program, one sentence each.
    pub notes: Vec<String>,
    /// The findings about the stores, in the program's order.
    pub stores: Vec<StoreFindings>,
}

/// Examines the binding of a program against its servers: whether each answers, its version, rights, clock and
/// settings, missing tables, and constraints that could refuse a write after the transaction has committed at another
/// store. Stores are examined one after the other; a store that is away does not keep the others from it. Changes
/// nothing. Must be called on a tokio runtime.
///
/// # Errors
///
/// When the binding does not fit the program, as [`check_binding`].
///
/// # Examples
///
/// ```
/// use mingle::{Binding, Judgement, examine};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let program = mingle::compile("store notes: causal; object Note in notes { key id: string; text: string; }");
/// let world = std::sync::Arc::new(mingle::TokioWorld::new());
/// let examined = examine(&program.unwrap(), &Binding::default(), None, world).await.unwrap();
/// assert_eq!(examined.stores[0].worst(), Judgement::Good);
/// # });
/// ```
pub async fn examine(
    program: &Arc<Program>,
    binding: &Binding,
    folder: Option<&Path>,
    world: Arc<dyn World>,
) -> Result<Examined, OpenError> {
    let mut examined = Examined { notes: check_binding(program, binding)?, stores: Vec::new() };
    let default = StoreBinding::default();
    for index in 0..program.checked.stores.len() {
        let id = StoreId(index as u32);
        let store = program.checked.stores[index].name.clone();
        let bound = binding.stores.get(&*store).unwrap_or(&default);
        let schema = store_schema(program, id, bound);
        let (engine, findings) =
            examine_store((program, id), &bound.engine, schema, folder, &world).await;
        examined.stores.push(StoreFindings { store, engine, findings });
    }
    Ok(examined)
}

async fn examine_store(
    (program, id): (&Arc<Program>, StoreId),
    engine: &Engine,
    schema: StoreSchema,
    folder: Option<&Path>,
    world: &Arc<dyn World>,
) -> (&'static str, Vec<Finding>) {
    // Without any engine, nothing uses these values.
    let _ = (program, id, &schema, &folder, &world);
    match engine {
        Engine::Unbound => {
            ("none", vec![Finding::wrong("binding", "the binding has no engine for it")])
        }
        #[cfg(feature = "embedded")]
        Engine::Embedded(_) => ("embedded", vec![disk(folder)]),
        #[cfg(feature = "postgres")]
        Engine::Postgres(config) => {
            let is_one = config.servers.is_empty();
            let level = schema.level;
            let level = if is_one { crate::open::at_least_snapshot(level) } else { level };
            let schema = StoreSchema { level, ..schema };
            let examined = mingle_store_postgres::examine(config.clone(), schema, world.clone());
            let mingle_store_postgres::Examination { mut findings, may_refuse } = examined.await;
            let late = crate::open::late_refusals(program, id, &may_refuse);
            findings.extend(late.into_iter().map(|text| Finding::warning("constraints", text)));
            let reached = crate::open::reached_by_deletions(program, id, &may_refuse);
            findings.extend(reached.into_iter().map(|text| Finding::warning("deletions", text)));
            let written = crate::open::reached_by_writes(program, id, &may_refuse);
            findings.extend(written.into_iter().map(|text| Finding::warning("writes", text)));
            ("postgres", findings)
        }
        #[cfg(feature = "redis")]
        Engine::Redis(config) => {
            let level = crate::open::at_least_snapshot(schema.level);
            let schema = StoreSchema { level, ..schema };
            let config = config.clone();
            ("redis", mingle_store_redis::examine(config, schema, world.clone()).await)
        }
        #[cfg(feature = "cassandra")]
        Engine::Cassandra(config) => {
            ("cassandra", mingle_store_cassandra::examine(config.clone(), schema).await)
        }
        #[cfg(feature = "mingled")]
        Engine::Mingled(config) => ("mingled", data_centers(config, &schema.store).await),
        #[cfg(feature = "worker")]
        Engine::Worker(config, _) => {
            let begin = Instant::now();
            let answer = crate::open::open_worker(config, program, schema, world).await;
            let took = begin.elapsed().as_millis();
            let finding = match answer {
                Ok(_) => Finding::good("connection", format!("the worker answers in {took} ms")),
                Err(error) => Finding::wrong("connection", error.to_string()),
            };
            ("worker", vec![finding])
        }
    }
}

/// Asks each data center of `mingled` for the number of its cluster, and if the user may have the store.
#[cfg(feature = "mingled")]
async fn data_centers(config: &mingle_store_mingled::MingledConfig, store: &Name) -> Vec<Finding> {
    let begin = Instant::now();
    let answers = mingle_store_mingled::Cluster::probe(config.clone(), Some(store)).await;
    let took = begin.elapsed().as_millis();
    let are_several = answers.len() > 1;
    let finding =
        |(address, answer): (String, Result<u128, mingle_store_mingled::OpenError>)| match answer {
            Ok(cluster) if are_several => {
                let text = format!("the data center at {address} is of cluster {cluster:032x}");
                Finding::good("connection", text)
            }
            Ok(cluster) => {
                let text =
                    format!("the data center of cluster {cluster:032x} answers in {took} ms");
                Finding::good("connection", text)
            }
            Err(error) => Finding::wrong("connection", error.to_string()),
        };
    answers.into_iter().map(finding).collect()
}

/// Measures the disk on which the folder of the data is, or will be.
#[cfg(feature = "embedded")]
fn disk(folder: Option<&Path>) -> Finding {
    let Some(folder) = folder else {
        return Finding::good("data", "it is kept in memory");
    };
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let Some(there) = absolute.ancestors().find(|path| path.is_dir()) else {
        return Finding::wrong("data", format!("{} cannot be found", absolute.display()));
    };
    match synced(there) {
        Ok(took) if there == absolute => Finding::good(
            "data",
            format!("{} takes writes; a synchronized one takes {took:.1} ms", absolute.display()),
        ),
        Ok(took) => Finding::good(
            "data",
            format!(
                "{} is created at the first start; a synchronized write takes {took:.1} ms there",
                absolute.display()
            ),
        ),
        Err(error) => Finding::wrong(
            "data",
            format!(
                "{} takes no writes: {error}; give this user the right to write there",
                there.display()
            ),
        ),
    }
}

/// Writes a small file into a folder, synchronizes and removes it; returns the milliseconds that took.
#[cfg(feature = "embedded")]
fn synced(folder: &Path) -> std::io::Result<f64> {
    use std::io::Write as _;

    let path = folder.join(format!(".mingle-doctor-{}", std::process::id()));
    let begin = Instant::now();
    let written = std::fs::File::create_new(&path).and_then(|mut file| {
        file.write_all(b"examined")?;
        file.sync_all()
    });
    let took = begin.elapsed().as_secs_f64() * 1000.0;
    let removed = std::fs::remove_file(&path);
    written?;
    removed?;
    Ok(took)
}
