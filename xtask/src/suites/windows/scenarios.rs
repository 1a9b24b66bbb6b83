//! What is run under wine: stdio servers, the end of closed and killed hosts, files, and HTTP.
//!
//! The configuration files of users are in `configs`, and a server on Node in `node`.

use std::net::TcpListener;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::wine::{HOST, PROBE, Wine, expect, processes_with};
use super::{configs, node};
use crate::error::Error;

/// How often a host is killed.
const KILLS: usize = 50;

/// The longest wait for a state of a process.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The time between two looks at it.
const INTERVAL: Duration = Duration::from_millis(20);

/// A scenario, with its name.
type Scenario = (&'static str, fn(&Wine) -> Result<(), Error>);

const SCENARIOS: [Scenario; 14] = [
    ("arguments and messages are passed unchanged", check_messages),
    ("server that a batch file starts", check_batch_file),
    ("closed host leaves no process", check_close),
    ("killed host leaves no process", check_kills),
    ("server that ignores the end of its input is ended", check_deaf_server),
    ("server holds no pipe of another server", check_handles),
    ("configuration starts the demo server", check_demo_server),
    ("files of programs are found", configs::check_import),
    ("files of users start what their programs start", configs::check_starts),
    ("causes of failures are named", check_failures),
    ("servers on Node for Windows", node::check),
    ("file is replaced while another program reads it", check_replace),
    ("edit keeps the line ends of Windows", check_line_ends),
    ("HTTP gateway and a changed file", check_http),
];

/// Runs all scenarios. A failure does not stop the others.
pub(super) fn run(wine: &Wine) -> Result<(), Error> {
    let mut failed = Vec::new();
    for (name, scenario) in SCENARIOS {
        let start = Instant::now();
        let result = scenario(wine);
        let outcome = if result.is_ok() { "ok" } else { "FAILED" };
        println!("{name}: {outcome} in {:.1} s", start.elapsed().as_secs_f64());
        if let Err(error) = result {
            failed.push(format!("{name}: {error}"));
        }
    }
    println!("{} of {} scenarios passed under wine", SCENARIOS.len() - failed.len(), SCENARIOS.len());
    if failed.is_empty() { Ok(()) } else { Err(Error::message(failed.join("\n"))) }
}

/// What the tool of the probe returns.
const ECHO: &str = r#""grün & %PATH% \"quoted\" \\ end" from"#;

fn check_messages(wine: &Wine) -> Result<(), Error> {
    let output = wine.run(PROBE, &["host", &wine.windows_path(PROBE), "server", "a mark with spaces"])?;
    expect(&output, ECHO)?;
    expect(&output, "closed")?;
    no_process("a mark with spaces")
}

fn check_batch_file(wine: &Wine) -> Result<(), Error> {
    wine.write("start.cmd", &format!("@echo off\r\n\"%~dp0{PROBE}\" %*\r\n"))?;
    // Without its extension, as `npx`.
    let output = wine.run(PROBE, &["host", &wine.windows_path("start"), "server", "batch mark"])?;
    expect(&output, ECHO)?;
    no_process("batch mark")
}

/// Starts a host and waits until its server has started a child. The server is the child of a batch file.
fn start_host(wine: &Wine, mark: &str) -> Result<Child, Error> {
    let host = wine.start(PROBE, &["host", &wine.windows_path("start.cmd"), "server", mark])?;
    // wine does not end a process that has not run yet.
    let running = wine.path(&format!("{mark}.runs"));
    wait_until("the child of the server runs", || running.is_file())?;
    Ok(host)
}

/// Kills a host at once, as the task manager does.
fn kill(host: &mut Child) -> Result<(), Error> {
    host.kill().and_then(|()| host.wait()).map(drop).map_err(|error| Error::message(error.to_string()))
}

fn no_process(mark: &str) -> Result<(), Error> {
    wait_until("all its processes end", || processes_with(mark).is_empty())
}

fn check_close(wine: &Wine) -> Result<(), Error> {
    let mut host = start_host(wine, "closed-host")?;
    // The end of its standard input ends it.
    drop(host.stdin.take());
    host.wait().map_err(|error| Error::message(error.to_string()))?;
    no_process("closed-host")
}

fn check_kills(wine: &Wine) -> Result<(), Error> {
    for count in 1..=KILLS {
        let mark = format!("killed-host-{count}-");
        kill(&mut start_host(wine, &mark)?)?;
        no_process(&mark).map_err(|error| Error::message(format!("kill {count} of {KILLS}: {error}")))?;
    }
    println!("{KILLS} of {KILLS} killed hosts left no process");
    Ok(())
}

/// In a console, because only there it gets Ctrl-Break. wine then ends it without its handler.
fn check_deaf_server(wine: &Wine) -> Result<(), Error> {
    let probe = wine.windows_path(PROBE);
    let mut host = wine.start_in_console(PROBE, &["once", &probe, "deaf", "deaf-server"])?;
    let status = host.wait().map_err(|error| Error::message(error.to_string()))?;
    if !status.success() {
        return Err(Error::message(format!("the host ended with {status}")));
    }
    no_process("deaf-server")
}

fn check_handles(wine: &Wine) -> Result<(), Error> {
    expect(&wine.run(PROBE, &["hosts", "8"])?, "8 servers ended at the end of their input")
}

/// Entries that cannot be started, and what `doctor` says.
const FAILURES: [(&str, &str); 7] = [
    (r#""command": "npx-of-nobody""#, "write its full path; a program that was started before"),
    (r#""command": "python3""#, "write `python` or `py`"),
    (r#""command": "/opt/no such folder/node""#, "a path of Linux"),
    (r#""command": "C:\\Program", "args": ["Files\\a.exe"]"#, "the path was cut at a space"),
    (r#""command": ".\\start.ps1""#, "write `powershell` as the command"),
    (r#""command": ".\\text.exe""#, "the file is not a program for this machine"),
    (r#""command": ".\\missing.cmd""#, "a program that it needs is not installed"),
];

fn check_failures(wine: &Wine) -> Result<(), Error> {
    wine.write("start.ps1", "exit 0\r\n")?;
    wine.write("text.exe", "this is text\r\n")?;
    wine.write("missing.cmd", "@exit /b 9009\r\n")?;
    for (entry, cause) in FAILURES {
        wine.write("broken.json", &format!(r#"{{"mcpServers": {{"broken": {{{entry}}}}}}}"#))?;
        match wine.run(HOST, &["doctor", "broken.json"]) {
            Ok(output) => return Err(Error::message(format!("{entry} is not broken: {output}"))),
            Err(error) => expect(&error.to_string(), cause)?,
        }
    }
    Ok(())
}

/// Writes a configuration with the demo server.
fn write_config(wine: &Wine, name: &str) -> Result<(), Error> {
    let command = wine.windows_path(HOST).replace('\\', "\\\\");
    wine.write(
        name,
        &format!(r#"{{"mcpServers": {{"demo": {{"command": "{command}", "args": ["demo-server"]}}}}}}"#),
    )
}

fn check_demo_server(wine: &Wine) -> Result<(), Error> {
    write_config(wine, "mcp.json")?;
    expect(&wine.run(HOST, &["check", "mcp.json"])?, "1 server")?;
    expect(&wine.run(HOST, &["tools", "mcp.json"])?, "echo")?;
    expect(&wine.run(HOST, &["call", "mcp.json", "echo", "text=grün"])?, "grün")
}

/// How often a file is changed while it is read.
const EDITS: usize = 20;

fn check_replace(wine: &Wine) -> Result<(), Error> {
    write_config(wine, "read.json")?;
    let mut reader = wine.start(PROBE, &["reader", "read.json"])?;
    let edited = (0..EDITS).try_for_each(|count| {
        let command = if count % 2 == 0 { "disable" } else { "enable" };
        wine.run(HOST, &[command, "read.json", "demo"]).map(drop)
    });
    drop(reader.stdin.take());
    let status = reader.wait().map_err(|error| Error::message(error.to_string()))?;
    edited?;
    if status.success() { Ok(()) } else { Err(Error::message("a reader saw no whole file")) }
}

fn check_line_ends(wine: &Wine) -> Result<(), Error> {
    let servers = r#"{"a": {"command": "x"}, "b": {"command": "y"}}"#;
    wine.write("crlf.json", &format!("{{\r\n  \"mcpServers\": {servers}\r\n}}\r\n"))?;
    wine.run(HOST, &["remove", "crlf.json", "a"])?;
    let text = wine.read("crlf.json")?;
    let is_kept = text.matches('\n').count() == text.matches("\r\n").count() && text.contains("\r\n");
    let is_removed = !text.contains("\"a\"");
    if is_kept && is_removed { Ok(()) } else { Err(Error::message(format!("the edit made {text:?}"))) }
}

fn check_http(wine: &Wine) -> Result<(), Error> {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = address.map_err(|error| Error::message(error.to_string()))?.to_string();
    write_config(wine, "served.json")?;
    wine.write(
        "client.json",
        &format!(r#"{{"mcpServers": {{"gateway": {{"url": "http://{address}/mcp"}}}}}}"#),
    )?;
    let mut host = wine.start(HOST, &["serve", "served.json", "--http", &address])?;
    let served = check_served(wine, &address);
    kill(&mut host)?;
    served?;
    no_process("mcp-host.exe demo-server")
}

/// Calls a tool through a gateway, renames its server in the file, and calls it by its new name.
fn check_served(wine: &Wine, address: &str) -> Result<(), Error> {
    wait_until("the gateway listens", || std::net::TcpStream::connect(address).is_ok())?;
    let call = |tool: &str| wine.run(HOST, &["call", "client.json", tool, "text=over HTTP"]);
    expect(&call("demo__echo")?, "over HTTP")?;
    let text = wine.read("served.json")?;
    wine.write("served.json", &text.replace("\"demo\"", "\"renamed\""))?;
    wait_until("the changed file is applied", || call("renamed__echo").is_ok())
}

/// Waits until the condition is true.
fn wait_until(what: &str, condition: impl Fn() -> bool) -> Result<(), Error> {
    let start = Instant::now();
    while start.elapsed() < TIMEOUT {
        if condition() {
            return Ok(());
        }
        sleep(INTERVAL);
    }
    Err(Error::message(format!("{what}: not within {} s", TIMEOUT.as_secs())))
}
