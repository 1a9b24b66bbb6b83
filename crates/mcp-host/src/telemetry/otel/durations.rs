//! The durations of operations, as histograms of the convention. They count all operations, also those of a
//! trace that is not sampled.

use std::fmt::Debug;
use std::time::Instant;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Histogram, Meter};
use opentelemetry::trace::SpanKind;
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::telemetry::otel::convention::{operation_kind, to_attributes};

/// The histogram bounds that the convention asks for, in seconds.
const BOUNDS: [f64; 14] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// The fields of a span that are attributes of its duration. Others have too many values.
const FIELDS: [&str; 9] =
    ["method", "tool", "prompt", "version", "transport", "address", "port", "outcome", "code"];

/// A layer that measures the spans of operations.
pub(super) struct DurationLayer {
    client: Histogram<f64>,
    server: Histogram<f64>,
}

/// The start of a span, and those of its fields that are attributes.
struct Operation {
    begun: Instant,
    kind: SpanKind,
    fields: Vec<KeyValue>,
}

impl DurationLayer {
    pub(super) fn new(meter: &Meter) -> DurationLayer {
        let histogram = |name: &'static str, description: &'static str| {
            meter
                .f64_histogram(name)
                .with_unit("s")
                .with_description(description)
                .with_boundaries(BOUNDS.to_vec())
                .build()
        };
        DurationLayer {
            client: histogram("mcp.client.operation.duration", "From a request to its response."),
            server: histogram("mcp.server.operation.duration", "From a request to its response."),
        }
    }
}

impl Visit for Operation {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if FIELDS.contains(&field.name()) {
            self.fields.push(KeyValue::new(field.name(), format!("{value:?}")));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if FIELDS.contains(&field.name()) {
            self.fields.push(KeyValue::new(field.name(), value.to_owned()));
        }
    }
}

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for DurationLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(kind) = operation_kind(attributes.metadata().name()) else { return };
        let Some(span) = context.span(id) else { return };
        let mut operation = Operation { begun: Instant::now(), kind, fields: Vec::new() };
        attributes.record(&mut operation);
        span.extensions_mut().insert(operation);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(operation) = span.extensions_mut().get_mut::<Operation>()
        {
            values.record(operation);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let operation = span.extensions_mut().remove::<Operation>();
        let Some(Operation { begun, kind, fields }) = operation else { return };
        let histogram = if kind == SpanKind::Server { &self.server } else { &self.client };
        let mut attributes = to_attributes(span.name(), &kind, fields);
        attributes.retain(|attribute| !attribute.key.as_str().starts_with("mcp_host."));
        histogram.record(begun.elapsed().as_secs_f64(), &attributes);
    }
}
