//! Callers of all servers: each call ends once, in time, and with its own result.

use std::time::{Duration, Instant};

use mcp_host_model::{CallResult, ErrorKind, RawJson};
use mcp_host_runtime::ToolCall;

use super::servers::{Server, Stability};
use super::{PATIENCE, SoakState};
use mcp_testkit::random::Random;

/// A kind of call.
#[derive(Debug, Clone, Copy)]
enum CallKind {
    /// The same text is returned.
    Echo,
    /// A text with this many bytes is returned.
    Grow(usize),
    /// The call is rejected.
    Fail,
    /// The call is cancelled by the caller.
    GiveUp(Duration),
    /// The call exceeds its deadline.
    TooLong(Duration),
}

/// The most bytes of a result that are kept in memory.
const LARGEST: usize = 200 << 10;

fn call_kind(random: &mut Random) -> CallKind {
    let moment = random.duration(Duration::from_millis(200));
    match random.below(16) {
        0 | 1 => CallKind::Grow(random.below(LARGEST)),
        2 => CallKind::Fail,
        3 | 4 => CallKind::GiveUp(moment),
        5 => CallKind::TooLong(moment + Duration::from_millis(50)),
        _ => CallKind::Echo,
    }
}

pub(super) async fn call_on(world: SoakState, mut random: Random) {
    let mut number = 0;
    while !world.is_over() {
        let (who, nature) = match random.below(2) {
            0 => ("call of calm", Stability::Calm),
            _ => ("call of wild", Stability::Wild),
        };
        let servers = world.field.of(nature);
        let server = *random.pick(&servers);
        let call_kind = call_kind(&mut random);
        number += 1;
        let text = format!("{} {number} {}", server.name, random.below(usize::MAX >> 1));
        let how = call(&world, server, call_kind, &text).await;
        world.tally.count(who, how);
        // A missing server rejects at once; other tasks must run too.
        tokio::time::sleep(random.duration(Duration::from_millis(20))).await;
    }
}

/// Makes one call and returns its outcome.
async fn call(world: &SoakState, server: &Server, call_kind: CallKind, text: &str) -> String {
    let (tool, arguments) = match call_kind {
        CallKind::Echo => ("echo", format!(r#"{{"text":"{text}"}}"#)),
        CallKind::Grow(bytes) => ("grow", format!(r#"{{"bytes":{bytes}}}"#)),
        CallKind::Fail => ("fail", format!(r#"{{"message":"{text}"}}"#)),
        CallKind::GiveUp(_) | CallKind::TooLong(_) => ("sleep", r#"{"ms":60000,"steps":1000}"#.to_owned()),
    };
    let mut call = ToolCall::new(server.tool(tool), RawJson::parse(arguments.into()).unwrap());
    match call_kind {
        CallKind::TooLong(deadline) => call.options.deadline = Some(deadline),
        CallKind::Echo | CallKind::Grow(_) | CallKind::Fail | CallKind::GiveUp(_) => {}
    }
    let begun = Instant::now();
    let calling = world.host.call(call);
    let result = match call_kind {
        CallKind::GiveUp(after) => match tokio::time::timeout(after, calling).await {
            Ok(result) => result,
            // The dropped call is cancelled at the server.
            Err(_) => return "cancelled".to_owned(),
        },
        CallKind::Echo | CallKind::Grow(_) | CallKind::Fail | CallKind::TooLong(_) => {
            tokio::time::timeout(PATIENCE, calling)
                .await
                .unwrap_or_else(|_| panic!("{call_kind:?} of {server:?} hangs"))
        }
    };
    outcome(server, call_kind, text, &result, begun.elapsed())
}

fn outcome(server: &Server, call_kind: CallKind, text: &str, result: &CallResult, took: Duration) -> String {
    let failed = match &result.error {
        None => {
            match call_kind {
                CallKind::Echo => assert_eq!(result.text(), text, "somebody else's answer"),
                CallKind::Grow(bytes) => assert_eq!(result.text().len(), bytes, "of {server:?}"),
                CallKind::Fail | CallKind::GiveUp(_) | CallKind::TooLong(_) => {
                    panic!("{call_kind:?} of {server:?} is done after {took:?}")
                }
            }
            return "answered".to_owned();
        }
        Some(failed) => failed,
    };
    match call_kind {
        CallKind::Fail if failed.kind == ErrorKind::Tool => {
            assert!(failed.message.contains(text), "somebody else's failure: {failed:?}");
            return "failed as told".to_owned();
        }
        CallKind::TooLong(_) if failed.kind == ErrorKind::Timeout => return "too late".to_owned(),
        CallKind::Echo | CallKind::Grow(_) | CallKind::Fail | CallKind::GiveUp(_) | CallKind::TooLong(_) => {}
    }
    match server.nature {
        Stability::Calm => panic!("{call_kind:?} of {server:?}, which was not disturbed: {failed:?}"),
        Stability::Wild => failed.kind.as_str().to_owned(),
    }
}

/// Calls each shared server.
pub(super) async fn everybody_answers(world: &SoakState) {
    for server in [Stability::Calm, Stability::Wild].iter().flat_map(|it| world.field.of(*it)) {
        let begun = Instant::now();
        loop {
            let how = call(world, server, CallKind::Echo, "still there").await;
            if how == "answered" {
                break;
            }
            // A broken connection may not have been noticed before this call.
            assert!(begun.elapsed() < PATIENCE, "{server:?}: {how}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
