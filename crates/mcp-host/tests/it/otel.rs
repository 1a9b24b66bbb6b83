//! Export to an OpenTelemetry collector over HTTP. The trace context that a server receives belongs to an exported
//! span.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use mcp_host_runtime::otel::{Collector, export};
use serde_json::Value;
use tracing_subscriber::layer::SubscriberExt;

use crate::fixture::{HostFixture, set_subscriber, text_or_error};
use crate::scripted_server::ScriptedServer;

/// The path and body of each request.
type Requests = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// Starts a collector on its own port. It accepts every request and runs until the test process ends.
fn collector() -> (String, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let requests = Requests::default();
    let taken = Arc::clone(&requests);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let taken = Arc::clone(&taken);
            // A connection may be kept open for the next export.
            std::thread::spawn(move || while take(stream.as_ref().unwrap(), &taken).is_some() {});
        }
    });
    (address, requests)
}

fn take(mut stream: &TcpStream, requests: &Requests) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|it| *it > 0)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().to_lowercase().split_once(": ") {
            Some(("content-length", value)) => length = value.parse().unwrap(),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let path = first.split(' ').nth(1).unwrap().to_owned();
    requests.lock().unwrap().push((path, body));
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n")
        .ok()
}

fn holds(requests: &Requests, path: &str, what: &[u8]) -> bool {
    let requests = requests.lock().unwrap();
    let bodies = requests.iter().filter(|it| it.0 == path).map(|it| &it.1);
    bodies.into_iter().any(|it| it.windows(what.len()).any(|it| it == what))
}

#[tokio::test]
async fn collector_gets_spans_and_metrics_with_the_trace_of_the_server() {
    let (address, requests) = collector();
    let export = export({
        let mut collector = Collector::for_service("agent-of-a-test");
        collector.endpoint = Some(address);
        collector
    })
    .unwrap();
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
    tokio::task::spawn_blocking(move || export.shutdown()).await.unwrap();

    let (traces, metrics) = ("/v1/traces", "/v1/metrics");
    for what in ["agent-of-a-test", "connect", "list", "call", "outcome", "duration", "success", "demo"] {
        assert!(holds(&requests, traces, what.as_bytes()), "no {what}");
    }
    for what in ["mcp_host_calls_total", "mcp_host_call_duration_seconds", "demo", "success"] {
        assert!(holds(&requests, metrics, what.as_bytes()), "no {what}");
    }
    for path in [traces, metrics] {
        assert!(!holds(&requests, path, b"hunter2"));
    }
    // The trace and span that the server received were exported.
    let parent = meta["traceparent"].as_str().unwrap();
    let ids: Vec<&str> = parent.split('-').collect();
    for id in &ids[1..3] {
        let bytes: Vec<u8> =
            (0..id.len()).step_by(2).map(|at| u8::from_str_radix(&id[at..at + 2], 16).unwrap()).collect();
        assert!(holds(&requests, traces, &bytes), "{parent}");
    }
    assert_eq!(ids[3], "01", "it is sampled");
}

#[test]
fn dropped_exporter_sends_the_rest() {
    let (address, requests) = collector();
    let export = export({
        let mut collector = Collector::for_service("agent-of-a-test");
        collector.endpoint = Some(address);
        collector
    })
    .unwrap();
    // The program's own subscriber, which holds a tracer, outlives the export.
    let layer = tracing_subscriber::registry().with(export.layer());
    let _subscriber = set_subscriber(layer);
    tracing::info_span!("last-words").in_scope(|| {});
    drop(export);
    assert!(holds(&requests, "/v1/traces", b"last-words"));
}

#[test]
fn no_trace_context_without_an_exporter() {
    assert_eq!(mcp_host_runtime::otel::current_trace(), None);
    let _subscriber = set_subscriber(tracing_subscriber::registry());
    let span = tracing::info_span!("call");
    assert_eq!(span.in_scope(mcp_host_runtime::otel::current_trace), None);
}
