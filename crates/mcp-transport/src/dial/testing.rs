//! Conformance checks for transports. Feature `testing`.
//!
//! [`check_transport`] runs sessions over a transport against scripted servers, in both eras of the protocol, and compares
//! the outcomes with a table. mcp-transport's own transports are checked with the same table.

mod script;
mod table;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_model::Era;
use parking_lot::Mutex;
pub use serde_json::Value;

use crate::session::{Eras, Session, SessionOptions};
use crate::transport::Dial;

/// The time limit of a row. A row that reaches it hangs.
const BOUND: Duration = Duration::from_secs(60);

/// One action of a scripted server in response to a message.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_enums, reason = "a server performs each")]
pub enum ServerAction {
    /// Sends this text as a message. If each request has a response of its own, in that of the current request.
    Send(String),
    /// Sends this text as the response to the request with this id.
    Respond(Value, String),
    /// Responds to the current request later. Only of interest if each request has a response of its own.
    KeepOpen,
}

/// The actions of a server for each message that it receives.
pub type Script = Arc<dyn Fn(&Value) -> Vec<ServerAction> + Send + Sync>;

/// The number of messages that a server can send in response to one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "complete")]
pub enum ResponseForm {
    /// Any number, on a stream.
    Stream,
    /// One, because a response is a document. Rows with several messages are left out.
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

/// Checks a transport. `start` starts a server that performs the script over the transport, and returns the dial to it; the
/// server runs until the connection ends. Returns the rows that differ; an empty list is a success.
///
/// It takes some seconds, because a call that gets no response has to time out. Dropping the future ends the sessions.
///
/// The example `own_transport` is a transport over TCP with this check.
pub async fn check_transport(
    form: ResponseForm,
    start: impl AsyncFn(Script) -> Arc<dyn Dial>,
) -> Vec<Mismatch> {
    let mut res = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        for row in table::rows().into_iter().filter(|it| form == ResponseForm::Stream || !it.is_stream) {
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
                let options = SessionOptions { eras, ..SessionOptions::default() };
                match Session::connect(dial, options).await {
                    Ok(session) => (row.run)(Arc::new(session), ReceivedMessages(received)).await,
                    Err(error) => format!("no session: {error}"),
                }
            };
            let got = tokio::time::timeout(BOUND, run).await.unwrap_or_else(|_| "it hangs".to_owned());
            if got != row.want {
                res.push(Mismatch { row: row.name, era, got, want: row.want });
            }
        }
    }
    res
}

/// The messages that a server received.
struct ReceivedMessages(Arc<Mutex<Vec<Value>>>);

impl ReceivedMessages {
    /// Waits for a call of a tool.
    async fn wait_for_call(&self) {
        self.wait_for(|message| message["method"] == "tools/call").await;
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
