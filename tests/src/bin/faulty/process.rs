//! The server as a child process, and faults of processes.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use mcp_tests::faults::{At, Script, Step};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::act::{After, act as answer};
use crate::connection::{Connection, Writer};
use crate::framing::Framing;

/// Serves on the standard streams until the input ends.
pub(crate) async fn run(script: Script) {
    let connection = Arc::new(Connection::new(Writer::Output(tokio::io::stdout())));
    if script.at == At::Start {
        for step in &script.steps {
            match step {
                Step::Hush | Step::Deaf => std::future::pending().await,
                Step::Banner => {
                    connection.write(b"SSH-2.0-OpenSSH_9.9\r\n").await;
                    std::future::pending::<()>().await;
                }
                Step::Flood | Step::Endless => {
                    crate::act::go_on(*step, Framing::Line, Arc::clone(&connection)).await;
                }
                Step::End => connection.end().await,
                Step::Reset => connection.reset().await,
                other => act(*other).await,
            }
        }
    }
    if script.at == At::Hear {
        tokio::spawn(crate::act::go_on(script.steps[0], Framing::Line, Arc::clone(&connection)));
    }
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        match answer(&script, &message, Framing::Line, &connection, false).await {
            After::Next => {}
            After::Hold | After::Deaf => std::future::pending().await,
            After::Gone | After::Replaced => break,
        }
    }
    if script.at == At::Close {
        for step in &script.steps {
            match step {
                Step::Stubborn | Step::Hush => std::future::pending().await,
                Step::Reset => connection.reset().await,
                Step::Flood => crate::act::go_on(*step, Framing::Line, Arc::clone(&connection)).await,
                other => act(*other).await,
            }
        }
    }
    // A reading thread would keep the process alive.
    std::process::exit(0);
}

/// Executes a step that only a process can do.
pub(crate) async fn act(step: Step) {
    match step {
        Step::Exit(code) => std::process::exit(code),
        Step::Orphan => {
            let _orphan = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
            std::process::exit(0);
        }
        Step::Escape => {
            let _escaped = Command::new("setsid").args(["sleep", "60"]).stdin(Stdio::null()).spawn().unwrap();
            // The child must have left the group before this process exits.
            tokio::time::sleep(Duration::from_millis(200)).await;
            std::process::exit(0);
        }
        Step::CloseOutput => {
            // Without `unsafe`: another program without output replaces this process.
            use std::os::unix::process::CommandExt;
            let _ = Command::new("sh").args(["-c", "exec sleep 60 >&-"]).exec();
        }
        Step::FillErrors => {
            use std::io::Write;
            std::thread::spawn(|| {
                let line = [b'e'; 1023].into_iter().chain([b'\n']).collect::<Vec<u8>>();
                while std::io::stderr().write_all(&line).is_ok() {}
            });
        }
        Step::Allocate => {
            let mut taken = Vec::new();
            loop {
                // Touched memory must be provided by the system.
                taken.push(vec![1_u8; 16 << 20]);
                std::hint::black_box(&taken);
            }
        }
        _ => {}
    }
}

/// Ends like a process that the system kills.
pub(crate) fn kill_itself() {
    let own = std::process::id().to_string();
    let _ = Command::new("kill").args(["-KILL", &own]).status();
    std::thread::sleep(Duration::from_secs(60));
}
