//! Disturbances: edits, crashes, kills, and many list changes.

use std::time::Duration;

use mcp_host_model::RawJson;
use mcp_host_runtime::ToolCall;

use super::servers::{Server, ServerTransport, Stability};
use super::{PATIENCE, SoakState};
use mcp_testkit::random::Random;

/// Waits for a random time. Returns whether to continue.
async fn pause(world: &SoakState, random: &mut Random, most: u64) -> bool {
    let moment = random.duration(Duration::from_millis(most));
    tokio::select! {
        () = world.over.cancelled() => false,
        () = tokio::time::sleep(moment) => true,
    }
}

/// Removes unstable servers from the files, restores them, and changes their entries.
pub(super) async fn edit(world: SoakState, mut random: Random) {
    while pause(&world, &mut random, 1500).await {
        for _ in 0..=random.below(3) {
            let server = *random.pick(&world.field.of(Stability::Wild));
            server.edit();
            // Mostly it is never missing, but changes.
            if random.below(3) > 0 {
                server.edit();
            }
        }
        world.field.save();
        world.tally.count("edit", "made");
    }
}

/// Makes a process of an unstable server exit.
pub(super) async fn crash(world: SoakState, mut random: Random) {
    while pause(&world, &mut random, 2500).await {
        let wild = world.field.of(Stability::Wild);
        let piped: Vec<&Server> = wild.into_iter().filter(|it| it.wire == ServerTransport::Stdio).collect();
        let server = *random.pick(&piped);
        let call = ToolCall::new(server.tool("exit"), RawJson::parse(r#"{"code":3}"#.into()).unwrap());
        let result = tokio::time::timeout(PATIENCE, world.host.call(call)).await.expect("a call ends");
        assert!(!result.success, "{server:?} has answered, and ended");
        world.tally.count("exit", "made");
    }
}

/// Kills the process of the unstable network servers; later another one listens there.
pub(super) async fn kill(world: SoakState, mut random: Random) {
    while pause(&world, &mut random, 4000).await {
        world.field.kill();
        // As long as necessary; callers report their own timeouts.
        pause(&world, &mut random, 1500).await;
        let field = std::sync::Arc::clone(&world.field);
        tokio::task::spawn_blocking(move || field.revive()).await.unwrap();
        world.tally.count("kill", "made");
    }
}

/// Makes an unstable server change its list as fast as possible.
pub(super) async fn storm(world: SoakState, mut random: Random) {
    while pause(&world, &mut random, 2000).await {
        let server = *random.pick(&world.field.of(Stability::Wild));
        for number in 0..50 {
            let arguments = format!(r#"{{"name":"storm_{}"}}"#, number % 5);
            let call = ToolCall::new(server.tool("change_tools"), RawJson::parse(arguments.into()).unwrap());
            let result = tokio::time::timeout(PATIENCE, world.host.call(call)).await.expect("a call ends");
            let how = if result.success { "made" } else { "not made" };
            world.tally.count("list change", how);
        }
    }
}
