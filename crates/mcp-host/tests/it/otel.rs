//! Export to an OpenTelemetry collector over HTTP. The trace context that a server receives belongs to an exported
//! span.

use mcp_host_runtime::otel::{Collector, Export, export};
use mcp_testkit::collector::OtlpCollector;
use serde_json::Value;
use tracing_subscriber::layer::SubscriberExt;

use crate::fixture::{HostFixture, set_subscriber, text_or_error};
use crate::scripted_server::ScriptedServer;

/// Whether a request to `path` has these bytes.
fn has_received(collector: &OtlpCollector, path: &str, what: &[u8]) -> bool {
    collector.bodies(path).iter().any(|body| body.windows(what.len()).any(|part| part == what))
}

/// Exports to a collector.
fn export_to(collector: &OtlpCollector) -> Export {
    let mut target = Collector::for_service("agent-of-a-test");
    target.endpoint = Some(collector.url.clone());
    export(target).unwrap()
}

#[tokio::test]
async fn collector_gets_spans_and_metrics_with_the_trace_of_the_server() {
    let collector = OtlpCollector::start();
    let export = export_to(&collector);
    let recorder = export.recorder();
    let meta = {
        let _subscriber = set_subscriber(tracing_subscriber::registry().with(export.layer()));
        let _recorder = metrics::set_default_local_recorder(&recorder);
        let fixture = HostFixture::running(&[("demo", ScriptedServer::new(&["meta", "echo"]))]).await;
        assert_eq!(text_or_error(&fixture.call("echo", r#"{"k":"hunter2"}"#).await), r#"{"k":"hunter2"}"#);
        let meta: Value = serde_json::from_str(&text_or_error(&fixture.call("meta", "{}").await)).unwrap();
        fixture.host.shutdown().await;
        meta
    };
    tokio::task::spawn_blocking(move || export.shutdown()).await.unwrap().unwrap();

    let (traces, metrics) = ("/v1/traces", "/v1/metrics");
    for what in
        ["agent-of-a-test", "connect", "tools/list", "tools/call echo", "mcp_host.outcome", "success", "demo"]
    {
        assert!(has_received(&collector, traces, what.as_bytes()), "no {what}");
    }
    for what in
        ["mcp_host_calls_total", "mcp_host_call_duration_seconds", "mcp.client.operation.duration", "demo"]
    {
        assert!(has_received(&collector, metrics, what.as_bytes()), "no {what}");
    }
    for path in [traces, metrics] {
        assert!(!has_received(&collector, path, b"hunter2"));
    }
    // The trace and span that the server received were exported.
    let parent = meta["traceparent"].as_str().unwrap();
    let ids: Vec<&str> = parent.split('-').collect();
    for id in &ids[1..3] {
        let bytes: Vec<u8> =
            (0..id.len()).step_by(2).map(|at| u8::from_str_radix(&id[at..at + 2], 16).unwrap()).collect();
        assert!(has_received(&collector, traces, &bytes), "{parent}");
    }
    assert_eq!(ids[3], "01", "it is sampled");
}

#[test]
fn dropped_exporter_sends_the_rest() {
    let collector = OtlpCollector::start();
    let export = export_to(&collector);
    // The program's own subscriber, which holds a tracer, outlives the export.
    let layer = tracing_subscriber::registry().with(export.layer());
    let _subscriber = set_subscriber(layer);
    tracing::info_span!("last-words").in_scope(|| {});
    drop(export);
    assert!(has_received(&collector, "/v1/traces", b"last-words"));
}

#[test]
fn no_trace_context_without_an_exporter() {
    assert_eq!(mcp_host_runtime::otel::current_trace(), None);
    let _subscriber = set_subscriber(tracing_subscriber::registry());
    let span = tracing::info_span!("call");
    assert_eq!(span.in_scope(mcp_host_runtime::otel::current_trace), None);
}
