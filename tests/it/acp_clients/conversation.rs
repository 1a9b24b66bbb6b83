//! Scenarios that a real client runs against an agent, and their results.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use jsonschema::Validator;
use mcp_host_acp::AcpVersion;
use mcp_testkit::program::{installed_folder, root};
use serde_json::{Value, json};

use crate::acp_schema::{judge, official};

/// A widely used client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    /// `@agentclientprotocol/sdk` of npm.
    Node,
    /// `agent-client-protocol` of PyPI, which supports version 1 only.
    Python,
}

/// Each client with each version that it supports.
pub(crate) const PAIRS: [(Client, AcpVersion); 3] =
    [(Client::Node, AcpVersion::V1), (Client::Python, AcpVersion::V1), (Client::Node, AcpVersion::V2)];

/// The value of `DEMO_INHERITED` in the client and its child processes.
pub(crate) const INHERITED: &str = "of the client";

/// The steps for a client.
#[derive(Debug)]
pub(crate) struct Scenario {
    version: AcpVersion,
    steps: Vec<Value>,
    /// The id of an MCP server that the client provides.
    serves: Option<&'static str>,
}

impl Scenario {
    pub(crate) fn new(version: AcpVersion) -> Scenario {
        Scenario { version, steps: Vec::new(), serves: None }
    }

    /// A client that provides an MCP server with this id; only the npm client can.
    pub(crate) fn serving(version: AcpVersion, id: &'static str) -> Scenario {
        Scenario { serves: Some(id), ..Scenario::new(version) }
    }

    pub(crate) fn step(&mut self, method: &str, params: Value) -> &mut Scenario {
        self.steps.push(json!({ "method": method, "params": params }));
        self
    }

    pub(crate) fn new_session(&mut self, servers: Value) -> &mut Scenario {
        self.step("session/new", json!({ "cwd": "/", "mcpServers": servers }))
    }

    pub(crate) fn prompt(&mut self, text: &str) -> &mut Scenario {
        self.step("session/prompt", json!({ "prompt": [{ "type": "text", "text": text }] }))
    }

    /// A prompt in the session with this index.
    pub(crate) fn prompt_in(&mut self, session: usize, text: &str) -> &mut Scenario {
        self.prompt(text);
        self.steps.last_mut().unwrap()["params"]["sessionId"] = session.into();
        self
    }

    /// Cancels the last step when the file exists or at the first `update`, by `request` or by `session`.
    pub(crate) fn cancelled(&mut self, when: &str, by: &str) -> &mut Scenario {
        let step = self.steps.last_mut().unwrap();
        step["cancel"] = json!({ "when": when, "by": by });
        self
    }

    /// Waits until the process with the id in this file has exited.
    pub(crate) fn until_gone(&mut self, file: &std::path::Path) -> &mut Scenario {
        self.step("$gone", json!({ "file": file }))
    }

    /// Waits until an update reports this status of an MCP server; only the npm client can.
    pub(crate) fn until_reported(&mut self, name: &str, status: &str) -> &mut Scenario {
        self.step("$status", json!({ "name": name, "status": status }))
    }

    /// Runs the scenario against the agent that this command starts. `None` if the client is not installed.
    #[track_caller]
    pub(crate) fn run(&self, client: Client, agent: &[String]) -> Option<Conversation> {
        let (modules, venv) =
            (installed_folder("MCP_HOST_NODE_MODULES")?, installed_folder("MCP_HOST_VENV")?);
        let tests = root().join("tests");
        let mut command = match client {
            Client::Node => Command::new("node"),
            Client::Python => Command::new(venv.join("bin/python")),
        };
        command.arg(match client {
            Client::Node => tests.join("node/acp_client.mjs"),
            Client::Python => tests.join("python/acp_client.py"),
        });
        let mut text = json!({ "version": self.version.number(), "steps": self.steps });
        if let Some(id) = self.serves {
            text["serves"] = id.into();
        }
        let (text, state) = (text.to_string(), tempfile::tempdir().unwrap());
        command.arg(text).args(agent).env("MCP_HOST_NODE_MODULES", modules).env("DEMO_INHERITED", INHERITED);
        command.env("XDG_STATE_HOME", state.path());
        let output = command.stdin(Stdio::null()).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let Ok(mut told) = serde_json::from_str::<Value>(&out) else { panic!("{client:?}: {out}\n{err}") };
        let mut list = |key: &str| match told[key].take() {
            Value::Array(items) => items,
            other => panic!("{client:?}: {key} is {other}\n{err}"),
        };
        let res = Conversation {
            steps: list("steps"),
            wire: list("wire"),
            exit: told["exit"].take(),
            stderr: err.into_owned(),
        };
        let faults: Vec<_> = res.steps.iter().filter(|it| it.get("fault").is_some()).collect();
        assert!(faults.is_empty(), "{client:?}: {faults:#?}\n{res:#?}");
        assert_official(self.version, &res.wire);
        Some(res)
    }
}

/// The results of a scenario.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// The result of each step, `initialize` first: `method`, `sent`, and `result` or `error` verbatim.
    pub(crate) steps: Vec<Value>,
    /// Every message in the order of the client: `from` is `client` or `agent`.
    pub(crate) wire: Vec<Value>,
    /// How the agent exited.
    pub(crate) exit: Value,
    /// Standard error of both.
    pub(crate) stderr: String,
}

impl Conversation {
    /// The text after each prompt.
    pub(crate) fn said(&self) -> Vec<String> {
        let mut res: Vec<String> = Vec::new();
        for it in &self.wire {
            let (message, update) = (&it["message"], &it["message"]["params"]["update"]);
            if it["from"] == "client" && message["method"] == "session/prompt" {
                res.push(String::new());
            } else if update["sessionUpdate"] == "agent_message_chunk" {
                res.last_mut().unwrap().push_str(update["content"]["text"].as_str().unwrap());
            }
        }
        res
    }

    /// Everything that the agent has written, for searches.
    pub(crate) fn of_agent(&self) -> String {
        let messages =
            self.wire.iter().filter(|it| it["from"] == "agent").map(|it| it["message"].to_string());
        messages.chain([self.stderr.clone()]).collect::<Vec<_>>().join("\n")
    }
}

/// Validates every message of the agent against the official schema of its version (ACP-037).
#[track_caller]
pub(crate) fn assert_official(version: AcpVersion, wire: &[Value]) {
    let Some(stable) = official(version, "schema.json") else { return };
    let Some(unstable) = official(version, "schema.unstable.json") else { return };
    let mut judges: BTreeMap<&str, Validator> = BTreeMap::new();
    let mut asked: BTreeMap<String, String> = BTreeMap::new();
    let update = match version {
        AcpVersion::V1 => "SessionNotification",
        AcpVersion::V2 => "UpdateSessionNotification",
    };
    let mut judged = 0;
    for it in wire {
        let message = &it["message"];
        if it["from"] == "client" {
            if let (Some(method), false) = (message["method"].as_str(), message["id"].is_null()) {
                asked.insert(message["id"].to_string(), method.to_owned());
            }
            continue;
        }
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        let members: Vec<_> = message.as_object().unwrap().keys().map(String::as_str).collect();
        let (definition, part) = match (message.get("method"), message.get("result"), message.get("error")) {
            (Some(method), None, None) if method == "session/update" => (update, &message["params"]),
            (Some(method), None, None) if method == "mcp/message" => {
                ("MessageMcpRequest", &message["params"])
            }
            // A cancelled MCP call of the agent.
            (Some(method), None, None) if method == "$/cancel_request" => {
                ("CancelRequestNotification", &message["params"])
            }
            (None, None, Some(error)) => ("Error", error),
            (None, Some(result), None) => {
                let method = asked.get(&message["id"].to_string());
                (response(method.unwrap_or_else(|| panic!("an answer to nothing: {message}"))), result)
            }
            _ => panic!("{members:?} is no message that the agent has a reason for: {message}"),
        };
        let judge = judges.entry(definition).or_insert_with(|| {
            let is_stable = stable["$defs"][definition].is_object();
            judge(if is_stable { &stable } else { &unstable }, definition)
        });
        let wrong: Vec<_> = judge.iter_errors(part).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{definition}: {wrong:#?}\n{message}");
        judged += 1;
    }
    assert!(judged > 0, "the agent has said nothing");
}

/// The schema name of the result of a method.
fn response(method: &str) -> &'static str {
    match method {
        "initialize" => "InitializeResponse",
        "session/new" => "NewSessionResponse",
        "session/load" => "LoadSessionResponse",
        "session/resume" => "ResumeSessionResponse",
        "session/fork" => "ForkSessionResponse",
        "session/prompt" => "PromptResponse",
        "session/close" => "CloseSessionResponse",
        other => panic!("the agent has answered {other}"),
    }
}
