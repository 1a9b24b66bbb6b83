//! The example agent and proxy of ACP: they return no secret that a client declared for its servers, whether a server
//! echoes it, is unreachable or is invalid.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use super::fixture::LeakFixture;
use super::markers::SecretLocation;
use super::search::Search;
use crate::acp_clients::agent;
use crate::acp_proxy::guarded;

/// The time limit of a response.
const LONGEST: Duration = Duration::from_secs(90);

/// An ACP program and all its output.
struct AcpProgram {
    child: Child,
    lines: Receiver<String>,
    log: JoinHandle<String>,
    said: String,
    asked: u64,
}

impl AcpProgram {
    fn start(world: &LeakFixture, command: &[String]) -> AcpProgram {
        let mut program = world.program(Path::new(&command[0]));
        let mut child = program.args(&command[1..]).stdin(std::process::Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        std::thread::spawn(move || out.map(|it| sender.send(it)).all(|it| it.is_ok()));
        let mut stderr = child.stderr.take().unwrap();
        let log = std::thread::spawn(move || {
            let mut text = Vec::new();
            stderr.read_to_end(&mut text).unwrap();
            String::from_utf8_lossy(&text).into_owned()
        });
        AcpProgram { child, lines, log, said: String::new(), asked: 0 }
    }

    /// Waits for the next matching message.
    #[track_caller]
    fn until(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.recv_timeout(LONGEST).unwrap_or_else(|it| panic!("{it}: {}", self.said));
            self.said += &format!("{line}\n");
            let message: Value = serde_json::from_str(&line).unwrap();
            if holds(&message) {
                return message;
            }
        }
    }

    /// Sends a request and returns the response.
    #[track_caller]
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = json!(self.asked);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
        self.until(|it| it["id"] == id && it.get("method").is_none())
    }

    /// Returns all output and the log.
    fn end(mut self) -> (String, String) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
        self.said.extend(self.lines.iter().map(|it| it + "\n"));
        (self.said, self.log.join().unwrap())
    }
}

/// Runs sessions with these valid and invalid servers, and prompts in them.
fn converse(speaker: &mut AcpProgram, version: u64, servers: &Value) {
    let who = json!({"name": "t", "version": "1"});
    let params = match version {
        1 => json!({"protocolVersion": 1, "clientInfo": who, "clientCapabilities": {}}),
        _ => json!({"protocolVersion": 2, "info": who, "capabilities": {}}),
    };
    assert!(speaker.ask("initialize", params)["result"].is_object(), "{}", speaker.said);
    let opened = speaker.ask("session/new", json!({"cwd": "/", "mcpServers": servers}));
    if let Some(session) = opened["result"]["sessionId"].as_str() {
        for text in [
            "/tools",
            "/servers",
            "/pipe-ok__fine",
            "/pipe-ok__errs",
            "/http-ok__errs",
            "/pipe-ok__dies",
            "/pipe-ok__fine",
            "/pipe-crash__fine",
            "/servers",
        ] {
            let prompt = json!([{"type": "text", "text": text}]);
            let answer = speaker.ask("session/prompt", json!({"sessionId": session, "prompt": prompt}));
            // In version 2 the response only confirms the start of the prompt.
            if version == 2 && answer.get("result").is_some() {
                speaker.until(|it| it["params"]["update"]["state"] == "idle");
            }
        }
        speaker.ask("session/close", json!({"sessionId": session}));
    }
    let text = servers.to_string();
    for wrong in [
        text.replace("\"args\"", "\"arguments\""),
        text.replace("\"value\"", "\"text\""),
        text.replace("\"url\":\"http://", "\"url\":\"ftp://"),
        text.replace("\"name\":\"Authorization\"", "\"name\":\"a b\""),
        text.replace("\"type\":\"http\"", "\"type\":\"pigeon\""),
        format!("[\"{}\"]", SecretLocation::AcpArgument.mark()),
    ] {
        let servers: Value = serde_json::from_str(&wrong).unwrap();
        let refused = speaker.ask("session/new", json!({"cwd": "/", "mcpServers": servers}));
        if let Some(session) = refused["result"]["sessionId"].as_str() {
            speaker.ask("session/close", json!({"sessionId": session}));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hd_sc5_acp_programs_return_no_secret_of_servers() {
    let world = std::sync::Arc::new(LeakFixture::new().await);
    let commands = [
        agent(&[]),
        agent(&["--require-all"]),
        agent(&["--lenient", "--drop-bad-entries"]),
        guarded(&agent(&[])),
        guarded(&agent(&["--lenient"])),
    ];
    let mut running = tokio::task::JoinSet::new();
    for (command, version) in commands.iter().flat_map(|it| [(it.clone(), 1), (it.clone(), 2)]) {
        let world = std::sync::Arc::clone(&world);
        running.spawn_blocking(move || {
            let mut servers: Value = serde_json::from_str(&world.read("request.json")).unwrap();
            if version == 2 {
                let programs = servers.as_array_mut().unwrap().iter_mut();
                programs.filter(|it| it.get("command").is_some()).for_each(|it| it["type"] = "stdio".into());
            }
            let mut speaker = AcpProgram::start(&world, &command);
            converse(&mut speaker, version, &servers);
            let (said, log) = speaker.end();
            let names = command.iter().map(|it| it.rsplit('/').next().unwrap_or(it));
            (format!("{} (version {version})", names.collect::<Vec<_>>().join(" ")), said, log)
        });
    }
    let mut search = Search::default();
    for (what, said, log) in running.join_all().await {
        assert!(said.contains("sessionId") || what.contains("--require-all"), "{what}: {said}");
        search.look(&format!("{what}, messages"), &said);
        search.look(&format!("{what}, standard error"), &log);
    }
    search.end();
}
