//! What commands show that go on or wait for somebody: `login` with a server that wants one, in a pipe and in a terminal,
//! and what only a terminal shows of `shell`, `record`, `serve` and `replay`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Output};

use url::Url;

use crate::authority::Authority;
use crate::contracts::shown;
use crate::support::{DEMO, HttpDemo, Place, Run};
use crate::terminal::Terminal;

/// The text of a page, as a browser that follows every redirect gets it.
fn browse(page: &str) -> String {
    let mut url = Url::parse(page).unwrap();
    for _ in 0..5 {
        let host = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
        let mut stream = TcpStream::connect(&host).unwrap();
        let path = url[url::Position::BeforePath..].to_owned();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let next = answer.lines().find_map(|it| it.strip_prefix("location: "));
        match next {
            Some(next) => url = url.join(next).unwrap(),
            None => return answer,
        }
    }
    panic!("{page} leads round and round");
}

/// Ports, and all that is another with each login.
fn masked(text: &str, place: &Place) -> String {
    let mut res = String::new();
    for line in text.replace(&place.path().display().to_string(), "FOLDER").lines() {
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
        // A bar has another look at each moment, and what is typed into it may leave a line of it behind.
        if !line.contains("] sleep: ") {
            res.push_str(&line);
            res.push('\n');
        }
    }
    res
}

/// Servers of every kind: one that wants a login, one that wants none, one that is not there, and a program.
fn place(guarded: &str, open: &str) -> Place {
    let place = Place::empty();
    let text = format!(
        "{{\"mcpServers\": {{\"guarded\": {{\"type\": \"http\", \"url\": \"{guarded}\"}}, \
         \"open\": {{\"type\": \"http\", \"url\": \"{open}\"}}, \
         \"down\": {{\"type\": \"http\", \"url\": \"http://127.0.0.1:1/mcp\"}}, \
         \"local\": {{\"command\": \"true\"}}}}}}"
    );
    place.write(".mcp.json", &text);
    place
}

/// A login, and this test is the browser.
fn logged_in(place: &Place, line: &[&str]) -> Run {
    let mut child: Child = place.command(line).spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.lines().any(|it| it.starts_with("http://")) {
        assert!(err.read_line(&mut said).unwrap() > 0, "{said}");
    }
    let page = said.lines().find(|it| it.starts_with("http://")).unwrap();
    assert!(browse(page).contains("You are logged in"), "{said}");
    err.read_to_string(&mut said).unwrap();
    let Output { status, stdout, stderr: _ } = child.wait_with_output().unwrap();
    Run { code: status.code(), out: String::from_utf8(stdout).unwrap(), err: said }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_and_its_end() {
    let authority = Authority::start().await;
    let guarded = authority.url.clone();
    tokio::task::spawn_blocking(move || {
        let home = Place::empty();
        let open = HttpDemo::start(&home);
        let place = place(&guarded, &open.url);
        let (mut into, mut out) = (String::new(), String::new());
        for format in ["text", "json"] {
            let line = ["login", "guarded", "--no-browser", "--format", format];
            into.push_str(&shown(&place, &line, &logged_in(&place, &line)));
            let line = ["logout", "guarded", "--format", format];
            out.push_str(&shown(&place, &line, &place.run(&line)));
        }
        for (servers, res, word) in [
            (&["open", "down", "local", "nobody"][..], &mut into, "login"),
            (&["guarded", "local"], &mut out, "logout"),
        ] {
            for server in servers {
                for format in ["text", "json"] {
                    let line = [word, server, "--format", format];
                    res.push_str(&shown(&place, &line, &place.run(&line)));
                }
            }
        }
        insta::assert_snapshot!("login", masked(&into, &place));
        insta::assert_snapshot!("logout", masked(&out, &place));
    })
    .await
    .unwrap();
}

/// What a window shows once it has this text, without the blank lines below.
#[track_caller]
fn window(terminal: &Terminal, text: &str, place: &Place) -> String {
    masked(terminal.until(text).trim_end(), place)
}

/// Wide enough for a login's address in one line.
const WIDE: (u16, u16) = (600, 12);

#[tokio::test(flavor = "multi_thread")]
async fn a_login_in_a_terminal() {
    let authority = Authority::start().await;
    let guarded = authority.url.clone();
    tokio::task::spawn_blocking(move || {
        let place = place(&guarded, "http://127.0.0.1:1/mcp");
        let Some(terminal) = Terminal::start(&place, "login guarded", WIDE) else { return };
        let text = terminal.until("code_challenge");
        let page = text.lines().find(|it| it.starts_with("http://")).unwrap().trim_end();
        assert!(browse(page).contains("You are logged in"), "{text}");
        let done = window(&terminal, "ended ", &place);
        // A second one is given up by a key.
        let Some(terminal) = Terminal::start(&place, "logout guarded", WIDE) else { return };
        let out = window(&terminal, "ended ", &place);
        let Some(terminal) = Terminal::start(&place, "login guarded", WIDE) else { return };
        terminal.until("code_challenge");
        terminal.press(&["C-c"]);
        let given_up = window(&terminal, "ended ", &place);
        insta::assert_snapshot!("login-in-a-terminal", format!("{done}\n{out}\n{given_up}"));
    })
    .await
    .unwrap();
}

#[test]
fn what_goes_on_in_a_terminal() {
    let place = Place::dominds(DEMO);
    let mut res = String::new();
    for (line, begun) in [
        ("shell .", "mcp>"),
        ("serve . --http 127.0.0.1:0", "serving MCP at"),
        ("record . -o out.jsonl --call sleep '{\"ms\":600000,\"steps\":1000}'", "step 1 of"),
        ("replay out.jsonl --http 127.0.0.1:0", "http://"),
    ] {
        let Some(terminal) = Terminal::start(&place, line, (110, 14)) else { return };
        terminal.until(begun);
        terminal.press(if line == "shell ." { &["C-d"] } else { &["C-c"] });
        res.push_str(&format!("$ mcp-host {line}\n{}\n", window(&terminal, "ended ", &place)));
    }
    insta::assert_snapshot!("in-a-terminal", res);
}
