//! Dialogs that lease an instance and check that no other dialog changes it.

use std::time::Duration;

use mcp_host_model::RawJson;
use mcp_host_runtime::{Dialog, DialogId, ToolCall};

use super::{PATIENCE, SoakState};
use mcp_testkit::random::Random;

/// The state of the tool that a dialog adds and removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolState {
    Absent,
    There,
}

pub(super) async fn talk_on(world: SoakState, mut random: Random, number: usize) {
    let mut turn = 0;
    while !world.is_over() {
        turn += 1;
        let dialog = world.host.dialog(DialogId::new(format!("dialog {number}, {turn}")));
        world.tally.count("dialog", "begun");
        run_dialog(&world, &mut random, &dialog).await;
    }
}

/// One dialog: it changes its server and finds the change again.
async fn run_dialog(world: &SoakState, random: &mut Random, dialog: &Dialog) {
    let server = world.field.own();
    let mut known = ToolState::Absent;
    let mut crashes = 0;
    // If another dialog's process has just crashed, a new one waits for its backoff.
    served(dialog, &server.tool("echo")).await;
    for _ in 0..random.below(30) {
        if world.is_over() {
            return;
        }
        tokio::time::sleep(random.duration(Duration::from_millis(300))).await;
        // All dialogs use the same name, so only the process distinguishes them.
        let result = call(dialog, &server.tool("change_tools"), r#"{"name":"mine"}"#).await;
        assert!(result.success, "{:?}: {:?}", dialog.id(), result.error);
        let (expected, next) = match known {
            ToolState::Absent => ("added mine", ToolState::There),
            ToolState::There => ("removed mine", ToolState::Absent),
        };
        assert_eq!(result.text(), expected, "somebody else was in the server of {:?}", dialog.id());
        known = next;
        world.tally.count("dialog", "found its own state");
        if random.below(12) == 0 && crashes < 2 {
            let result = call(dialog, &server.tool("exit"), "{}").await;
            assert!(!result.success);
            world.tally.count("dialog", "crashed its server");
            crashes += 1;
            known = ToolState::Absent;
            served(dialog, &server.tool("echo")).await;
        }
    }
}

/// Waits until the dialog has its own instance.
async fn served(dialog: &Dialog, echo: &str) {
    let asking = async {
        while !call(dialog, echo, r#"{"text":"again"}"#).await.success {
            dialog.resume().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.expect("a dialog gets a server");
}

async fn call(dialog: &Dialog, tool: &str, arguments: &'static str) -> mcp_host_model::CallResult {
    let call = ToolCall::new(tool, RawJson::parse(arguments.into()).unwrap());
    tokio::time::timeout(PATIENCE, dialog.call(call)).await.expect("a call ends")
}
