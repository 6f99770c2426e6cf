//! What a test that needs a server begins with.

use tokio::sync::OnceCell;

use crate::engine::Engine;
use crate::error::Error;
use crate::ledger;
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
    settle(engine, server.as_ref().map_err(Clone::clone))
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
    settle(engine, Server::start_with(engine, options).await)
}

fn settle<S>(engine: Engine, server: Result<S, Error>) -> Option<S> {
    match server {
        Ok(server) => {
            ledger::note(&ledger::ran(engine));
            Some(server)
        }
        Err(Error::NotFetched(_)) if !(ledger::is_ci() && Engine::REQUIRED.contains(&engine)) => {
            ledger::note(&ledger::skipped(engine));
            None
        }
        Err(error) => panic!("{error}"),
    }
}
