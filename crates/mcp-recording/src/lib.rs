//! Records MCP sessions and replays them, so that tests need neither a network nor servers.
//!
//! A [`Recorder`] wraps any [`Dial`](mcp_host_transport::Dial) and records requests and responses as they
//! cross the connection: names are the server's own. The result is a [`Recording`], a text of JSON lines
//! without times, ids or tokens, so two recordings of the same session are equal. A [`Replayer`] replays a
//! [`ServerRecording`]: in the same process ([`ServerRecording::dialer`]), on a pair of streams ([`serve`]),
//! or for messages from any other source. A [`RecordingProxy`] records a server that another client starts.
//!
//! Guarantees:
//! - Recording does not change any message.
//! - No secret of an endpoint is in a recording, wherever a server repeats it: `***` replaces it, also in
//!   what is replayed. Secrets of fewer than six bytes are not replaced; see [`endpoint_secrets`].
//! - A request is matched by its method and its parameters in canonical form, without `_meta`. Equal requests get the
//!   recorded responses in order, and after the last one that response again. Requests whose parameters only
//!   describe the client (`initialize`, `server/discover`), `ping` and `subscriptions/listen` are matched by
//!   method. Where a secret was removed from parameters, any value matches.
//! - Messages that a server sent before a response are replayed before it. A server request is replayed, and
//!   any response to it is accepted. A request without a response in the recording gets none, a request that
//!   is not in the recording an error with the most similar one. A stream is never ended.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! use mcp_host_recording::{Recorder, Recording};
//! use mcp_host_transport::{Session, SessionOptions};
//!
//! let text = concat!(
//!     r#"{"format":"mcp-recording","version":1}"#, "\n",
//!     r#"{"server":"demo","era":"legacy","protocol":"2025-11-25"}"#, "\n",
//!     r#"{"method":"initialize","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"demo","version":"1"}}}"#, "\n",
//!     r#"{"method":"tools/list","result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}"#, "\n",
//! );
//! let recording = Recording::parse(text)?;
//! let server = recording.server("demo").expect("the recording has it");
//! let session = Session::connect(server.dialer(), SessionOptions::default()).await?;
//! assert_eq!(&*session.list_tools().await?.items[0].name, "echo");
//!
//! // A recorder wraps any dial. For a configured server that is `dialer(&endpoint, …)`, with
//! // `endpoint_secrets(&endpoint)`.
//! let recorder = Recorder::default();
//! let dial = recorder.wrap("demo", server.dialer(), &[]);
//! let session = Session::connect(dial, SessionOptions::default()).await?;
//! session.list_tools().await?;
//! // After that the recording is complete.
//! session.close(Duration::from_secs(1)).await;
//! assert!(recorder.recording().to_text().contains(r#"{"method":"tools/list","result":{"tools":[{"name":"echo""#));
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
// A type that is exhaustive states the reason for it.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod canonical;
mod connection_log;
mod message;
mod proxy;
mod recorder;
mod recording;
mod replayer;
mod serve;
mod system;
mod text;
mod transport;

/// For [`ReplayedMessage`].
#[doc(no_inline)]
pub use bytes::Bytes;
pub use mcp_host_transport::{endpoint_secrets, json_secrets};
pub use proxy::{ProxyError, RecordingProxy, environment_secrets};
pub use recorder::Recorder;
pub use recording::{Exchange, Recording, ServerMessage, ServerMessageKind, ServerRecording};
pub use replayer::{ReplayedMessage, Replayer};
pub use serve::serve;
pub use text::RecordingError;
/// For the streams of [`serve`] and [`RecordingProxy::run`].
#[doc(no_inline)]
pub use tokio;

/// Compiles the program of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
