//! A scripted in-memory server of the legacy era. Its transport is a function of the test, without a process.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_host_transport::{
    Dial, Disconnect, DisconnectReason, ErrorResponse, FrameSink, Link, Outbound, ProcessExit, RequestError,
    StartError, StreamError, StreamId,
};
use mcp_testkit::servers::in_memory;
use serde_json::{Value, json};
use tokio::sync::{Notify, broadcast};

/// A scripted server that accepts any number of connections and logs what its clients do.
pub(crate) struct ScriptedServer {
    /// How connections begin.
    pub(crate) start_behavior: Mutex<StartBehavior>,
    /// The definitions of its tools.
    pub(crate) tools: Mutex<Vec<Value>>,
    /// Methods that it answers with an error.
    pub(crate) failing_methods: Mutex<Vec<&'static str>>,
    /// The message of these errors.
    pub(crate) error_message: Mutex<String>,
    /// Methods that it never answers.
    pub(crate) silent_methods: Mutex<Vec<&'static str>>,
    /// The log of events, in order: `connect`, the method of each message, `end`.
    pub(crate) log: Mutex<Vec<String>>,
    /// The definitions of its prompts; `None`: it does not support prompts.
    pub(crate) prompts: Mutex<Option<Vec<Value>>>,
    /// The definitions of its resources; `None`: it does not support resources.
    pub(crate) resources: Mutex<Option<Vec<Value>>>,
    /// The results and errors of reading resources that it does not list; it does not have other ones.
    pub(crate) unlisted: Mutex<BTreeMap<&'static str, Result<Value, Value>>>,
    /// Whether it announces changed tools after each read of them.
    pub(crate) announces_reads: AtomicBool,
    /// Methods that it refuses with HTTP 403.
    pub(crate) refused_methods: Mutex<Vec<&'static str>>,
    /// Whether it ends after each response to a call.
    pub(crate) ends_after_calls: AtomicBool,
    /// Whether it exits with status 0 and writes nothing to standard error.
    pub(crate) exits_cleanly: AtomicBool,
    /// Whether its capabilities are empty.
    pub(crate) declares_nothing: AtomicBool,
    /// Completes calls of the tool `slow`.
    pub(crate) release: Notify,
    /// The delay of each response.
    pub(crate) delay: Mutex<Duration>,
    /// The steps during the next read of its tools: `c` changes the tools to only `u` after 1 ms, `a` announces a
    /// change after 1 ms, `r` builds the response, `d` sends it. Steps after `d` run after the response.
    pub(crate) list_steps: Mutex<String>,
    commands: broadcast::Sender<Command>,
}

/// How a connection begins.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum StartBehavior {
    /// It works.
    Works,
    /// The command is not found.
    NotFound,
    /// The server answers nothing.
    Silent,
}

#[derive(Debug, Clone)]
enum Command {
    Send(Value),
    Disconnect,
}

impl ScriptedServer {
    /// Creates a server with these tools; each accepts any object.
    pub(crate) fn new(names: &[&str]) -> Arc<ScriptedServer> {
        let peer = ScriptedServer {
            start_behavior: Mutex::new(StartBehavior::Works),
            tools: Mutex::default(),
            failing_methods: Mutex::default(),
            error_message: Mutex::new("out of order".to_owned()),
            silent_methods: Mutex::default(),
            log: Mutex::default(),
            prompts: Mutex::default(),
            resources: Mutex::default(),
            unlisted: Mutex::default(),
            announces_reads: AtomicBool::new(false),
            refused_methods: Mutex::default(),
            ends_after_calls: AtomicBool::new(false),
            exits_cleanly: AtomicBool::new(false),
            declares_nothing: AtomicBool::new(false),
            release: Notify::new(),
            delay: Mutex::default(),
            list_steps: Mutex::default(),
            commands: broadcast::channel(64).0,
        };
        peer.set_tools(names);
        Arc::new(peer)
    }

    /// Returns a server without tools whose connections begin like this.
    pub(crate) fn starting(behavior: StartBehavior) -> Arc<ScriptedServer> {
        let peer = ScriptedServer::new(&[]);
        *peer.start_behavior.lock().unwrap() = behavior;
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
        self.commands.send(Command::Send(message)).unwrap();
    }

    /// Sends a message to all connected clients.
    pub(crate) fn send(&self, message: Value) {
        self.commands.send(Command::Send(message)).unwrap();
    }

    /// Ends all connections, as if the process had exited.
    pub(crate) fn disconnect(&self) {
        self.commands.send(Command::Disconnect).unwrap();
    }

    /// Returns how often `what` is in the log.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.log.lock().unwrap().iter().filter(|it| *it == what).count()
    }

    /// Returns the number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.count("connect") - self.count("end")
    }

    /// Returns a dial of this server.
    pub(crate) fn dial(self: &Arc<ScriptedServer>) -> Arc<dyn Dial> {
        let peer = Arc::clone(self);
        in_memory("peer", move |link| run(Arc::clone(&peer), link))
    }

    fn record(&self, what: &str) {
        self.log.lock().unwrap().push(what.to_owned());
    }

    /// Returns the declared capabilities. Only changes of tools are announced.
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

    /// Returns the tools as it lists them, after the scripted steps.
    async fn list_tools(&self) -> Vec<Value> {
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
        let mut interlude = self.list_steps.lock().unwrap();
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

    /// Returns the response to a request; `None` for no response.
    async fn answer(&self, method: &str, params: &Value) -> Option<Result<Value, Value>> {
        if method == "tools/list" && self.announces_reads.load(Ordering::Relaxed) {
            self.announce();
        }
        if self.silent_methods.lock().unwrap().contains(&method) {
            return None;
        }
        if self.failing_methods.lock().unwrap().contains(&method) {
            let message = self.error_message.lock().unwrap().clone();
            return Some(Err(json!({"code": -1, "message": message})));
        }
        let text = |text: String| json!({"content": [{"type": "text", "text": text}]});
        let declares_nothing = self.declares_nothing.load(Ordering::Relaxed);
        Some(Ok(match method {
            "initialize" => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": if declares_nothing { json!({}) } else { self.capabilities() },
                "serverInfo": {"name": "peer", "version": "1"}
            }),
            "tools/list" => json!({"tools": self.list_tools().await}),
            "resources/list" => json!({"resources": *self.resources.lock().unwrap()}),
            "prompts/list" => json!({"prompts": *self.prompts.lock().unwrap()}),
            "tools/call" => match params["name"].as_str().unwrap() {
                "slow" => {
                    self.release.notified().await;
                    text("at last".to_owned())
                }
                "hang" => return None,
                "sleep" => {
                    let ms = params["arguments"]["ms"].as_u64().unwrap();
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    text(format!("slept {ms} ms"))
                }
                "meta" => text(params["_meta"].to_string()),
                "structured" => json!({"content": [], "structuredContent": params["arguments"]}),
                "strange" => json!({"content": [], "y": 1.0}),
                "unstructured" => text("no structure".to_owned()),
                "fail" => json!({"isError": true, "content": [{"type": "text", "text": "no luck"}]}),
                "mute" => json!({"isError": true}),
                "big" => text("é".repeat(200_000)),
                "lost" => {
                    self.disconnect();
                    return None;
                }
                _ => text(params["arguments"].to_string()),
            },
            "logging/setLevel" => json!({}),
            "resources/subscribe" | "resources/unsubscribe" => {
                self.record(&format!(
                    "{} {}",
                    &method["resources/".len()..],
                    params["uri"].as_str().unwrap()
                ));
                json!({})
            }
            "resources/read" if params["uri"] == "x:1" => {
                return Some(Err(json!({"code": -32002, "message": "gone", "data": {"x": 1.0}})));
            }
            "resources/read" => {
                let known = self.unlisted.lock().unwrap().get(params["uri"].as_str().unwrap()).cloned();
                return Some(known.unwrap_or_else(|| Err(json!({"code": -32602, "message": "unknown"}))));
            }
            _ => return Some(Err(json!({"code": -1, "message": "what?"}))),
        }))
    }
}

/// Logs the end of a connection when dropped.
struct EndRecord(Arc<ScriptedServer>);

impl Drop for EndRecord {
    fn drop(&mut self) {
        self.0.record("end");
    }
}

async fn run(peer: Arc<ScriptedServer>, link: Link) -> Disconnect {
    let Link { outbound: mut out, inbound: inbox, shutdown: mut stop, .. } = link;
    if *peer.start_behavior.lock().unwrap() == StartBehavior::NotFound {
        return Disconnect::new(DisconnectReason::NotStarted(StartError::CommandNotFound));
    }
    let mut commands = peer.commands.subscribe();
    peer.record("connect");
    let noted = EndRecord(Arc::clone(&peer));
    let mut answering = tokio::task::JoinSet::new();
    let reason = loop {
        tokio::select! {
                    _ = stop.requested() => break DisconnectReason::Stopped,
                    order = commands.recv() => match order.unwrap() {
                        Command::Send(message) => {
        inbox.deliver(StreamId::Shared, message.to_string().into());
        }
                        Command::Disconnect => break DisconnectReason::PeerClosed,
                    },
                    out = out.next() => match out {
                        Some(Outbound::Send(message)) => {
                            let message: Value = serde_json::from_slice(&message.body).unwrap();
                            answering.spawn(take(Arc::clone(&peer), message, Arc::clone(&inbox)));
                        }
                        Some(Outbound::Cancel { .. }) => peer.record("abandon"),
                        None => break DisconnectReason::Stopped,
                    },
                }
    };
    drop(noted);
    let mut ended = Disconnect::new(reason);
    if ended.reason == DisconnectReason::PeerClosed && peer.exits_cleanly.load(Ordering::Relaxed) {
        ended.evidence.exit = Some(ProcessExit::Status(0));
    } else if ended.reason == DisconnectReason::PeerClosed {
        ended.evidence.exit = Some(ProcessExit::Status(3));
        ended.evidence.stderr = vec!["out of memory".to_owned()];
    }
    ended
}

async fn take(peer: Arc<ScriptedServer>, message: Value, inbox: Arc<dyn FrameSink>) {
    let method = message["method"].as_str().unwrap_or("answer").to_owned();
    peer.record(&method);
    if message["method"].is_null() {
        peer.record(&format!("{}{}", message["result"]["by"], message["error"]["message"]));
    }
    if let Some(level) = message["params"]["level"].as_str() {
        peer.record(level);
    }
    if method == "initialize" {
        peer.record(&message["params"]["capabilities"].to_string());
    }
    if message["id"].is_null() || *peer.start_behavior.lock().unwrap() == StartBehavior::Silent {
        return;
    }
    if peer.refused_methods.lock().unwrap().iter().any(|refused| *refused == method) {
        let error = StreamError::Refused(ErrorResponse::new(403).into());
        return inbox.fail_stream(message["id"].as_u64().unwrap(), error);
    }
    // Every other call of this tool gets no response.
    if message["params"]["name"] == "vanish" && peer.count("tools/call") % 2 == 1 {
        let message_lost = RequestError::new("the response broke off");
        inbox.fail_stream(message["id"].as_u64().unwrap(), StreamError::Lost(message_lost));
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
    if peer.ends_after_calls.load(Ordering::Relaxed) && method == "tools/call" {
        peer.disconnect();
    }
    if method == "tools/list" {
        while let Some(step) = peer.next_step() {
            peer.step(step).await;
        }
    }
}
