//! Scripted servers, and the conformance check of transports. Feature `testing`.
//!
//! [`check_transport`] runs sessions over a transport against scripted servers, in both eras of the protocol, and compares
//! the outcomes with a table. mcp-transport's own transports are checked with the same table.
//!
//! [`scripted_dial`] connects sessions to a scripted server in memory, to test code that uses a [`Session`]:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use mcp_model::RawJson;
//! use mcp_transport::testing::{ServerAction, json, scripted_dial, scripted_server};
//! use mcp_transport::{CallOptions, Session, SessionOptions};
//!
//! let tools = vec![json!({"name": "weather", "inputSchema": {"type": "object"}})];
//! let script = scripted_server(tools, |message| match message["params"]["name"].as_str() {
//!     Some("weather") => {
//!         let content = json!([{"type": "text", "text": "rain"}]);
//!         vec![ServerAction::result(message, &json!({"content": content}))]
//!     }
//!     Some(_) => vec![ServerAction::error(message, -32602, "unknown tool")],
//!     None => Vec::new(),
//! });
//! let session = Session::connect(scripted_dial(script), SessionOptions::default()).await?;
//! assert_eq!(&*session.list_tools().await?.items[0].name, "weather");
//! let called = session.call_tool("weather", &RawJson::empty_object(), CallOptions::default()).await?;
//! assert_eq!(called.value.text(), "rain");
//! # Ok(())
//! # }
//! ```

mod in_memory;
mod script;
mod table;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use in_memory::scripted_dial;
use mcp_model::Era;
use parking_lot::Mutex;
pub use script::scripted_server;
pub use serde_json::{Value, json};

use crate::session::{Eras, Session, SessionOptions};
use crate::transport::Dial;

/// The time limit of a row. A row that reaches it hangs.
const BOUND: Duration = Duration::from_secs(60);

/// One action of a scripted server in response to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a server performs each, so that a row does not fail for another reason"
)]
pub enum ServerAction {
    /// Sends this text as a message. If each request has a response of its own, in that of the current request.
    Send(String),
    /// Sends this text as the response to the request with this id.
    Respond(Value, String),
    /// Responds to the current request later. Only of interest if each request has a response of its own.
    KeepOpen,
    /// Sends the first half of the bytes of this message. A server that cannot send halves ignores it.
    SendFirstHalf(String),
    /// Sends the other half. A server that cannot send halves, or whose requests have responses of their own, ignores it.
    SendSecondHalf(String),
    /// Ends the connection without a message. If each request has a response of its own, that of the current message.
    Disconnect,
}

impl ServerAction {
    /// Sends this result of a request.
    pub fn result(request: &Value, result: &Value) -> ServerAction {
        ServerAction::Send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string())
    }

    /// Sends this error as the response to a request.
    pub fn error(request: &Value, code: i64, message: &str) -> ServerAction {
        let error = json!({"code": code, "message": message});
        ServerAction::Send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error}).to_string())
    }
}

/// The actions of a server for each message that it receives.
pub type Script = Arc<dyn Fn(&Value) -> Vec<ServerAction> + Send + Sync>;

/// How a transport receives the response to a request. A failure of a response of its own ends one call, and its end shows
/// that no message will follow. On a shared stream a failure ends all calls, and a missing response is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResponseForm {
    /// On the stream of the connection, with all other messages: [`StreamId::Shared`](crate::StreamId::Shared).
    Shared,
    /// On a stream of its own, with any number of messages.
    Stream,
    /// As a document of its own, which is one message. Rows with several messages are left out.
    Document,
}

/// A row of the table with another outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// The behaviour of the server.
    pub row: &'static str,
    /// The era of the session.
    pub era: Era,
    /// The outcome.
    pub got: String,
    /// The expected outcome.
    pub want: &'static str,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { row, era, got, want } = self;
        write!(f, "{row} ({}): {got}, and not {want}", era.as_str())
    }
}

/// Checks a transport. `start` starts a server that performs the script over the transport, and returns the dial to it. The
/// server accepts connections, one after another, as long as the check runs. Returns the rows that differ; an empty list is
/// a success.
///
/// It takes some seconds, because a call that gets no response has to time out; a transport with faults takes up to a
/// minute longer for each of them. Dropping the future ends the sessions.
///
/// The table compares the outcomes of calls. It does not check what no outcome shows: the limit of a frame, line breaks in a
/// body that is sent, the count of noise, and the end of `run` at the end of the queue or at a shutdown.
///
/// The example `own_transport` is a transport over TCP with this check.
pub async fn check_transport(
    form: ResponseForm,
    start: impl AsyncFn(Script) -> Arc<dyn Dial>,
) -> Vec<Mismatch> {
    let mut res = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        for row in table::rows().into_iter().filter(|it| form != ResponseForm::Document || !it.is_stream) {
            let received = Arc::new(Mutex::new(Vec::new()));
            let log = Arc::clone(&received);
            let script: Script = Arc::new(move |message| {
                log.lock().push(message.clone());
                (row.script)(message)
            });
            let dial = start(script).await;
            let run = async {
                let eras = match era {
                    Era::Legacy => Eras::Legacy,
                    Era::Modern => Eras::Modern,
                };
                let mut options = SessionOptions { eras, ..SessionOptions::default() };
                options.limits.startup = row.startup.unwrap_or(options.limits.startup);
                match Session::connect(dial, options).await {
                    Ok(session) => {
                        let session = Arc::new(session);
                        (row.run)(Run { session, received: ReceivedMessages(received), form, era }).await
                    }
                    Err(error) => table::connect_outcome(&error),
                }
            };
            let got = tokio::time::timeout(BOUND, run).await.unwrap_or_else(|_| "it hangs".to_owned());
            let want = if form == ResponseForm::Shared { row.want } else { row.want_of_own };
            if got != want {
                res.push(Mismatch { row: row.name, era, got, want });
            }
        }
    }
    res
}

/// The session of a row, and what its server received.
struct Run {
    session: Arc<Session>,
    received: ReceivedMessages,
    form: ResponseForm,
    era: Era,
}

/// The messages that a server received.
struct ReceivedMessages(Arc<Mutex<Vec<Value>>>);

impl ReceivedMessages {
    /// Waits for a message with this method.
    async fn wait_for_method(&self, method: &str) {
        self.wait_for(|message| message["method"] == method).await;
    }

    /// Waits for a message, and returns it.
    async fn wait_for(&self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let found = self.0.lock().iter().find(|message| is_wanted(message)).cloned();
            if let Some(message) = found {
                return message;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// The names of the tools that were called, in order.
    fn called(&self) -> Vec<String> {
        let received = self.0.lock();
        received.iter().filter_map(|message| message["params"]["name"].as_str()).map(Into::into).collect()
    }
}
