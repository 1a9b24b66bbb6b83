//! A host, servers and other programs for the tests on Windows.
//!
//! - `host COMMAND [ARGUMENT…]` starts the server, calls its tool, prints the result, and closes it when its own input
//!   ends.
//! - `once COMMAND [ARGUMENT…]` starts the server and closes it.
//! - `hosts COUNT` starts servers at once and closes one after the other, while the others run.
//! - `server [MARK]` starts `idle MARK`, and answers calls with the text of the argument.
//! - `deaf MARK` is a server that ignores the end of its input.
//! - `idle MARK` creates the file `MARK.runs`, and does nothing more, for ever.
//! - `user HOME PROGRAM [ARGUMENT…]` runs a program with the folders of another user.
//! - `reader FILE` reads the file until its own input ends, and fails if the file is ever missing or not whole.
//!
//! Under another file name, such as `npx.exe`, it is a server that reports what it was started with.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "its output is what the tests read")]

mod server;

use std::env;
use std::error::Error;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use mcp_host_model::{RawJson, StdioEndpoint};
use mcp_host_transport::{CallOptions, DialOptions, Session, SessionOptions, stdio_dialer};
use serde_json::Value;

/// How long a server may take to end after it was asked to.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause between two reads.
const READ_INTERVAL: Duration = Duration::from_millis(5);

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let program = env::current_exe()?;
    let name = program.file_stem().unwrap_or_default().to_string_lossy();
    if name != env!("CARGO_BIN_NAME") {
        return server::report_start(&name, &arguments).map(|()| ExitCode::SUCCESS);
    }
    match arguments.as_slice() {
        ["host", command, arguments @ ..] => {
            tokio::runtime::Runtime::new()?.block_on(host(command, arguments))?;
        }
        ["once", command, arguments @ ..] => {
            tokio::runtime::Runtime::new()?.block_on(async {
                connect(command, arguments).await?.close(CLOSE_TIMEOUT).await;
                Ok::<_, Box<dyn Error>>(())
            })?;
        }
        ["hosts", count] => tokio::runtime::Runtime::new()?.block_on(hosts(count.parse()?))?,
        ["server", mark @ ..] => server::echo(mark.first().copied().unwrap_or("none"))?,
        ["deaf", _] => server::deaf()?,
        ["idle", mark] => {
            fs::write(format!("{mark}.runs"), "")?;
            loop {
                thread::park();
            }
        }
        ["user", home, program, arguments @ ..] => return run_as_user(Path::new(home), program, arguments),
        ["reader", file] => read_until_input_ends(file)?,
        other => return Err(format!("unknown arguments {other:?}").into()),
    }
    Ok(ExitCode::SUCCESS)
}

async fn connect(command: &str, arguments: &[&str]) -> Result<Session, Box<dyn Error>> {
    let mut endpoint = StdioEndpoint::new(command);
    endpoint.args = arguments.iter().map(|argument| (*argument).into()).collect();
    let dialer = stdio_dialer(&endpoint, &DialOptions::default())?;
    Ok(Session::connect(dialer, SessionOptions::default()).await?)
}

async fn host(command: &str, arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    let session = connect(command, arguments).await?;
    let text = r#"{"message":"grün & %PATH% \"quoted\" \\ end"}"#;
    let response = session.call_tool("echo", &RawJson::parse(text.into())?, CallOptions::default()).await?;
    println!("{}", response.value.text());
    io::stdout().flush()?;
    tokio::task::spawn_blocking(|| io::stdin().read_to_end(&mut Vec::new())).await??;
    session.close(CLOSE_TIMEOUT).await;
    println!("closed");
    Ok(())
}

/// Each server creates a file at the end of its input. If another server had inherited the pipe, there would be no end.
async fn hosts(count: usize) -> Result<(), Box<dyn Error>> {
    let program = env::current_exe()?.display().to_string();
    let names: Vec<String> = (0..count).map(|index| format!("input-ended-{index}")).collect();
    let starts = names.iter().map(|name| {
        let (program, name) = (program.clone(), name.clone());
        // At once, so that one server is created while the pipes of another one are open.
        move || tokio::runtime::Handle::current().block_on(connect_text(&program, &name))
    });
    let tasks: Vec<_> = starts.map(tokio::task::spawn_blocking).collect();
    let mut sessions = Vec::new();
    for task in tasks {
        sessions.push(task.await??);
    }
    for (session, name) in sessions.into_iter().zip(&names) {
        session.close(CLOSE_TIMEOUT).await;
        if !Path::new(name).is_file() {
            return Err(format!("{name}: the server was ended by force").into());
        }
    }
    println!("{count} servers ended at the end of their input");
    Ok(())
}

async fn connect_text(program: &str, name: &str) -> Result<Session, String> {
    connect(program, &["server", name]).await.map_err(|error| error.to_string())
}

/// Runs a program with the variables that name the folders of a user.
fn run_as_user(home: &Path, program: &str, arguments: &[&str]) -> Result<ExitCode, Box<dyn Error>> {
    let mut command = Command::new(program);
    command.args(arguments).env("USERPROFILE", home);
    command.env("APPDATA", home.join("AppData/Roaming")).env("LOCALAPPDATA", home.join("AppData/Local"));
    let status = command.status()?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

fn read_until_input_ends(file: &str) -> Result<(), Box<dyn Error>> {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = io::stdin().read_to_end(&mut Vec::new());
            ended.store(true, Ordering::Relaxed);
        });
        while !ended.load(Ordering::Relaxed) {
            let text = fs::read_to_string(file)?;
            serde_json::from_str::<Value>(&text).map_err(|error| format!("not whole: {error}: {text:?}"))?;
            thread::sleep(READ_INTERVAL);
        }
        Ok(())
    })
}
