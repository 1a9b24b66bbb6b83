//! The MCP servers of an ACP session: connected concurrently, scoped to the session, and stopped with it.
//!
//! An agent passes on the request as it was sent ([`TypedSessionRequest`]). An invalid request gives one error with
//! all violations. Otherwise [`SessionServers::connect`] starts the servers, each within its own timeout, and provides
//! their tools. A cancelled request, a closed session and a disconnected client leave no process. A handler of
//! agent-client-protocol 5 validates, connects and responds. This program is the example `acp_agent` of this crate;
//! `Stdio` needs the feature `stdio` of agent-client-protocol.
//!
#![cfg_attr(feature = "sdk", doc = concat!("```no_run\n", include_str!("../examples/acp_agent.rs"), "```"))]
//!
//! `examples/acp-agent` of the repository is a complete agent: versions 1 and 2, streamed turns, `session/cancel`,
//! `load`, `resume` and `close`. Without the SDK, use plain values: [`mcp_host_acp::SessionRequest`] and
//! [`mcp_host_acp::validate`] for a request, [`mcp_host_model::RpcError`] for its error.
//!
//! Every session has its own [`mcp_host_runtime::Host`]: sessions share no name, tool or process, unless the agent has
//! [`SharedServers`]. The session's folders are the roots that its servers may request ([`FoldersAsRoots`]). The agent
//! may have servers of its own ([`ConnectOptions::own_servers`]), and sampling and elicitation handlers
//! ([`ConnectOptions::host`]). Servers may start with the first use ([`StartPolicy`]). A lost server is
//! restarted by the host. [`RequiredServers`] decides whether a session can start without a server. The
//! states are available as data ([`SessionServers::statuses`]), as a stream ([`SessionServers::status_stream`]), as
//! JSON for a response's `_meta` ([`SessionServers::to_meta`]), and as notifications for the client
//! ([`SessionServers::status_updates`]).
//!
//! Features: `sdk`, on by default (requests and errors of agent-client-protocol), `protocol-v2` and `session-fork`
//! (unstable parts of it), `mcp-over-acp` (servers that the client provides), and `oauth` (logins).
//!
//! Ids such as `ACPX-14` name rules, the promised behaviour; `docs/rules.md` in the repository lists them.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
// A type that is exhaustive states the reason for it.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod error;
#[cfg_attr(not(feature = "sdk"), expect(dead_code, reason = "only requests of the SDK are validated here"))]
mod folder;
mod login;
mod options;
#[cfg(feature = "mcp-over-acp")]
mod over_acp;
#[cfg(feature = "sdk")]
mod request;
mod roots;
mod server_set;
mod servers;
mod session;
mod start_error;
mod status;

/// The version of the SDK whose types are used here.
#[cfg(feature = "sdk")]
#[doc(no_inline)]
pub use agent_client_protocol;
pub use mcp_host_registry::ExposedTool;
pub use mcp_host_runtime::ToolCall;

pub use error::SessionSetupError;
pub use folder::check_folder;
/// For [`StatusStream::into_stream`].
#[doc(no_inline)]
pub use futures_util::stream::BoxStream;
pub use login::LoginPage;
#[cfg(feature = "oauth")]
pub use login::oauth::OAuthLogins;
pub use options::{ConnectOptions, FoldersAsRoots, RequiredServers, StartPolicy};
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
/// For [`SessionServers::to_meta`].
#[doc(no_inline)]
pub use serde_json;
pub use server_set::SharedServers;
pub use servers::ServerSource;
pub use session::registry::{ReplacedServers, SessionRegistry, SessionSlot};
pub use session::{PendingSession, SessionServers};
pub use status::update::{NoticeSupport, StatusUpdate, StatusUpdates};
pub use status::{ConnectionState, SessionServerStatus, StatusStream};
/// For [`OAuthLogins`].
#[cfg(feature = "oauth")]
#[doc(no_inline)]
pub use url::Url;

/// Compiles the program of the README.
#[cfg(all(doctest, feature = "sdk"))]
#[doc = include_str!("../README.md")]
struct Readme;
