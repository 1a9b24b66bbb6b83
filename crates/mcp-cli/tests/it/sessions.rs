//! Snapshots of interactive commands: `login` with and without a terminal, and the terminal output of
//! `shell`, `record`, `serve` and `replay`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Output};

use url::Url;

use crate::authority::Authority;
use crate::contracts::shown;
use crate::support::{DEMO, HttpDemo, Run, Workspace};
use crate::terminal::Terminal;

/// Fetches a page, follows its redirects, and returns the text of the last one.
fn browse(page: &str) -> String {
    let mut url = Url::parse(page).unwrap();
    for _ in 0..5 {
        let host = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
        let mut stream = TcpStream::connect(&host).unwrap();
        let path = url[url::Position::BeforePath..].to_owned();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let next = answer.lines().find_map(|line| line.strip_prefix("location: "));
        match next {
            Some(next) => url = url.join(next).unwrap(),
            None => return answer,
        }
    }
    panic!("{page} leads round and round");
}

/// Replaces ports and values that differ with each login.
fn masked(text: &str, workspace: &Workspace) -> String {
    let mut res = String::new();
    for line in text.replace(&workspace.path().display().to_string(), "FOLDER").lines() {
        let line = match (line.find("http://127.0.0.1:"), line.contains("expires_at")) {
            (Some(at), _) => {
                let (before, address) = (&line[..at], &line[at + "http://127.0.0.1:".len()..]);
                let rest = address.trim_start_matches(|it: char| it.is_ascii_digit());
                let rest = rest.split('?').next().unwrap_or_default();
                format!("{before}http://127.0.0.1:PORT{rest}")
            }
            (None, true) => "  \"expires_at\": …,".to_owned(),
            (None, false) => line.to_owned(),
        };
        // The states of servers may be logged before or after the end of a command.
        let logged = line.split_once(" INFO operator: ").map(|(_time, event)| event);
        if logged.is_some_and(|event| !event.starts_with("serving ")) {
            continue;
        }
        // A progress bar looks different in each run, and typed input may leave a copy of it on the screen.
        if !line.contains("] sleep: ") {
            let warned = line.split_once(" WARN operator: ").map(|(_time, event)| event);
            let shown = match (logged, warned) {
                (Some(event), _) => format!("TIME INFO operator: {event}"),
                (None, Some(event)) => format!("TIME WARN operator: {event}"),
                (None, None) => line.clone(),
            };
            res.push_str(&shown);
            res.push('\n');
        }
    }
    res
}

/// Servers: one that requires a login, one that does not, an unreachable one, and a stdio server.
fn workspace(guarded: &str, open: &str) -> Workspace {
    let workspace = Workspace::empty();
    let text = format!(
        "{{\"mcpServers\": {{\"guarded\": {{\"type\": \"http\", \"url\": \"{guarded}\"}}, \
         \"open\": {{\"type\": \"http\", \"url\": \"{open}\"}}, \
         \"down\": {{\"type\": \"http\", \"url\": \"http://127.0.0.1:1/mcp\"}}, \
         \"local\": {{\"command\": \"true\"}}}}}}"
    );
    workspace.write(".mcp.json", &text);
    workspace
}

/// Runs a login; the test acts as the browser.
fn logged_in(workspace: &Workspace, line: &[&str]) -> Run {
    let mut child: Child = workspace.command(line).spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.lines().any(|line| line.starts_with("http://")) {
        assert!(err.read_line(&mut said).unwrap() > 0, "{said}");
    }
    let page = said.lines().find(|line| line.starts_with("http://")).unwrap();
    assert!(browse(page).contains("You are logged in"), "{said}");
    err.read_to_string(&mut said).unwrap();
    let Output { status, stdout, stderr: _ } = child.wait_with_output().unwrap();
    Run { code: status.code(), out: String::from_utf8(stdout).unwrap(), err: said }
}

#[tokio::test(flavor = "multi_thread")]
async fn login_and_logout() {
    let authority = Authority::start().await;
    let guarded = authority.url.clone();
    tokio::task::spawn_blocking(move || {
        let home = Workspace::empty();
        let open = HttpDemo::start(&home);
        let workspace = workspace(&guarded, &open.url);
        let (mut into, mut out) = (String::new(), String::new());
        for format in ["text", "json"] {
            let line = ["login", "guarded", "--no-browser", "--format", format];
            into.push_str(&shown(&workspace, &line, &logged_in(&workspace, &line)));
            let line = ["logout", "guarded", "--format", format];
            out.push_str(&shown(&workspace, &line, &workspace.run(&line)));
        }
        for (servers, res, word) in [
            (&["open", "down", "local", "nobody"][..], &mut into, "login"),
            (&["guarded", "local"], &mut out, "logout"),
        ] {
            for server in servers {
                for format in ["text", "json"] {
                    let line = [word, server, "--format", format];
                    res.push_str(&shown(&workspace, &line, &workspace.run(&line)));
                }
            }
        }
        insta::assert_snapshot!("login", masked(&into, &workspace));
        insta::assert_snapshot!("logout", masked(&out, &workspace));
    })
    .await
    .unwrap();
}

/// The content of a window once it contains this text, without trailing blank lines.
#[track_caller]
fn window(terminal: &Terminal, text: &str, workspace: &Workspace) -> String {
    masked(terminal.until(text).trim_end(), workspace)
}

/// Wide enough for a login address in one line.
const WIDE: (u16, u16) = (600, 12);

#[tokio::test(flavor = "multi_thread")]
async fn login_in_a_terminal() {
    let authority = Authority::start().await;
    let guarded = authority.url.clone();
    tokio::task::spawn_blocking(move || {
        let workspace = workspace(&guarded, "http://127.0.0.1:1/mcp");
        let Some(terminal) = Terminal::start(&workspace, "login guarded", WIDE) else { return };
        let text = terminal.until("code_challenge");
        let page = text.lines().find(|line| line.starts_with("http://")).unwrap().trim_end();
        assert!(browse(page).contains("You are logged in"), "{text}");
        let done = window(&terminal, "ended ", &workspace);
        // The second login is cancelled with Ctrl-C.
        let Some(terminal) = Terminal::start(&workspace, "logout guarded", WIDE) else { return };
        let out = window(&terminal, "ended ", &workspace);
        let Some(terminal) = Terminal::start(&workspace, "login guarded", WIDE) else { return };
        terminal.until("code_challenge");
        terminal.press(&["C-c"]);
        let given_up = window(&terminal, "ended ", &workspace);
        insta::assert_snapshot!("login-in-a-terminal", format!("{done}\n{out}\n{given_up}"));
    })
    .await
    .unwrap();
}

#[test]
fn commands_in_a_terminal() {
    let workspace = Workspace::dominds(DEMO);
    let mut res = String::new();
    for (line, begun) in [
        ("shell .", "mcp>"),
        ("serve . --http 127.0.0.1:0", "can call tools"),
        ("record . -o out.jsonl --call sleep '{\"ms\":600000,\"steps\":1000}'", "step 1 of"),
        ("replay out.jsonl --http 127.0.0.1:0", "http://"),
    ] {
        let Some(terminal) = Terminal::start(&workspace, line, (110, 14)) else { return };
        terminal.until(begun);
        terminal.press(if line == "shell ." { &["C-d"] } else { &["C-c"] });
        res.push_str(&format!("$ mcp-host {line}\n{}\n", window(&terminal, "ended ", &workspace)));
    }
    insta::assert_snapshot!("in-a-terminal", res);
}
