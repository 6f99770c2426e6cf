//! Opening a program with its stores, as `run`, `show`, `repl` and `recover` do.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mingle::{Binding, Database, OpenError, Session, TokioWorld};
use mingle_lang::Program;

use crate::exit::{Exit, Failure};
use crate::files;
use crate::held::Holder;
use crate::output::{Color, human};

/// Where the data is, and which replica to stay at.
#[derive(clap::Args)]
pub struct Place {
    /// The binding: which engine each store is [default: mingle.toml beside the program, if it is
    /// there].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Where the data is kept [default: .mingle/PROGRAM beside the program].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// The replica to stay at, in every store that has one of this name [default: the first].
    #[arg(long, value_name = "REPLICA")]
    at: Option<String>,
}

/// An opened program with its stores.
pub struct Opened {
    /// The database of the program.
    pub database: Database,
    /// The session of the caller, at its replica.
    pub session: Session,
    /// The folder of the data.
    pub data: PathBuf,
}

/// Checks a program. Its errors go to standard error, because standard output is for results.
pub fn program(path: &str, color: Color) -> Result<Arc<Program>, Failure> {
    let mut checked = files::checked(path)?;
    match checked.program.take() {
        Some(program) => Ok(Arc::new(program)),
        None => {
            eprint!("{}", human(&checked, files::shown(path), color.on_stderr()));
            let message = format!("{} has errors", files::shown(path));
            Err(Failure { message, exit: Exit::Program })
        }
    }
}

/// The delay before finished transactions are cleaned up. It is short because the command ends soon
/// and waits for the clean-up.
const CLEAN_AFTER: Duration = Duration::from_millis(5);

/// Opens a program with its stores, and starts to finish the transactions that earlier processes
/// have left. Must be called on a tokio runtime.
pub async fn open(path: &str, place: &Place, color: Color) -> Result<Opened, Failure> {
    open_with(path, place, color, async |program, mut binding, data| {
        binding.settings.clean_after = CLEAN_AFTER;
        Database::open(program, &binding, Some(data)).await
    })
    .await
    .map(noted)
}

/// As [`open`], for a long-running command.
#[cfg(feature = "server")]
pub async fn open_to_stay(path: &str, place: &Place, color: Color) -> Result<Opened, Failure> {
    open_with(path, place, color, async |program, binding, data| {
        let database = Database::open(program, &binding, Some(data)).await?;
        for warning in database.warnings() {
            tracing::warn!("{warning}");
        }
        Ok(database)
    })
    .await
}

/// As [`open`], but does not touch the transactions that earlier processes have left.
pub async fn open_idle(path: &str, place: &Place, color: Color) -> Result<Opened, Failure> {
    open_with(path, place, color, async |program, mut binding, data| {
        binding.settings.clean_after = CLEAN_AFTER;
        let world = Arc::new(TokioWorld::new());
        Database::open_idle(program, &binding, Some(data), world, |_, store| store).await
    })
    .await
    .map(noted)
}

/// As [`open_idle`], but succeeds even if stores are away.
pub async fn open_reachable(path: &str, place: &Place, color: Color) -> Result<Opened, Failure> {
    open_with(path, place, color, async |program, binding, data| {
        let world = Arc::new(TokioWorld::new());
        Database::open_reachable(program, &binding, Some(data), world).await
    })
    .await
    .map(noted)
}

async fn open_with(
    path: &str,
    place: &Place,
    color: Color,
    open: impl AsyncFnOnce(Arc<Program>, Binding, &Path) -> Result<Database, OpenError>,
) -> Result<Opened, Failure> {
    let Prepared { program, binding, session, data } = prepare(path, place, color)?;
    let database = open(program, binding, &data).await.map_err(|error| failure(&error))?;
    Ok(Opened { database, session, data })
}

/// A program and its binding, before its stores are opened.
pub struct Prepared {
    /// The program.
    pub program: Arc<Program>,
    /// Its binding.
    pub binding: Binding,
    /// A session at the chosen replica.
    pub session: Session,
    /// The folder of the data.
    pub data: PathBuf,
}

/// Reads and checks a program and its binding. Errors of the program are printed.
pub fn prepare(path: &str, place: &Place, color: Color) -> Result<Prepared, Failure> {
    let program = program(path, color)?;
    let binding = binding(path, place.config.as_deref())?;
    let session = replica(&program, &binding, place)?.map_or_else(Session::default, Session::at);
    let data = data_of(path, place);
    Ok(Prepared { program, binding, session, data })
}

/// Returns the folder of a program's data.
pub fn data_of(path: &str, place: &Place) -> PathBuf {
    place.data.clone().unwrap_or_else(|| default_data(path))
}

/// Returns the program, and the server that holds the folder of its data, if one does.
pub fn held(
    path: &str,
    place: &Place,
    color: Color,
) -> Result<Option<(Arc<Program>, Holder)>, Failure> {
    let data = data_of(path, place);
    let Some(holder) = Holder::of(&data) else { return Ok(None) };
    if place.at.is_some() {
        let message = "a server holds the data, and this command would call it at the server's own replica; \
                       leave out --at, or stop the server";
        return Err(Failure::usage(message));
    }
    Ok(Some((program(path, color)?, holder)))
}

/// Returns the files that decide what a program does: its own, those that it imports, and its binding.
/// Some may be missing.
pub fn sources(path: &str, config: Option<&Path>) -> Vec<PathBuf> {
    let binding = config.map_or_else(|| beside(path, "mingle.toml"), Path::to_owned);
    let mut sources = vec![PathBuf::from(path), binding];
    sources.extend(files::imported(path));
    sources
}

impl Place {
    /// Returns the file of the binding, if one is named.
    #[cfg(feature = "server")]
    pub fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }
}

/// Reports the warnings of a store as notes.
fn noted(opened: Opened) -> Opened {
    for warning in opened.database.warnings() {
        eprintln!("note: {warning}");
    }
    opened
}

/// Returns the failure of the command for stores that cannot be opened.
pub fn failure(error: &OpenError) -> Failure {
    let exit = if error.is_misconfiguration() { Exit::Usage } else { Exit::Store };
    Failure { message: error.to_string(), exit }
}

fn beside(path: &str, name: &str) -> PathBuf {
    Path::new(path).parent().unwrap_or(Path::new("")).join(name)
}

/// Returns the default folder of the data. Programs in one folder do not share data: they may use
/// one name for different things.
fn default_data(path: &str) -> PathBuf {
    let stem = Path::new(path).file_stem().unwrap_or_default();
    beside(path, ".mingle").join(stem)
}

/// Returns the binding in a file, or in the file beside the program; without one, the binding to
/// embedded stores.
pub fn binding(path: &str, config: Option<&Path>) -> Result<Binding, Failure> {
    let file = match config {
        Some(file) => file.to_owned(),
        None => {
            let file = beside(path, "mingle.toml");
            if !file.exists() {
                return Ok(Binding::default());
            }
            file
        }
    };
    let shown = file.to_string_lossy();
    let text = files::read(&shown)?;
    Binding::parse(&text).map_err(|error| Failure::usage(format!("{shown}: {error}")))
}

fn replica(
    program: &Program,
    binding: &Binding,
    place: &Place,
) -> Result<Option<mingle_model::Name>, Failure> {
    let Some(wanted) = &place.at else { return Ok(None) };
    let default = mingle::binding::StoreBinding::default();
    let stores = &program.checked.stores;
    let known: BTreeSet<String> = stores
        .iter()
        .flat_map(|store| binding.stores.get(&*store.name).unwrap_or(&default).engine.replicas())
        .collect();
    if known.contains(wanted) {
        return Ok(Some(wanted.as_str().into()));
    }
    let known = known.into_iter().collect::<Vec<_>>().join(", ");
    Err(Failure::usage(format!("no store has a replica `{wanted}`; there are {known}")))
}

/// Runs a future to its end.
pub fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure {
        message: format!("cannot start the runtime: {error}"),
        exit: Exit::Store,
    })?;
    runtime.block_on(work)
}
