//! What all requests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Bytes;
use axum::http::{HeaderMap, Uri, header};
use mingle::{Database, Session};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::access::Rights;
use crate::config::Config;
use crate::keys::Running;
use crate::limits::SESSIONS_MAX;
use crate::metrics::Metrics;
use crate::problem::{ACCEPT_LOSS, Code, Problem, SESSION};
use crate::worker::Work;
use crate::{openapi, page};

/// What all requests share.
pub(crate) struct App {
    pub(crate) database: Arc<Database>,
    pub(crate) config: Config,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) running: Running,
    /// The OpenAPI document, and what the page shows of the program.
    pub(crate) openapi: Bytes,
    pub(crate) program: Bytes,
    /// What the worker has, if this is one.
    pub(crate) work: Option<Arc<Work>>,
    calls: Arc<Semaphore>,
    everything: Arc<Rights>,
    is_stopping: AtomicBool,
}

impl App {
    pub(crate) fn new(database: Arc<Database>, config: Config) -> Self {
        let program = database.program().clone();
        let stores = program.checked.stores.iter().map(|store| &store.name);
        let transactions = program.plans.iter().map(|plan| &plan.name);
        let needs_token = config.tokens.is_some();
        let bounds = config.worker.clone();
        let work = bounds.map(|bounds| Work::new(&database, bounds, config.deadline_max));
        Self {
            work: work.map(Arc::new),
            metrics: Arc::new(Metrics::new(stores, transactions)),
            running: Running::default(),
            openapi: openapi::document(&program, needs_token).to_string().into(),
            program: page::program(&program).to_string().into(),
            calls: Arc::new(Semaphore::new(config.concurrent_max.min(Semaphore::MAX_PERMITS))),
            everything: Arc::new(Rights::all()),
            is_stopping: AtomicBool::new(false),
            database,
            config,
        }
    }

    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Lets one more call run.
    pub(crate) fn admit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        if self.is_stopping() {
            return Err(Problem::shutting_down());
        }
        self.calls.clone().try_acquire_owned().map_err(|_| Problem::overloaded())
    }

    /// What whoever asks may do.
    pub(crate) fn rights(&self, headers: &HeaderMap, uri: &Uri) -> Result<Arc<Rights>, Problem> {
        let Some(tokens) = &self.config.tokens else {
            self.check_origin(headers, uri)?;
            return Ok(self.everything.clone());
        };
        let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = value.and_then(|value| value.split_once(' '));
        let token = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let Some((_, token)) = token else {
            let detail = "expected `Authorization: Bearer TOKEN`";
            return Err(Problem::new(Code::Unauthenticated, detail));
        };
        tokens.find(token.trim()).cloned().ok_or_else(|| {
            Problem::new(Code::Unauthenticated, "the token is not one of this server")
        })
    }

    /// Without tokens, the pages of other sites that a browser on this machine shows must not call
    /// anything: neither across origins, nor by a name of theirs that leads here.
    fn check_origin(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
        let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
        let host = host.or_else(|| uri.authority().map(axum::http::uri::Authority::as_str));
        if let Some(origin) = headers.get(header::ORIGIN) {
            let origin = origin.to_str().ok().and_then(|text| text.split_once("://"));
            if origin.map(|(_, origin)| origin) != host {
                return Err(Problem::new(Code::Forbidden, "a page of another site calls here"));
            }
        }
        let is_known = host.is_none_or(is_loopback);
        if self.config.is_local() && !is_known {
            let detail = "without tokens, the server is called by the names of this machine alone";
            return Err(Problem::new(Code::Forbidden, detail));
        }
        Ok(())
    }

    /// The session of a request. Several tokens are joined: of calls that ran side by side.
    pub(crate) fn session(&self, headers: &HeaderMap) -> Result<Session, Problem> {
        let mut session: Option<Session> = None;
        let mut count = 0;
        for value in headers.get_all(&SESSION) {
            let text = value.to_str().map_err(|_| mingle::TokenError::Malformed)?;
            for token in text.split(',') {
                count += 1;
                if count > SESSIONS_MAX {
                    let detail = format!("a request brings at most {SESSIONS_MAX} sessions");
                    return Err(Problem::new(Code::InvalidSession, detail));
                }
                let found = Session::from_token(&self.config.session_key, token.trim())?;
                match &session {
                    Some(session) => session.join(&found),
                    None => session = Some(found),
                }
            }
        }
        let session = session.unwrap_or_else(|| self.config.new_session());
        if let Some(other) = self.database.stands_in_for(&session) {
            session.move_to(other);
        }
        // Nobody goes on without what it has seen unless it says so.
        if headers.get(&ACCEPT_LOSS).is_some_and(|value| value == "true") {
            self.database.accept_losses(&session);
        }
        Ok(session)
    }

    pub(crate) fn token(&self, session: &Session) -> String {
        session.token(&self.config.session_key)
    }
}

/// Whether a `Host` names this machine, as seen from itself.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::is_loopback;

    #[test]
    fn names_of_this_machine_are_known() {
        for (host, expected) in [
            ("localhost", true),
            ("LocalHost:8080", true),
            ("127.0.0.1:8080", true),
            ("127.1.2.3", true),
            ("[::1]:8080", true),
            ("[::2]:8080", false),
            ("192.168.0.1", false),
            ("localhost.example.org:8080", false),
            ("127.0.0.1.example.org", false),
            ("", false),
        ] {
            assert_eq!(is_loopback(host), expected, "{host}");
        }
    }
}
