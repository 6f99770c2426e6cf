//! The heads of requests, parsed before hyper sees them.
//!
//! When hyper cannot parse a head, it answers by itself, with a status and nothing else. So each
//! head is parsed here first, on its way from the socket. A head that is malformed or too large, or
//! does not name its host exactly once, never reaches hyper. In its place hyper reads a request for
//! [`REFUSED_PATH`], which ends the connection. The handler of that path gives the answer, so that
//! the answer keeps its order after the answers to earlier requests, has a problem body, and is
//! counted in the metrics.
//!
//! ```text
//! socket:   GET /healthz …   GET / HTTP/9.9 …
//! hyper:    GET /healthz …   GET /.refused …   (end)
//! answers:  200 ok           400 bad-request
//! ```
//!
//! - `stream`: the stream that hyper reads, which keeps track of where the next head begins;
//! - `parse`: one head, and how its body is framed; `chunks`: the end of a chunked body;
//! - `host`: a host with its port, read as a whole.

mod chunks;
pub(crate) mod host;
mod parse;
mod stream;

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::Request;

use crate::problem::{Code, Problem};

pub(crate) use stream::Heads;

/// The path of the request that replaces a refused request.
pub(crate) const REFUSED_PATH: &str = "/.refused";

/// The request that replaces a refused request.
const REFUSED: &[u8] = b"GET /.refused HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// The reason why a connection reads no further request; empty until a request is refused.
#[derive(Clone, Default)]
pub(crate) struct Refusal(Arc<Mutex<Option<Problem>>>);

impl Refusal {
    fn set(&self, problem: Problem) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(problem);
    }

    fn get(&self) -> Option<Problem> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Attaches the problem to a request for [`REFUSED_PATH`], for its handler to answer with.
    pub(crate) fn attach<B>(&self, request: &mut axum::http::Request<B>) {
        if request.uri().path() == REFUSED_PATH {
            request.extensions_mut().insert(self.clone());
        }
    }
}

/// Returns the answer to a request that was refused.
pub(crate) async fn refused(request: Request) -> Problem {
    let refusal = request.extensions().get::<Refusal>().and_then(Refusal::get);
    refusal.unwrap_or_else(|| Problem::new(Code::NotFound, format!("nothing is at {REFUSED_PATH}")))
}
