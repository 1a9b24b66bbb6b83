//! `acp-check`: what a strict agent would answer to a session request.
//!
//! The answer is JSON-RPC, whatever was read; only a standard input that cannot be read is a failure of ours. No folder
//! is looked at: the request may be another machine's.

use std::io::Read;

use mcp_acp::{
    AcpVersion, AgentProfile, Capabilities, RequestWarning as Noted, SessionRequest, ValidatedRequest, code,
    response_id, validate,
};
use mcp_model::{RawJson, RpcError};
use serde::Serialize;

use crate::exit::Exit;
use crate::output::console::{Console, Report};
use crate::output::json;

/// The longest request that is read, in bytes: one beyond what the configuration reader takes is refused by it.
const LONGEST: u64 = 4 << 20;

/// Reads a request, and gives the answer of an agent that has declared `declared`.
pub(crate) fn run(console: &Console, declared: &RawJson, version: AcpVersion) -> Report {
    let mut text = Vec::new();
    if let Err(error) = std::io::stdin().lock().take(LONGEST + 1).read_to_end(&mut text) {
        return console.failure(Exit::Wrong, &format!("standard input cannot be read: {error}"), None);
    }
    if text.len() as u64 > LONGEST {
        return console.failure(Exit::Wrong, "the request is larger than 4 MiB", None);
    }
    let Ok(request) = RawJson::parse(text.into()) else {
        let error = RpcError::new(code::PARSE_ERROR, "standard input holds no JSON value");
        return answered(response_id(&RawJson::empty_object()), Answer::Error(error), Exit::Wrong);
    };
    let id = response_id(&request);
    let capabilities = Capabilities::read(version, declared);
    let agent = AgentProfile::new(version, &capabilities);
    match SessionRequest::read(&request).and_then(|it| validate(&it, &agent)) {
        Ok(validated) => {
            let servers = validated.server_names().map(str::to_owned).collect();
            let mut res = answered(id, Answer::Result(Servers { servers }), Exit::Done);
            res.err = notes(&validated);
            res
        }
        Err(refusal) => answered(id, Answer::Error(RpcError::from(&refusal)), Exit::Wrong),
    }
}

#[derive(Serialize)]
struct Response {
    jsonrpc: &'static str,
    id: RawJson,
    #[serde(flatten)]
    answer: Answer,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Result(Servers),
    Error(RpcError),
}

#[derive(Serialize)]
struct Servers {
    servers: Vec<String>,
}

fn answered(id: RawJson, answer: Answer, exit: Exit) -> Report {
    let mut out = json::indented(&json::line(&Response { jsonrpc: "2.0", id, answer }));
    out.push('\n');
    Report { out, err: String::new(), exit, after: String::new() }
}

/// What is to be known besides, a line each.
fn notes(validated: &ValidatedRequest) -> String {
    let line = |it: &Noted| format!("note: {}: {}\n", it.diagnostic.pointer, it.diagnostic.message);
    validated.warnings.iter().map(line).collect()
}
