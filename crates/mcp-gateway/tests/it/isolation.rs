//! Clients stay isolated: roots, questions and answers of one client reach no other, whatever the other does.

use std::sync::Arc;
use std::sync::Mutex;

use async_trait::async_trait;
use mcp_host_gateway::{GatewayOptions, HttpOptions};
use mcp_host_model::{RawJson, RpcError, Sharing};
use mcp_host_transport::{
    CallOptions, ElicitMode, ElicitRequest, ElicitResult, Elicitation, Eras, Handlers, Root, Roots, Sampling,
    SamplingRequest, SamplingResult, Session, SessionOptions,
};
use serde_json::Value;

use crate::support::{TestGateway, modern, server};

/// The handlers of a client: each answers with the name of the client and records the message of the request.
struct Person {
    name: &'static str,
    asked: Mutex<Vec<String>>,
    folder: Mutex<String>,
}

#[async_trait]
impl Elicitation for Person {
    fn modes(&self) -> &[ElicitMode] {
        &[ElicitMode::Form]
    }

    async fn elicit(&self, request: ElicitRequest) -> Result<ElicitResult, RpcError> {
        self.asked.lock().unwrap().push(request.message);
        let answer = RawJson::parse(format!(r#"{{"by":"{}"}}"#, self.name).into()).unwrap();
        Ok(ElicitResult::Accept(Some(answer)))
    }
}

#[async_trait]
impl Sampling for Person {
    async fn sample(&self, _: SamplingRequest) -> Result<SamplingResult, RpcError> {
        Ok(SamplingResult::text("m", self.name))
    }
}

#[async_trait]
impl Roots for Person {
    async fn roots(&self) -> Result<Vec<Root>, RpcError> {
        Ok(vec![Root::new(self.folder.lock().unwrap().clone())])
    }
}

/// A connected client.
struct TestClient {
    person: Arc<Person>,
    session: Session,
}

impl TestClient {
    async fn connect(gateway: &TestGateway, name: &'static str) -> TestClient {
        let folder = Mutex::new(format!("file:///home/{name}"));
        let person = Arc::new(Person { name, asked: Mutex::default(), folder });
        let mut handlers = Handlers::default();
        handlers.elicitation = Some(Arc::clone(&person) as _);
        handlers.sampling = Some(Arc::clone(&person) as _);
        handlers.roots = Some(Arc::clone(&person) as _);
        let mut options = SessionOptions::default();
        options.handlers = handlers;
        TestClient { person, session: gateway.client("/mcp", Eras::Legacy, options).await }
    }

    async fn call(&self, tool: &str, message: &str) -> String {
        call(&self.session, tool, message).await
    }

    /// What the client's instance of `server` knows of the client.
    async fn state(&self, server: &str) -> Value {
        serde_json::from_str(&self.call(&format!("{server}__state"), "").await).unwrap()
    }

    fn received_messages(&self) -> Vec<String> {
        self.person.asked.lock().unwrap().clone()
    }
}

async fn call(session: &Session, tool: &str, message: &str) -> String {
    let arguments = RawJson::from_value(&serde_json::json!({ "message": message })).unwrap();
    session.call_tool(tool, &arguments, CallOptions::default()).await.unwrap().value.text()
}

/// A gateway in front of `demo` and these asking servers.
async fn gateway(servers: &[&str]) -> TestGateway {
    let servers = ["demo"].iter().chain(servers).map(|id| server(id)).collect();
    TestGateway::with_servers(servers, GatewayOptions::default(), HttpOptions::default()).await
}

fn sharing(gateway: &TestGateway, server: &str) -> Option<Sharing> {
    gateway.host.snapshot().servers.iter().find(|status| status.id == server)?.sharing
}

#[tokio::test]
async fn roots_of_one_client_reach_no_other() {
    let gateway = gateway(&["auto-roots"]).await;
    let (ann, bob) = (TestClient::connect(&gateway, "ann").await, TestClient::connect(&gateway, "bob").await);
    let plain = gateway.client("/mcp", Eras::Legacy, SessionOptions::default()).await;
    let uri = |state: &Value| state["roots"]["roots"][0]["uri"].clone();
    for _ in 0..2 {
        assert_eq!(uri(&ann.state("auto-roots").await), "file:///home/ann");
        let state = call(&plain, "auto-roots__state", "").await;
        assert!(!state.contains("home") && !state.contains("sampling"), "{state}");
        assert_eq!(uri(&bob.state("auto-roots").await), "file:///home/bob");
    }
    assert_eq!(ann.state("auto-roots").await["capabilities"]["elicitation"]["form"], serde_json::json!({}));

    "file:///work".clone_into(&mut ann.person.folder.lock().unwrap());
    ann.session.notify_roots_changed();
    while uri(&ann.state("auto-roots").await) != "file:///work" {
        tokio::task::yield_now().await;
    }
    assert_eq!(uri(&bob.state("auto-roots").await), "file:///home/bob");

    // The extensions of the servers reach the clients.
    let capabilities = ann.session.server().capabilities.raw.unwrap();
    assert!(capabilities.as_str().contains(r#""extensions":{"example.org/ask":{}}"#), "{capabilities:?}");

    assert_eq!(sharing(&gateway, "auto-roots"), Some(Sharing::PerOwner));
    let problem =
        gateway.host.snapshot().problems.iter().map(|it| it.problem.message.clone()).collect::<String>();
    assert!(problem.contains("server 'auto-roots' sends requests to its client (`roots/list`)"), "{problem}");
    drop((ann, bob, plain));
    gateway.end().await;
}

#[tokio::test]
async fn cancelled_call_of_one_client_refuses_no_request_for_another() {
    let gateway = gateway(&["auto-a", "auto-b"]).await;
    let (ann, bob) = (TestClient::connect(&gateway, "ann").await, TestClient::connect(&gateway, "bob").await);
    let cancel = async |server: &str| {
        let tool = format!("{server}__wait");
        let waiting = ann.call(&tool, "");
        tokio::time::timeout(std::time::Duration::from_millis(200), waiting).await.unwrap_err();
    };
    // Bob may have asked, so Ann's cancelled call is on the same instance.
    assert_eq!(sharing(&gateway, "auto-a"), Some(Sharing::Shared));
    assert!(ann.call("auto-a__ask", "ann's").await.contains("ann"));
    cancel("auto-a").await;
    for question in ["first", "second"] {
        let answer = bob.call("auto-a__ask", question).await;
        assert!(answer.contains(r#""by":"bob""#), "{answer}");
    }
    assert!(bob.call("auto-a__sample", "").await.contains("bob"));

    // The very first request of a server may be ambiguous. It is refused, names the remedy, and is the last one.
    cancel("auto-b").await;
    let refused = bob.call("auto-b__ask", "lost").await;
    assert!(refused.contains("`sharing: per-client`"), "{refused}");
    while sharing(&gateway, "auto-b") != Some(Sharing::PerOwner) {
        tokio::task::yield_now().await;
    }
    assert!(bob.call("auto-b__ask", "again").await.contains("bob"));
    assert_eq!(
        (ann.received_messages(), bob.received_messages()),
        (vec!["ann's".into()], ["first", "second", "again"].map(str::to_owned).into())
    );
    drop((ann, bob));
    gateway.end().await;
}

/// Two clients with sessions and one without, with many calls at once.
#[tokio::test]
async fn interleaved_calls_reach_the_right_client() {
    let gateway = gateway(&["auto-roots", "auto-a", "own"]).await;
    let clients = [TestClient::connect(&gateway, "ann").await, TestClient::connect(&gateway, "bob").await];
    let plain = gateway.client("/mcp", Eras::Modern, SessionOptions::default()).await;
    // Seen to ask.
    clients[0].call("auto-a__ask", "ann").await;
    while sharing(&gateway, "auto-a") != Some(Sharing::PerOwner) {
        tokio::task::yield_now().await;
    }
    let run = async |client: &TestClient, number: usize| {
        let name = client.person.name;
        match number % 4 {
            0 => assert!(client.call("auto-a__ask", name).await.contains(name)),
            1 => assert!(client.call("auto-a__sample", "").await.contains(name)),
            2 => {
                let root = client.state("auto-roots").await["roots"]["roots"][0]["uri"].clone();
                assert_eq!(root, format!("file:///home/{name}"));
            }
            _ => {
                let cancelled = client.call("auto-a__wait", "");
                drop(tokio::time::timeout(std::time::Duration::from_millis(1), cancelled).await);
            }
        }
    };
    let of_clients = clients.iter().flat_map(|client| (0..40).map(move |number| (client, number)));
    let calls = futures_util::future::join_all(of_clients.map(|(client, number)| run(client, number)));
    let others = async {
        for _ in 0..10 {
            let state = call(&plain, "auto-roots__state", "").await;
            assert!(!state.contains("file:///"), "{state}");
        }
    };
    tokio::join!(calls, others);
    for client in &clients {
        assert!(client.received_messages().iter().all(|question| question == client.person.name));
        assert!(client.received_messages().len() >= 10);
    }
    drop((clients, plain));
    gateway.end().await;
}

#[tokio::test]
async fn client_without_session_answers_a_leased_server() {
    let gateway = gateway(&["auto-roots"]).await;
    let (headers, body) = modern("tools/call", Some("auto-roots__state"), r#""name":"auto-roots__state""#);
    let body = body.replace(r#"clientCapabilities":{}"#, r#"clientCapabilities":{"roots":{}}"#);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, it)| (*name, it.as_str())).collect();
    let asked = gateway.post(&headers, &body).await.json()["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let (key, request) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(request["method"], "roots/list");
    let responses = serde_json::json!({ key: {"roots": [{"uri": "file:///modern"}]} });
    let more = format!(r#","inputResponses":{responses},"requestState":{}}}}}"#, asked["requestState"]);
    let body = format!("{}{more}", body.strip_suffix("}}").unwrap());
    let answer = gateway.post(&headers, &body).await.json();
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("file:///modern"), "{answer}");
    gateway.end().await;
}
