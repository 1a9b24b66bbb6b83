//! The MCP servers of an ACP session: connected beside each other, scoped to it, and cleaned up after it.
//!
//! An agent hands over the request as it was sent ([`TypedSessionRequest`]). What is wrong with it comes back as one error with
//! everything in it; else [`SessionMcp::connect`] starts what it asks for, each server within its own limit, and gives
//! tools that can be called. A request that is cancelled, a session that is closed and a client that is gone leave no
//! process. A handler of agent-client-protocol 5 validates, connects and
//! answers:
//!
//! ```no_run
//! # #[cfg(feature = "sdk")]
//! # mod agent {
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//!
//! use agent_client_protocol::v1::schema::NewSessionResponse;
//! use agent_client_protocol::v1::{ConnectionTo, Responder};
//! use agent_client_protocol::{Agent, Client, ConnectTo, Error, on_receive_request};
//! use mcp_acp::{Capabilities, Policy};
//! use mcp_acp_agent::{ConnectOptions, NewSession, SessionMcp, SessionRegistry, TypedSessionRequest};
//!
//! // What the agent declares in `initialize` as well.
//! const CAPABILITIES: Capabilities =
//!     Capabilities { stdio: true, http: true, sse: false, acp: false, custom: Vec::new() };
//!
//! async fn serve(client: impl ConnectTo<Agent>) -> Result<(), Error> {
//!     let sessions = Arc::new(SessionRegistry::new());
//!     let begun = Arc::clone(&sessions);
//!     // Good as long as the agent loads no session of an earlier run: then ids have to be random.
//!     let made = AtomicU64::new(0);
//!     let served = Agent.v1().on_receive_request(
//!         async move |request: NewSession,
//!                     responder: Responder<NewSessionResponse>,
//!                     connection: ConnectionTo<Client>| {
//!             let (sessions, cancelled) = (Arc::clone(&begun), responder.cancellation());
//!             let id = format!("session-{}", made.fetch_add(1, Ordering::Relaxed));
//!             // Awaiting in the handler itself would hold up every other message.
//!             connection.spawn(async move {
//!                 let set_up = async {
//!                     let validated = request.validate(&CAPABILITIES, Policy::default()).await?;
//!                     let slot = sessions.reserve(id.as_str())?;
//!                     let servers = SessionMcp::connect(validated, ConnectOptions::default()).await?;
//!                     let exchanged = sessions.install(servers, slot)?;
//!                     Ok(NewSessionResponse::new(id).meta(exchanged.servers.to_meta()))
//!                 };
//!                 responder.respond_with_result(cancelled.run_until_cancelled(set_up).await)
//!             })
//!         },
//!         on_receive_request!(),
//!     );
//!     let ended = served.connect_to(client).await;
//!     sessions.close_all().await;
//!     ended
//! }
//! # }
//! ```
//!
//! `examples/acp-agent` is a whole agent, versions 1 and 2, prompts, cancellation and all. Without the SDK the same is
//! there in plain values: [`mcp_acp::SessionRequest`] in, [`mcp_model::RpcError`] out.
//!
//! Every session has a [`mcp_host::Host`] of its own: no name, tool or process of one is seen by another. The session's
//! folders are the roots that its servers may ask for ([`FoldersAsRoots`]); a model and a user for them to ask are the
//! agent's to hand in ([`ConnectOptions::host`]). A server that is
//! lost is started again by it; whether a session can begin without one is for [`RequiredServers`] to say, and how all of them
//! are is told as data ([`SessionMcp::statuses`]), as a stream ([`SessionMcp::status_stream`]) and, for a response's `_meta`, as
//! JSON ([`SessionMcp::to_meta`]).
//!
//! Features: `sdk`, on by default (requests and errors of agent-client-protocol), `protocol-v2` and `session-fork` (the
//! same for what is not stable there), and `mcp-over-acp` (servers that the client has itself).

#![forbid(unsafe_code)]

mod error;
mod folder;
mod options;
#[cfg(feature = "mcp-over-acp")]
mod over_acp;
#[cfg(feature = "sdk")]
mod request;
mod roots;
mod servers;
mod session;
mod session_registry;
mod start_error;
mod status;

pub use mcp_host::ToolCall;
pub use mcp_registry::ExposedTool;

pub use error::SessionSetupError;
pub use folder::check_folder;
pub use options::{ConnectOptions, FoldersAsRoots, RequiredServers};
#[cfg(feature = "mcp-over-acp")]
pub use over_acp::OverAcp;
#[cfg(all(feature = "sdk", feature = "session-fork"))]
pub use request::ForkSession;
#[cfg(all(feature = "protocol-v2", feature = "session-fork"))]
pub use request::ForkSessionV2;
#[cfg(feature = "sdk")]
pub use request::{LoadSession, NewSession, ResumeSession, TypedSessionRequest};
#[cfg(feature = "protocol-v2")]
pub use request::{NewSessionV2, ResumeSessionV2};
pub use session::{PendingSession, SessionMcp};
pub use session_registry::{ReplacedServers, SessionRegistry, SessionSlot};
pub use status::{ConnectionState, ServerStatus, StatusStream};
