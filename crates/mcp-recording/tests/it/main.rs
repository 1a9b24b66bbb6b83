//! Recording and replaying sessions: against the demo server, and proxy real processes.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

mod example;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use mcp_host_demo::HttpServer;
use mcp_host_model::{Endpoint, Era, RawJson, RpcError, Secret, ToolResult, UrlEndpoint};
use mcp_host_recording::{Recorder, Recording, RecordingProxy, Replayer, endpoint_secrets, serve};
use mcp_host_transport::{
    CallError, CallOptions, Dial, DialOptions, ElicitMode, ElicitRequest, ElicitResult, Elicitation, Eras,
    Handlers, OnProgress, Session, SessionOptions, dialer,
};
use mcp_testkit::servers::shell_server;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

/// Accepts forms and declines pages.
struct User(&'static [ElicitMode]);

#[async_trait]
impl Elicitation for User {
    fn modes(&self) -> &[ElicitMode] {
        self.0
    }

    async fn elicit(&self, request: ElicitRequest) -> Result<ElicitResult, RpcError> {
        Ok(match request.mode() {
            ElicitMode::Form => {
                ElicitResult::Accept(Some(RawJson::from_value(&json!({"said": request.message})).unwrap()))
            }
            _ => ElicitResult::Decline,
        })
    }
}

/// The results of a session that its replay must repeat.
#[derive(Debug, Default, PartialEq)]
struct SessionOutcome {
    tools: Vec<Vec<String>>,
    results: Vec<Result<ToolResult, String>>,
    progress: Vec<String>,
}

/// The calls of a session: tool and arguments.
const CALLS: [(&str, &str); 8] = [
    ("echo", r#"{"text":"hello"}"#),
    ("echo", r#"{"text":"again"}"#),
    ("add", r#"{"a":2,"b":3}"#),
    ("sleep", r#"{"ms":20,"steps":2}"#),
    ("mixed", "{}"),
    ("fail", r#"{"message":"no milk"}"#),
    ("ask", r#"{"question":"who?"}"#),
    ("nothing", "{}"),
];

fn options(eras: Eras) -> SessionOptions {
    let elicitation: Arc<User> = Arc::new(User(&[ElicitMode::Form]));
    let mut handlers = Handlers::default();
    handlers.elicitation = Some(elicitation);
    let mut options = SessionOptions::default();
    options.eras = eras;
    options.handlers = handlers;
    options
}

/// Runs a session with all calls and a change of the tools.
async fn use_session(dial: Arc<dyn Dial>, eras: Eras) -> SessionOutcome {
    let session = Session::connect(dial, options(eras)).await.unwrap();
    let mut outcome = SessionOutcome::default();
    let names = async || -> Vec<String> {
        let listing = session.list_tools().await.unwrap();
        listing.items.iter().map(|item| item.name.to_string()).collect()
    };
    outcome.tools.push(names().await);
    for (tool, arguments) in CALLS {
        let progress = Arc::new(Mutex::new(Vec::new()));
        let received = Arc::clone(&progress);
        let on_progress: OnProgress =
            Arc::new(move |it| received.lock().unwrap().push(format!("{tool} {}", it.progress)));
        let mut options = CallOptions::default();
        options.context.progress = Some(on_progress);
        let arguments = RawJson::parse(arguments.into()).unwrap();
        let result = session.call_tool(tool, &arguments, options).await;
        outcome.results.push(result.map(|it| it.value).map_err(|error| error.to_string()));
        outcome.progress.extend(progress.lock().unwrap().drain(..));
    }
    let arguments = RawJson::parse(r#"{"name":"extra"}"#.into()).unwrap();
    let mut changes = session.list_changes();
    let before = changes.borrow_and_update().tools;
    session.call_tool("change_tools", &arguments, CallOptions::default()).await.unwrap();
    // In a legacy session over HTTP, the notification may arrive after the response.
    let _ = changes.wait_for(|it| it.tools != before).await;
    outcome.tools.push(names().await);
    session.close(std::time::Duration::from_secs(2)).await;
    outcome
}

/// Starts the demo server. Returns the endpoint that `url` selects, and the task of the server.
async fn start_demo(url: impl Fn(&HttpServer) -> Endpoint) -> (Endpoint, tokio::task::JoinHandle<()>) {
    let server = HttpServer::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let endpoint = url(&server);
    let serving = tokio::spawn(async move {
        let _ = server.serve(std::future::pending::<()>()).await;
    });
    (endpoint, serving)
}

/// Checks that a replay of a recorded session has the same results.
async fn check(endpoint: Endpoint, eras: Eras, era: Era) {
    let recorder = Recorder::default();
    let dial = dialer(&endpoint, &DialOptions::default()).unwrap();
    let real = use_session(recorder.wrap("demo", dial, &endpoint_secrets(&endpoint)), eras).await;
    assert_eq!(real.progress, ["sleep 1", "sleep 2"]);
    let text = recorder.recording().to_text();
    let recording = Recording::parse(&text).unwrap();
    assert_eq!(recording.to_text(), text);
    let recording_text = recording.server("demo").unwrap();
    assert_eq!(recording_text.version.map(|server| server.era()), Some(era), "{text}");
    // Twice, because each connection starts at the beginning of the recording.
    for _ in 0..2 {
        assert_eq!(use_session(recording_text.dialer(), eras).await, real, "{text}");
    }
}

fn http(server: &HttpServer) -> Endpoint {
    Endpoint::Http(UrlEndpoint::new(server.url().parse().unwrap()))
}

#[tokio::test]
async fn session_replays_identically_in_both_eras_and_over_all_transports() {
    let endpoints: [fn(&HttpServer) -> Endpoint; 3] = [
        http,
        |it| Endpoint::Sse(UrlEndpoint::new(it.sse_url().parse().unwrap())),
        |it| Endpoint::WebSocket(UrlEndpoint::new(it.websocket_url().parse().unwrap())),
    ];
    for endpoint_of in endpoints {
        for (eras, era) in [(Eras::Modern, Era::Modern), (Eras::Legacy, Era::Legacy)] {
            let (endpoint, serving) = start_demo(endpoint_of).await;
            if era == Era::Modern && matches!(endpoint, Endpoint::Sse(_)) {
                continue;
            }
            check(endpoint, eras, era).await;
            serving.abort();
        }
    }
}

/// Two recordings of the same session are the same text.
#[tokio::test]
async fn recording_has_no_times_and_no_ids() {
    let mut texts = Vec::new();
    for before in [0, 3] {
        let (endpoint, serving) = start_demo(http).await;
        let recorder = Recorder::default();
        let dial = dialer(&endpoint, &DialOptions::default()).unwrap();
        let session =
            Session::connect(recorder.wrap("demo", dial, &[]), options(Eras::Legacy)).await.unwrap();
        // Other ids, and the same requests.
        for _ in 0..before {
            session.ping(CallOptions::default()).await.unwrap();
        }
        let arguments = RawJson::parse(r#"{"ms":1,"steps":1}"#.into()).unwrap();
        let progress: OnProgress = Arc::new(|_| {});
        let mut options = CallOptions::default();
        options.context.progress = Some(progress);
        session.call_tool("sleep", &arguments, options).await.unwrap();
        let text = recorder.recording().to_text();
        texts.push(text.lines().filter(|line| !line.contains("\"ping\"")).collect::<Vec<_>>().join("\n"));
        serving.abort();
    }
    assert_eq!(texts[0], texts[1]);
}

fn recording_text(lines: &[Value]) -> String {
    let head = [json!({"format": "mcp-recording", "version": 1}), json!({"server": "s"})];
    head.iter().chain(lines).map(|it| format!("{it}\n")).collect()
}

fn replayer(lines: &[Value]) -> Replayer {
    Replayer::new(Arc::clone(&Recording::parse(&recording_text(lines)).unwrap().servers()[0]))
}

/// Checks the messages that are replayed for each message of a client.
#[track_caller]
fn check_replay(lines: &[Value], messages: &[(Value, &[Value])]) {
    let mut replayer = replayer(lines);
    for (message, want) in messages {
        let replayed: Vec<Value> = replayer
            .receive(message.to_string().as_bytes())
            .iter()
            .map(|error| serde_json::from_slice(&error.message).unwrap())
            .collect();
        assert_eq!(replayed, *want, "{message}");
    }
}

fn call(id: u64, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

fn result(id: u64, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

#[test]
fn equal_requests_get_recorded_responses_in_order() {
    let params = json!({"name": "t", "arguments": {"a": 1, "b": 2}});
    let lines = [
        json!({"method": "tools/call", "params": params, "result": 1}),
        json!({"method": "tools/call", "params": {"name": "u"}, "result": "u"}),
        json!({"method": "tools/call", "params": params, "error": {"code": 2, "message": "two"}}),
    ];
    let same = json!({"arguments": {"b": 2.0, "a": 1}, "name": "t", "_meta": {"progressToken": "x"}});
    let two = |id| json!({"jsonrpc": "2.0", "id": id, "error": {"code": 2, "message": "two"}});
    check_replay(
        &lines,
        &[
            (call(7, params), &[result(7, json!(1))]),
            (call(8, same.clone()), &[two(8)]),
            (call(9, same), &[two(9)]),
            (call(1, json!({"name": "u"})), &[result(1, json!("u"))]),
        ],
    );
}

#[test]
fn notifications_and_server_requests_are_replayed() {
    let progress = |token: Value| json!({"progressToken": token, "progress": 1});
    let lines = [json!({
        "method": "tools/call",
        "params": {"name": "t"},
        "said": [
            {"notification": "notifications/progress", "params": progress(json!(0))},
            {"request": "roots/list"},
            {"notification": "notifications/message", "params": {"level": "info", "data": "x"}},
        ],
        "result": {},
        "after": [{"notification": "notifications/tools/list_changed"}],
    })];
    let message = |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
    let asked = json!({"jsonrpc": "2.0", "id": "replay-1", "method": "roots/list"});
    let log = message("notifications/message", json!({"level": "info", "data": "x"}));
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let with_token = json!({"name": "t", "_meta": {"progressToken": "mine"}});
    check_replay(
        &lines,
        &[
            (
                call(1, with_token.clone()),
                &[message("notifications/progress", progress(json!("mine"))), asked],
            ),
            (
                json!({"jsonrpc": "2.0", "id": "replay-1", "error": {"code": 1, "message": "no"}}),
                &[log, result(1, json!({})), changed],
            ),
            // This request does not ask for progress.
            (
                call(2, json!({"name": "t"})),
                &[json!({"jsonrpc": "2.0", "id": "replay-2", "method": "roots/list"})],
            ),
            (message("notifications/cancelled", json!({"requestId": 2})), &[]),
            (json!({"jsonrpc": "2.0", "id": "replay-2", "result": {}}), &[]),
        ],
    );
}

#[test]
fn unrecorded_request_lists_the_recorded_ones() {
    let lines = [
        json!({"method": "tools/call", "params": {"name": "add", "arguments": {"a": 1}}, "result": {}}),
        json!({"method": "tools/call", "params": {"name": "echo", "arguments": {"text": "a"}}, "result": {}}),
        json!({"method": "tools/list", "result": {}}),
    ];
    let error = |id: u64, code: i64, message: &str| {
        json!({"jsonrpc": "2.0", "id": id,
        "error": {"code": code, "message": message}})
    };
    check_replay(
        &lines,
        &[
            (
                call(1, json!({"name": "echo", "arguments": {"text": "b"}})),
                &[error(
                    1,
                    -32602,
                    r#"the recording of `s` does not contain this request: tools/call {"arguments":{"text":"b"},"name":"echo"}; the most similar one is: tools/call {"arguments":{"text":"a"},"name":"echo"}"#,
                )],
            ),
            (
                json!({"jsonrpc": "2.0", "id": 2, "method": "prompts/list", "params": {}}),
                &[error(
                    2,
                    -32601,
                    "the recording of `s` does not contain this request: prompts/list; it contains requests of these \
                    methods: tools/call, tools/list",
                )],
            ),
            (json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}), &[result(3, json!({}))]),
            (json!("no message"), &[]),
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn unanswered_call_stays_unanswered() {
    let text = recording_text(&[
        json!({"method": "initialize", "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"}}}),
        json!({"method": "tools/call", "params": {"name": "t", "arguments": {}}}),
    ]);
    let recording = Recording::parse(&text).unwrap();
    let session = Session::connect(recording.servers()[0].dialer(), SessionOptions::default()).await.unwrap();
    let error = session.call_tool("t", &RawJson::empty_object(), CallOptions::default()).await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
}

#[tokio::test]
async fn hd_sc5_recording_contains_no_secret_of_a_server() {
    const TOKEN: &str = "sk-live-9876543210";
    let mut endpoint = shell_server(r#"text "$id" "env $SECRET, arg $1, url postgres://me:pa55word@db""#);
    endpoint.env.push(("SECRET".to_owned(), Secret::new(TOKEN)));
    endpoint.env.push(("DATABASE".to_owned(), Secret::new("postgres://me:pa55word@db/x")));
    endpoint.args.push(Secret::new("server"));
    endpoint.args.push(Secret::new("--key=argument-key-1"));
    let endpoint = Endpoint::Stdio(endpoint);
    let recorder = Recorder::default();
    let dial = dialer(&endpoint, &DialOptions::default()).unwrap();
    let session =
        Session::connect(recorder.wrap("s", dial, &endpoint_secrets(&endpoint)), SessionOptions::default())
            .await
            .unwrap();
    // A caller may hand it on as well.
    let arguments = RawJson::from_value(&json!({"key": TOKEN, "other": "argument-key-1"})).unwrap();
    let answer = session.call_tool("t", &arguments, CallOptions::default()).await.unwrap();
    assert!(answer.value.text().contains(TOKEN), "what crosses the wire is not changed: {answer:?}");
    session.close(std::time::Duration::from_secs(2)).await;
    let text = recorder.recording().to_text();
    for secret in [TOKEN, "pa55word", "argument-key-1"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert!(text.contains(r#""params":{"arguments":{"key":"***","other":"***"},"name":"t"}"#), "{text}");
}

/// A server that returns an environment variable, with unusual whitespace and other output.
const UNUSUAL_SERVER: &str = r#"
printf 'starting up\r\n\n'
while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  printf '  { "result" : {"content":[{"text":"%s","type":"text"}]},\t"jsonrpc":"2.0","id":%s }\r\n' "$SECRET" "$id"
done
printf 'half a line'
"#;

#[tokio::test]
async fn proxy_passes_bytes_unchanged() {
    let recorder = Recorder::default();
    let proxy = {
        let mut proxy = RecordingProxy::new("odd", "env");
        proxy.arguments = ["SECRET=proxied-secret-1", "sh", "-c", UNUSUAL_SERVER].map(Secret::from).into();
        proxy
    };
    let (mut client, ours) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let client = async {
        client
            .write_all(
                b"{\"jsonrpc\":\"2.0\", \"id\":5,\"method\":\"tools/call\",\"params\":{\"name\":\"t\"}}\n",
            )
            .await
            .unwrap();
        let (mut read, mut write) = tokio::io::split(client);
        let mut text = String::new();
        let mut lines = BufReader::new(&mut read);
        while !text.contains("result") {
            lines.read_line(&mut text).await.unwrap();
        }
        write.shutdown().await.unwrap();
        lines.read_to_string(&mut text).await.unwrap();
        text
    };
    let run = proxy.run(&recorder, reader, writer, std::future::pending());
    let (status, received) = tokio::join!(run, client);
    assert!(status.unwrap().success());
    assert_eq!(
        received,
        "starting up\r\n\n  { \"result\" : {\"content\":[{\"text\":\"proxied-secret-1\",\"type\":\"text\"}]},\t\"jsonrpc\":\"2.0\",\"id\":5 }\r\nhalf a line"
    );
    let want = [
        r#"{"format":"mcp-recording","version":1}"#,
        r#"{"server":"odd","era":null,"protocol":null}"#,
        r#"{"method":"tools/call","params":{"name":"t"},"result":{"content":[{"text":"***","type":"text"}]}}"#,
        "",
    ];
    assert_eq!(recorder.recording().to_text(), want.join("\n"));
}

#[tokio::test]
async fn server_that_does_not_exit_is_killed() {
    let recorder = Recorder::default();
    let mut proxy = RecordingProxy::new("stays", "sh");
    proxy.arguments = ["-c", "trap '' TERM; while :; do sleep 1; done"].map(Secret::from).into();
    let status = proxy.run(&recorder, tokio::io::empty(), tokio::io::sink(), std::future::ready(())).await;
    assert!(!status.unwrap().success());
}

#[tokio::test]
async fn missing_program_is_named() {
    let proxy = RecordingProxy::new("s", "/no/such/program");
    let recorder = Recorder::default();
    let run = proxy.run(&recorder, tokio::io::empty(), tokio::io::sink(), std::future::pending());
    let error = run.await.unwrap_err();
    assert_eq!(error.to_string(), "could not start /no/such/program");
}

#[tokio::test]
async fn recording_is_served_over_stdio() {
    let text =
        recording_text(&[json!({"method": "ping", "result": {}}), json!({"method": "x", "result": 7})]);
    let recording_text = Arc::clone(&Recording::parse(&text).unwrap().servers()[0]);
    let requests = b"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"x\"}\r\nnoise\n\
        {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}";
    let mut output = Vec::new();
    serve(recording_text, &requests[..], &mut output).await.unwrap();
    assert_eq!(
        String::from_utf8(output).unwrap(),
        "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":7}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n"
    );
}
