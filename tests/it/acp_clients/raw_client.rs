//! A client that writes its messages itself, for messages and orders that no SDK sends.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mcp_host_acp::AcpVersion;
use serde_json::{Value, json};

use super::conversation::assert_official;

/// The time limit of a response.
const LONGEST: Duration = Duration::from_secs(60);

/// A running agent and all messages.
pub(super) struct RawClient {
    pub(super) version: AcpVersion,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// Every message, in the format of [`super::conversation::Conversation::wire`].
    said: Vec<Value>,
    /// The number of messages that [`RawClient::update`] has read.
    looked: usize,
    made: u64,
}

impl RawClient {
    /// Starts an agent with its state in this folder, and sends `initialize`.
    pub(super) fn start(version: AcpVersion, agent: &[String], state: &std::path::Path) -> RawClient {
        let mut command = Command::new(&agent[0]);
        command.args(&agent[1..]).env("XDG_STATE_HOME", state);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let (tells, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if tells.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        let mut res = RawClient { version, child, input, lines, said: Vec::new(), looked: 0, made: 0 };
        let who = json!({ "name": "wire", "version": "1" });
        let params = match version {
            AcpVersion::V1 => json!({ "protocolVersion": 1, "clientInfo": who, "clientCapabilities": {} }),
            AcpVersion::V2 => json!({ "protocolVersion": 2, "info": who, "capabilities": {} }),
        };
        assert!(res.asks("initialize", params)["result"].is_object(), "{:#?}", res.said);
        res
    }

    /// Writes a message.
    pub(super) fn say(&mut self, message: Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
        self.said.push(json!({ "from": "client", "message": message }));
    }

    /// Writes a request without waiting.
    pub(super) fn request(&mut self, id: &Value, method: &str, params: Value) {
        self.say(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    /// Cancels a request.
    pub(super) fn cancel(&mut self, id: &Value) {
        let params = json!({ "requestId": id });
        self.say(json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": params }));
    }

    /// Waits for the response with this id and id type.
    #[track_caller]
    pub(super) fn answer(&mut self, id: &Value) -> Value {
        loop {
            let is_it = |it: &&Value| it["from"] == "agent" && &it["message"]["id"] == id;
            if let Some(found) = self.said.iter().find(is_it) {
                return found["message"].clone();
            }
            self.hear();
        }
    }

    /// Whether the response to this id has arrived.
    pub(super) fn is_answered(&self, id: &Value) -> bool {
        self.said.iter().any(|it| it["from"] == "agent" && &it["message"]["id"] == id)
    }

    /// Sends a request and waits for its response.
    #[track_caller]
    pub(super) fn asks(&mut self, method: &str, params: Value) -> Value {
        self.made += 1;
        let id = json!(format!("asked-{}", self.made));
        self.request(&id, method, params);
        self.answer(&id)
    }

    /// The next matching update of a session after the last one that was returned.
    #[track_caller]
    pub(super) fn update(&mut self, session: &Value, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            while let Some(it) = self.said.get(self.looked) {
                self.looked += 1;
                let params = &it["message"]["params"];
                if it["from"] == "agent" && &params["sessionId"] == session && wanted(&params["update"]) {
                    return params["update"].clone();
                }
            }
            self.hear();
        }
    }

    /// Creates a session with these servers.
    #[track_caller]
    pub(super) fn session(&mut self, servers: Value) -> Value {
        let answer = self.asks("session/new", json!({ "cwd": "/", "mcpServers": servers }));
        assert!(answer["result"]["sessionId"].is_string(), "{answer:#}");
        answer["result"]["sessionId"].clone()
    }

    /// Writes a prompt.
    pub(super) fn prompt(&mut self, id: &Value, session: &Value, text: &str) {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.request(id, "session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    }

    /// Runs a prompt and returns its text.
    #[track_caller]
    pub(super) fn turn(&mut self, session: &Value, text: &str) -> String {
        self.made += 1;
        let id = json!(format!("turn-{}", self.made));
        self.looked = self.said.len();
        self.prompt(&id, session, text);
        self.said_until_end(&id, session)
    }

    /// The text of a session until the prompt with this request id ends.
    #[track_caller]
    pub(super) fn said_until_end(&mut self, id: &Value, session: &Value) -> String {
        let answer = self.answer(id);
        assert!(answer.get("result").is_some(), "{answer:#}");
        let from = self.said.iter().position(|it| &it["message"]["id"] == id).unwrap();
        if self.version == AcpVersion::V2 {
            let begun = self.said.iter().position(|it| it["from"] == "agent" && &it["message"]["id"] == id);
            self.looked = begun.unwrap();
            self.update(session, |it| it["state"] == "idle");
        }
        let updates = self.said[from..].iter().map(|it| &it["message"]["params"]);
        let chunks = updates.filter(|it| {
            &it["sessionId"] == session && it["update"]["sessionUpdate"] == "agent_message_chunk"
        });
        chunks.map(|it| it["update"]["content"]["text"].as_str().unwrap()).collect()
    }

    #[track_caller]
    fn hear(&mut self) {
        match self.lines.recv_timeout(LONGEST) {
            Ok(message) => self.said.push(json!({ "from": "agent", "message": message })),
            Err(error) => panic!("{error}: {:#?}", self.said),
        }
    }

    /// Everything that the agent has written, for searches.
    pub(super) fn of_agent(&self) -> String {
        self.said.iter().filter(|it| it["from"] == "agent").map(Value::to_string).collect()
    }

    /// Kills the agent with SIGKILL.
    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Closes the agent's input, waits for its exit, and validates all its messages.
    #[track_caller]
    pub(super) fn end(mut self) {
        drop(self.input.take());
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{:#?}", self.said);
        assert_official(self.version, &self.said);
    }
}

impl Drop for RawClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
