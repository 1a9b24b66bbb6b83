//! A small ACP agent over standard input and output: `cargo run -p mcp-host-acp-agent --example acp_agent`.
//!
//! Its user is the model: the prompt `files__list {"path": "/"}` calls a tool of the session's MCP servers, and any
//! other prompt lists the tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    self, AgentCapabilities, ContentBlock, ContentChunk, InitializeRequest, InitializeResponse,
    McpCapabilities, NewSessionResponse, PromptRequest, PromptResponse, SessionNotification, SessionUpdate,
    StopReason,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, Client, ConnectTo, Error, Stdio, on_receive_request};
use mcp_host_acp::{Capabilities, Policy};
use mcp_host_acp_agent::{
    ConnectOptions, NewSession, SessionRegistry, SessionServers, ToolCall, TypedSessionRequest,
};
use mcp_host_model::RawJson;

/// What `initialize` declares, and what session requests are checked against.
const CAPABILITIES: Capabilities = {
    let mut capabilities = Capabilities::STDIO;
    capabilities.http = true;
    capabilities
};

fn initialize() -> InitializeResponse {
    let mcp = McpCapabilities::new().http(CAPABILITIES.http).sse(CAPABILITIES.sse);
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(AgentCapabilities::new().mcp_capabilities(mcp))
}

/// Connects the servers of a session. An error of the request has all its violations, as the client expects it.
async fn new_session(
    sessions: &SessionRegistry,
    id: String,
    request: NewSession,
) -> Result<NewSessionResponse, Error> {
    let options = ConnectOptions::default();
    let validated = request.validate(&CAPABILITIES, Policy::default()).await?;
    // Without a free slot the request is refused before a server starts.
    let slot = sessions.reserve(id.as_str(), &validated, &options)?;
    // Servers that need longer than 30 s join later; a failed one is a status, not an error.
    let servers = SessionServers::connect(validated, options).await?;
    let installed = sessions.install(servers, slot)?;
    Ok(NewSessionResponse::new(id).meta(installed.servers.to_meta()))
}

async fn prompt(
    sessions: &SessionRegistry,
    request: PromptRequest,
    client: &ConnectionTo<Client>,
) -> Result<PromptResponse, Error> {
    let session = request.session_id;
    // Starts servers that were stopped to make room for another session. They run as long as `servers` is held.
    let Some(servers) = sessions.acquire(&session.0).await? else {
        return Err(schema::Error::session_not_found(session.0.to_string()).into());
    };
    let answer = match request.prompt.first() {
        Some(ContentBlock::Text(text)) => run_turn(&servers, &text.text).await,
        _ => "The prompt must be a text.".to_owned(),
    };
    let update = SessionUpdate::AgentMessageChunk(ContentChunk::new(answer.into()));
    client.send_notification(SessionNotification::new(session, update))?;
    Ok(PromptResponse::new(StopReason::EndTurn))
}

/// Runs a prompt `TOOL [ARGUMENTS]`. Returns the text of the result, or the names of the tools for an unknown tool.
async fn run_turn(servers: &SessionServers, prompt: &str) -> String {
    let (name, arguments) = prompt.split_once(' ').unwrap_or((prompt, "{}"));
    let tools = servers.tools();
    if !tools.iter().any(|tool| tool.name.as_str() == name) {
        return tools.iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>().join("\n");
    }
    match RawJson::parse(arguments.to_owned().into()) {
        Ok(arguments) => {
            let result = servers.call(ToolCall::new(name, arguments)).await;
            result.error.as_ref().map_or_else(|| result.text(), ToString::to_string)
        }
        Err(error) => format!("The arguments are not valid JSON: {error}."),
    }
}

/// Serves a client until it disconnects, and then closes the servers of all sessions.
pub(crate) async fn serve(client: impl ConnectTo<Agent>) -> Result<(), Error> {
    let sessions = Arc::new(SessionRegistry::new());
    let (created, prompted) = (Arc::clone(&sessions), Arc::clone(&sessions));
    // This agent loads no session of an earlier run; else ids would have to be random.
    let count = AtomicU64::new(0);
    let served = Agent
        .v1()
        .on_receive_request(
            async move |_: InitializeRequest,
                        responder: Responder<InitializeResponse>,
                        _: ConnectionTo<Client>| responder.respond(initialize()),
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: NewSession,
                        responder: Responder<NewSessionResponse>,
                        client: ConnectionTo<Client>| {
                let (sessions, cancelled) = (Arc::clone(&created), responder.cancellation());
                let id = format!("session-{}", count.fetch_add(1, Ordering::Relaxed));
                // Awaiting in the handler itself would hold up every other message.
                client.spawn(async move {
                    let response = new_session(&sessions, id, request);
                    responder.respond_with_result(cancelled.run_until_cancelled(response).await)
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest,
                        responder: Responder<PromptResponse>,
                        client: ConnectionTo<Client>| {
                let (sessions, cancelled) = (Arc::clone(&prompted), responder.cancellation());
                client.clone().spawn(async move {
                    let response = prompt(&sessions, request, &client);
                    responder.respond_with_result(cancelled.run_until_cancelled(response).await)
                })
            },
            on_receive_request!(),
        );
    let ended = served.connect_to(client).await;
    sessions.close_all().await;
    ended
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    serve(Stdio::new()).await
}
