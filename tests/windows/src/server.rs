//! The servers.

use std::env;
use std::error::Error;
use std::fs;
use std::io::{self, BufRead, Write};
use std::process::{Command, Stdio};
use std::thread;

use mcp_host_model::code;
use serde_json::{Value, json};

/// Answers requests until its input ends, and then creates the file `mark` if it begins with `input-ended`. Like real
/// servers, it leaves its child behind.
pub(crate) fn echo(mark: &str) -> Result<(), Box<dyn Error>> {
    let mut child = Command::new(env::current_exe()?);
    child.args(["idle", mark]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = child.spawn()?;
    answer_requests(|arguments| format!("{} from {}", arguments["message"], child.id()))?;
    if mark.starts_with("input-ended") {
        fs::write(mark, "")?;
    }
    Ok(())
}

/// Reports the program, the arguments, the working directory and the variables with which it was started.
pub(crate) fn report_start(program: &str, arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    // A batch file names itself: its program is `cmd.exe`.
    let (program, arguments) = match arguments {
        ["--batch-file", name, arguments @ ..] => (*name, arguments),
        arguments => (program, arguments),
    };
    let variables: serde_json::Map<String, Value> =
        env::vars().map(|(name, value)| (name, value.into())).collect();
    let start = json!({
        "program": program,
        "arguments": arguments,
        "directory": env::current_dir()?,
        "env": variables,
    });
    answer_requests(|_| start.to_string())
}

/// Answers requests. The end of its input has no effect.
pub(crate) fn deaf() -> Result<(), Box<dyn Error>> {
    answer_requests(|_| "deaf".to_owned())?;
    loop {
        thread::park();
    }
}

/// Answers requests with the text of this function for the arguments of a call, until its input ends.
fn answer_requests(text: impl Fn(&Value) -> String) -> Result<(), Box<dyn Error>> {
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let Some(id) = message.get("id") else { continue };
        let mut answer = match message["method"].as_str() {
            Some("initialize") => json!({"result": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "probe", "version": "1"},
            }}),
            Some("tools/list") => {
                json!({"result": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}})
            }
            Some("tools/call") => {
                let text = text(&message["params"]["arguments"]);
                json!({"result": {"content": [{"type": "text", "text": text}]}})
            }
            _ => json!({"error": {"code": code::METHOD_NOT_FOUND, "message": "unknown method"}}),
        };
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = id.clone();
        println!("{answer}");
        io::stdout().flush()?;
    }
    Ok(())
}
