//! A host, a server and a child of the server, for the tests of processes on Windows.
//!
//! - `host COMMAND [ARGUMENT…]` starts the server, calls its tool, prints the result, and closes it when its own input
//!   ends.
//! - `server [MARK]` starts `idle MARK`, and answers calls with the text of the argument.
//! - `idle MARK` does nothing, for ever.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "its output is what the tests read")]

use std::env;
use std::error::Error;
use std::io::{self, BufRead, Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use mcp_host_model::{RawJson, StdioEndpoint, code};
use mcp_host_transport::{CallOptions, DialOptions, Session, SessionOptions, stdio_dialer};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["host", command, arguments @ ..] => {
            tokio::runtime::Runtime::new()?.block_on(host(command, arguments))
        }
        ["server", mark @ ..] => server(mark.first().copied().unwrap_or("none")),
        ["idle", ..] => loop {
            std::thread::park();
        },
        other => Err(format!("unknown arguments {other:?}").into()),
    }
}

async fn host(command: &str, arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    let mut endpoint = StdioEndpoint::new(command);
    endpoint.args = arguments.iter().map(|argument| (*argument).into()).collect();
    let session =
        Session::connect(stdio_dialer(&endpoint, &DialOptions::default())?, SessionOptions::default())
            .await?;
    let text = r#"{"message":"grün & %PATH% \"quoted\" \\ end"}"#;
    let response = session.call_tool("echo", &RawJson::parse(text.into())?, CallOptions::default()).await?;
    println!("{}", response.value.text());
    io::stdout().flush()?;
    tokio::task::spawn_blocking(|| io::stdin().read_to_end(&mut Vec::new())).await??;
    session.close(Duration::from_secs(5)).await;
    println!("closed");
    Ok(())
}

/// Answers requests until its input ends. Like real servers, it leaves its child behind.
fn server(mark: &str) -> Result<(), Box<dyn Error>> {
    let mut child = Command::new(env::current_exe()?);
    child.args(["idle", mark]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = child.spawn()?;
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let Some(id) = message.get("id") else { continue };
        let answer = match message["method"].as_str() {
            Some("initialize") => json!({"result": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "probe", "version": "1"},
            }}),
            Some("tools/list") => {
                json!({"result": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}})
            }
            Some("tools/call") => {
                let text = format!("{} from {}", message["params"]["arguments"]["message"], child.id());
                json!({"result": {"content": [{"type": "text", "text": text}]}})
            }
            _ => json!({"error": {"code": code::METHOD_NOT_FOUND, "message": "unknown method"}}),
        };
        let mut answer = answer;
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = id.clone();
        println!("{answer}");
        io::stdout().flush()?;
    }
    Ok(())
}
