//! Broken servers: the first line of the output names the cause, and the next lines have help.
//!
//! The servers are real processes, sockets and TLS certificates. Only npm's registry is replaced, by one without packages;
//! the error comes from npm itself.

mod web;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{HttpDemo, Run, Workspace};
use web::{IssuedBy, answering, closed_port, listening, secured};

/// A broken server and the expected output.
struct Row {
    /// How the server is broken.
    how: &'static str,
    /// Its entry in the configuration.
    server: Value,
    /// The commands that report it.
    shown: Shown,
    /// The variables that the program is run with.
    environment: Vec<(&'static str, String)>,
    /// A text that the first line about the server must contain.
    cause: &'static str,
    /// A text that the following lines must contain.
    remedy: &'static str,
}

/// The commands to run.
#[derive(Clone, Copy, PartialEq)]
enum Shown {
    /// `doctor` and `tools`.
    Starting,
    /// `call`: the server starts, and its tools are listed.
    Calling,
}

/// A row for the commands that start a server.
fn row(how: &'static str, server: Value, cause: &'static str, remedy: &'static str) -> Row {
    Row { how, server, shown: Shown::Starting, environment: Vec::new(), cause, remedy }
}

/// The script server in a broken mode.
fn peer(way: &str) -> Value {
    json!({"command": "peer", "args": [way]})
}

fn http(port: u16, path: &str) -> Value {
    json!({"type": "http", "url": format!("http://127.0.0.1:{port}{path}")})
}

/// The folder of Node.js. Its absence is an error only in CI.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn node() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).find(|it| it.join("npx").is_file() && it.join("node").is_file());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "Node.js is not on the PATH");
        eprintln!("SKIPPED: Node.js is not on the PATH");
    }
    found
}

fn rows(demo: &HttpDemo, authority: &Path, ports: Ports) -> Vec<Row> {
    let demo_port: u16 = demo.url.rsplit(':').next().unwrap().split('/').next().unwrap().parse().unwrap();
    let mut res = vec![
        row("missing binary", json!({"command": "no-such-program"}), "no-such-program", "PATH"),
        row(
            "bad cwd",
            json!({"command": "peer", "cwd": "/no/such/folder"}),
            "working directory /no/such/folder",
            "correct `cwd`",
        ),
        row("closed port", http(closed_port(), "/mcp"), "", "server"),
        Row {
            environment: vec![("SSL_CERT_FILE", authority.display().to_string())],
            ..row(
                "TLS name mismatch",
                json!({"type": "http", "url": format!("https://localhost:{}/mcp", ports.tls)}),
                "the certificate is for another name",
                "use the name of the certificate in the URL",
            )
        },
        row(
            "401 without a login",
            http(ports.refusing, "/mcp"),
            "not authorized: the server requires a login",
            "`Authorization`",
        ),
        row(
            "401, whatever the header",
            json!({
                "type": "http",
                "url": format!("http://127.0.0.1:{}/mcp", ports.refusing),
                "headers": {"Authorization": "Bearer it-is-another-one"},
            }),
            "HTTP 401 Unauthorized: it requires authorization",
            "`Authorization`",
        ),
        row("404", http(demo_port, "/nowhere"), "HTTP 404 Not Found", "check the path of the URL"),
        Row {
            environment: vec![("HTTP_PROXY", format!("http://127.0.0.1:{}", closed_port()))],
            ..row(
                "proxy down",
                json!({"type": "http", "url": "http://mcp.example/mcp"}),
                "the proxy 127.0.0.1:",
                "check the proxy in HTTPS_PROXY, HTTP_PROXY",
            )
        },
        row(
            "SSE given as http",
            http(demo_port, "/sse"),
            "it speaks HTTP with server-sent events at this URL, and not Streamable HTTP",
            "configure the transport `sse`",
        ),
        row(
            "noise on stdout",
            json!({"command": "sh", "args": ["-c", "echo Welcome to the server; read -r line"]}),
            "it writes text to its standard output that is not MCP",
            "make it log to standard error",
        ),
        row(
            "crash at start",
            json!({"command": "sh", "args": ["-c", "echo 'no licence' >&2; exit 3"]}),
            "its process ended with exit status 3; its standard error ended with: no licence",
            "run the command by hand",
        ),
        Row {
            shown: Shown::Calling,
            ..row(
                "crash in a call",
                peer("crash"),
                "its process ended with exit status 134; its standard error ended with: panic: index out of range",
                "check its last output",
            )
        },
        row(
            "silent",
            json!({"command": "sleep", "args": ["600"], "startup_timeout_sec": 1}),
            "the server is silent: it sent no response within 1 s",
            "run the command once by hand, or raise the startup timeout",
        ),
        row(
            "slow",
            json!({"command": "peer", "args": ["slow"], "startup_timeout_sec": 5}),
            "list",
            "start-up limit",
        ),
        Row {
            shown: Shown::Calling,
            ..row(
                "huge",
                peer("huge"),
                "exceeds the message size limit of 67108864 bytes",
                "request less: a part",
            )
        },
        row(
            "bad schema",
            peer("schema"),
            "malformed: its `inputSchema` is no object",
            "only the server's author can correct it",
        ),
        row(
            "a schema that cannot be used",
            peer("odd"),
            "its schema cannot be used: /type",
            "only the server's author can correct",
        ),
        row("bad encoding", peer("encoding"), "it is not valid UTF-8", "make the server write UTF-8"),
        row(
            "wrong era",
            peer("era"),
            "the server supports protocol version 2023-01-01, which this client does not support",
            "update the server",
        ),
        row(
            "missing variable",
            json!({"command": "peer", "env": {"TOKEN": "${NO_SUCH_VARIABLE_OF_OURS}"}}),
            "Environment variable 'NO_SUCH_VARIABLE_OF_OURS' not found",
            "set it before the start",
        ),
    ];
    res.extend(start_rows());
    res.extend(url_rows(demo_port, ports));
    let Some(node) = node() else { return res };
    let path = format!("{}:/usr/bin:/bin", node.display());
    res.push(Row {
        environment: vec![
            ("PATH", path.clone()),
            ("npm_config_registry", format!("http://127.0.0.1:{}/", ports.registry)),
            ("npm_config_update_notifier", "false".to_owned()),
        ],
        ..row(
            "wrong package",
            json!({"command": "npx", "args": ["-y", "@nobody/no-such-package"]}),
            "the package registry does not have this package",
            "check the name and the version of the package",
        )
    });
    res.push(Row {
        environment: vec![("PATH", path.clone())],
        ..row(
            "missing script",
            json!({"command": "node", "args": ["build/index.js"]}),
            "its script ",
            "write its full path, or set `cwd`",
        )
    });
    let script = format!("require('net').createServer().listen({}, '127.0.0.1')", ports.taken);
    res.push(Row {
        environment: vec![("PATH", path)],
        ..row(
            "port in use",
            json!({"command": "node", "args": ["-e", script]}),
            "the port that it listens on is already in use",
            "stop the process that uses the port",
        )
    });
    res
}

/// Programs that cannot be started, or that end at once.
fn start_rows() -> Vec<Row> {
    // An argument that a server repeats as a whole is redacted.
    let printing = |text: &str| {
        let text = format!("\\n{}", text.replace('\n', "\\n"));
        json!({"command": "printing", "args": ["-m", "missing_server", text]})
    };
    vec![
        row(
            "moved virtual environment",
            json!({"command": "moved"}),
            "the interpreter /old/venv/bin/python of the script ",
            "a virtual environment cannot be moved",
        ),
        row("interpreter that is not on the PATH", json!({"command": "lost"}), "", "`PATH` of `env`"),
        row("line endings of Windows", json!({"command": "windows"}), "a carriage return", "convert it"),
        row(
            "directory as command",
            json!({"command": "/usr/lib"}),
            "/usr/lib is a directory, not a program",
            "write the path of the program in that directory",
        ),
        row("not executable", json!({"command": "./bin/text"}), "bin/text is not executable", "chmod +x"),
        row(
            "python -m of a module that is not installed",
            printing("/usr/bin/python3: No module named missing_server"),
            "does not have the module that `-m` names: its process ended with exit status 1; its standard error ended with: \
             /usr/bin/python3: No module named missing_server",
            "install its package for this Python",
        ),
        row(
            "traceback",
            printing(
                "Traceback (most recent call last):\n  File \"/srv/a.py\", line 1, in <module>\n    import mcp\n\
                 ModuleNotFoundError: No module named 'mcp'",
            ),
            "a Python module that it needs is missing (ModuleNotFoundError: No module named 'mcp')",
            "install it for the Python that runs the server",
        ),
        row(
            "exception without a known cause",
            printing(
                "Starting\nTraceback (most recent call last):\n  File \"/srv/a.py\", line 1\nKeyError: 'API'",
            ),
            ": KeyError: 'API': its process ended",
            "run the command by hand",
        ),
        row(
            "old Node.js",
            printing(
                "/srv/a.js:1\nconst a = b ?? c;\n\nSyntaxError: Unexpected token '?'\n    at x\nNode.js v12.22.9",
            ),
            "its Node.js is too old (SyntaxError: Unexpected token '?')",
            "install a newer Node.js",
        ),
    ]
}

/// Servers with a URL that refuse the connection, the transport or the request.
fn url_rows(demo_port: u16, ports: Ports) -> Vec<Row> {
    let sse = |port: u16| json!({"type": "sse", "url": format!("http://127.0.0.1:{port}/mcp")});
    let https = json!({"type": "http", "url": format!("https://localhost:{}/mcp", ports.self_signed)});
    vec![
        row(
            "self-signed certificate that is an authority",
            https.clone(),
            "the certificate is self-signed and marked as an authority",
            "issue a certificate that is no authority",
        ),
        Row {
            environment: vec![("SSL_CERT_FILE", "/no/such/file.pem".to_owned())],
            ..row(
                "no certificate file",
                https,
                "SSL_CERT_FILE is /no/such/file.pem, which does not exist",
                "correct SSL_CERT_FILE",
            )
        },
        row(
            "http given as SSE",
            sse(demo_port),
            "it speaks Streamable HTTP at this URL, and not HTTP with server-sent events",
            "configure the transport `http`",
        ),
        row(
            "http with a session given as SSE",
            sse(ports.wants_session),
            "HTTP 400 Bad Request: Bad Request: Mcp-Session-Id header is required",
            "use the URL where they begin",
        ),
        row(
            "http:// to a TLS port",
            http(ports.tls, "/mcp"),
            "the port speaks TLS",
            "write https:// instead of http://",
        ),
        row(
            "https:// told in words",
            http(answering("400 Bad Request", "Client sent an HTTP request to an HTTPS server.\n"), "/mcp"),
            "Client sent an HTTP request to an HTTPS server.",
            "write https:// instead of http://",
        ),
        row(
            "redirect on the same host",
            http(answering("301 Moved Permanently\r\nLocation: /mcp/?key=hunter2", ""), "/mcp"),
            "/mcp/ (HTTP 301), which loses the message",
            "put its URL into the configuration",
        ),
        row(
            "too many requests",
            http(answering("429 Too Many Requests\r\nRetry-After: 30", ""), "/mcp"),
            "HTTP 429 Too Many Requests (try again in 30 s)",
            "wait as long as the server requests",
        ),
        row(
            "403 without a credential",
            http(answering("403 Forbidden", ""), "/mcp"),
            "HTTP 403 Forbidden: it refuses access, and no credential is configured",
            "its lists of allowed hosts, origins and addresses",
        ),
    ]
}

/// The ports of the listeners.
#[derive(Clone, Copy)]
struct Ports {
    tls: u16,
    self_signed: u16,
    wants_session: u16,
    refusing: u16,
    registry: u16,
    taken: u16,
}

/// The output of one command for one row, and whether it has the cause and the help.
struct Judgement {
    text: String,
    cause: bool,
    remedy: bool,
}

fn judge(row: &Row, command: &str) -> Judgement {
    let workspace = Workspace::empty();
    workspace.script("peer", include_str!("broken/peer.sh"));
    workspace.script("printing", "printf '%b\\n' \"$3\" >&2; exit 1");
    workspace.executable("moved", "#!/old/venv/bin/python\n");
    workspace.executable("lost", "#!/usr/bin/env no-such-interpreter\n");
    workspace.executable("windows", "#!/bin/sh\r\necho\r\n");
    workspace.write("bin/text", "");
    workspace.write("mcp.json", &json!({"mcpServers": {"broken": row.server}}).to_string());
    let arguments: &[&str] = match command {
        "call" => &["call", "mcp.json", "broken__t"],
        other => &[other, "mcp.json"],
    };
    let mut program = workspace.command(arguments);
    for (name, value) in &row.environment {
        program.env(name, value);
    }
    let run = Run::of(program.output().unwrap());
    let said = if command == "call" { &run.err } else { &run.out };
    // `tools` lists tools before servers.
    let mut lines = said.lines().skip_while(|line| command == "tools" && !line.starts_with(['✗', '!']));
    let first = lines.next().unwrap_or_default();
    let rest = lines.collect::<Vec<_>>().join("\n");
    let names = first.contains("broken");
    // The help of a call may follow its cause on the same line.
    let remedy = rest.contains(row.remedy) && rest.contains("help: ")
        || command == "call" && first.contains(&format!("({}", row.remedy));
    let cause = match (row.how, command) {
        ("closed port", _) => "connection refused",
        ("missing binary", "doctor") => "no-such-program is not on the PATH",
        ("missing binary", _) => {
            "(no-such-program): the server could not be started: the command was not found"
        }
        ("proxy down", "doctor") => ": connection refused",
        ("slow", "doctor") => "the tools were not listed within the start-up limit of 5 s",
        ("slow", _) => "it did not list its tools within",
        ("bad schema", _) => "tool `worse`",
        ("missing script", "doctor") => "build/index.js does not exist in the working directory /",
        ("missing script", _) => "its script does not exist (Error: Cannot find module '/",
        ("interpreter that is not on the PATH", "doctor") => {
            "the interpreter no-such-interpreter of the script /"
        }
        ("interpreter that is not on the PATH", _) => "a program that its script starts is not on its PATH",
        (_, _) => row.cause,
    };
    let cause = names && first.contains(cause) && first.contains(row.cause);
    Judgement { text: format!("{} by {command}: {run:#?}", row.how), cause, remedy }
}

#[test]
fn hd_sc3_first_line_has_the_cause_and_help_follows() {
    let workspace = Workspace::empty();
    let demo = HttpDemo::start(&workspace);
    let (tls, authority) = secured("other.example", IssuedBy::Authority);
    workspace.write("authority.pem", &authority);
    let (_listener, taken) = listening();
    let ports = Ports {
        tls,
        self_signed: secured("localhost", IssuedBy::Itself).0,
        wants_session: answering(
            "400 Bad Request",
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Mcp-Session-Id header is required"},"id":null}"#,
        ),
        refusing: answering("401 Unauthorized\r\nWWW-Authenticate: Bearer", ""),
        registry: answering("404 Not Found", r#"{"error":"Not found"}"#),
        taken,
    };
    let rows = rows(&demo, &workspace.path().join("authority.pem"), ports);
    assert!(rows.len() >= 38, "{}", rows.len());
    let commands = |row: &Row| match row.shown {
        Shown::Starting => vec!["doctor", "tools"],
        Shown::Calling => vec!["call"],
    };
    let judged: Vec<Judgement> = std::thread::scope(|scope| {
        let each = rows.iter().flat_map(|row| commands(row).into_iter().map(move |command| (row, command)));
        let running: Vec<_> = each.map(|(row, command)| scope.spawn(move || judge(row, command))).collect();
        running.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let bad: Vec<&str> =
        judged.iter().filter(|it| !(it.cause && it.remedy)).map(|it| it.text.as_str()).collect();
    assert!(bad.is_empty(), "{} of {}:\n{}", bad.len(), judged.len(), bad.join("\n"));
    assert!(fs::exists(workspace.path()).unwrap(), "the authority is needed to the end");
}
