//! The caller's own trace, in the headers of W3C Trace Context (Recommendation of 23 November 2021).

use axum::extract::Request;
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;
use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::TraceContextExt as _;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::{Instrument as _, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Gives a request a span in its caller's trace, if its headers name one. The spans of its transaction are below.
pub async fn within_the_callers_trace(request: Request, next: Next) -> Response {
    let Some(context) = caller(request.headers()) else { return next.run(request).await };
    let span = info_span!("http", otel.kind = "server");
    // The call returns an error if no subscriber takes spans.
    let _ = span.set_parent(context);
    next.run(request).instrument(span).await
}

/// Returns the context of the caller's span; none if there is none or it is malformed, which is then as if
/// there were none (§3.2).
fn caller(headers: &HeaderMap) -> Option<Context> {
    let propagator = TraceContextPropagator::new();
    let context = propagator.extract_with_context(&Context::new(), &Headers(headers));
    let is_valid = context.span().span_context().is_valid();
    is_valid.then_some(context)
}

/// The headers of a request.
struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        let mut all = self.0.get_all(key).iter();
        let first = all.next()?;
        // Two of `traceparent` are malformed (§3.2). The first part of `tracestate` is the newest (§3.3).
        if key == "traceparent" && all.next().is_some() {
            return None;
        }
        first.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(axum::http::HeaderName::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn found(values: &[&str]) -> Option<(String, String, bool)> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("traceparent", value.parse().expect("a header"));
        }
        let context = caller(&headers)?;
        let of = context.span().span_context().clone();
        Some((of.trace_id().to_string(), of.span_id().to_string(), of.is_sampled()))
    }

    #[test]
    fn a_malformed_context_is_as_none() {
        let trace = "0af7651916cd43dd8448eb211c80319c".to_owned();
        let span = "b7ad6b7169203331".to_owned();
        assert_eq!(found(&[GOOD]), Some((trace.clone(), span.clone(), true)));
        assert_eq!(found(&[&GOOD.replace("-01", "-00")]), Some((trace, span, false)));
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[GOOD, GOOD]), None);
        for bad in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
        ] {
            assert_eq!(found(&[bad]), None, "{bad:?}");
        }
    }
}
