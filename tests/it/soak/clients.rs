//! Clients of the gateway that connect, call, and disconnect, some without notice.

use std::time::Duration;

use mcp_host_model::{Endpoint, RawJson, UrlEndpoint};
use mcp_host_transport::{CallOptions, DialOptions, Eras, Session, SessionOptions, dialer};
use mcp_testkit::random::Random;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::servers::Stability;
use super::{PATIENCE, SoakState};

pub(super) async fn connect_on(world: SoakState, mut random: Random) {
    while !world.is_over() {
        match random.below(4) {
            0 => vanish_in_a_call(&world, &mut random).await,
            1 => never_read(&world, &mut random).await,
            2 => converse(&world, &mut random, "client with sessions", Eras::Legacy).await,
            _ => converse(&world, &mut random, "client without sessions", Eras::Modern).await,
        }
        tokio::time::sleep(random.duration(Duration::from_millis(100))).await;
    }
}

/// A client on our crates that checks its own results.
async fn converse(world: &SoakState, random: &mut Random, who: &'static str, eras: Eras) {
    let endpoint = Endpoint::Http(UrlEndpoint::new(world.gateway.parse().unwrap()));
    let dial = dialer(&endpoint, &DialOptions::default()).unwrap();
    let mut options = SessionOptions::default();
    options.eras = eras;
    let connecting = tokio::time::timeout(PATIENCE, Session::connect(dial, options)).await;
    let session = connecting.expect("it answers, or refuses").expect("it has room for all");
    let tools = tokio::time::timeout(PATIENCE, session.list_tools()).await.expect("a list ends").unwrap();
    let calm = world.field.of(Stability::Calm);
    let names: Vec<&str> = tools.items.iter().map(|item| &*item.name).collect();
    assert!(
        calm.iter().all(|it| names.contains(&&*it.tool("echo"))),
        "a calm server is not shown: {names:?}"
    );
    for _ in 0..random.below(10) {
        let text = format!("{who} {}", random.below(usize::MAX >> 1));
        let arguments = RawJson::parse(format!(r#"{{"text":"{text}"}}"#).into()).unwrap();
        let tool = random.pick(&calm).tool("echo");
        let calling = session.call_tool(&tool, &arguments, CallOptions::default());
        let answer = tokio::time::timeout(PATIENCE, calling).await.expect("a call ends").unwrap();
        assert_eq!(answer.value.text(), text, "somebody else's answer");
        world.tally.count(who, "answered");
    }
    match random.below(2) {
        0 => drop(session.close(Duration::from_secs(5)).await),
        _ => {
            drop(session);
            world.tally.count(who, "vanished");
        }
    }
}

/// Starts a long call and disconnects.
async fn vanish_in_a_call(world: &SoakState, random: &mut Random) {
    let tool = random.pick(&world.field.of(Stability::Calm)).tool("sleep");
    let Some(mut stream) = call_by_hand(world, &tool, r#"{"ms":60000}"#).await else { return };
    let moment = random.duration(Duration::from_millis(100));
    // Reads whatever has arrived.
    let _ = tokio::time::timeout(moment, stream.read_u8()).await;
    world.tally.count("client on a socket", "vanished in a call");
}

/// Requests much and does not read for a while.
async fn never_read(world: &SoakState, random: &mut Random) {
    let tool = random.pick(&world.field.of(Stability::Calm)).tool("grow");
    let Some(stream) = call_by_hand(world, &tool, r#"{"bytes":4000000}"#).await else { return };
    tokio::time::sleep(random.duration(Duration::from_millis(1000))).await;
    drop(stream);
    world.tally.count("client on a socket", "does not read");
}

/// A hand-written stateless call; the response is not read.
async fn call_by_hand(world: &SoakState, tool: &str, arguments: &str) -> Option<TcpStream> {
    let address = world.gateway.strip_prefix("http://")?.strip_suffix("/mcp")?;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}},"name":"{tool}","arguments":{arguments}}}}}"#
    );
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\naccept: application/json, \
         text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: \
         {tool}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.ok()?;
    stream.write_all(head.as_bytes()).await.ok()?;
    stream.write_all(body.as_bytes()).await.ok()?;
    Some(stream)
}
