//! Spans of requests to stores, below those of calls and phases.

use mingle_store::BoxFuture;
use tracing::{Instrument as _, Span, debug_span};

use crate::stores::Stores;

impl Stores {
    /// Returns the span of one request to a store.
    pub(crate) fn request_span(&self, store: usize, request: &'static str) -> Span {
        debug_span!("request", store = %self.all[store].capabilities().store, request)
    }

    /// Runs a request to a store in its span. If spans are not recorded, the request is returned as it is.
    pub(crate) fn traced<'a, T: 'a>(
        &self,
        store: usize,
        request: &'static str,
        work: BoxFuture<'a, T>,
    ) -> BoxFuture<'a, T> {
        let span = self.request_span(store, request);
        if span.is_disabled() { work } else { Box::pin(work.instrument(span)) }
    }
}
