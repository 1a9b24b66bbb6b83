//! Broken servers: the first line of the output names the cause, and the next lines have help (HD-SC3).
//!
//! The servers are real processes, sockets and TLS certificates. Only npm's registry is replaced, by one
//! without packages; the error comes from npm itself.

mod web;

use std::any::Any;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{HttpDemo, Run, Workspace};
use web::{IssuedBy, answering, closed_port, listening, secured};

/// A broken server and the expected output.
struct Row {
    /// Its entry in the configuration.
    server: Value,
    /// The commands that report it.
    shown: ShownCommands,
    /// The variables that the program is run with.
    environment: Vec<(&'static str, String)>,
    /// The authority that the program trusts, as PEM.
    authority: Option<String>,
    /// Texts that the first line about the server must contain, and the only command that prints each.
    causes: Vec<(Option<&'static str>, &'static str)>,
    /// A text that the following lines must contain.
    remedy: &'static str,
    /// What the server needs to the end.
    kept: Vec<Box<dyn Any>>,
}

/// The commands to run.
#[derive(Clone, Copy, PartialEq)]
enum ShownCommands {
    /// `doctor` and `tools`.
    Starting,
    /// `call`: the server starts, and its tools are listed.
    Calling,
}

/// A row for the commands that start a server.
fn row(server: Value, cause: &'static str, remedy: &'static str) -> Row {
    Row {
        server,
        shown: ShownCommands::Starting,
        environment: Vec::new(),
        authority: None,
        causes: vec![(None, cause)],
        remedy,
        kept: Vec::new(),
    }
}

impl Row {
    fn calling(self) -> Row {
        Row { shown: ShownCommands::Calling, ..self }
    }

    /// Adds a cause that only this command prints.
    fn by(mut self, command: &'static str, cause: &'static str) -> Row {
        self.causes.push((Some(command), cause));
        self
    }

    fn variable(mut self, name: &'static str, value: impl Into<String>) -> Row {
        self.environment.push((name, value.into()));
        self
    }

    fn keeping(mut self, kept: impl Any) -> Row {
        self.kept.push(Box::new(kept));
        self
    }
}

/// One test for each row. A row may be `None` on a machine that cannot run it.
macro_rules! broken_servers {
    ($($name:ident: $row:expr;)*) => {
        $(
            #[test]
            fn $name() {
                let row: Option<Row> = $row.into();
                if let Some(row) = row {
                    check(&row);
                }
            }
        )*
    };
}

// HD-SC3
broken_servers! {
    missing_binary: row(json!({"command": "no-such-program"}), "no-such-program", "PATH")
        .by("doctor", "no-such-program is not on the PATH")
        .by("tools", "(no-such-program): the server could not be started: the command was not found");
    missing_working_directory: row(
        json!({"command": "peer", "cwd": "/no/such/folder"}),
        "working directory /no/such/folder",
        "correct `cwd`",
    );
    closed_port_of_a_url: row(http(closed_port(), "/mcp"), "connection refused", "server");
    certificate_for_another_name: {
        let (port, authority) = secured("other.example", IssuedBy::Authority);
        Row {
            authority: Some(authority),
            ..row(
                https(port),
                "the certificate is for another name",
                "use the name of the certificate in the URL",
            )
        }
    };
    login_is_required: row(http(refusing(), "/mcp"), "not authorized: the server requires a login", "`Authorization`");
    credential_is_refused: row(
        json!({
            "type": "http",
            "url": format!("http://127.0.0.1:{}/mcp", refusing()),
            "headers": {"Authorization": "Bearer it-is-another-one"},
        }),
        "HTTP 401 Unauthorized: it requires authorization",
        "`Authorization`",
    );
    wrong_path: {
        let demo = Demo::start();
        row(http(demo.port(), "/nowhere"), "HTTP 404 Not Found", "check the path of the URL").keeping(demo)
    };
    proxy_down: row(
        json!({"type": "http", "url": "http://mcp.example/mcp"}),
        "the proxy 127.0.0.1:",
        "check the proxy in HTTPS_PROXY, HTTP_PROXY",
    )
    .by("doctor", ": connection refused")
    .variable("HTTP_PROXY", format!("http://127.0.0.1:{}", closed_port()));
    sse_configured_as_http: {
        let demo = Demo::start();
        row(
            http(demo.port(), "/sse"),
            "it speaks HTTP with server-sent events at this URL, and not Streamable HTTP",
            "configure the transport `sse`",
        )
        .keeping(demo)
    };
    noise_on_standard_output: row(
        json!({"command": "sh", "args": ["-c", "echo Welcome to the server; read -r line"]}),
        "it writes text to its standard output that is not MCP",
        "make it log to standard error",
    );
    crash_at_start: row(
        json!({"command": "sh", "args": ["-c", "echo 'no licence' >&2; exit 3"]}),
        "its process ended with exit status 3; its standard error ended with: no licence",
        "run the command by hand",
    );
    crash_in_a_call: row(
        peer("crash"),
        "its process ended with exit status 134; its standard error ended with: panic: index out of range",
        "check its last output",
    )
    .calling();
    silent: row(
        json!({"command": "sleep", "args": ["600"], "startup_timeout_sec": 1}),
        "the server is silent: it sent no response within 1 s",
        "help: run the command once by hand, or raise the startup timeout with",
    );
    slow_list: row(json!({"command": "peer", "args": ["slow"], "startup_timeout_sec": 5}), "list", "start-up limit")
        .by("doctor", "the tools were not listed within the start-up limit of 5 s")
        .by("tools", "it did not list its tools within");
    oversized_message: row(peer("huge"), "exceeds the message size limit of 67108864 bytes",
        "request less: a part").calling();
    invalid_tool_schema: row(
        peer("schema"),
        "malformed: its `inputSchema` is no object",
        "only the server's author can correct it",
    )
    .by("doctor", "tool `worse`")
    .by("tools", "tool `worse`");
    unusable_schema: row(peer("odd"), "its schema cannot be used: /type", "only the server's author can correct");
    invalid_encoding: row(peer("encoding"), "it is not valid UTF-8", "make the server write UTF-8");
    unknown_protocol_version: row(
        peer("era"),
        "the server supports protocol version 2023-01-01, which this client does not support",
        "update the server",
    );
    missing_variable: row(
        json!({"command": "peer", "env": {"TOKEN": "${NO_SUCH_VARIABLE_OF_OURS}"}}),
        "Environment variable 'NO_SUCH_VARIABLE_OF_OURS' not found",
        "set it before the start",
    );
    wrong_package: with_node(
        json!({"command": "npx", "args": ["-y", "@nobody/no-such-package"]}),
        "the package registry does not have this package",
        "check the name and the version of the package",
    )
    .map(|row| {
        let registry = answering("404 Not Found", r#"{"error":"Not found"}"#);
        row.variable("npm_config_registry", format!("http://127.0.0.1:{registry}/"))
            .variable("npm_config_update_notifier", "false")
    });
    missing_script: with_node(
        json!({"command": "node", "args": ["build/index.js"]}),
        "its script ",
        "write its full path, or set `cwd`",
    )
    .map(|row| {
        row.by("doctor", "build/index.js does not exist in the working directory /")
            .by("tools", "its script does not exist (Error: Cannot find module '/")
    });
    port_in_use: {
        let (listener, port) = listening();
        let script = format!("require('net').createServer().listen({port}, '127.0.0.1')");
        with_node(
            json!({"command": "node", "args": ["-e", script]}),
            "the port that it listens on is already in use",
            "stop the process that uses the port",
        )
        .map(|row| row.keeping(listener))
    };
    moved_virtual_environment: row(
        json!({"command": "moved"}),
        "the interpreter /old/venv/bin/python of the script ",
        "a virtual environment cannot be moved",
    );
    missing_interpreter: row(json!({"command": "lost"}), "", "`PATH` of `env`")
        .by("doctor", "the interpreter no-such-interpreter of the script /")
        .by("tools", "a program that its script starts is not on its PATH");
    line_endings_of_windows: row(json!({"command": "windows"}), "a carriage return", "convert it");
    directory_as_command: row(
        json!({"command": "/usr/lib"}),
        "/usr/lib is a directory, not a program",
        "write the path of the program in that directory",
    );
    command_that_is_not_executable: row(json!({"command": "./bin/text"}), "bin/text is not executable", "chmod +x");
    missing_python_module: row(
        printing("/usr/bin/python3: No module named missing_server"),
        "does not have the module that `-m` names: its process ended with exit status 1; its standard error ended \
             with: /usr/bin/python3: No module named missing_server",
        "install its package for this Python",
    );
    traceback: row(
        printing(
            "Traceback (most recent call last):\n  File \"/srv/a.py\", line 1, in <module>\n    import mcp\n\
                 ModuleNotFoundError: No module named 'mcp'",
        ),
        "a Python module that it needs is missing (ModuleNotFoundError: No module named 'mcp')",
        "install it for the Python that runs the server",
    );
    unknown_exception: row(
        printing(
            "Starting\nTraceback (most recent call last):\n  File \"/srv/a.py\", line 1\nKeyError: 'API'",
        ),
        ": KeyError: 'API': its process ended",
        "run the command by hand",
    );
    old_node: row(
        printing(
            "/srv/a.js:1\nconst a = b ?? c;\n\nSyntaxError: Unexpected token '?'\n    at x\nNode.js v12.22.9",
        ),
        "its Node.js is too old (SyntaxError: Unexpected token '?')",
        "install a newer Node.js",
    );
    self_signed_authority: row(
        https(secured("localhost", IssuedBy::ItselfAsAuthority).0),
        "the certificate is self-signed and marked as an authority",
        "issue a certificate that is no authority",
    );
    self_signed_certificate: row(
        https(secured("localhost", IssuedBy::Itself).0),
        "no trusted authority has issued the certificate",
        "name a PEM file with the authority that issued its certificate (the certificate itself if it is self-signed)",
    );
    missing_certificate_file: row(
        https(secured("localhost", IssuedBy::ItselfAsAuthority).0),
        "SSL_CERT_FILE is /no/such/file.pem, which does not exist",
        "correct SSL_CERT_FILE",
    )
    .variable("SSL_CERT_FILE", "/no/such/file.pem");
    http_configured_as_sse: {
        let demo = Demo::start();
        row(
            sse(demo.port()),
            "it speaks Streamable HTTP at this URL, and not HTTP with server-sent events",
            "configure the transport `http`",
        )
        .keeping(demo)
    };
    http_with_a_session_configured_as_sse: {
        let body = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Mcp-Session-Id header is required"},"id":null}"#;
        row(
            sse(answering("400 Bad Request", body)),
            "HTTP 400 Bad Request: Bad Request: Mcp-Session-Id header is required",
            "use the URL where they begin",
        )
    };
    http_url_of_a_tls_port: row(
        http(secured("other.example", IssuedBy::Authority).0, "/mcp"),
        "the port speaks TLS",
        "write https:// instead of http://",
    );
    tls_port_that_answers_in_text: row(
        http(answering("400 Bad Request", "Client sent an HTTP request to an HTTPS server.\n"), "/mcp"),
        "Client sent an HTTP request to an HTTPS server.",
        "write https:// instead of http://",
    );
    redirect_on_the_same_host: row(
        http(answering("301 Moved Permanently\r\nLocation: /mcp/?key=hunter2", ""), "/mcp"),
        "/mcp/ (HTTP 301), which loses the message",
        "put its URL into the configuration",
    );
    too_many_requests: row(
        http(answering("429 Too Many Requests\r\nRetry-After: 30", ""), "/mcp"),
        "HTTP 429 Too Many Requests (try again in 30 s)",
        "wait as long as the server requests",
    );
    forbidden_without_a_credential: row(
        http(answering("403 Forbidden", ""), "/mcp"),
        "HTTP 403 Forbidden: it refuses access, and no credential is configured",
        "its lists of allowed hosts, origins and addresses",
    );
}

/// The script server in a broken mode.
fn peer(way: &str) -> Value {
    json!({"command": "peer", "args": [way]})
}

/// A program that prints this text, which is no argument, because an argument that a server repeats is redacted.
fn printing(text: &str) -> Value {
    let text = format!("\\n{}", text.replace('\n', "\\n"));
    json!({"command": "printing", "args": ["-m", "missing_server", text]})
}

fn http(port: u16, path: &str) -> Value {
    json!({"type": "http", "url": format!("http://127.0.0.1:{port}{path}")})
}

fn https(port: u16) -> Value {
    json!({"type": "http", "url": format!("https://localhost:{port}/mcp")})
}

fn sse(port: u16) -> Value {
    json!({"type": "sse", "url": format!("http://127.0.0.1:{port}/mcp")})
}

/// The port of a server that requires a login.
fn refusing() -> u16 {
    answering("401 Unauthorized\r\nWWW-Authenticate: Bearer", "")
}

/// The demo server over HTTP, in a folder of its own.
struct Demo {
    server: HttpDemo,
    _workspace: Workspace,
}

impl Demo {
    fn start() -> Demo {
        let workspace = Workspace::empty();
        Demo { server: HttpDemo::start(&workspace), _workspace: workspace }
    }

    fn port(&self) -> u16 {
        self.server.url.rsplit(':').next().unwrap().split('/').next().unwrap().parse().unwrap()
    }
}

/// A row with Node.js on the PATH. Its absence is an error only in CI.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn with_node(server: Value, cause: &'static str, remedy: &'static str) -> Option<Row> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_node = |it: &PathBuf| it.join("npx").is_file() && it.join("node").is_file();
    let Some(node) = std::env::split_paths(&path).find(is_node) else {
        assert!(std::env::var_os("CI").is_none(), "Node.js is not on the PATH");
        eprintln!("SKIPPED: Node.js is not on the PATH");
        return None;
    };
    Some(row(server, cause, remedy).variable("PATH", format!("{}:/usr/bin:/bin", node.display())))
}

/// Checks the output of each command for a row.
#[track_caller]
fn check(row: &Row) {
    let commands: &[&str] = match row.shown {
        ShownCommands::Starting => &["doctor", "tools"],
        ShownCommands::Calling => &["call"],
    };
    for command in commands {
        let run = run(row, command);
        let printed = if *command == "call" { &run.err } else { &run.out };
        // `tools` lists tools before servers.
        let mut lines =
            printed.lines().skip_while(|line| *command == "tools" && !line.starts_with(['✗', '!']));
        let first = lines.next().unwrap_or_default();
        let rest = lines.collect::<Vec<_>>().join("\n");
        let wanted = row.causes.iter().filter(|it| it.0.is_none_or(|it| it == *command)).map(|it| it.1);
        for cause in wanted.chain(["broken"]) {
            assert!(first.contains(cause), "{command}: {cause}: {run:#?}");
        }
        // The help of a call may follow its cause on the same line.
        let has_help = rest.contains(row.remedy) && rest.contains("help: ")
            || *command == "call" && first.contains(&format!("({}", row.remedy));
        assert!(has_help, "{command}: {}: {run:#?}", row.remedy);
    }
}

fn run(row: &Row, command: &str) -> Run {
    let workspace = Workspace::empty();
    workspace.script("peer", include_str!("peer.sh"));
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
    if let Some(authority) = &row.authority {
        workspace.write("authority.pem", authority);
        program.env("SSL_CERT_FILE", workspace.path().join("authority.pem"));
    }
    Run::of(program.output().unwrap())
}
