//! MCP over any transport: one [`Transport`] trait, one JSON-RPC engine, one [`Session`].
//!
//! A session is a connection to one server after its handshake, in either era of the protocol. Calls may be
//! made from many tasks at once. Every call ends: with its response, at its deadline, or with the connection.
//! A call whose future is dropped is cancelled at the server. Processes that were started end with the
//! session, grandchildren included.
//!
//! Not here: names, filters, retries, supervision. A session that ended stays ended; dial again for a new one.
//!
//! ```no_run
//! # #[cfg(feature = "stdio")]
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use mcp_host_model::{RawJson, StdioEndpoint};
//! use mcp_host_transport::{CallOptions, DialOptions, Session, SessionOptions, stdio_dialer};
//! use std::time::Duration;
//!
//! let mut server = StdioEndpoint::new("npx");
//! server.args = vec!["-y".into(), "@modelcontextprotocol/server-everything".into()];
//! let dial = stdio_dialer(&server, &DialOptions::default())?;
//!
//! let session = Session::connect(dial, SessionOptions::default()).await?;
//! for tool in session.list_tools().await?.items {
//!     println!("{}: {}", tool.name, tool.description_text());
//! }
//! let arguments = RawJson::parse(r#"{"message": "hello"}"#.into())?;
//! let response = session.call_tool("echo", &arguments, CallOptions::default()).await?;
//! println!("{}", response.value.text());
//! session.close(Duration::from_secs(2)).await;
//! # Ok(())
//! # }
//! ```
//!
//! ```toml
//! [dependencies]
//! mcp-host-model = "0.2"
//! mcp-host-transport = "0.2"
//! tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
//! ```
//!
//! Features, all on by default: `stdio` (child processes), `http` (Streamable HTTP), `sse` (HTTP with server-sent
//! events, 2024-11-05), `websocket`, and `endpoint`: [`dialer`], for any of these. A transport of your own implements
//! [`Transport`] and [`Dial`]; the feature `testing`, off by default, checks it (`check_transport`) and has
//! scripted servers for tests. A token of your own for a server over HTTP implements [`Authorization`].
//!
//! Related crates: `mcp-host-oauth` logs in to servers, `mcp-host-recording` records and replays sessions, and
//! `mcp-host-rmcp` runs these transports under the client of the official SDK.
//!
//! Ids such as `SK-17` name rules, the promised behaviour; `docs/rules.md` in the repository lists them.
#![cfg_attr(docsrs, feature(doc_cfg))]
// A type that is exhaustive states the reason.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod dial;
mod error;
#[cfg(feature = "http")]
mod http;
#[doc(hidden)]
pub mod internal;
#[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
mod net;
mod redact;
mod rpc;
mod session;
#[cfg(feature = "sse")]
mod sse;
#[cfg(feature = "stdio")]
mod stdio;
mod transport;
#[cfg(feature = "websocket")]
mod websocket;

/// For implementations of this crate's async traits, such as [`Transport`].
#[doc(no_inline)]
pub use async_trait::async_trait;
/// For [`FrameSink`] and [`OutboundMessage`].
#[doc(no_inline)]
pub use bytes::Bytes;
#[cfg(feature = "endpoint")]
pub use dial::dialer::dialer;
#[cfg(feature = "stdio")]
pub use dial::dialer::stdio_dialer;
pub use dial::options::DialOptions;
#[cfg(feature = "endpoint")]
pub use dial::secrets::endpoint_secrets;
#[cfg(all(feature = "http", feature = "sse"))]
pub use dial::sse_servers::SseServerCache;
#[cfg(feature = "testing")]
pub use dial::testing;
pub use error::disconnect::{Disconnect, DisconnectReason, StartError};
pub use error::evidence::{CloseStatus, Evidence, ProcessExit};
pub use error::help::{StartFacts, missing_command_help, missing_directory_help};
pub use error::net_failure::{NetFailure, TlsFailure};
pub use error::request_error::{AccessRefusal, ErrorResponse, RedirectProblem, RequestError, ResponseSign};
pub use error::retry_after::RetryAfter;
pub use error::sandbox_error::SandboxError;
pub use error::unmatched_output::UnmatchedOutput;
pub use error::windows::WindowsRefusal;
pub use error::{CallError, ConnectError, Expiry};
#[cfg(any(feature = "http", feature = "sse"))]
pub use net::authorization::{
    Authorization, AuthorizedRequest, Challenge, ChallengeAction, Credentials, Unauthorized,
};
#[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
pub use net::proxy_diagnosis::ProxyAddress;
#[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
pub use net::tls::Authorities;
pub use redact::{json_secrets, secret_parts};
pub use rpc::caller::{Caller, CallerId, ClientCapabilities, OnServerEvent};
pub use rpc::handlers::{
    Elicitation, Handlers, Listener, LogMessage, NoRoots, RawRequestHandler, RawServerRequest, Roots,
    Sampling, ServerEvent,
};
pub use rpc::progress::{OnProgress, Progress};
pub use rpc::server_request::{
    ElicitMode, ElicitParams, ElicitRequest, ElicitResult, Root, SamplingRequest, SamplingResult,
};
pub use session::{
    CONNECTION_META_KEYS, CallContext, CallOptions, CallResponse, ClientInfo, CompletionArgument,
    CompletionReference, DEFAULT_TASK_TIMEOUT, EraReason, Eras, ForwardedMeta, InputHandling,
    ListChangeCounts, ListDefect, ListResult, OnSessionNotification, RetryPolicy, ServerCapabilities,
    ServerInfo, Session, SessionCounters, SessionNotification, SessionOptions, SessionState, StartedCall,
    TaskCapabilities, TaskRequest,
};
#[cfg(feature = "stdio")]
pub use stdio::{
    ProcessIdentity, ProgramSearch, ProgramSearchResult, ReapedGroup, ReceiptDirectory, TOKEN_VARIABLE,
    find_missing_script, find_program, open_for_appending, open_lock_file, open_named_file,
    open_regular_file, raise_descriptor_limit,
};
/// For [`Session::state`] and [`ShutdownSignal`].
#[doc(no_inline)]
pub use tokio;
pub use transport::process_id::ProcessIdCell;
pub use transport::stderr_tail::StderrLines;
pub use transport::{
    Dial, Epoch, FrameSink, HandshakeMode, HeaderParam, Link, MessageClass, MessageHead, Outbound,
    OutboundMessage, OutboundQueue, OutboundSender, RequestId, ShutdownSender, ShutdownSignal, StreamError,
    StreamId, Transport, TransportProbe,
};
/// For [`ProxyAddress`].
#[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
#[doc(no_inline)]
pub use url::Url;

/// Compiles the program of the README.
#[cfg(all(doctest, feature = "stdio"))]
#[doc = include_str!("../README.md")]
struct Readme;
