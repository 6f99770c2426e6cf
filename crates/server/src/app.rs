//! The state that all requests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Bytes;
use axum::http::{HeaderMap, Uri, header};
use mingle::{Database, Session};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::access::Rights;
use crate::budget::Budget;
use crate::config::Config;
use crate::heads::host::Host;
use crate::keys::Running;
use crate::limits::{INLINE_BYTES_MAX, SESSIONS_MAX};
use crate::metrics::Metrics;
use crate::overload::{Admission, Admitted, Ending};
use crate::problem::{ACCEPT_LOSS, Code, Problem, SESSION};
use crate::worker::Work;
use crate::{openapi, page};

/// The state that all requests share.
pub(crate) struct App {
    pub(crate) database: Arc<Database>,
    pub(crate) config: Config,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) running: Running,
    /// The OpenAPI document, and the page's data about the program.
    pub(crate) openapi: Bytes,
    pub(crate) program: Bytes,
    /// The worker's state, if this server is a worker.
    pub(crate) work: Option<Arc<Work>>,
    pub(crate) budget: Budget,
    calls: Arc<Semaphore>,
    /// Limits concurrent calls by their durations; if none, only the number of calls is limited.
    pub(crate) admission: Option<Admission>,
    /// The slots for decoding and encoding large bodies.
    coding: Arc<Semaphore>,
    everything: Arc<Rights>,
    is_stopping: AtomicBool,
}

impl App {
    pub(crate) fn new(database: Arc<Database>, mut config: Config) -> Self {
        config.session_key = config.session_key.in_scope(database.session_scope());
        let program = database.program().clone();
        let stores = program.checked.stores.iter().map(|store| &store.name);
        let transactions = program.plans.iter().map(|plan| &plan.name);
        let needs_token = config.tokens.is_some();
        let bounds = config.worker.clone();
        let objects = program.schema().objects.keys().map(|kind| looks_at(kind));
        let sorts = program.plans.iter().map(|plan| plan.name.to_string()).chain(objects);
        let admission = config.is_adaptive.then(|| Admission::new(sorts, config.concurrent_max));
        if let Some(tokens) = &config.tokens {
            // A database that is served twice keeps the tokens of the first server.
            database.runtime().admit_by(Arc::new(tokens.clone()));
        }
        let work = bounds.map(|bounds| Work::new(&database, bounds, config.deadline_max));
        Self {
            work: work.map(Arc::new),
            metrics: Arc::new(Metrics::new(stores, transactions)),
            running: Running::default(),
            openapi: openapi::document(&program, &config.name, needs_token).to_string().into(),
            program: page::program(&program, &config.name, needs_token, config.crash.is_some())
                .to_string()
                .into(),
            admission,
            budget: Budget::new(config.body_memory_max),
            coding: Arc::new(Semaphore::new(coding_slots())),
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

    /// Admits a call of this sort once its turn has come; refuses it if that is not soon.
    pub(crate) async fn admit_call(&self, sort: &str) -> Result<Permit, Problem> {
        let admitted = match &self.admission {
            Some(admission) => admission.admit(sort).await.map_err(|_| Problem::busy(sort))?,
            None => None,
        };
        Ok(Permit { admitted, _permit: self.admit()? })
    }

    /// Admits one more call, by the number of calls alone.
    pub(crate) fn admit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        if self.is_stopping() {
            return Err(Problem::shutting_down());
        }
        self.calls.clone().try_acquire_owned().map_err(|_| Problem::overloaded())
    }

    /// Runs `work`, which decodes or encodes so many bytes: directly if they are few, otherwise on a
    /// blocking thread. Fewer of these threads than processors run at a time.
    pub(crate) async fn code<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        if bytes <= INLINE_BYTES_MAX {
            return work();
        }
        let slot = self.coding.clone().acquire_owned().await;
        let working = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            work()
        });
        working.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    /// The rights of the caller of a request.
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

    /// Without tokens, refuses calls from pages of other sites in a browser on this machine: both
    /// cross-origin requests, and requests by a foreign host name that resolves to this server.
    fn check_origin(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
        let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
        let host = host.or_else(|| uri.authority().map(axum::http::uri::Authority::as_str));
        for origin in headers.get_all(header::ORIGIN) {
            let origin = origin.to_str().ok().and_then(|text| text.split_once("://"));
            let is_here = origin
                .zip(host)
                .is_some_and(|((_, origin), host)| origin.eq_ignore_ascii_case(host));
            if !is_here {
                return Err(Problem::new(Code::Forbidden, "a page of another site calls here"));
            }
        }
        let is_known = host.is_none_or(|host| Host::parse(host).is_some_and(Host::is_loopback));
        if self.config.is_local() && !is_known {
            let detail = "without tokens, the server is called by the names of this machine alone";
            return Err(Problem::new(Code::Forbidden, detail));
        }
        Ok(())
    }

    /// The session of a request. Several tokens, which come from concurrent calls, are joined.
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
        // A session goes on without lost transactions that it has seen only if the client says so.
        if headers.get(&ACCEPT_LOSS).is_some_and(|value| value == "true") {
            self.database.accept_losses(&session);
        }
        Ok(session)
    }

    pub(crate) fn token(&self, session: &Session) -> String {
        session.token(&self.config.session_key)
    }
}

/// The sort of calls that look at objects of a kind.
pub(crate) fn looks_at(kind: &str) -> String {
    format!("GET {kind}")
}

/// The permission to run a call, held while the call runs.
pub(crate) struct Permit {
    admitted: Option<Admitted>,
    _permit: OwnedSemaphorePermit,
}

impl Permit {
    /// Records that the call has been answered.
    pub(crate) fn is_answered(&mut self, ending: Ending) {
        if let Some(admitted) = &mut self.admitted {
            admitted.is_answered(ending);
        }
    }
}

fn coding_slots() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get() - 1).max(1)
}
