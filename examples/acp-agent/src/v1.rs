//! Version 1: the response to a prompt is sent at the end of its turn.

use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, CloseSessionRequest, CloseSessionResponse, ContentBlock,
    ContentChunk, ForkSessionResponse, Implementation, InitializeRequest, InitializeResponse,
    LoadSessionResponse, NewSessionResponse, PromptRequest, PromptResponse, ResumeSessionResponse,
    SessionCapabilities, SessionCloseCapabilities, SessionForkCapabilities, SessionNotification,
    SessionResumeCapabilities, SessionUpdate, StopReason, ToolCall, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{
    Agent as Role, Client, ConnectTo, Error, JsonRpcResponse, schema::ProtocolVersion,
};
use agent_client_protocol::{on_receive_notification, on_receive_request};
use mcp_host_acp_agent::{ForkSession, LoadSession, NewSession, ResumeSession, TypedSessionRequest};
use serde_json::{Map, Value};

use crate::agent::{Agent, ConnectedSession, session_not_found};
use crate::turn::{Output, TurnOutcome};

/// The handlers for a client of version 1.
pub(crate) fn serve(agent: &Arc<Agent>) -> impl ConnectTo<Client> {
    let (initializing, creating, loading) = (Arc::clone(agent), Arc::clone(agent), Arc::clone(agent));
    let (resuming, forking, closing) = (Arc::clone(agent), Arc::clone(agent), Arc::clone(agent));
    let (prompted, cancelling) = (Arc::clone(agent), Arc::clone(agent));
    Role.v1()
        .name("acp-agent")
        .on_receive_request(
            async move |request: InitializeRequest,
                        responder: Responder<InitializeResponse>,
                        _: ConnectionTo<Client>| {
                // A second `initialize` changes nothing.
                let _ = initializing.notices.set((&request.client_capabilities).into());
                responder.respond(initialize_response(&initializing))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: NewSession,
                        responder: Responder<NewSessionResponse>,
                        connection: ConnectionTo<Client>| {
                set_up(&creating, request, responder, connection, |connected, meta| {
                    NewSessionResponse::new(connected.session.clone()).meta(meta)
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: LoadSession,
                        responder: Responder<LoadSessionResponse>,
                        connection: ConnectionTo<Client>| {
                set_up(&loading, request, responder, connection, |_, meta| {
                    LoadSessionResponse::new().meta(meta)
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ResumeSession,
                        responder: Responder<ResumeSessionResponse>,
                        connection: ConnectionTo<Client>| {
                set_up(&resuming, request, responder, connection, |_, meta| {
                    ResumeSessionResponse::new().meta(meta)
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ForkSession,
                        responder: Responder<ForkSessionResponse>,
                        connection: ConnectionTo<Client>| {
                set_up(&forking, request, responder, connection, |connected, meta| {
                    ForkSessionResponse::new(connected.session.clone()).meta(meta)
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: CloseSessionRequest,
                        responder: Responder<CloseSessionResponse>,
                        connection: ConnectionTo<Client>| {
                let agent = Arc::clone(&closing);
                connection.spawn(async move {
                    match agent.close(&request.session_id.0).await {
                        true => responder.respond(CloseSessionResponse::new()),
                        false => responder.respond_with_error(session_not_found(&request.session_id.0)),
                    }
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest,
                        responder: Responder<PromptResponse>,
                        connection: ConnectionTo<Client>| {
                prompt(&prompted, request, responder, connection)
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |notification: CancelNotification, _: ConnectionTo<Client>| {
                cancelling.cancel(&notification.session_id.0);
                Ok(())
            },
            on_receive_notification!(),
        )
}

fn initialize_response(agent: &Agent) -> InitializeResponse {
    let sessions = SessionCapabilities::new()
        .resume(SessionResumeCapabilities::new())
        .fork(SessionForkCapabilities::new())
        .close(SessionCloseCapabilities::new());
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .mcp_capabilities((&agent.capabilities).into())
        .session_capabilities(sessions);
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .agent_info(Implementation::new("acp-agent", env!("CARGO_PKG_VERSION")))
}

/// Sets up a session in the background, and responds. `respond` creates the response with this `_meta`.
fn set_up<T: JsonRpcResponse>(
    agent: &Arc<Agent>,
    request: impl TypedSessionRequest,
    responder: Responder<T>,
    connection: ConnectionTo<Client>,
    respond: impl FnOnce(&ConnectedSession, Map<String, Value>) -> T + Send + 'static,
) -> Result<(), Error> {
    let (cancelled, raw) = (responder.cancellation(), connection.clone().into_raw());
    agent.set_up(request, raw, cancelled, move |result| match result {
        Ok(connected) => {
            responder.respond(respond(&connected, connected.servers.to_meta()))?;
            report_servers(&connection, connected)
        }
        Err(error) => responder.respond_with_error(error),
    })
}

/// Tells the client of servers that are not connected, now and later, until they are closed or replaced.
fn report_servers(connection: &ConnectionTo<Client>, connected: ConnectedSession) -> Result<(), Error> {
    let ConnectedSession { session, servers: _, mut updates } = connected;
    let client = connection.clone();
    connection.spawn(async move {
        while let Some(update) = updates.next().await {
            client.send_notification(SessionNotification::new(session.clone(), update.into()))?;
        }
        Ok(())
    })
}

/// Starts or queues a turn.
fn prompt(
    agent: &Arc<Agent>,
    request: PromptRequest,
    responder: Responder<PromptResponse>,
    connection: ConnectionTo<Client>,
) -> Result<(), Error> {
    let session = request.session_id;
    let queued = match agent.queue(&session.0, responder.cancellation()) {
        Ok(queued) => queued,
        Err(error) => return responder.respond_with_error(error),
    };
    let call = agent.new_id("call");
    let updates = connection.clone();
    connection.spawn(async move {
        let prompt: Vec<&str> = request.prompt.iter().filter_map(text).collect();
        let send = move |output| {
            // An error means that the client has disconnected, which ends this turn, too.
            let _ =
                updates.send_notification(SessionNotification::new(session.clone(), update(&call, output)));
        };
        let outcome = match queued.start().await {
            Ok(Some(turn)) => turn.run(&prompt.join("\n"), send).await,
            Ok(None) => TurnOutcome::Cancelled,
            Err(error) => return responder.respond_with_error(error),
        };
        responder.respond(PromptResponse::new(match outcome {
            TurnOutcome::Finished => StopReason::EndTurn,
            TurnOutcome::Cancelled => StopReason::Cancelled,
        }))
    })
}

fn text(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text(text) => Some(&text.text),
        _ => None,
    }
}

/// Converts a turn's output to version 1.
fn update(call: &str, output: Output) -> SessionUpdate {
    let update = |fields| SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call.to_owned(), fields));
    match output {
        Output::CallStarted { tool, arguments } => SessionUpdate::ToolCall(
            ToolCall::new(call.to_owned(), tool).status(ToolCallStatus::InProgress).raw_input(arguments),
        ),
        Output::Progress(text) => update(ToolCallUpdateFields::new().content(vec![text.into()])),
        Output::CallEnded { success, text, raw } => {
            let status = if success { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
            update(ToolCallUpdateFields::new().status(status).content(vec![text.into()]).raw_output(raw))
        }
        Output::Text(text) => SessionUpdate::AgentMessageChunk(ContentChunk::new(text.into())),
    }
}
