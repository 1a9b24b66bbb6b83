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
use agent_client_protocol::{Agent as Role, Client, ConnectTo, Error, schema::ProtocolVersion};
use agent_client_protocol::{on_receive_notification, on_receive_request};
use mcp_acp_agent::{ForkSession, LoadSession, NewSession, ResumeSession};

use crate::agent::{Agent, unknown};
use crate::turn::{Ended, Output};

/// The handlers for a client of version 1.
pub(crate) fn serve(agent: &Arc<Agent>) -> impl ConnectTo<Client> {
    let (initializing, beginning, loading) = (Arc::clone(agent), Arc::clone(agent), Arc::clone(agent));
    let (resuming, forking, closing) = (Arc::clone(agent), Arc::clone(agent), Arc::clone(agent));
    let (prompted, cancelling) = (Arc::clone(agent), Arc::clone(agent));
    Role.v1()
        .name("acp-agent")
        .on_receive_request(
            async move |_: InitializeRequest,
                        responder: Responder<InitializeResponse>,
                        _: ConnectionTo<Client>| {
                responder.respond(introduction(&initializing))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: NewSession,
                        responder: Responder<NewSessionResponse>,
                        connection: ConnectionTo<Client>| {
                let cancelled = responder.cancellation();
                beginning.begin(request, connection.into_raw(), cancelled, |done| {
                    let response =
                        done.map(|it| NewSessionResponse::new(it.session).meta(it.servers.to_meta()));
                    responder.respond_with_result(response)
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: LoadSession,
                        responder: Responder<LoadSessionResponse>,
                        connection: ConnectionTo<Client>| {
                let cancelled = responder.cancellation();
                loading.begin(request, connection.into_raw(), cancelled, |done| {
                    let response = done.map(|it| LoadSessionResponse::new().meta(it.servers.to_meta()));
                    responder.respond_with_result(response)
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ResumeSession,
                        responder: Responder<ResumeSessionResponse>,
                        connection: ConnectionTo<Client>| {
                let cancelled = responder.cancellation();
                resuming.begin(request, connection.into_raw(), cancelled, |done| {
                    let response = done.map(|it| ResumeSessionResponse::new().meta(it.servers.to_meta()));
                    responder.respond_with_result(response)
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ForkSession,
                        responder: Responder<ForkSessionResponse>,
                        connection: ConnectionTo<Client>| {
                let cancelled = responder.cancellation();
                forking.begin(request, connection.into_raw(), cancelled, |done| {
                    let response =
                        done.map(|it| ForkSessionResponse::new(it.session).meta(it.servers.to_meta()));
                    responder.respond_with_result(response)
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
                        false => responder.respond_with_error(unknown(&request.session_id.0)),
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
            async move |it: CancelNotification, _: ConnectionTo<Client>| {
                cancelling.cancel(&it.session_id.0);
                Ok(())
            },
            on_receive_notification!(),
        )
}

fn introduction(agent: &Agent) -> InitializeResponse {
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

/// Starts or queues a turn.
fn prompt(
    agent: &Arc<Agent>,
    request: PromptRequest,
    responder: Responder<PromptResponse>,
    connection: ConnectionTo<Client>,
) -> Result<(), Error> {
    let session = request.session_id;
    let waiting = match agent.queue(&session.0, responder.cancellation()) {
        Ok(waiting) => waiting,
        Err(error) => return responder.respond_with_error(error),
    };
    let call = agent.name("call");
    let updates = connection.clone();
    connection.spawn(async move {
        let said: Vec<&str> = request.prompt.iter().filter_map(text).collect();
        let tell = move |output| {
            // An error means that the client is gone, which ends this turn, too.
            let _ =
                updates.send_notification(SessionNotification::new(session.clone(), update(&call, output)));
        };
        let ended = match waiting.begins().await {
            Some(turn) => turn.run(&said.join("\n"), tell).await,
            None => Ended::Cancelled,
        };
        responder.respond(PromptResponse::new(match ended {
            Ended::Finished => StopReason::EndTurn,
            Ended::Cancelled => StopReason::Cancelled,
        }))
    })
}

fn text(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text(it) => Some(&it.text),
        _ => None,
    }
}

/// Converts a turn's output to version 1.
fn update(call: &str, output: Output) -> SessionUpdate {
    let update = |fields| SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call.to_owned(), fields));
    match output {
        Output::Called { tool, arguments } => SessionUpdate::ToolCall(
            ToolCall::new(call.to_owned(), tool).status(ToolCallStatus::InProgress).raw_input(arguments),
        ),
        Output::Progress(words) => update(ToolCallUpdateFields::new().content(vec![words.into()])),
        Output::Answered { success, text, raw } => {
            let status = if success { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
            update(ToolCallUpdateFields::new().status(status).content(vec![text.into()]).raw_output(raw))
        }
        Output::Said(text) => SessionUpdate::AgentMessageChunk(ContentChunk::new(text.into())),
    }
}
