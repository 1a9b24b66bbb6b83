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
use agent_client_protocol::{Agent as Role, Client, ConnectTo, Error, JsonRpcResponse};
use agent_client_protocol::{on_receive_notification, on_receive_request};
use mcp_host_acp_agent::{ForkSessionV2, NewSessionV2, NoticeSupport, ResumeSessionV2, TypedSessionRequest};
use serde_json::{Map, Value};

use crate::agent::{Agent, ConnectedSession};
use crate::turn::{Output, TurnOutcome};

/// The handlers for a client of version 2.
pub(crate) fn serve(agent: &Arc<Agent>) -> impl ConnectTo<Client> {
    let (initializing, creating, resuming) = (Arc::clone(agent), Arc::clone(agent), Arc::clone(agent));
    let (forking, closing) = (Arc::clone(agent), Arc::clone(agent));
    let (prompted, cancelling) = (Arc::clone(agent), Arc::clone(agent));
    Role.v2()
        .name("acp-agent")
        .on_receive_request(
            async move |request: InitializeRequest,
                        responder: Responder<InitializeResponse>,
                        _: ConnectionTo<Client>| {
                // Every client of this version may receive notices. A second `initialize` changes nothing.
                let _ = initializing.notices.set(NoticeSupport::Supported);
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
                set_up(&creating, request, responder, connection, |responder, updates, session, meta| {
                    responder.respond(NewSessionResponse::new(session.clone()).meta(meta))?;
                    send_idle(updates, session, None)
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ForkSessionV2,
                        responder: Responder<ForkSessionResponse>,
                        connection: ConnectionTo<Client>| {
                set_up(&forking, request, responder, connection, |responder, updates, session, meta| {
                    responder.respond(ForkSessionResponse::new(session.clone()).meta(meta))?;
                    send_idle(updates, session, None)
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ResumeSessionV2,
                        responder: Responder<ResumeSessionResponse>,
                        connection: ConnectionTo<Client>| {
                set_up(&resuming, request, responder, connection, |responder, updates, session, meta| {
                    send_idle(updates, session, None)?;
                    responder.respond(ResumeSessionResponse::new().meta(meta))
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
            async move |notification: CancelSessionNotification, _: ConnectionTo<Client>| {
                cancelling.cancel(&notification.session_id.to_string());
                Ok(())
            },
            on_receive_notification!(),
        )
}

/// Sets up a session in the background. `respond` sends the response with this `_meta`.
fn set_up<T: JsonRpcResponse>(
    agent: &Arc<Agent>,
    request: impl TypedSessionRequest,
    responder: Responder<T>,
    connection: ConnectionTo<Client>,
    respond: impl FnOnce(Responder<T>, &ConnectionTo<Client>, &SessionId, Map<String, Value>) -> Result<(), Error>
    + Send
    + 'static,
) -> Result<(), Error> {
    let (cancelled, updates) = (responder.cancellation(), connection.clone());
    agent.set_up(request, connection.into_raw(), cancelled, move |result| match result {
        Ok(connected) => {
            let session = SessionId::new(connected.session.clone());
            respond(responder, &updates, &session, connected.servers.to_meta())?;
            report_servers(&updates, session, connected)
        }
        Err(error) => responder.respond_with_error(error),
    })
}

/// Tells the client of servers that are not connected, now and later, until they are closed or replaced.
fn report_servers(
    connection: &ConnectionTo<Client>,
    session: SessionId,
    connected: ConnectedSession,
) -> Result<(), Error> {
    let (client, mut updates) = (connection.clone(), connected.updates);
    connection.spawn(async move {
        while let Some(update) = updates.next().await {
            send_update(&client, &session, update.into())?;
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
    let queued = match agent.queue(&session.to_string(), responder.cancellation()) {
        Ok(_) if request.prompt.is_empty() => {
            return responder.respond_with_error(Error::invalid_params().data("prompt must not be empty"));
        }
        Ok(queued) => queued,
        Err(error) => return responder.respond_with_error(error),
    };
    let agent = Arc::clone(agent);
    let updates = connection.clone();
    connection.spawn(async move {
        let turn = match queued.start().await {
            Ok(Some(turn)) => turn,
            Ok(None) => return responder.respond_with_error(Error::request_cancelled()),
            Err(error) => return responder.respond_with_error(error),
        };
        let prompt = request.prompt.iter().filter_map(text).collect::<Vec<_>>().join("\n");
        let message = MessageId::new(agent.new_id("user-message"));
        responder.respond(PromptResponse::new(message.clone()))?;
        let user = UserMessage::new(message).content(request.prompt);
        send_update(&updates, &session, SessionUpdate::UserMessage(user))?;
        let running = StateUpdate::Running(RunningStateUpdate::new());
        send_update(&updates, &session, SessionUpdate::StateUpdate(running))?;
        let (call, message) = (agent.new_id("call"), MessageId::new(agent.new_id("agent-message")));
        let (turn_updates, turn_session) = (updates.clone(), session.clone());
        let outcome = turn.run(&prompt, move |output| {
            // An error means that the client has disconnected, which ends this turn, too.
            let _ = send_update(&turn_updates, &turn_session, update(&call, &message, output));
        });
        let stop_reason = match outcome.await {
            TurnOutcome::Finished => StopReason::EndTurn,
            TurnOutcome::Cancelled => StopReason::Cancelled,
        };
        send_idle(&updates, &session, Some(stop_reason))
    })
}

fn text(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text(text) => Some(&text.text),
        _ => None,
    }
}

fn send_idle(
    connection: &ConnectionTo<Client>,
    session: &SessionId,
    stop_reason: Option<StopReason>,
) -> Result<(), Error> {
    let update = IdleStateUpdate::new().stop_reason(stop_reason);
    send_update(connection, session, SessionUpdate::StateUpdate(StateUpdate::Idle(update)))
}

fn send_update(
    connection: &ConnectionTo<Client>,
    session: &SessionId,
    update: SessionUpdate,
) -> Result<(), Error> {
    connection.send_notification(UpdateSessionNotification::new(session.clone(), update))
}

/// Converts a turn's output to version 2.
fn update(call: &str, message: &MessageId, output: Output) -> SessionUpdate {
    let call = || ToolCallUpdate::new(call.to_owned());
    match output {
        Output::CallStarted { tool, arguments } => SessionUpdate::ToolCallUpdate(
            call().title(tool).status(ToolCallStatus::InProgress).raw_input(arguments),
        ),
        Output::Progress(text) => SessionUpdate::ToolCallUpdate(call().content(vec![text.into()])),
        Output::CallEnded { success, text, raw } => {
            let status = if success { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
            SessionUpdate::ToolCallUpdate(call().status(status).content(vec![text.into()]).raw_output(raw))
        }
        Output::Text(text) => {
            SessionUpdate::AgentMessageChunk(ContentChunk::new(text.into(), message.clone()))
        }
    }
}
