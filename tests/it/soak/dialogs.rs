//! Dialogs that lease a server of their own, and look that nobody else has touched what is in it.

use std::time::Duration;

use mcp_host::{Dialog, DialogId, ToolCall};
use mcp_model::RawJson;

use super::random::Random;
use super::{PATIENCE, World};

/// What a dialog knows of the tool that it adds to its own server and takes away again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Absent,
    There,
}

pub(super) async fn talk_on(world: World, mut random: Random, number: usize) {
    let mut turn = 0;
    while !world.is_over() {
        turn += 1;
        let dialog = world.host.dialog(DialogId::new(format!("dialog {number}, {turn}")));
        world.tally.count("dialog", "begun");
        talk(&world, &mut random, &dialog).await;
    }
}

/// One dialog: it changes what its server has, and finds it so again. Another one's change would show.
async fn talk(world: &World, random: &mut Random, dialog: &Dialog) {
    let server = world.field.own();
    let mut known = Known::Absent;
    let mut crashes = 0;
    // Where another dialog's process has crashed just now, a new one has to wait for a moment.
    served(dialog, &server.tool("echo")).await;
    for _ in 0..random.below(30) {
        if world.is_over() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(random.below(300) as u64)).await;
        // All use the same name: only the process can tell them apart.
        let result = call(dialog, &server.tool("change_tools"), r#"{"name":"mine"}"#).await;
        assert!(result.success, "{:?}: {:?}", dialog.id(), result.error);
        let (expected, next) = match known {
            Known::Absent => ("added mine", Known::There),
            Known::There => ("removed mine", Known::Absent),
        };
        assert_eq!(result.text(), expected, "somebody else was in the server of {:?}", dialog.id());
        known = next;
        world.tally.count("dialog", "found its own state");
        if random.below(12) == 0 && crashes < 2 {
            let result = call(dialog, &server.tool("exit"), "{}").await;
            assert!(!result.success);
            world.tally.count("dialog", "crashed its server");
            crashes += 1;
            known = Known::Absent;
            served(dialog, &server.tool("echo")).await;
        }
    }
}

/// Waits until the dialog has a server of its own.
async fn served(dialog: &Dialog, echo: &str) {
    let asking = async {
        while !call(dialog, echo, r#"{"text":"again"}"#).await.success {
            dialog.resume().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.expect("a dialog gets a server");
}

async fn call(dialog: &Dialog, tool: &str, arguments: &'static str) -> mcp_model::CallResult {
    let call = ToolCall::new(tool, RawJson::parse(arguments.into()).unwrap());
    tokio::time::timeout(PATIENCE, dialog.call(call)).await.expect("a call ends")
}
