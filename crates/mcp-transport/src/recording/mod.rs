//! Sessions written down, and played again: so that the tests of a host need neither network nor servers.
//!
//! A [`Recorder`] puts itself around any [`Dial`](crate::transport::Dial) and writes down what is asked and what is answered, as it crosses the
//! wire: names are the server's own, nothing is projected. What comes of it is a [`Recording`], a text of JSON lines
//! without times, ids or tokens, so that two recordings of the same session are the same. A [`Tape`] of it is played by
//! a [`Player`]: in the same process ([`Tape::dialer`]), on a pair of streams ([`serve`], feature `stdio`), or by
//! whoever has messages from elsewhere.
//!
//! What stays true:
//! - Nothing that crosses the wire is changed by its being recorded.
//! - No secret of an endpoint is in a recording, wherever a server repeats it: see [`endpoint_secrets`].
//! - A request is found again by its method and by its parameters in canonical form, without `_meta`. Equal requests are
//!   answered in recorded order; when there are no more, with the last answer. Requests whose parameters only introduce
//!   the client (`initialize`, `server/discover`), and those that say nothing (`ping`) or ask for a stream
//!   (`subscriptions/listen`), are found by their method. Where a secret was taken out of parameters, anything may stand.
//! - What a server said while it answered is said again before that answer; what it asked is asked, and the answer waited
//!   for, whatever it is. A request that was never answered is never answered. A stream is never ended.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use mcp_transport::recording::Recording;
//! use mcp_transport::{Session, SessionOptions};
//!
//! let text = concat!(
//!     r#"{"format":"mcp-recording","version":1}"#, "\n",
//!     r#"{"server":"demo","era":"legacy","protocol":"2025-11-25"}"#, "\n",
//!     r#"{"method":"initialize","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"demo","version":"1"}}}"#, "\n",
//!     r#"{"method":"tools/list","result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}"#, "\n",
//! );
//! let recording = Recording::parse(text)?;
//! let tape = recording.tape("demo").expect("it is there");
//! let session = Session::connect(tape.dialer(), SessionOptions::default()).await?;
//! assert_eq!(&*session.list_tools().await?.items[0].name, "echo");
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "stdio")]
mod between;
mod canonical;
mod cleaner;
mod message;
mod player;
mod recorder;
#[cfg(feature = "stdio")]
mod serve;
mod take;
mod tape;
mod text;
mod wire;

#[cfg(feature = "stdio")]
pub use between::{ProxyError, RecordingProxy, environment_secrets};
pub use cleaner::{endpoint_secrets, json_secrets};
pub use player::{ReplayedMessage, Replayer};
pub use recorder::Recorder;
#[cfg(feature = "stdio")]
pub use serve::serve;
pub use tape::{Exchange, RecordedResponse, Recording, ServerMessage, ServerRecording};
pub use text::RecordingError;
