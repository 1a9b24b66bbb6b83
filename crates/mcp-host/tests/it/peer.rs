//! A scripted in-memory server of the legacy era. Its transport is a function of the test, without a process.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_transport::{
    Dial, Disconnect, DisconnectReason, FrameSink, HandshakeMode, Link, Outbound, RequestError, StartError,
    StreamError, StreamId, Transport,
};
use serde_json::{Value, json};
use tokio::sync::{Notify, broadcast};

/// A scripted server that accepts any number of connections and logs what its clients do.
pub(crate) struct Peer {
    /// How connections begin.
    pub(crate) beginning: Mutex<Beginning>,
    /// The definitions of its tools.
    pub(crate) tools: Mutex<Vec<Value>>,
    /// Methods that it answers with an error.
    pub(crate) broken: Mutex<Vec<&'static str>>,
    /// The message of these errors.
    pub(crate) complaint: Mutex<String>,
    /// Methods that it never answers.
    pub(crate) silent: Mutex<Vec<&'static str>>,
    /// The log of events, in order: `connect`, the method of each message, `end`.
    pub(crate) log: Mutex<Vec<String>>,
    /// The definitions of its prompts; `None`: it does not support prompts.
    pub(crate) prompts: Mutex<Option<Vec<Value>>>,
    /// The definitions of its resources; `None`: it does not support resources.
    pub(crate) resources: Mutex<Option<Vec<Value>>>,
    /// Whether it announces changed tools after each read of them.
    pub(crate) restless: AtomicBool,
    /// Completes calls of the tool `slow`.
    pub(crate) release: Notify,
    /// The delay of each response.
    pub(crate) delay: Mutex<Duration>,
    /// The steps during the next read of its tools: `c` changes the tools to only `u` after 1 ms, `a` announces a
    /// change after 1 ms, `r` builds the response, `d` sends it. Steps after `d` run after the response.
    pub(crate) interlude: Mutex<String>,
    orders: broadcast::Sender<Order>,
}

/// How a connection begins.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Beginning {
    /// It works.
    Well,
    /// The command is not found.
    NotFound,
    /// The server answers nothing.
    Silent,
}

#[derive(Debug, Clone)]
enum Order {
    Say(Value),
    Die,
}

impl Peer {
    /// A server with these tools; each accepts any object.
    pub(crate) fn new(names: &[&str]) -> Arc<Peer> {
        let peer = Peer {
            beginning: Mutex::new(Beginning::Well),
            tools: Mutex::default(),
            broken: Mutex::default(),
            complaint: Mutex::new("out of order".to_owned()),
            silent: Mutex::default(),
            log: Mutex::default(),
            prompts: Mutex::default(),
            resources: Mutex::default(),
            restless: AtomicBool::new(false),
            release: Notify::new(),
            delay: Mutex::default(),
            interlude: Mutex::default(),
            orders: broadcast::channel(64).0,
        };
        peer.set_tools(names);
        Arc::new(peer)
    }

    /// A server without tools whose connections begin like this.
    pub(crate) fn beginning(beginning: Beginning) -> Arc<Peer> {
        let peer = Peer::new(&[]);
        *peer.beginning.lock().unwrap() = beginning;
        peer
    }

    pub(crate) fn set_tools(&self, names: &[&str]) {
        *self.tools.lock().unwrap() =
            names.iter().map(|it| json!({"name": it, "inputSchema": {"type": "object"}})).collect();
    }

    /// Announces that the list of tools has changed.
    pub(crate) fn announce(&self) {
        self.announce_list("tools");
    }

    /// Announces that a list has changed.
    pub(crate) fn announce_list(&self, list: &str) {
        let message = json!({"jsonrpc": "2.0", "method": format!("notifications/{list}/list_changed")});
        self.orders.send(Order::Say(message)).unwrap();
    }

    /// Sends a message to all connected clients.
    pub(crate) fn say(&self, message: Value) {
        self.orders.send(Order::Say(message)).unwrap();
    }

    /// Ends all connections, as if the process had exited.
    pub(crate) fn die(&self) {
        self.orders.send(Order::Die).unwrap();
    }

    /// How often `what` is in the log.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.log.lock().unwrap().iter().filter(|it| *it == what).count()
    }

    /// The number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.count("connect") - self.count("end")
    }

    fn note(&self, what: &str) {
        self.log.lock().unwrap().push(what.to_owned());
    }

    /// The declared capabilities. Only changes of tools are announced.
    fn capabilities(&self) -> Value {
        let mut res = json!({"tools": {"listChanged": true}, "logging": {}});
        if self.prompts.lock().unwrap().is_some() {
            res["prompts"] = json!({});
        }
        if self.resources.lock().unwrap().is_some() {
            res["resources"] = json!({"subscribe": true});
        }
        res
    }

    /// The tools as it lists them, after the scripted steps.
    async fn listed(&self) -> Vec<Value> {
        let mut res = self.tools.lock().unwrap().clone();
        while let Some(step) = self.next_step() {
            match step {
                'r' => res = self.tools.lock().unwrap().clone(),
                'd' => break,
                other => self.step(other).await,
            }
        }
        res
    }

    fn next_step(&self) -> Option<char> {
        let mut interlude = self.interlude.lock().unwrap();
        if interlude.is_empty() { None } else { Some(interlude.remove(0)) }
    }

    async fn step(&self, step: char) {
        tokio::time::sleep(Duration::from_millis(1)).await;
        match step {
            'c' => self.set_tools(&["u"]),
            'a' => self.announce(),
            other => panic!("no such step: {other}"),
        }
    }

    /// The response to a request; `None` for no response.
    async fn answer(&self, method: &str, params: &Value) -> Option<Result<Value, Value>> {
        if method == "tools/list" && self.restless.load(Ordering::Relaxed) {
            self.announce();
        }
        if self.silent.lock().unwrap().contains(&method) {
            return None;
        }
        if self.broken.lock().unwrap().contains(&method) {
            let message = self.complaint.lock().unwrap().clone();
            return Some(Err(json!({"code": -1, "message": message})));
        }
        let text = |text: String| json!({"content": [{"type": "text", "text": text}]});
        Some(Ok(match method {
            "initialize" => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": self.capabilities(),
                "serverInfo": {"name": "peer", "version": "1"}
            }),
            "tools/list" => json!({"tools": self.listed().await}),
            "resources/list" => json!({"resources": *self.resources.lock().unwrap()}),
            "prompts/list" => json!({"prompts": *self.prompts.lock().unwrap()}),
            "tools/call" => match params["name"].as_str().unwrap() {
                "slow" => {
                    self.release.notified().await;
                    text("at last".to_owned())
                }
                "hang" => return None,
                "meta" => text(params["_meta"].to_string()),
                "structured" => json!({"content": [], "structuredContent": params["arguments"]}),
                "strange" => json!({"content": [], "y": 1.0}),
                "unstructured" => text("no structure".to_owned()),
                "fail" => json!({"isError": true, "content": [{"type": "text", "text": "no luck"}]}),
                "mute" => json!({"isError": true}),
                "big" => text("é".repeat(200_000)),
                "lost" => {
                    self.die();
                    return None;
                }
                _ => text(params["arguments"].to_string()),
            },
            "logging/setLevel" => json!({}),
            "resources/subscribe" | "resources/unsubscribe" => {
                self.note(&format!("{} {}", &method["resources/".len()..], params["uri"].as_str().unwrap()));
                json!({})
            }
            "resources/read" if params["uri"] == "x:1" => {
                return Some(Err(json!({"code": -32002, "message": "gone", "data": {"x": 1.0}})));
            }
            _ => return Some(Err(json!({"code": -1, "message": "what?"}))),
        }))
    }
}

/// A transport for one connection to a peer.
struct Wire(Arc<Peer>);

impl Transport for Wire {
    fn run<'a>(self: Box<Self>, link: Link) -> Pin<Box<dyn Future<Output = Disconnect> + Send + 'a>>
    where
        Self: 'a,
    {
        Box::pin(run(self.0, link))
    }
}

/// Logs the end of a connection when dropped.
struct Noted(Arc<Peer>);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.note("end");
    }
}

async fn run(peer: Arc<Peer>, link: Link) -> Disconnect {
    let Link { outbound: mut out, inbound: inbox, shutdown: mut stop } = link;
    if *peer.beginning.lock().unwrap() == Beginning::NotFound {
        return Disconnect::new(DisconnectReason::NotStarted(StartError::CommandNotFound));
    }
    let mut orders = peer.orders.subscribe();
    peer.note("connect");
    let noted = Noted(Arc::clone(&peer));
    let mut answering = tokio::task::JoinSet::new();
    let reason = loop {
        tokio::select! {
                    _ = stop.requested() => break DisconnectReason::Stopped,
                    order = orders.recv() => match order.unwrap() {
                        Order::Say(message) => {
        inbox.deliver(StreamId::Shared, message.to_string().into());
        }
                        Order::Die => break DisconnectReason::PeerClosed,
                    },
                    out = out.next() => match out {
                        Some(Outbound::Send(message)) => {
                            let message: Value = serde_json::from_slice(&message.body).unwrap();
                            answering.spawn(take(Arc::clone(&peer), message, Arc::clone(&inbox)));
                        }
                        Some(Outbound::Cancel { .. }) => peer.note("abandon"),
                        None => break DisconnectReason::Stopped,
                    },
                }
    };
    drop(noted);
    let mut ended = Disconnect::new(reason);
    if ended.reason == DisconnectReason::PeerClosed {
        ended.evidence.exit = Some("exit status 3".to_owned());
        ended.evidence.stderr = vec!["out of memory".to_owned()];
    }
    ended
}

async fn take(peer: Arc<Peer>, message: Value, inbox: Arc<dyn FrameSink>) {
    let method = message["method"].as_str().unwrap_or("answer").to_owned();
    peer.note(&method);
    if message["method"].is_null() {
        peer.note(&format!("{}{}", message["result"]["by"], message["error"]["message"]));
    }
    if let Some(level) = message["params"]["level"].as_str() {
        peer.note(level);
    }
    if method == "initialize" {
        peer.note(&message["params"]["capabilities"].to_string());
    }
    if message["id"].is_null() || *peer.beginning.lock().unwrap() == Beginning::Silent {
        return;
    }
    // Every other call of this tool gets no response.
    if message["params"]["name"] == "vanish" && peer.count("tools/call") % 2 == 1 {
        let message_lost =
            RequestError { status: None, message: "the response broke off".to_owned(), error: None };
        inbox.stream_failed(message["id"].as_u64().unwrap(), StreamError::Lost(message_lost));
        return;
    }
    let delay = *peer.delay.lock().unwrap();
    tokio::time::sleep(delay).await;
    let Some(answer) = peer.answer(&method, &message["params"]).await else { return };
    let mut res = BTreeMap::from([("jsonrpc", json!("2.0")), ("id", message["id"].clone())]);
    match answer {
        Ok(result) => res.insert("result", result),
        Err(error) => res.insert("error", error),
    };
    inbox.deliver(StreamId::Shared, serde_json::to_vec(&res).unwrap().into());
    if method == "tools/list" {
        while let Some(step) = peer.next_step() {
            peer.step(step).await;
        }
    }
}

/// A dial that connects to a peer.
pub(crate) struct PeerDial(pub(crate) Arc<Peer>);

impl Dial for PeerDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(Wire(Arc::clone(&self.0)))
    }

    fn label(&self) -> String {
        "peer".to_owned()
    }

    fn redact(&self, text: &str) -> String {
        text.to_owned()
    }

    fn handshake_mode(&self) -> HandshakeMode {
        HandshakeMode::Negotiate
    }
}
