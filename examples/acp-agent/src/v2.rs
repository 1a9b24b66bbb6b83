//! Version 2, a draft: a prompt's response says that its message was taken; what comes of it are updates, until the
//! session is idle again. A prompt that comes meanwhile waits.

use std::sync::Arc;

use agent_client_protocol::v2::schema::{
    AgentCapabilities, CancelSessionNotification, CloseSessionRequest, CloseSessionResponse, ContentBlock,
    ContentChunk, Error as SchemaError, IdleStateUpdate, Implementation, InitializeRequest,
    InitializeResponse, ListSessionsRequest, ListSessionsResponse, MessageId, NewSessionResponse,
    PromptRequest, PromptResponse, ResumeSessionResponse, RunningStateUpdate, SessionCapabilities, SessionId,
    SessionUpdate, StateUpdate, StopReason, ToolCallStatus, ToolCallUpdate, UpdateSessionNotification,
    UserMessage,
};
use agent_client_protocol::v2::{ConnectionTo, Responder};
use agent_client_protocol::{Agent as Role, Client, ConnectTo, Error};
use agent_client_protocol::{on_receive_notification, on_receive_request};
use mcp_acp_agent::{NewSessionV2, ResumeSessionV2};

use crate::agent::Agent;
use crate::turn::{Output, run};

/// The agent for a client of version 2.
pub(crate) fn serve(agent: &Arc<Agent>) -> impl ConnectTo<Client> {
    let (initializing, beginning, resuming) = (Arc::clone(agent), Arc::clone(agent), Arc::clone(agent));
    let (closing, prompted, cancelling) = (Arc::clone(agent), Arc::clone(agent), Arc::clone(agent));
    Role.v2()
        .name("acp-agent")
        .on_receive_request(
            async move |request: InitializeRequest,
                        responder: Responder<InitializeResponse>,
                        _: ConnectionTo<Client>| {
                let sessions = SessionCapabilities::new().mcp(Some((&initializing.capabilities).into()));
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
                let (agent, cancelled) = (Arc::clone(&beginning), responder.cancellation());
                let updates = connection.clone();
                connection.spawn(async move {
                    let set_up = async {
                        let (session, servers) = agent.set_up(&request, updates.clone().into_raw()).await?;
                        Ok((session.clone(), NewSessionResponse::new(session).meta(servers.meta())))
                    };
                    match cancelled.run_until_cancelled(set_up).await {
                        Ok((session, response)) => {
                            responder.respond(response)?;
                            idle(&updates, &SessionId::new(session), None)
                        }
                        Err(error) => responder.respond_with_error(error),
                    }
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ResumeSessionV2,
                        responder: Responder<ResumeSessionResponse>,
                        connection: ConnectionTo<Client>| {
                let (agent, cancelled) = (Arc::clone(&resuming), responder.cancellation());
                let updates = connection.clone();
                connection.spawn(async move {
                    match cancelled
                        .run_until_cancelled(agent.set_up(&request, updates.clone().into_raw()))
                        .await
                    {
                        Ok((session, servers)) => {
                            idle(&updates, &SessionId::new(session), None)?;
                            responder.respond(ResumeSessionResponse::new().meta(servers.meta()))
                        }
                        Err(error) => responder.respond_with_error(error),
                    }
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            // What is over is not kept, and every session that goes on is its client's own.
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
                    // Closing what is not open is no mistake in this version.
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

/// Begins a turn, or has it wait. What cancels it is listened to before this returns.
fn prompt(
    agent: &Arc<Agent>,
    request: PromptRequest,
    responder: Responder<PromptResponse>,
    connection: ConnectionTo<Client>,
) -> Result<(), Error> {
    let Some(turns) = agent.session(&request.session_id.to_string()) else {
        return responder.respond_with_error(SchemaError::session_not_found(request.session_id).into());
    };
    if request.prompt.is_empty() {
        return responder.respond_with_error(Error::invalid_params().data("prompt must not be empty"));
    }
    let (mut cancelled, withdrawn) = (turns.cancelled(), responder.cancellation());
    let agent = Arc::clone(agent);
    let updates = connection.clone();
    connection.spawn(async move {
        let _one = tokio::select! {
            one = turns.one.lock() => one,
            _ = cancelled.changed() => return responder.respond_with_error(Error::request_cancelled()),
            () = withdrawn.cancelled() => return responder.respond_with_error(Error::request_cancelled()),
        };
        let session = request.session_id;
        // Closed meanwhile.
        let Some(servers) = agent.sessions.get(&session.to_string()) else {
            return responder.respond_with_error(Error::request_cancelled());
        };
        let said: Vec<&str> = request
            .prompt
            .iter()
            .filter_map(|it| match it {
                ContentBlock::Text(text) => Some(text.text.as_str()),
                _ => None,
            })
            .collect();
        let said = said.join("\n");
        let message = MessageId::new(agent.name("user-message"));
        responder.respond(PromptResponse::new(message.clone()))?;
        let user = UserMessage::new(message).content(request.prompt);
        tell(&updates, &session, SessionUpdate::UserMessage(user))?;
        tell(
            &updates,
            &session,
            SessionUpdate::StateUpdate(StateUpdate::Running(RunningStateUpdate::new())),
        )?;
        let telling = Telling {
            session: session.clone(),
            call: agent.name("call"),
            message: MessageId::new(agent.name("agent-message")),
            connection: updates.clone(),
        };
        let stopped = tokio::select! {
            () = run(&servers, &said, Arc::new(move |it| telling.tell(it))) => StopReason::EndTurn,
            _ = cancelled.changed() => StopReason::Cancelled,
        };
        idle(&updates, &session, Some(stopped))
    })
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

/// Puts a turn's output in the words of version 2.
struct Telling {
    session: SessionId,
    call: String,
    message: MessageId,
    connection: ConnectionTo<Client>,
}

impl Telling {
    fn tell(&self, output: Output) {
        let call = || ToolCallUpdate::new(self.call.clone());
        let update = match output {
            Output::Called { tool, arguments } => SessionUpdate::ToolCallUpdate(
                call().title(tool).status(ToolCallStatus::InProgress).raw_input(arguments),
            ),
            Output::Progress(words) => SessionUpdate::ToolCallUpdate(call().content(vec![words.into()])),
            Output::Answered(result) => {
                let status = if result.success { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
                let text = result.error.as_ref().map_or_else(|| result.text(), |it| it.message.clone());
                let raw = serde_json::to_value(&*result).unwrap_or_default();
                SessionUpdate::ToolCallUpdate(
                    call().status(status).content(vec![text.into()]).raw_output(raw),
                )
            }
            Output::Said(text) => {
                SessionUpdate::AgentMessageChunk(ContentChunk::new(text.into(), self.message.clone()))
            }
        };
        // Fails when the client is gone; then so is this turn.
        let _ = tell(&self.connection, &self.session, update);
    }
}
