//! The first call of a test that needs a server, a checker or a library.

use std::path::PathBuf;
use std::process::Command;

use tokio::sync::OnceCell;

use crate::checker::Checker;
use crate::engine::Engine;
use crate::error::Error;
use crate::home::Home;
use crate::ledger::{self, About};
use crate::library::Library;
use crate::server::{Options, Server};

/// Returns the server that all tests of this process share: the one with an address in the
/// environment, or one that the first caller starts and that ends with the process. Tests use
/// separate databases, schemas or key prefixes.
///
/// `None` if the engine was not fetched; the test is then skipped, and the ledger records it.
///
/// # Panics
///
/// If a server does not start, or if with `CI=true` the engine was not fetched and is one of
/// [`Engine::REQUIRED`].
pub async fn shared(engine: Engine) -> Option<&'static Server> {
    static SERVERS: [OnceCell<Result<Server, Error>>; Engine::ALL.len()] =
        [const { OnceCell::const_new() }; Engine::ALL.len()];
    let start = || async {
        match Server::told(engine) {
            Some(server) => Ok(server),
            None => Server::start(engine).await,
        }
    };
    let server = SERVERS[engine as usize].get_or_init(start).await;
    settle(About::Engine(engine), server.as_ref().map_err(Clone::clone))
}

/// Starts a server for this test alone, which may kill and restart it. A server with an address in
/// the environment cannot be used: the engine must have been fetched.
///
/// # Panics
///
/// As for [`shared`].
pub async fn private(engine: Engine) -> Option<Server> {
    private_with(engine, Options::default()).await
}

/// Like [`private`], with settings.
///
/// # Panics
///
/// As for [`shared`].
pub async fn private_with(engine: Engine, options: Options) -> Option<Server> {
    settle(About::Engine(engine), Server::start_with(engine, options).await)
}

/// Returns the first words of a type checker's command.
///
/// `None` if it was not fetched or installed; the test is then skipped, and the ledger records it.
///
/// # Panics
///
/// If with `CI=true` it was not fetched and is one of [`Checker::REQUIRED`].
///
/// # Examples
///
/// ```no_run
/// use mingle_services::Checker;
///
/// # fn test() {
/// let Some(words) = mingle_services::checker(Checker::Mypy) else { return };
/// let checked = std::process::Command::new(&words[0]).args(&words[1..]).arg("shop.py").status();
/// assert!(checked.unwrap().success());
/// # }
/// ```
pub fn checker(checker: Checker) -> Option<Vec<PathBuf>> {
    let command = Home::find().and_then(|home| checker.command(&home));
    settle(About::Checker(checker), command)
}

/// Returns the command that runs a program with a client library of Redis; see
/// [`Library::command`].
///
/// `None` if it was not fetched; the test is then skipped, and the ledger records it.
///
/// # Panics
///
/// If with `CI=true` it was not fetched.
///
/// # Examples
///
/// ```no_run
/// use mingle_services::Library;
///
/// # fn test() {
/// let Some(mut command) = mingle_services::library(Library::RedisPy) else { return };
/// let status = command.args(["check.py", "127.0.0.1", "6379"]).status();
/// assert!(status.unwrap().success());
/// # }
/// ```
pub fn library(library: Library) -> Option<Command> {
    let command = Home::find().and_then(|home| library.command(&home));
    settle(About::Library(library), command)
}

fn settle<S>(about: About, found: Result<S, Error>) -> Option<S> {
    match found {
        Ok(found) => {
            ledger::note(&ledger::ran(about));
            Some(found)
        }
        Err(Error::NotFetched(_) | Error::NotInstalled(_))
            if !(ledger::is_ci() && about.is_required()) =>
        {
            ledger::note(&ledger::skipped(about));
            None
        }
        Err(error) => panic!("{error}"),
    }
}
