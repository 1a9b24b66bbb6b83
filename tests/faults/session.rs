//! A cell at the face of mcp-transport: a session of its own, and another one beside it.

use std::time::Duration;

use mcp_model::{Limits, RawJson};
use mcp_tests::faults::{At, Row, Step, Way};
use mcp_transport::{CallOptions, ConnectError, DialOptions, Session, SessionOptions, dialer};
use serde_json::json;

use crate::expectations::{self, LONG, told, unconnected};
use crate::peer::Faulty;
use crate::run::Cell;

/// What comes of it: of the faulty request, and of the next one.
pub(crate) async fn run(faulty: &Faulty, cell: &Cell) -> String {
    let (row, way) = (&cell.row, cell.way);
    // The neighbour is there before, answers meanwhile, and is there afterwards.
    let neighbour =
        connect(faulty, way, &cell.key("neighbour"), "start=well", &Limits::default()).await.unwrap();
    let patience = cell.patience();
    // Where the call is what has little time, that is said with the call: other requests have as long as they need.
    let limits = patience.limits(match row.script().at {
        At::List if row.script().does(Step::Deaf) => 2 * patience.request,
        At::List => patience.request,
        At::Start | At::Open | At::Call | At::Hear | At::Close => LONG,
    });
    let key = cell.key("faulty");
    let connecting = connect(faulty, way, &key, &row.script, &limits);
    let (connected, beside) = tokio::join!(connecting, call(&neighbour, "other", LONG));
    assert_eq!(beside, "hello", "the neighbour while it begins");
    let session = match connected {
        Ok(session) => session,
        Err(error) => {
            close(neighbour).await;
            return unconnected(&error);
        }
    };
    let (listed, beside) = tokio::join!(session.list_tools(), call(&neighbour, "other", LONG));
    assert_eq!(beside, "hello", "the neighbour while it is listed");
    let mut said = match listed {
        Ok(_) => Vec::new(),
        Err(error) => vec![format!("list: {}", told(Err(error)))],
    };
    if said.is_empty() {
        let first = first(&session, row, patience.request);
        let (first, beside) = tokio::join!(first, call(&neighbour, "other", LONG));
        assert_eq!(beside, "hello", "the neighbour while it is called");
        said.push(first);
    }
    said.push(call(&session, "other", patience.next).await);
    close(session).await;
    assert_eq!(call(&neighbour, "other", LONG).await, "hello", "the neighbour afterwards");
    close(neighbour).await;
    said.join(" | ")
}

async fn connect(
    faulty: &Faulty,
    way: Way,
    key: &str,
    script: &str,
    limits: &Limits,
) -> Result<Session, ConnectError> {
    let endpoint = faulty.endpoint(way.wire, key, script);
    let options =
        DialOptions { limits: limits.clone(), authorities: faulty.authorities(), ..DialOptions::default() };
    let dial = dialer(&endpoint, &options)?;
    let options = SessionOptions {
        limits: limits.clone(),
        eras: expectations::eras(way.era),
        ..SessionOptions::default()
    };
    Session::connect(dial, options).await
}

/// The faulty call. One that is not read has to be larger than what fits into a pipe.
async fn first(session: &Session, row: &Row, deadline: Duration) -> String {
    let arguments = arguments(row);
    let options = CallOptions { timeout: Some(deadline), ..CallOptions::default() };
    told(session.call_tool("first", &arguments, options).await.map(|it| it.value.text()))
}

/// What the faulty call has for arguments.
pub(crate) fn arguments(row: &Row) -> RawJson {
    match row.script().does(Step::Deaf) {
        true => RawJson::from_value(&json!({"text": "x".repeat(8 << 20)})).unwrap(),
        false => RawJson::empty_object(),
    }
}

async fn call(session: &Session, name: &str, deadline: Duration) -> String {
    let options = CallOptions { timeout: Some(deadline), ..CallOptions::default() };
    told(session.call_tool(name, &RawJson::empty_object(), options).await.map(|it| it.value.text()))
}

/// Ends it, in little time: a server that does not want to end is ended.
async fn close(session: Session) {
    session.close(Duration::from_millis(500)).await;
}
