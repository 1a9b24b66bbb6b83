//! Those who call whatever is there, and look that each call ends once, in time, and with its own answer.

use std::time::{Duration, Instant};

use mcp_host::ToolCall;
use mcp_model::{CallResult, ErrorKind, RawJson};

use super::field::{Nature, Server};
use super::random::Random;
use super::{PATIENCE, World};

/// What somebody wants of a server.
#[derive(Debug, Clone, Copy)]
enum Wish {
    /// The same text back.
    Echo,
    /// A text of this many bytes.
    Grow(usize),
    /// To be refused.
    Fail,
    /// Something that takes longer than he waits.
    GiveUp(Duration),
    /// Something that takes longer than it may.
    TooLong(Duration),
}

/// What is written into the files besides the answers of servers, per answer: at most this many bytes go whole.
const LARGEST: usize = 200 << 10;

fn wish(random: &mut Random) -> Wish {
    let moment = Duration::from_millis(random.below(200) as u64);
    match random.below(16) {
        0 | 1 => Wish::Grow(random.below(LARGEST)),
        2 => Wish::Fail,
        3 | 4 => Wish::GiveUp(moment),
        5 => Wish::TooLong(moment + Duration::from_millis(50)),
        _ => Wish::Echo,
    }
}

pub(super) async fn call_on(world: World, mut random: Random) {
    let mut number = 0;
    while !world.is_over() {
        let (who, nature) = match random.below(2) {
            0 => ("call of calm", Nature::Calm),
            _ => ("call of wild", Nature::Wild),
        };
        let servers = world.field.of(nature);
        let server = *random.of(&servers);
        let wish = wish(&mut random);
        number += 1;
        let text = format!("{} {number} {}", server.name, random.below(usize::MAX >> 1));
        let how = call(&world, server, wish, &text).await;
        world.tally.count(who, how);
        // A server that is not there refuses at once: the others are to have their turn.
        tokio::time::sleep(Duration::from_millis(random.below(20) as u64)).await;
    }
}

/// Makes one call, and says how it ended.
async fn call(world: &World, server: &Server, wish: Wish, text: &str) -> String {
    let (tool, arguments) = match wish {
        Wish::Echo => ("echo", format!(r#"{{"text":"{text}"}}"#)),
        Wish::Grow(bytes) => ("grow", format!(r#"{{"bytes":{bytes}}}"#)),
        Wish::Fail => ("fail", format!(r#"{{"message":"{text}"}}"#)),
        Wish::GiveUp(_) | Wish::TooLong(_) => ("sleep", r#"{"ms":60000,"steps":1000}"#.to_owned()),
    };
    let mut call = ToolCall::new(server.tool(tool), RawJson::parse(arguments.into()).unwrap());
    match wish {
        Wish::TooLong(deadline) => call.deadline = Some(deadline),
        Wish::Echo | Wish::Grow(_) | Wish::Fail | Wish::GiveUp(_) => {}
    }
    let begun = Instant::now();
    let calling = world.host.call(call);
    let result = match wish {
        Wish::GiveUp(after) => match tokio::time::timeout(after, calling).await {
            Ok(result) => result,
            // Dropped: nobody waits any more, and the server is told.
            Err(_) => return "cancelled".to_owned(),
        },
        Wish::Echo | Wish::Grow(_) | Wish::Fail | Wish::TooLong(_) => tokio::time::timeout(PATIENCE, calling)
            .await
            .unwrap_or_else(|_| panic!("{wish:?} of {server:?} hangs")),
    };
    judge(server, wish, text, &result, begun.elapsed())
}

fn judge(server: &Server, wish: Wish, text: &str, result: &CallResult, took: Duration) -> String {
    let failed = match &result.error {
        None => {
            match wish {
                Wish::Echo => assert_eq!(result.text(), text, "somebody else's answer"),
                Wish::Grow(bytes) => assert_eq!(result.text().len(), bytes, "of {server:?}"),
                Wish::Fail | Wish::GiveUp(_) | Wish::TooLong(_) => {
                    panic!("{wish:?} of {server:?} is done after {took:?}")
                }
            }
            return "answered".to_owned();
        }
        Some(failed) => failed,
    };
    match wish {
        Wish::Fail if failed.kind == ErrorKind::Tool => {
            assert!(failed.message.contains(text), "somebody else's failure: {failed:?}");
            return "failed as told".to_owned();
        }
        Wish::TooLong(_) if failed.kind == ErrorKind::Timeout => return "too late".to_owned(),
        Wish::Echo | Wish::Grow(_) | Wish::Fail | Wish::GiveUp(_) | Wish::TooLong(_) => {}
    }
    match server.nature {
        Nature::Calm => panic!("{wish:?} of {server:?}, which nobody touched: {failed:?}"),
        Nature::Wild => failed.kind.as_str().to_owned(),
    }
}

/// Each server that is for all answers.
pub(super) async fn everybody_answers(world: &World) {
    for server in [Nature::Calm, Nature::Wild].iter().flat_map(|it| world.field.of(*it)) {
        let begun = Instant::now();
        loop {
            let how = call(world, server, Wish::Echo, "still there").await;
            if how == "answered" {
                break;
            }
            // A wire that was cut may not have been noticed before this call.
            assert!(begun.elapsed() < PATIENCE, "{server:?}: {how}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
