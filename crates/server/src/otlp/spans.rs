//! The exporter of spans.

use std::future::{Future, ready};
use std::sync::{Mutex, PoisonError};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use prost::Message as _;

use super::note;
use super::post::Endpoint;

/// Sends spans to a collector, from the thread that calls it.
#[derive(Debug)]
pub(super) struct Spans {
    endpoint: Endpoint,
    resource: ResourceAttributesWithSchema,
    is_failing: Mutex<bool>,
}

impl Spans {
    pub(super) fn new(endpoint: Endpoint, resource: &Resource) -> Self {
        Self { endpoint, resource: resource.into(), is_failing: Mutex::new(false) }
    }

    fn send(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let resource_spans = group_spans_by_resource_and_scope(batch, &self.resource);
        let request = ExportTraceServiceRequest { resource_spans };
        let sent = self.endpoint.post("/v1/traces", &request.encode_to_vec());
        let mut is_failing = self.is_failing.lock().unwrap_or_else(PoisonError::into_inner);
        note(&sent, "traces", &mut is_failing);
        sent.map_err(OTelSdkError::InternalFailure)
    }
}

impl SpanExporter for Spans {
    fn export(&self, batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        ready(self.send(batch))
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.resource = resource.into();
    }
}
