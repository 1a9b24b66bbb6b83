//! Version 2, a draft: the response to a prompt confirms its message; the output follows as updates until the session
//! is idle. Later prompts are queued.

use std::sync::Arc;

use agent_client_protocol::v2::schema::{
    AgentCapabilities, CancelSessionNotification, CloseSessionRequest, CloseSessionResponse, ContentBlock,
    ContentChunk, ForkSessionResponse, IdleStateUpdate, Implementation, InitializeRequest,
    InitializeResponse, ListSessionsRequest, ListSessionsResponse, MessageId, NewSessionResponse,
    PromptRequest, PromptResponse, ResumeSessionResponse, RunningStateUpdate, SessionCapabilities,
    SessionForkCapabilities, SessionId, SessionUpdate, StateUpdate, StopReason, ToolCallStatus,
    ToolCallUpdate, UpdateSessionNotification, UserMessage,
};
use agent_client_protocol::v2::{ConnectionTo, Responder};
use agent_client_protocol::{Agent as Role, Client, ConnectTo, Error};
use agent_client_protocol::{on_receive_notification, on_receive_request};
use mcp_acp_agent::{ForkSessionV2, NewSessionV2, ResumeSessionV2};

use crate::agent::Agent;
use crate::turn::{Ended, Output};

/// The handlers for a client of version 2.
pub(crate) fn serve(agent: &Arc<Agent>) -> impl ConnectTo<Client> {
    let (initializing, beginning, resuming) = (Arc::clone(agent), Arc::clone(agent), Arc::clone(agent));
    let (forking, closing) = (Arc::clone(agent), Arc::clone(agent));
    let (prompted, cancelling) = (Arc::clone(agent), Arc::clone(agent));
    Role.v2()
        .name("acp-agent")
        .on_receive_request(
            async move |request: InitializeRequest,
                        responder: Responder<InitializeResponse>,
                        _: ConnectionTo<Client>| {
                let sessions = SessionCapabilities::new()
                    .mcp(Some((&initializing.capabilities).into()))
                    .fork(SessionForkCapabilities::new());
                let info = Implementation::new("acp-agent", env!("CARGO_PKG_VERSION"));
                let capabilities = AgentCapabilities::new().session(sessions);
                responder.respond(
                    InitializeResponse::new(request.protocol_version, info).capabilities(capabilities),
                )
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: NewSessionV2,
                        responder: Responder<NewSessionResponse>,
                        connection: ConnectionTo<Client>| {
                let (cancelled, updates) = (responder.cancellation(), connection.clone());
                beginning.begin(request, connection.into_raw(), cancelled, move |done| match done {
                    Ok(it) => {
                        let session = SessionId::new(it.session);
                        responder
                            .respond(NewSessionResponse::new(session.clone()).meta(it.servers.to_meta()))?;
                        idle(&updates, &session, None)
                    }
                    Err(error) => responder.respond_with_error(error),
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ForkSessionV2,
                        responder: Responder<ForkSessionResponse>,
                        connection: ConnectionTo<Client>| {
                let (cancelled, updates) = (responder.cancellation(), connection.clone());
                forking.begin(request, connection.into_raw(), cancelled, move |done| match done {
                    Ok(it) => {
                        let session = SessionId::new(it.session);
                        responder
                            .respond(ForkSessionResponse::new(session.clone()).meta(it.servers.to_meta()))?;
                        idle(&updates, &session, None)
                    }
                    Err(error) => responder.respond_with_error(error),
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ResumeSessionV2,
                        responder: Responder<ResumeSessionResponse>,
                        connection: ConnectionTo<Client>| {
                let (cancelled, updates) = (responder.cancellation(), connection.clone());
                resuming.begin(request, connection.into_raw(), cancelled, move |done| match done {
                    Ok(it) => {
                        idle(&updates, &SessionId::new(it.session), None)?;
                        responder.respond(ResumeSessionResponse::new().meta(it.servers.to_meta()))
                    }
                    Err(error) => responder.respond_with_error(error),
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            // Ended sessions are not kept, and all running ones belong to this client.
            async |_: ListSessionsRequest,
                   responder: Responder<ListSessionsResponse>,
                   _: ConnectionTo<Client>| {
                responder.respond(ListSessionsResponse::new(Vec::new()))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: CloseSessionRequest,
                        responder: Responder<CloseSessionResponse>,
                        connection: ConnectionTo<Client>| {
                let agent = Arc::clone(&closing);
                connection.spawn(async move {
                    // Closing an unknown session is not an error in this version.
                    agent.close(&request.session_id.to_string()).await;
                    responder.respond(CloseSessionResponse::new())
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
            async move |it: CancelSessionNotification, _: ConnectionTo<Client>| {
                cancelling.cancel(&it.session_id.to_string());
                Ok(())
            },
            on_receive_notification!(),
        )
}

/// Starts or queues a turn.
fn prompt(
    agent: &Arc<Agent>,
    request: PromptRequest,
    responder: Responder<PromptResponse>,
    connection: ConnectionTo<Client>,
) -> Result<(), Error> {
    let session = request.session_id;
    let waiting = match agent.queue(&session.to_string(), responder.cancellation()) {
        Ok(_) if request.prompt.is_empty() => {
            return responder.respond_with_error(Error::invalid_params().data("prompt must not be empty"));
        }
        Ok(waiting) => waiting,
        Err(error) => return responder.respond_with_error(error),
    };
    let agent = Arc::clone(agent);
    let updates = connection.clone();
    connection.spawn(async move {
        let Some(turn) = waiting.begins().await else {
            return responder.respond_with_error(Error::request_cancelled());
        };
        let said = request.prompt.iter().filter_map(text).collect::<Vec<_>>().join("\n");
        let message = MessageId::new(agent.name("user-message"));
        responder.respond(PromptResponse::new(message.clone()))?;
        let user = UserMessage::new(message).content(request.prompt);
        tell(&updates, &session, SessionUpdate::UserMessage(user))?;
        let running = StateUpdate::Running(RunningStateUpdate::new());
        tell(&updates, &session, SessionUpdate::StateUpdate(running))?;
        let (call, message) = (agent.name("call"), MessageId::new(agent.name("agent-message")));
        let (through, of) = (updates.clone(), session.clone());
        let ended = turn.run(&said, move |output| {
            // An error means that the client is gone, which ends this turn, too.
            let _ = tell(&through, &of, update(&call, &message, output));
        });
        let stopped = match ended.await {
            Ended::Finished => StopReason::EndTurn,
            Ended::Cancelled => StopReason::Cancelled,
        };
        idle(&updates, &session, Some(stopped))
    })
}

fn text(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text(it) => Some(&it.text),
        _ => None,
    }
}

fn idle(
    connection: &ConnectionTo<Client>,
    session: &SessionId,
    stopped: Option<StopReason>,
) -> Result<(), Error> {
    let update = IdleStateUpdate::new().stop_reason(stopped);
    tell(connection, session, SessionUpdate::StateUpdate(StateUpdate::Idle(update)))
}

fn tell(connection: &ConnectionTo<Client>, session: &SessionId, update: SessionUpdate) -> Result<(), Error> {
    connection.send_notification(UpdateSessionNotification::new(session.clone(), update))
}

/// Converts a turn's output to version 2.
fn update(call: &str, message: &MessageId, output: Output) -> SessionUpdate {
    let call = || ToolCallUpdate::new(call.to_owned());
    match output {
        Output::Called { tool, arguments } => SessionUpdate::ToolCallUpdate(
            call().title(tool).status(ToolCallStatus::InProgress).raw_input(arguments),
        ),
        Output::Progress(words) => SessionUpdate::ToolCallUpdate(call().content(vec![words.into()])),
        Output::Answered { success, text, raw } => {
            let status = if success { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
            SessionUpdate::ToolCallUpdate(call().status(status).content(vec![text.into()]).raw_output(raw))
        }
        Output::Said(text) => {
            SessionUpdate::AgentMessageChunk(ContentChunk::new(text.into(), message.clone()))
        }
    }
}
