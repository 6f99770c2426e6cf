//! What a test that needs a server, or a checker, begins with.

use std::path::PathBuf;

use tokio::sync::OnceCell;

use crate::checker::Checker;
use crate::engine::Engine;
use crate::error::Error;
use crate::home::Home;
use crate::ledger::{self, About};
use crate::server::{Options, Server};

/// The server that all tests of this process share: the one whose address is told, or one that is
/// started by whoever comes first and ends with the process. Tests keep out of each other's way
/// with databases, schemas or key prefixes of their own.
///
/// `None` if the engine was not fetched; the test is then skipped, and the ledger says so.
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

/// A server of the test's own, which it may kill and restart. One whose address is told does not
/// serve here: it must have been fetched.
///
/// # Panics
///
/// As [`shared`].
pub async fn private(engine: Engine) -> Option<Server> {
    private_with(engine, Options::default()).await
}

/// As [`private`], with settings.
///
/// # Panics
///
/// As [`shared`].
pub async fn private_with(engine: Engine, options: Options) -> Option<Server> {
    settle(About::Engine(engine), Server::start_with(engine, options).await)
}

/// The words that the command of a checker of types begins with.
///
/// `None` if it was not fetched; the test is then skipped, and the ledger says so.
///
/// # Panics
///
/// If with `CI=true` it was not fetched.
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

fn settle<S>(about: About, found: Result<S, Error>) -> Option<S> {
    match found {
        Ok(found) => {
            ledger::note(&ledger::ran(about));
            Some(found)
        }
        Err(Error::NotFetched(_)) if !(ledger::is_ci() && about.is_required()) => {
            ledger::note(&ledger::skipped(about));
            None
        }
        Err(error) => panic!("{error}"),
    }
}
