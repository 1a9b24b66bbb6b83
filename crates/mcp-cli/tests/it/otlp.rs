//! `--otlp`: what a collector receives, against the attributes of OpenTelemetry's convention for MCP.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use mcp_testkit::collector::OtlpCollector;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message;

use crate::serve::INITIALIZE;
use crate::support::{HttpDemo, SHARED_DEMO, Workspace};

/// The trace that the client began.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Every attribute of the convention for a client's span of `tools/call` over HTTP: its value, or why it is absent.
const CLIENT_ATTRIBUTES: [(&str, Result<&str, &str>); 16] = [
    ("mcp.method.name", Ok("tools/call")),
    ("error.type", Err("the call succeeded")),
    ("gen_ai.operation.name", Ok("execute_tool")),
    ("gen_ai.prompt.name", Err("it is no request for a prompt")),
    ("gen_ai.tool.name", Ok("echo")),
    ("gen_ai.tool.call.arguments", Err("contents are not exported")),
    ("gen_ai.tool.call.result", Err("contents are not exported")),
    ("jsonrpc.request.id", Ok("*")),
    ("mcp.protocol.version", Ok("*")),
    ("mcp.resource.uri", Err("it is no request for a resource")),
    ("mcp.session.id", Err("the server's id of a session is a credential")),
    ("network.protocol.name", Ok("http")),
    ("network.transport", Ok("tcp")),
    ("rpc.response.status_code", Err("the call succeeded")),
    ("server.address", Ok("127.0.0.1")),
    ("server.port", Ok("*")),
];

/// The same for a server's span over standard streams.
const SERVER_ATTRIBUTES: [(&str, Result<&str, &str>); 16] = [
    ("mcp.method.name", Ok("tools/call")),
    ("error.type", Err("the call succeeded")),
    ("gen_ai.operation.name", Ok("execute_tool")),
    ("gen_ai.prompt.name", Err("it is no request for a prompt")),
    ("gen_ai.tool.name", Ok("web__echo")),
    ("gen_ai.tool.call.arguments", Err("contents are not exported")),
    ("gen_ai.tool.call.result", Err("contents are not exported")),
    ("jsonrpc.request.id", Ok("2")),
    ("mcp.protocol.version", Ok("2025-11-25")),
    ("mcp.resource.uri", Err("it is no request for a resource")),
    ("mcp.session.id", Ok("*")),
    ("network.protocol.name", Err("a pipe has no protocol of its own")),
    ("network.transport", Ok("pipe")),
    ("rpc.response.status_code", Err("the call succeeded")),
    ("client.address", Err("a pipe has no address")),
    ("client.port", Err("a pipe has no port")),
];

fn attributes(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |attribute: &KeyValue| match attribute.value.as_ref().unwrap().value.as_ref().unwrap() {
        any_value::Value::StringValue(text) => text.clone(),
        any_value::Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    attributes.iter().map(|attribute| (attribute.key.clone(), text(attribute))).collect()
}

fn spans(collector: &OtlpCollector) -> Vec<Span> {
    let bodies = collector.bodies("/v1/traces").into_iter();
    let requests = bodies.map(|body| ExportTraceServiceRequest::decode(body.as_slice()).unwrap());
    let resources = requests.flat_map(|request| request.resource_spans);
    resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
}

/// The attributes of each point of a histogram.
fn histogram(collector: &OtlpCollector, name: &str) -> Vec<BTreeMap<String, String>> {
    let bodies = collector.bodies("/v1/metrics").into_iter();
    let requests = bodies.map(|body| ExportMetricsServiceRequest::decode(body.as_slice()).unwrap());
    let resources = requests.flat_map(|request| request.resource_metrics);
    let metrics = resources.flat_map(|resource| resource.scope_metrics).flat_map(|scope| scope.metrics);
    let points = metrics.filter(|metric| metric.name == name).flat_map(|metric| match metric.data.unwrap() {
        Data::Histogram(histogram) => histogram.data_points,
        other => panic!("{other:?}"),
    });
    points.map(|point| attributes(&point.attributes)).collect()
}

#[track_caller]
fn find<'a>(spans: &'a [Span], kind: SpanKind, name: &str) -> &'a Span {
    let names = || spans.iter().map(|span| (&span.name, span.kind)).collect::<Vec<_>>();
    let span = spans.iter().find(|span| span.kind == kind as i32 && span.name == name);
    span.unwrap_or_else(|| panic!("no {kind:?} {name} in {:?}", names()))
}

#[track_caller]
fn check_attributes(span: &Span, table: &[(&str, Result<&str, &str>)]) {
    let found = attributes(&span.attributes);
    for (name, want) in table {
        match (want, found.get(*name)) {
            (Ok("*"), Some(_)) | (Err(_), None) => {}
            (Ok(want), Some(value)) => assert_eq!(value, want, "{name}"),
            (Ok(_), None) => panic!("{name} is missing in {found:?}"),
            (Err(reason), Some(value)) => panic!("{name} is {value}, although {reason}"),
        }
    }
    let known = |name: &str| name.starts_with("mcp_host.") || table.iter().any(|row| row.0 == name);
    let others: Vec<&String> = found.keys().filter(|name| !known(name)).collect();
    assert!(others.is_empty(), "not in the convention: {others:?}");
}

/// Serves a configuration over standard streams to a client that sends these messages, and returns the answers.
fn serve(workspace: &Workspace, arguments: &[&str], messages: &[&str]) -> Vec<String> {
    let mut child = workspace.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answers = Vec::new();
    for message in messages {
        writeln!(input, "{message}").unwrap();
        if message.contains("\"id\"") {
            let is_answer = |line: &String| line.contains("\"result\"") || line.contains("\"error\"");
            answers.push(lines.by_ref().map_while(Result::ok).find(is_answer).unwrap());
        }
    }
    drop(input);
    assert!(child.wait().unwrap().success());
    answers
}

#[test]
fn rpt_490_one_trace_leads_from_the_client_through_the_gateway_to_the_server() {
    let workspace = Workspace::empty();
    let demo = HttpDemo::start(&workspace);
    workspace.write("mcp.json", &format!(r#"{{"mcpServers": {{"web": {{"url": "{}"}}}}}}"#, demo.url));
    let collector = OtlpCollector::start();
    let otlp = format!("--otlp={}", collector.url);
    let trace = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let call = |id: u32, name: &str, arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","arguments":{arguments},"_meta":{{"traceparent":"{trace}","tracestate":"a=1","baggage":"k=v"}}}}}}"#
        )
    };
    let answers = serve(
        &workspace,
        &["serve", "mcp.json", "--stdio", &otlp],
        &[
            INITIALIZE,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            &call(2, "web__echo", r#"{"text":"hunter2"}"#),
            &call(3, "web__absent", "{}"),
            r#"{"jsonrpc":"2.0","id":4,"method":"no/such","params":{}}"#,
        ],
    );
    assert!(answers[1].contains("hunter2"), "{answers:?}");

    let spans = spans(&collector);
    let server = find(&spans, SpanKind::Server, "tools/call web__echo");
    let client = find(&spans, SpanKind::Client, "tools/call echo");
    check_attributes(server, &SERVER_ATTRIBUTES);
    check_attributes(client, &CLIENT_ATTRIBUTES);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(&server.trace_id), TRACE);
    assert_eq!(hex(&server.parent_span_id), "00f067aa0ba902b7");
    assert_eq!(hex(&client.trace_id), TRACE);
    assert_eq!(hex(&client.parent_span_id), hex(&server.span_id));
    assert_eq!(client.trace_state, "a=1");

    let failed = find(&spans, SpanKind::Server, "tools/call web__absent");
    let failed = attributes(&failed.attributes);
    assert_eq!(failed["error.type"], failed["rpc.response.status_code"]);
    let unknown = attributes(&find(&spans, SpanKind::Server, "(unknown)").attributes);
    assert_eq!(unknown["error.type"], "-32601");
    find(&spans, SpanKind::Client, "tools/list");

    for (name, tool) in
        [("mcp.client.operation.duration", "echo"), ("mcp.server.operation.duration", "web__echo")]
    {
        let points = histogram(&collector, name);
        let point = points.iter().find(|point| point.get("gen_ai.tool.name").is_some_and(|it| it == tool));
        let point = point.unwrap_or_else(|| panic!("{name}: {points:?}"));
        assert_eq!(point["mcp.method.name"], "tools/call");
        assert!(!point.contains_key("mcp.session.id") && !point.contains_key("error.type"), "{point:?}");
    }
    for name in ["mcp.client.session.duration", "mcp.server.session.duration"] {
        let points = histogram(&collector, name);
        assert!(points.iter().all(|point| point.contains_key("mcp.protocol.version")), "{points:?}");
        assert_eq!(points.len(), 1, "{name}");
    }
    let bodies = [collector.bodies("/v1/traces"), collector.bodies("/v1/metrics")].concat();
    assert!(bodies.iter().all(|body| !body.windows(7).any(|part| part == b"hunter2")));
}

#[test]
fn contents_are_exported_only_if_asked_for() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let collector = OtlpCollector::start();
    let otlp = format!("--otlp={}", collector.url);
    let run = workspace.run(&["call", "echo", "text=hunter2", "--otlp-contents", &otlp]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let spans = spans(&collector);
    let call = attributes(&find(&spans, SpanKind::Client, "tools/call echo").attributes);
    assert_eq!(call["gen_ai.tool.call.arguments"], r#"{"text":"hunter2"}"#);
    assert_eq!(call["gen_ai.tool.call.result"], "hunter2");
    assert_eq!(call["network.transport"], "pipe");
}

#[test]
fn missing_collector_is_a_warning_at_the_end() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let run = workspace.run(&["call", "echo", "text=a", "--otlp=http://127.0.0.1:9"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "a\n"), "{run:?}");
    assert!(run.err.contains("warning: the last traces could not be sent"), "{run:?}");
    assert!(run.err.contains("help: check that the collector of --otlp runs at its URL"), "{run:?}");
}

#[test]
fn invalid_options_are_told_before_anything_starts() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let run = workspace.run(&["tools", "--otlp=ftp://127.0.0.1"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("the URL must begin with http:// or https://"), "{run:?}");
    let run = workspace.run(&["tools", "--otlp-contents"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    let mut command = workspace.command(&["tools", "--otlp"]);
    let run = crate::support::Run::of(command.env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc").output().unwrap());
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("OTEL_EXPORTER_OTLP_PROTOCOL must be `http/protobuf`"), "{run:?}");
}
