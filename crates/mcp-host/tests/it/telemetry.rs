//! Telemetry of a host: spans, metrics, and the trace context that servers receive. It contains no message
//! content.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_host_model::{RawJson, Sharing, TraceContext};
use mcp_host_runtime::{
    DesiredServers, DialogId, HostOptions, NotificationStreamItem, Supervision, ToolCall,
};
use mcp_testkit::servers::configured_server;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::fixture::{HostFixture, TestSubscriber, set_subscriber, supervision, text_or_error};
use crate::scripted_server::{ScriptedServer, StartBehavior};

/// A layer that records every span with its fields, and every event as text.
#[derive(Clone, Default)]
struct Seen {
    spans: Arc<Mutex<BTreeMap<u64, (&'static str, Fields)>>>,
    events: Arc<Mutex<Vec<String>>>,
}

#[derive(Default, Clone, Debug)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl<S: Subscriber> Layer<S> for Seen {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        self.spans.lock().unwrap().insert(id.into_u64(), (attributes.metadata().name(), fields));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut spans = self.spans.lock().unwrap();
        values.record(&mut spans.get_mut(&id.into_u64()).unwrap().1);
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.events.lock().unwrap().push(format!("{fields:?}"));
    }
}

/// A layer that moves each span here when it closes, because ids of spans are reused.
#[derive(Clone, Default)]
struct Closed {
    open: Seen,
    spans: Arc<Mutex<Vec<(&'static str, Fields)>>>,
}

impl<S: Subscriber> Layer<S> for Closed {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        self.open.on_new_span(attributes, id, context);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        self.open.on_record(id, values, context);
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        self.open.on_event(event, context);
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        let span = self.open.spans.lock().unwrap().remove(&id.into_u64()).unwrap();
        self.spans.lock().unwrap().push(span);
    }
}

impl Closed {
    /// Returns `name=value` for these fields of each closed span with this name. A field that ends with `?` is
    /// listed without its value.
    fn lines(&self, name: &str, fields: &[&str]) -> Vec<String> {
        let spans = self.spans.lock().unwrap();
        let line = |it: &Fields| {
            let shown = fields.iter().map(|field| match it.0.get(field.trim_end_matches('?')) {
                Some(_) if field.ends_with('?') => (*field).to_owned(),
                Some(value) => format!("{field}={value}"),
                None => format!("no {field}"),
            });
            shown.collect::<Vec<_>>().join(" ")
        };
        spans.iter().filter(|it| it.0 == name).map(|it| line(&it.1)).collect()
    }

    fn everything(&self) -> String {
        format!("{:?} {:?}", self.spans.lock().unwrap(), self.open.events.lock().unwrap())
    }
}

fn collect() -> (Closed, TestSubscriber) {
    let closed = Closed::default();
    let subscriber = tracing_subscriber::registry().with(closed.clone());
    let guard = set_subscriber(subscriber);
    (closed, guard)
}

#[tokio::test(start_paused = true)]
async fn connections_lists_and_calls_are_spans_without_content() {
    let (seen, _guard) = collect();
    let bad = ScriptedServer::starting(StartBehavior::NotFound);
    let good = ScriptedServer::new(&["echo", "fail", "hang"]);
    let fixture = HostFixture::running(&[("a", good), ("b", bad)]).await;
    fixture.call("a__echo", r#"{"password":"hunter2"}"#).await;
    fixture.call("a__fail", "{}").await;
    fixture.call("nowhere-hunter2", "{}").await;
    let late = tokio::time::timeout(Duration::from_secs(1), fixture.call("a__hang", "{}")).await;
    assert!(late.is_err());
    fixture.host.shutdown().await;
    let mut connects = seen.lines("connect", &["server", "transport", "outcome", "era", "duration?"]);
    connects.sort();
    assert_eq!(
        connects,
        [
            "server=a transport=stdio outcome=success era=legacy duration?",
            "server=b transport=stdio outcome=MCPConnectionError no era duration?"
        ]
    );
    let lists = seen.lines("list", &["server", "list", "outcome", "items", "bytes?", "duration?"]);
    assert!(
        lists.contains(&"server=a list=tool outcome=success items=3 bytes? duration?".to_owned()),
        "{lists:?}"
    );
    let calls = seen.lines("call", &["server", "tool", "outcome", "bytes", "duration?"]);
    assert_eq!(
        calls,
        [
            "server=a tool=echo outcome=success bytes=22 duration?",
            "server=a tool=fail outcome=MCPToolError bytes=7 duration?",
            "no server no tool outcome=MCPToolNotFoundError no bytes duration?",
            "server=a tool=hang outcome=cancelled no bytes duration?",
        ]
    );
    let everything = seen.everything();
    assert!(everything.contains("called") && !everything.contains("hunter2"), "{everything}");
}

#[tokio::test(start_paused = true)]
async fn dropped_call_has_the_outcome_cancelled() {
    let (seen, _guard) = collect();
    let (listless, silent) = (ScriptedServer::new(&["t"]), ScriptedServer::starting(StartBehavior::Silent));
    listless.silent_methods.lock().unwrap().push("tools/list");
    let asked = ScriptedServer::new(&["t"]);
    *asked.prompts.lock().unwrap() = Some(vec![json!({"name": "p"})]);
    asked.silent_methods.lock().unwrap().push("prompts/get");
    let fixture = HostFixture::new(&[("a", asked), ("b", listless), ("c", silent)]);
    fixture.apply(vec![configured_server("a"), configured_server("b"), configured_server("c")]).await;
    let ask = async {
        fixture
            .host
            .get_prompt("p", &RawJson::empty_object(), mcp_host_runtime::RequestOptions::default())
            .await
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(tokio::time::timeout(Duration::from_secs(1), ask).await.is_err());
    fixture.host.shutdown().await;
    let asks = seen.lines("request", &["method", "server", "outcome", "duration?"]);
    assert_eq!(asks, ["method=prompts/get server=a outcome=cancelled duration?"]);
    let mut connects = seen.lines("connect", &["server", "outcome", "duration?"]);
    connects.sort();
    assert_eq!(
        connects[1..],
        ["server=b outcome=cancelled duration?", "server=c outcome=cancelled duration?"]
    );
    let lists = seen.lines("list", &["server", "list", "outcome", "duration?"]);
    assert!(lists.contains(&"server=b list=tool outcome=cancelled duration?".to_owned()), "{lists:?}");
}

/// Returns all metrics as sorted lines `name{label=value} value`. For durations, the value is their number.
fn counted(snapshotter: &Snapshotter) -> Vec<String> {
    let all = snapshotter.snapshot().into_vec().into_iter().map(|(key, unit, text, value)| {
        assert!(unit.is_some() && text.is_some(), "{key:?} is not described");
        let (_, key) = key.into_parts();
        let labels: Vec<String> = key.labels().map(|it| format!("{}={}", it.key(), it.value())).collect();
        let value = match value {
            DebugValue::Counter(it) => it.to_string(),
            DebugValue::Gauge(it) => it.to_string(),
            DebugValue::Histogram(it) => format!("{} times", it.len()),
        };
        format!("{}{{{}}} {value}", key.name().trim_start_matches("mcp_host_"), labels.join(","))
    });
    let mut res: Vec<String> = all.collect();
    res.sort();
    res
}

#[tokio::test(start_paused = true)]
async fn metrics_are_documented_and_consistent() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    mcp_host_runtime::metrics::describe();
    let folder = tempfile::tempdir().unwrap();
    let spill = Some(mcp_host_runtime::SpillPolicy::in_directory(folder.path()));
    let mut options = HostOptions::default();
    options.supervision = supervision();
    options.spill = spill;
    let peers = [("a", ScriptedServer::new(&["echo", "fail", "big"])), ("b", ScriptedServer::new(&["t"]))];
    let fixture = HostFixture::with(&peers, options);
    let mut own = configured_server("b");
    own.spec.sharing = Sharing::PerOwner;
    fixture.apply(vec![configured_server("a"), own]).await;
    fixture.host.wait_until_ready().await;
    fixture.call("echo", "{}").await;
    fixture.call("fail", "{}").await;
    fixture.call("big", "{}").await;
    fixture.call("nobody", "{}").await;
    let dialog = fixture.host.dialog(DialogId::new("d"));
    assert!(dialog.call(ToolCall::new("b__t", RawJson::empty_object())).await.success);
    assert_eq!(
        counted(&snapshotter),
        [
            "call_duration_seconds{server=(none),outcome=MCPToolNotFoundError} 1 times",
            "call_duration_seconds{server=a,outcome=MCPToolError} 1 times",
            "call_duration_seconds{server=a,outcome=success} 2 times",
            "call_duration_seconds{server=b,outcome=success} 1 times",
            "calls_total{server=(none),outcome=MCPToolNotFoundError} 1",
            "calls_total{server=a,outcome=MCPToolError} 1",
            "calls_total{server=a,outcome=success} 2",
            "calls_total{server=b,outcome=success} 1",
            "cut_results_total{server=a} 1",
            "failures_total{server=(none),operation=call,kind=MCPToolNotFoundError} 1",
            "failures_total{server=a,operation=call,kind=MCPToolError} 1",
            &format!("generation{{}} {}", fixture.host.snapshot().generation),
            "leases{} 1",
            "mcp.client.session.duration{network.transport=pipe,mcp.protocol.version=2025-11-25} 1 times",
            "reloads_total{outcome=taken} 1",
            "running_instances{server=a} 1",
            "running_instances{server=b} 1",
            "spills_total{server=a} 1",
        ]
    );
    // The server is lost and restarted.
    let mut events = fixture.host.events();
    fixture.peer("a").disconnect();
    while let Some(NotificationStreamItem::Notification(event)) = events.next().await
        && !matches!(event.kind, mcp_host_runtime::HostEventKind::Ready { .. })
    {}
    drop(dialog);
    fixture.host.shutdown().await;
    let after = counted(&snapshotter);
    assert!(after.contains(&"restarts_total{server=a} 1".to_owned()), "{after:?}");
    // Gauges are relative to the last snapshot: all instances and leases have ended since.
    for gone in ["running_instances{server=a} -1", "running_instances{server=b} -1", "leases{} -1"] {
        assert!(after.contains(&gone.to_owned()), "{gone}: {after:?}");
    }
    // Every metric is declared in the one module.
    let page = include_str!("../../src/telemetry/metrics.rs");
    for line in &after {
        let name = line.split_once('{').unwrap().0;
        let is_declared = |name: String| page.contains(&format!("\"{name}\""));
        assert!(is_declared(format!("mcp_host_{name}")) || is_declared(name.to_owned()), "{name}");
    }
}

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[tokio::test(start_paused = true)]
async fn server_receives_the_trace_context_of_a_call() {
    let peers = [("a", ScriptedServer::new(&["meta"]))];
    let untraced = HostFixture::with(&peers, {
        let mut res = HostOptions::default();
        res.telemetry.trace = None;
        res
    })
    .started()
    .await;
    assert_eq!(text_or_error(&untraced.call("meta", "{}").await), "null");
    let state = Some("vendor=1");
    let source = Arc::new(move || TraceContext::parse(PARENT, state).ok());
    let fixture = HostFixture::with(&peers, {
        let mut res = HostOptions::default();
        res.telemetry.trace = Some(source);
        res
    });
    let fixture = fixture.started().await;
    let want = json!({"traceparent": PARENT, "tracestate": "vendor=1"}).to_string();
    assert_eq!(text_or_error(&fixture.call("meta", "{}").await), want);
    // The trace context of the call takes precedence.
    let own = PARENT.replace("-01", "-00");
    let trace = TraceContext::parse(&own, None).ok();
    let mut call = ToolCall::new("meta", RawJson::empty_object());
    call.options.context.trace = trace;
    assert_eq!(text_or_error(&fixture.host.call(call).await), json!({"traceparent": own}).to_string());
}

#[test]
fn no_public_value_prints_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mcp.json");
    let servers = json!({"mcpServers": {
        "a": {"command": "npx", "args": ["--token", "hunter2"], "env": {"KEY": "hunter2"}},
        "b": {"type": "http", "url": "https://u:hunter2@h/p?k=hunter2", "headers": {"Authorization": "hunter2"}},
        "c": {"command": 7, "env": {"KEY": "hunter2"}},
    }});
    std::fs::write(&file, servers.to_string()).unwrap();
    let loaded = mcp_host_runtime::load(&mcp_host_runtime::LoadRequest::new(&file)).unwrap();
    assert!(loaded.text.contains("hunter2") && loaded.desired.servers.len() >= 2);
    let printed = format!("{loaded:?} {:#?}", loaded.desired);
    assert!(printed.contains("***") && !printed.contains("hunter2"), "{printed}");
    let arguments = RawJson::parse(r#"{"k":"hunter2"}"#.into()).unwrap();
    let mut call = ToolCall::new("t", arguments);
    call.options.dialog = Some(DialogId::new("d"));
    let printed = format!("{call:?}");
    assert!(printed.contains("\"t\"") && !printed.contains("hunter2"), "{printed}");
}

#[tokio::test(start_paused = true)]
async fn published_values_print_no_secret() {
    let peer = ScriptedServer::new(&["t"]);
    *peer.error_message.lock().unwrap() = "no".to_owned();
    let fixture = HostFixture::with(&[("a", peer)], {
        let mut options = HostOptions::default();
        options.supervision = Supervision::Off;
        options
    });
    let mut secret = configured_server("a");
    if let mcp_host_model::Endpoint::Stdio(endpoint) = &mut secret.endpoint {
        endpoint.args.push("hunter2".into());
        endpoint.env.push(("KEY".to_owned(), "hunter2".into()));
    }
    let mut events = fixture.host.events();
    let wanted = DesiredServers::new(vec![secret]);
    let printed = format!("{wanted:?}");
    fixture.host.apply(wanted).await;
    fixture.host.wait_until_ready().await;
    let published = fixture.host.snapshot();
    let event = events.next().await.unwrap();
    let printed = format!(
        "{printed} {published:?} {event:?} {:?} {:?} {:?}",
        fixture.host,
        fixture.host.pin(),
        fixture.host.dialog(DialogId::new("d"))
    );
    assert!(!printed.contains("hunter2"), "{printed}");
}
