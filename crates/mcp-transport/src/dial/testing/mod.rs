//! Scripted servers, and the conformance check of transports. Feature `testing`.
//!
//! [`check_transport`] runs sessions over a transport against scripted servers, in both eras of the protocol,
//! and compares the outcomes with a table. mcp-transport's own transports are checked with the same table.
//!
//! [`scripted_dial`] connects sessions to a scripted server in memory, to test code that uses a [`Session`]:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use mcp_host_model::RawJson;
//! use mcp_host_transport::testing::{ServerAction, json, scripted_dial, scripted_server};
//! use mcp_host_transport::{CallOptions, Session, SessionOptions};
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

mod action;
mod in_memory;
mod link_rows;
mod report;
mod run;
mod script;
mod session_rows;
mod table;

use std::sync::Arc;
use std::time::Duration;

pub use action::{Script, ServerAction};
pub use in_memory::{scripted_dial, scripted_dial_with_limits};
use mcp_host_model::{Era, Limits};
pub use report::{ConformanceReport, Mismatch};
pub use run::ResponseForm;
pub use script::scripted_server;
pub use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::session::{Eras, Session, SessionOptions};
use crate::transport::Dial;
use link_rows::LinkRun;
use run::{ReceivedMessages, SessionRun};
use table::{Row, RowRun};

/// The time limit of a row of [`check_transport`]. The rows run at the same time, so this also limits the
/// check as a whole, besides the starts of the servers.
pub const ROW_TIMEOUT: Duration = Duration::from_secs(60);

/// Checks a transport. `start` starts a server that performs the script over the transport, and returns the
/// dial to it. The dial is made with the limits, like that of a session. Each server accepts connections, one
/// after another, as long as the check runs; about 70 servers run at the same time.
///
/// ```
/// use mcp_host_transport::testing::{ResponseForm, check_transport, scripted_dial_with_limits};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// // A transport of your own starts its server here.
/// let start = async |script, limits| scripted_dial_with_limits(script, &limits);
/// let report = check_transport(ResponseForm::Shared, start).await;
/// report.assert_ok();
/// println!("{report}");
/// # }
/// ```
///
/// The check takes a few seconds, and at most [`ROW_TIMEOUT`] longer than the starts of the servers, whatever
/// faults the transport has. In memory it can run with Tokio's paused time. A transport that blocks its
/// thread blocks the check. Dropping the future ends the sessions and transports.
///
/// These rules of the contract of [`Transport`](crate::Transport) have rows: line breaks in a body, dropped
/// calls, noise, messages that are not complete, the size limit of a message, lost connections, the end of
/// the queue, shutdowns, and the drop of `run`. The following have none, because no outcome shows them:
///
/// - **Order:** in which order calls at the same time arrive, because a transport may have a connection for each.
/// - **Memory:** whether a message over the limit is discarded as it arrives, or only after all of it was buffered.
/// - **Pauses:** whether the reader slows down when a server sends many unsolicited messages.
/// - **Servers that do not read or cannot be reached:** the scripts read everything. A shutdown must also end
///   an attempt to connect, and a message that is half sent.
/// - **Resources:** what a dropped `run` held besides its [`Link`](crate::Link), such as a process or a socket.
/// - **The dial:** that its methods neither block nor fail, and what [`Dial::redact`] removes.
pub async fn check_transport(
    form: ResponseForm,
    start: impl AsyncFn(Script, Limits) -> Arc<dyn Dial>,
) -> ConformanceReport {
    let mut report = ConformanceReport::default();
    let mut running = JoinSet::new();
    for era in [Some(Era::Legacy), Some(Era::Modern), None] {
        for row in table::rows().into_iter().filter(|row| row.has_session() == era.is_some()) {
            if !row.applies_to(form) {
                // A row with a session is skipped in both eras, and listed once.
                report.skipped.extend((era != Some(Era::Modern)).then_some(row.name));
                continue;
            }
            let index = report.rows.len();
            report.rows.push(row.name);
            let received = ReceivedMessages::default();
            let (log, respond) = (received.clone(), Arc::clone(&row.script));
            let script: Script = Arc::new(move |message| {
                log.0.lock().push(message.clone());
                respond(message)
            });
            let dial = start(script, row.limits.clone()).await;
            running.spawn(async move {
                let want = row.want(form);
                let outcome = run_row(&row, era, form, dial, received);
                let got = tokio::time::timeout(ROW_TIMEOUT, outcome).await;
                let got = got.unwrap_or_else(|_| format!("no outcome within {} s", ROW_TIMEOUT.as_secs()));
                (index, (got != want).then_some(Mismatch { row: row.name, era, got, want }))
            });
        }
    }
    let mut outcomes = running.join_all().await;
    outcomes.sort_by_key(|(index, _)| *index);
    report.mismatches.extend(outcomes.into_iter().filter_map(|(_, mismatch)| mismatch));
    report
}

/// Runs a row. Returns its outcome.
async fn run_row(
    row: &Row,
    era: Option<Era>,
    form: ResponseForm,
    dial: Arc<dyn Dial>,
    received: ReceivedMessages,
) -> String {
    let run = match &row.run {
        RowRun::Session(run) => run,
        RowRun::Link(run) => return run(LinkRun { dial, received }).await,
    };
    let era = era.expect("a row with a session has an era");
    let eras = if era == Era::Legacy { Eras::Legacy } else { Eras::Modern };
    let options = SessionOptions { eras, limits: row.limits.clone(), ..SessionOptions::default() };
    match Session::connect(Arc::clone(&dial), options.clone()).await {
        Ok(session) => {
            run(SessionRun { session: Arc::new(session), dial, options, received, form, era }).await
        }
        Err(error) => session_rows::describe_connect_error(&error),
    }
}
