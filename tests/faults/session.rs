//! A cell at mcp-transport: the faulty session and a healthy one.

use std::time::Duration;

use mcp_host_model::{Limits, RawJson};
use mcp_host_transport::{CallOptions, ConnectError, DialOptions, Session, SessionOptions, dialer};
use mcp_tests::faults::{At, FaultRow, Step, Variant};
use serde_json::json;

use crate::expectations::{self, LONG_LIMIT, call_outcome, connect_outcome};
use crate::peer::Faulty;
use crate::run::Cell;

/// The outcomes of the faulty request and of the next one.
pub(crate) async fn run(faulty: &Faulty, cell: &Cell) -> String {
    let (row, variant) = (&cell.row, cell.variant);
    // The healthy session responds before, during and after.
    let neighbour =
        connect(faulty, variant, &cell.key("neighbour"), "start=well", &Limits::default()).await.unwrap();
    let time_limits = cell.time_limits();
    // A call that is expected to time out has its own deadline; other requests use the limits.
    let limits = time_limits.limits(match row.script().at {
        At::List if row.script().does(Step::Deaf) => 2 * time_limits.request,
        At::List => time_limits.request,
        At::Start | At::Open | At::Call | At::Hear | At::Close => LONG_LIMIT,
    });
    let key = cell.key("faulty");
    let connecting = connect(faulty, variant, &key, &row.script, &limits);
    let (connected, neighbour_outcome) = tokio::join!(connecting, call(&neighbour, "other", LONG_LIMIT));
    assert_eq!(neighbour_outcome, "hello", "the neighbour while it begins");
    let session = match connected {
        Ok(session) => session,
        Err(error) => {
            close(neighbour).await;
            return connect_outcome(&error);
        }
    };
    let (listed, neighbour_outcome) =
        tokio::join!(session.list_tools(), call(&neighbour, "other", LONG_LIMIT));
    assert_eq!(neighbour_outcome, "hello", "the neighbour while it is listed");
    let mut outcomes = match listed {
        Ok(_) => Vec::new(),
        Err(error) => vec![format!("list: {}", call_outcome(Err(error)))],
    };
    if outcomes.is_empty() {
        let faulty_call = first_call(&session, row, time_limits.request);
        let (first, neighbour_outcome) = tokio::join!(faulty_call, call(&neighbour, "other", LONG_LIMIT));
        assert_eq!(neighbour_outcome, "hello", "the neighbour while it is called");
        outcomes.push(first);
    }
    outcomes.push(call(&session, "other", time_limits.next).await);
    close(session).await;
    assert_eq!(call(&neighbour, "other", LONG_LIMIT).await, "hello", "the neighbour afterwards");
    close(neighbour).await;
    outcomes.join(" | ")
}

/// Connects to a server with this script.
async fn connect(
    faulty: &Faulty,
    variant: Variant,
    key: &str,
    script: &str,
    limits: &Limits,
) -> Result<Session, ConnectError> {
    let endpoint = faulty.endpoint(variant.transport, key, script);
    let mut options = DialOptions::default();
    options.limits = limits.clone();
    options.authorities = faulty.authorities();
    let dial = dialer(&endpoint, &options)?;
    let mut options = SessionOptions::default();
    options.limits = limits.clone();
    options.eras = expectations::eras(variant.era);
    Session::connect(dial, options).await
}

/// The faulty call. To fill the pipe of a peer that does not read, it is large.
async fn first_call(session: &Session, row: &FaultRow, deadline: Duration) -> String {
    let arguments = call_arguments(row);
    let options = CallOptions::with_timeout(deadline);
    call_outcome(session.call_tool("first", &arguments, options).await.map(|it| it.value.text()))
}

/// The arguments of the faulty call.
pub(crate) fn call_arguments(row: &FaultRow) -> RawJson {
    match row.script().does(Step::Deaf) {
        true => RawJson::from_value(&json!({"text": "x".repeat(8 << 20)})).unwrap(),
        false => RawJson::empty_object(),
    }
}

/// The outcome of a call without arguments.
async fn call(session: &Session, name: &str, deadline: Duration) -> String {
    let options = CallOptions::with_timeout(deadline);
    call_outcome(session.call_tool(name, &RawJson::empty_object(), options).await.map(|it| it.value.text()))
}

/// Closes the session with a short timeout, which kills the server if necessary.
async fn close(session: Session) {
    session.close(Duration::from_millis(500)).await;
}
