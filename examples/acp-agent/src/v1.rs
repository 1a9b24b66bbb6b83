//! Version 1: a prompt's response is the end of its turn.

use std::sync::{Arc, Mutex, PoisonError};

use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, CloseSessionRequest, CloseSessionResponse, ContentBlock,
    ContentChunk, Error as SchemaError, Implementation, InitializeRequest, InitializeResponse,
    LoadSessionResponse, NewSessionResponse, PromptRequest, PromptResponse, ResumeSessionResponse,
    SessionCapabilities, SessionCloseCapabilities, SessionNotification, SessionResumeCapabilities,
    SessionUpdate, StopReason, ToolCall, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent as Role, Client, ConnectTo, Error, schema::ProtocolVersion};
use agent_client_protocol::{on_receive_notification, on_receive_request};
use mcp_acp_agent::{LoadSession, NewSession, ResumeSession};

use crate::agent::Agent;
use crate::turn::{Output, run};

/// The agent for a client of version 1.
pub(crate) fn serve(agent: &Arc<Agent>) -> impl ConnectTo<Client> {
    let (initializing, beginning, loading) = (Arc::clone(agent), Arc::clone(agent), Arc::clone(agent));
    let (resuming, closing, prompted, cancelling) =
        (Arc::clone(agent), Arc::clone(agent), Arc::clone(agent), Arc::clone(agent));
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
                let (agent, cancelled) = (Arc::clone(&beginning), responder.cancellation());
                let through = connection.clone().into_raw();
                connection.spawn(async move {
                    let set_up = async {
                        let (session, servers) = agent.set_up(&request, through).await?;
                        Ok(NewSessionResponse::new(session).meta(servers.meta()))
                    };
                    responder.respond_with_result(cancelled.run_until_cancelled(set_up).await)
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: LoadSession,
                        responder: Responder<LoadSessionResponse>,
                        connection: ConnectionTo<Client>| {
                let (agent, cancelled) = (Arc::clone(&loading), responder.cancellation());
                let through = connection.clone().into_raw();
                connection.spawn(async move {
                    let set_up = async {
                        let (_, servers) = agent.set_up(&request, through).await?;
                        Ok(LoadSessionResponse::new().meta(servers.meta()))
                    };
                    responder.respond_with_result(cancelled.run_until_cancelled(set_up).await)
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ResumeSession,
                        responder: Responder<ResumeSessionResponse>,
                        connection: ConnectionTo<Client>| {
                let (agent, cancelled) = (Arc::clone(&resuming), responder.cancellation());
                let through = connection.clone().into_raw();
                connection.spawn(async move {
                    let set_up = async {
                        let (_, servers) = agent.set_up(&request, through).await?;
                        Ok(ResumeSessionResponse::new().meta(servers.meta()))
                    };
                    responder.respond_with_result(cancelled.run_until_cancelled(set_up).await)
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
                        false => responder
                            .respond_with_error(SchemaError::session_not_found(request.session_id).into()),
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
        .close(SessionCloseCapabilities::new());
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .mcp_capabilities((&agent.capabilities).into())
        .session_capabilities(sessions);
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .agent_info(Implementation::new("acp-agent", env!("CARGO_PKG_VERSION")))
}

/// Begins a turn. What cancels it is listened to before this returns, so that no cancellation comes too early.
fn prompt(
    agent: &Arc<Agent>,
    request: PromptRequest,
    responder: Responder<PromptResponse>,
    connection: ConnectionTo<Client>,
) -> Result<(), Error> {
    let Some(turns) = agent.session(&request.session_id.0) else {
        return responder.respond_with_error(SchemaError::session_not_found(request.session_id).into());
    };
    let (mut cancelled, withdrawn) = (turns.cancelled(), responder.cancellation());
    let tells = Arc::new(Telling {
        session: request.session_id,
        call: agent.name("call"),
        connection: connection.clone(),
        failed: Mutex::new(None),
    });
    let said: Vec<&str> = request
        .prompt
        .iter()
        .filter_map(|it| match it {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
        .collect();
    let said = said.join("\n");
    let agent = Arc::clone(agent);
    connection.spawn(async move {
        let out = Arc::clone(&tells);
        let turn = async {
            let _one = turns.one.lock().await;
            // A session that is closed has cancelled this turn.
            let Some(servers) = agent.sessions.get(&tells.session.0) else { return };
            run(&servers, &said, Arc::new(move |it| out.tell(it))).await;
        };
        let stopped = tokio::select! {
            () = turn => StopReason::EndTurn,
            _ = cancelled.changed() => StopReason::Cancelled,
            () = withdrawn.cancelled() => StopReason::Cancelled,
        };
        match tells.failed() {
            Some(error) => responder.respond_with_error(error),
            None => responder.respond(PromptResponse::new(stopped)),
        }
    })
}

/// Puts a turn's output in the words of version 1.
struct Telling {
    session: agent_client_protocol::v1::schema::SessionId,
    call: String,
    connection: ConnectionTo<Client>,
    failed: Mutex<Option<Error>>,
}

impl Telling {
    fn tell(&self, output: Output) {
        let update = |fields| SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(self.call.clone(), fields));
        let update = match output {
            Output::Called { tool, arguments } => SessionUpdate::ToolCall(
                ToolCall::new(self.call.clone(), tool)
                    .status(ToolCallStatus::InProgress)
                    .raw_input(arguments),
            ),
            Output::Progress(words) => update(ToolCallUpdateFields::new().content(vec![words.into()])),
            Output::Answered(result) => {
                let status = if result.success { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
                let text = result.error.as_ref().map_or_else(|| result.text(), |it| it.message.clone());
                let raw = serde_json::to_value(&*result).ok();
                update(ToolCallUpdateFields::new().status(status).content(vec![text.into()]).raw_output(raw))
            }
            Output::Said(text) => SessionUpdate::AgentMessageChunk(ContentChunk::new(text.into())),
        };
        let sent = self.connection.send_notification(SessionNotification::new(self.session.clone(), update));
        if let Err(error) = sent {
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }

    fn failed(&self) -> Option<Error> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
