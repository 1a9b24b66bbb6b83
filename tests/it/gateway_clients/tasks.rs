//! Tasks: clients of both eras use each method through `serve`, and a gateway that was killed loses none.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use mcp_host_model::{Endpoint, RawJson, RpcError, Task, UrlEndpoint};
use mcp_host_transport::{
    CallError, CallOptions, DialOptions, Eras, Handlers, Sampling, SamplingRequest, SamplingResult, Session,
    SessionOptions, StartedCall, TaskRequest, dialer,
};
use mcp_testkit::program::{installed_folder, root};
use serde_json::{Value, json};

use super::{Gateway, Installed, NodeServer};

const ANN: &str = "ann-0123456789abcdef";
const BOB: &str = "bob-0123456789abcdef";

/// The number of tasks of a killed gateway, and the variable with another one: `MCP_TEST_TASKS=1000 cargo xtask test`.
const TASKS: usize = 50;
const TASKS_VARIABLE: &str = "MCP_TEST_TASKS";

/// The number of concurrent requests.
const CONCURRENT: usize = 8;

/// The scripts of the servers with tasks.
const SERVER_OF_2025: &str = "task_server_2025.mjs";
const SERVER_OF_2026: &str = "task_server.mjs";

fn write(folder: &Path, servers: Value) -> String {
    let path = folder.join("mcp.json");
    std::fs::write(&path, json!({"mcpServers": servers}).to_string()).unwrap();
    path.display().to_string()
}

/// The types or statuses of events.
fn texts<'a>(events: &'a Value, pointer: &str) -> Vec<&'a str> {
    let all = events.as_array().into_iter().flatten();
    all.filter_map(|it| it.pointer(pointer)?.as_str()).collect()
}

#[test]
fn official_client_of_2025_uses_each_method_of_tasks() {
    let Some(installed) = Installed::ready() else { return };
    let Some(modules) = installed_folder("MCP_HOST_NODE_MODULES") else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = modules.join("@modelcontextprotocol/server-everything/dist/index.js");
    // This server sends requests, so it is switched to one instance per client at some time. A task stays with the
    // instance that created it.
    let everything = json!({"command": installed.node().to_str(), "args": [script, "stdio"]});
    let file = write(folder.path(), json!({"everything": everything}));
    let gateway = Gateway::start(folder.path(), &file, &[]);
    let tool = "everything__simulate-research-query";
    let research = |arguments: Value| json!([tool, arguments]);
    let scenario = json!({
        "sdk": 1,
        "url": gateway.url(),
        "run": research(json!({"topic": "ants"})),
        "ask": research(json!({"topic": "bees", "ambiguous": true})),
        "hold": research(json!({"topic": "wasps"})),
    });
    let seen = installed.script("task_client.mjs", &[&scenario.to_string()]).json();

    assert_eq!(
        seen["capabilities"]["tasks"],
        json!({"cancel": {}, "requests": {"tools": {"call": {}}}}),
        "{seen:#}"
    );
    for (events, topic) in [("finished", "ants"), ("asked", "bees")] {
        let events = &seen[events];
        let types = texts(events, "/type");
        assert_eq!((types.first(), types.last()), (Some(&"taskCreated"), Some(&"result")), "{events:#}");
        let id = events[0]["task"]["taskId"].as_str().unwrap();
        let ids = texts(events, "/task/taskId");
        assert!(id.len() > 64 && ids.iter().all(|it| *it == id), "{events:#}");
        let result = &events[types.len() - 1]["result"];
        let report = result["content"][0]["text"].as_str().unwrap();
        assert!(report.contains(&format!("Report: {topic}")), "{events:#}");
        let related = &result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"];
        assert_eq!(related, id, "{result:#}");
        assert_eq!(events[0]["task"]["ttl"], 300_000, "{events:#}");
    }
    assert_eq!(seen["inputs"].as_array().map(Vec::len), Some(1), "{seen:#}");
    let asked = &seen["asked"];
    let report = asked[asked.as_array().unwrap().len() - 1]["result"]["content"][0]["text"].as_str().unwrap();
    assert!(report.contains("bees (technical)"), "{report}");
    assert!(texts(asked, "/task/status").contains(&"input_required"), "{asked:#}");

    let id = &seen["created"]["taskId"];
    for (state, status) in
        [("created", "working"), ("held", "working"), ("cancelled", "cancelled"), ("after", "cancelled")]
    {
        assert_eq!((&seen[state]["taskId"], &seen[state]["status"]), (id, &json!(status)), "{seen:#}");
    }
    assert_eq!(
        (&seen["list"]["code"], &seen["unknown"]["code"]),
        (&json!(-32601), &json!(-32602)),
        "{seen:#}"
    );

    let own = ["finished", "asked"].map(|it| seen[it][0]["task"]["taskId"].clone());
    let notified = seen["notified"].as_array().unwrap();
    assert!(notified.iter().all(|it| own.contains(&it["taskId"]) || it["taskId"] == *id), "{notified:#?}");
    // The task took seconds, so the first of its notifications were not too late.
    assert!(notified.iter().any(|it| it["taskId"] == own[0]), "{notified:#?}");
}

#[test]
fn official_client_of_2026_uses_each_method_of_tasks() {
    let Some(installed) = Installed::ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = NodeServer::start(&installed, SERVER_OF_2026, &[]);
    // Both servers have the same resources, so the gateway adds the server to the URIs of the second.
    let endpoint = json!({"type": "http", "url": server.url});
    let file = write(folder.path(), json!({"first": endpoint, "second": endpoint}));
    let gateway = Gateway::start(folder.path(), &file, &[]);
    for (name, suffix) in [("first", ""), ("second", "#mcp-host-server=second")] {
        let scenario = json!({
            "sdk": 2,
            "url": gateway.url(),
            "run": [format!("{name}__report"), {"topic": "ants"}],
            "ask": [format!("{name}__report"), {"topic": "ants", "ask": true}],
            "hold": [format!("{name}__hold"), {}],
        });
        let seen = installed.script("task_client.mjs", &[&scenario.to_string()]).json();
        assert_eq!(seen["protocol"], "2026-07-28");
        assert_eq!(
            seen["capabilities"]["extensions"]["io.modelcontextprotocol/tasks"],
            json!({}),
            "{seen:#}"
        );
        for (run, text) in [("finished", "about ants"), ("asked", "about red ants")] {
            let run = &seen[run];
            assert_eq!((&run["kind"], &run["status"]), (&json!("task"), &json!("completed")), "{run:#}");
            assert!(run["task"]["taskId"].as_str().unwrap().len() > 64, "{run:#}");
            assert_eq!(run["task"]["retentionMs"], 600_000, "{run:#}");
            let result = &run["result"];
            assert_eq!(result["content"][0]["text"], text, "{run:#}");
            assert_eq!(result["content"][1]["uri"], format!("test://report{suffix}"), "{run:#}");
            assert_eq!(result["_meta"]["ui"]["resourceUri"], format!("ui://report{suffix}"), "{run:#}");
        }
        assert_eq!(seen["inputs"], json!(["Which ants?"]));
        assert_eq!(seen["held"]["status"], "working", "{seen:#}");
        assert_eq!(
            (&seen["cancelled"], &seen["after"]["status"]),
            (&json!("cancelled"), &json!("cancelled"))
        );
        assert_eq!(seen["held"]["taskId"], seen["after"]["taskId"]);
        let id = &seen["held"]["taskId"];
        let listened = json!({"accepted": [id], "states": [[id, "working"], [id, "cancelled"]]});
        assert_eq!(seen["listened"], listened, "{seen:#}");
        assert_eq!(
            (&seen["list"]["code"], &seen["unknown"]["code"]),
            (&json!(-32601), &json!(-32602)),
            "{seen:#}"
        );
    }
}

/// A model that gives one answer.
struct Model;

#[async_trait]
impl Sampling for Model {
    async fn sample(&self, _: SamplingRequest) -> Result<SamplingResult, RpcError> {
        Ok(SamplingResult::text("test-model", "red ants"))
    }
}

#[tokio::test]
async fn task_stays_with_its_instance_when_clients_get_their_own() {
    let Some(installed) = Installed::ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = root().join("tests/conformance").join(SERVER_OF_2025);
    let server = json!({
        "command": installed.node().to_str(),
        "args": [script, "stdio"],
        "env": {"MCP_HOST_CONFORMANCE": installed.modules},
    });
    let file = write(folder.path(), json!({"work": server}));
    let gateway = Gateway::start(folder.path(), &file, &[]);
    let connect = async || {
        let endpoint = Endpoint::Http(UrlEndpoint::new(gateway.url().parse().unwrap()));
        let dial = dialer(&endpoint, &DialOptions::default()).unwrap();
        let mut handlers = Handlers::default();
        handlers.sampling = Some(Arc::new(Model));
        let mut options = SessionOptions::default();
        options.eras = Eras::Legacy;
        options.handlers = handlers;
        Session::connect(dial, options).await.unwrap()
    };
    let (ann, bob, call) = (connect().await, connect().await, CallOptions::default());
    let first = start(&ann, 1).await;
    let other = start(&bob, 2).await;
    let asked = ann.call_tool("work__ask", &RawJson::empty_object(), call.clone()).await.unwrap().value;
    assert_eq!(asked.text(), "red ants");
    // From now on each client has its own instance, without the tasks of the shared one.
    let mut later = start(&ann, 3).await;
    while gateway.servers() < 2 {
        later = start(&ann, 3).await;
    }
    for (client, task, number) in [(&ann, &first, 1), (&bob, &other, 2), (&ann, &later, 3)] {
        assert_eq!(client.get_task(&task.id, &call).await.unwrap().id, task.id);
        let text = client.task_result(task, &call).await.unwrap().value.text();
        assert!(text.contains(&format!("subject {number}.")), "{text}");
    }
    assert_eq!(gateway.servers(), 2);
}

/// A client with this token.
async fn client(gateway: &Gateway, token: &str, eras: Eras) -> Session {
    let mut endpoint = UrlEndpoint::new(gateway.url().parse().unwrap());
    endpoint.headers.push(("Authorization".to_owned(), format!("Bearer {token}").as_str().into()));
    let dial = dialer(&Endpoint::Http(endpoint), &DialOptions::default()).unwrap();
    let mut options = SessionOptions::default();
    options.eras = eras;
    Session::connect(dial, options).await.unwrap()
}

async fn start(client: &Session, number: usize) -> Task {
    let arguments = RawJson::from_value(&json!({"topic": format!("subject {number}.")})).unwrap();
    // A server of 2026-07-28 decides itself.
    let mut options = CallOptions::default();
    options.task = Some(TaskRequest::default());
    match client.start_tool_call("work__report", &arguments, options).await.unwrap().value {
        StartedCall::Task(task) => task,
        StartedCall::Complete(result) => panic!("{}", result.text()),
    }
}

fn is_refused(outcome: Result<(), CallError>) -> bool {
    matches!(&outcome, Err(CallError::Rpc(error)) if error.code == -32602)
}

/// The results of an operation on each task, a few at a time.
async fn for_each<T, U>(items: &[T], operation: impl AsyncFn(&T) -> U) -> Vec<U> {
    let mut res = Vec::new();
    for some in items.chunks(CONCURRENT) {
        res.extend(futures_util::future::join_all(some.iter().map(|item| operation(item))).await);
    }
    res
}

#[tokio::test]
async fn killed_gateway_loses_no_task_of_2025_and_gives_none_to_another_client() {
    kill_gateway_with_tasks(SERVER_OF_2025, Eras::Legacy).await;
}

#[tokio::test]
async fn killed_gateway_loses_no_task_of_2026_and_gives_none_to_another_client() {
    kill_gateway_with_tasks(SERVER_OF_2026, Eras::Modern).await;
}

/// Ann starts tasks and redeems them after the gateway was killed and restarted; bob gets none.
#[expect(clippy::print_stderr, reason = "a run prints its counts")]
async fn kill_gateway_with_tasks(script: &str, eras: Eras) {
    let Some(installed) = Installed::ready() else { return };
    let count = std::env::var(TASKS_VARIABLE).map_or(TASKS, |it| it.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let server = NodeServer::start(&installed, script, &[]);
    let file = write(folder.path(), json!({"work": {"type": "http", "url": server.url}}));
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, format!("{ANN} name=ann\n{BOB} name=bob\n")).unwrap();
    std::fs::set_permissions(&tokens, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let tokens = tokens.display().to_string();
    let options = ["--token-file", tokens.as_str()];

    let mut killed = Gateway::start(folder.path(), &file, &options);
    let ann = client(&killed, ANN, eras).await;
    let tasks = for_each(&(0..count).collect::<Vec<_>>(), async |number| start(&ann, *number).await).await;
    // SIGKILL.
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();

    let restarted = Gateway::start(folder.path(), &file, &options);
    let call = CallOptions::default();
    let bob = client(&restarted, BOB, eras).await;
    let refused = for_each(&tasks, async |task| {
        let got = bob.get_task(&task.id, &call).await.map(drop);
        is_refused(got) && is_refused(bob.cancel_task(&task.id, &call).await)
    });
    let refused = refused.await.into_iter().filter(|it| *it).count();
    let ann = client(&restarted, ANN, eras).await;
    let results =
        for_each(&tasks, async |task| ann.task_result(task, &call).await.unwrap().value.text()).await;
    let is_own = |(number, text): &(usize, &String)| text.contains(&format!("subject {number}."));
    let redeemed = results.iter().enumerate().filter(is_own).count();
    eprintln!(
        "{script}: {} tasks, {redeemed} redeemed, {} given to another client",
        tasks.len(),
        count - refused
    );
    assert_eq!((redeemed, refused), (count, count), "redeemed, and refused to another client: {script}");
}
