//! `acp-check`: validates an ACP session request and prints the response of a strict agent.
//!
//! The output is always JSON-RPC, unless standard input cannot be read. No folders are checked: the request
//! may come from another machine.

use mcp_host_acp::{
    AcpVersion, AgentProfile, Capabilities, SessionRequest, ValidatedRequest, code, response_id, validate,
};
use mcp_host_model::{RawJson, RpcError};
use serde::Serialize;

use crate::args::AcpCheckArgs;
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::json;
use crate::runtime::bounded_read::read_bytes;
use crate::runtime::exit::Exit;

/// The maximum size of a request, in bytes. The configuration reader has a limit of its own.
const MAX_REQUEST: u64 = 4 << 20;

/// Reads a request from standard input and returns the response of an agent with the given capabilities.
pub(crate) fn run(args: &AcpCheckArgs) -> Result<Report, Failure> {
    let AcpCheckArgs { capabilities, protocol } = args;
    let text = read_bytes(std::io::stdin().lock(), MAX_REQUEST)
        .map_err(|error| Failure::new(format!("cannot read standard input: {error}")))?;
    let Ok(request) = RawJson::parse(text.into()) else {
        let error = RpcError::new(code::PARSE_ERROR, "standard input is not valid JSON");
        return Ok(response_report(
            response_id(&RawJson::empty_object()),
            SessionOutcome::Error(error),
            Exit::Failure,
        ));
    };
    let id = response_id(&request);
    let negotiated = || AcpVersion::negotiated_number(capabilities).and_then(AcpVersion::from_number);
    let version = protocol.or_else(negotiated).unwrap_or(AcpVersion::V1);
    let capabilities = Capabilities::read(version, capabilities);
    let agent = AgentProfile::new(version, &capabilities);
    Ok(match SessionRequest::read(&request).and_then(|request| validate(&request, &agent)) {
        Ok(validated) => {
            let servers = validated.server_names().map(str::to_owned).collect();
            let report =
                response_report(id, SessionOutcome::Result(AcceptedServers { servers }), Exit::Success);
            Report { err: notes(&validated), ..report }
        }
        Err(refusal) => response_report(id, SessionOutcome::Error(RpcError::from(&refusal)), Exit::Failure),
    })
}

/// A JSON-RPC response to a session request.
#[derive(Serialize)]
struct SessionResponse {
    jsonrpc: &'static str,
    id: RawJson,
    #[serde(flatten)]
    outcome: SessionOutcome,
}

/// The member `result` or `error` of the response.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum SessionOutcome {
    Result(AcceptedServers),
    Error(RpcError),
}

/// The result: the names of the accepted servers.
#[derive(Serialize)]
struct AcceptedServers {
    servers: Vec<String>,
}

fn response_report(id: RawJson, outcome: SessionOutcome, exit: Exit) -> Report {
    let mut out = json::indented(&json::line(&SessionResponse { jsonrpc: "2.0", id, outcome }));
    out.push('\n');
    Report { out, exit, ..Report::default() }
}

/// The notes on accepted servers, one per line.
fn notes(validated: &ValidatedRequest) -> String {
    let diagnostics = validated.warnings.iter().map(|warning| &warning.diagnostic);
    diagnostics.map(|diagnostic| format!("note: {}: {}\n", diagnostic.pointer, diagnostic.message)).collect()
}
