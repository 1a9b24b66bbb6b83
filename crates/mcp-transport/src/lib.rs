//! MCP over any wire: one [`Transport`] trait, one JSON-RPC engine, one [`Session`].
//!
//! A session is a connection with its handshake done, in whichever era the server lives. Calls may be made from many
//! tasks at once; every call ends, by its answer, its deadline or the end of the connection, and a call whose future is
//! dropped is cancelled on the wire. Processes that were started end with the session, grandchildren too.
//!
//! What is not here: names, filters, retries, supervision. A session that is over stays over; whoever wants another one
//! dials again.
//!
//! ```no_run
//! # #[cfg(feature = "stdio")]
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use mcp_model::{Endpoint, RawJson, StdioEndpoint};
//! use mcp_transport::{CallOptions, DialOptions, Session, SessionOptions, dialer};
//! use std::time::Duration;
//!
//! let mut server = StdioEndpoint::new("npx");
//! server.args = vec!["-y".into(), "@modelcontextprotocol/server-everything".into()];
//! let dial = dialer(&Endpoint::Stdio(server), &DialOptions::default())?;
//!
//! let session = Session::connect(dial, SessionOptions::default()).await?;
//! for tool in session.list_tools().await?.items {
//!     println!("{}: {}", tool.name, tool.description_text());
//! }
//! let arguments = RawJson::parse(r#"{"message": "hello"}"#.into())?;
//! let answer = session.call_tool("echo", &arguments, CallOptions::default()).await?;
//! println!("{}", answer.value.text());
//! session.close(Duration::from_secs(2)).await;
//! # Ok(())
//! # }
//! ```
//!
//! Features: `stdio` (child processes; Unix), `http` (Streamable HTTP), `sse` (HTTP with server-sent events, as of
//! 2024-11-05) and `websocket`, all on by default; `rmcp`, which puts any of the wires under the official SDK's client.
//! `oauth` logs in to servers that want it; [`DialOptions`] says for which. [`recording`] writes sessions down and plays
//! them again, for tests without servers. A wire of your own implements [`Transport`] and [`Dial`].

mod dial;
mod error;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "http")]
mod http;
#[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
mod net;
#[cfg(feature = "oauth")]
mod oauth;
#[cfg(feature = "parts")]
#[doc(hidden)]
pub mod parts;
pub mod recording;
mod redact;
#[cfg(feature = "rmcp")]
mod rmcp_client;
mod rpc;
mod session;
#[cfg(feature = "sse")]
mod sse;
#[cfg(feature = "stdio")]
mod stdio;
mod transport;
#[cfg(feature = "websocket")]
mod websocket;

pub use dial::endpoint::{DialOptions, ProcessIdCell, dialer};
#[cfg(all(feature = "http", feature = "sse"))]
pub use dial::sse_fallback::SseServerCache;
pub use error::disconnect::{Disconnect, DisconnectReason, Evidence, RequestError, StartError};
pub use error::{CallError, ConnectError};
#[cfg(any(feature = "http", feature = "sse"))]
pub use net::authorization::{Authorization, Challenge, Remedy, Unauthorized};
#[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
pub use net::framing::{ChunkedBody, ChunkedPart, NotChunked, head_end};
#[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
pub use net::proxy_diagnosis::ProxyAddress;
#[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
pub use net::tls::Authorities;
#[cfg(feature = "oauth")]
pub use oauth::{
    Grant, Login, LoopbackRedirect, MemoryTokenStore, OAuth, OAuthOptions, RefreshLock, RegisteredClient,
    Revocation, TokenStore, TokenStoreError, UserAgent,
};
pub use redact::secret_parts;
#[cfg(feature = "rmcp")]
pub use rmcp_client::{
    ConvertError, RmcpError, RmcpOptions, RmcpTransport, content_from_rmcp, content_to_rmcp, error_from_rmcp,
    error_to_rmcp, result_from_rmcp, result_to_rmcp, tool_from_rmcp, tool_to_rmcp,
};
pub use rpc::deadline::Expiry;
pub use rpc::progress::{OnProgress, Progress};
pub use session::{
    CallOptions, CallResponse, Caller, CallerId, ClientCapabilities, ClientInfo, CompletionArgument,
    CompletionReference, ElicitMode, ElicitParams, ElicitRequest, ElicitResult, Elicitation, Eras, Handlers,
    InputHandling, ListChangeCounts, Listener, Listing, LogMessage, OnServerEvent, OnSessionNotification,
    RawRequestHandler, RawServerRequest, RetryPolicy, Root, Roots, Sampling, SamplingRequest, SamplingResult,
    ServerCapabilities, ServerEvent, ServerInfo, Session, SessionNotification, SessionOptions, SessionState,
};
#[cfg(feature = "stdio")]
pub use stdio::{ProcessIdentity, ReapedGroup, ReceiptDirectory};
pub use transport::{
    Dial, Epoch, FrameSink, HandshakeMode, HeaderParam, Link, MessageClass, MessageHead, Outbound,
    OutboundMessage, OutboundQueue, RequestId, ShutdownSignal, StreamError, StreamId, TargetName, Transport,
};
