//! The heads of requests, seen before hyper sees them.
//!
//! hyper answers a head that it cannot parse by itself, with a status and nothing else. So each head is
//! parsed here first, on its way from the socket: one that is malformed, too large, or does not say its
//! host once never gets to hyper. In its place hyper reads a request for [`REFUSED_PATH`], with which the
//! connection ends, and whose handler gives the answer: so that answer has its turn among those of
//! earlier requests, a problem body, and its place in the metrics.
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

/// The path of the request that stands in the place of one that is refused.
pub(crate) const REFUSED_PATH: &str = "/.refused";

/// The request itself.
const REFUSED: &[u8] = b"GET /.refused HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// Why a connection reads no further request, once that is so.
#[derive(Clone, Default)]
pub(crate) struct Refusal(Arc<Mutex<Option<Problem>>>);

impl Refusal {
    fn set(&self, problem: Problem) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(problem);
    }

    fn get(&self) -> Option<Problem> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells the handler of a request for [`REFUSED_PATH`] what to answer.
    pub(crate) fn attach<B>(&self, request: &mut axum::http::Request<B>) {
        if request.uri().path() == REFUSED_PATH {
            request.extensions_mut().insert(self.clone());
        }
    }
}

/// The answer to a request that was refused.
pub(crate) async fn refused(request: Request) -> Problem {
    let refusal = request.extensions().get::<Refusal>().and_then(Refusal::get);
    refusal.unwrap_or_else(|| Problem::new(Code::NotFound, format!("nothing is at {REFUSED_PATH}")))
}
