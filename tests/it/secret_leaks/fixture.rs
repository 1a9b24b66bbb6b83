//! Test fixture: a folder with a secret in every location of its files, and servers that echo them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use mcp_testkit::program::{ProgramOutput, binary};
use tempfile::TempDir;

use super::echo_servers::{EchoServer, PROGRAM};
use super::markers::SecretLocation;

/// Behaviours of a server on a pipe.
const PIPES: [&str; 8] = ["ok", "crash", "noise", "garbage", "refuse", "lists", "silent", "gone"];

/// Behaviours of a server with a URL.
const WEBS: [&str; 11] = [
    "ok",
    "refuse",
    "unauthorized",
    "forbidden",
    "missing",
    "broken",
    "elsewhere",
    "page",
    "garbage",
    "silent",
    "lists",
];

pub(crate) struct LeakFixture {
    folder: TempDir,
    pub(crate) web: EchoServer,
}

impl LeakFixture {
    pub(crate) async fn new() -> LeakFixture {
        let folder = tempfile::tempdir().unwrap();
        let res = LeakFixture { folder, web: EchoServer::start().await };
        for name in ["echoing", "npx"] {
            res.write(&format!("bin/{name}"), PROGRAM);
            let executable = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(res.path(&format!("bin/{name}")), executable).unwrap();
        }
        res.write("values.env", &format!("FROM_FILE={}\n", SecretLocation::EnvFile.mark()));
        res.write("more.env", &format!("DOTENV={}\n", SecretLocation::DotEnv.mark()));
        res.write("agent.yaml", &res.holodeck());
        res.write(".minds/mcp.yaml", &res.dominds());
        res.write("mcp.json", &res.mcp_json());
        res.write("request.json", &res.acp());
        res.write("wrong.yaml", &wrong());
        res.write("tokens", &format!("{} name=ann\n", SecretLocation::GatewayToken.mark()));
        res
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The program in this folder, with the markers in its environment and the most verbose log that it allows.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut res = self.program(binary());
        res.args(arguments);
        res
    }

    /// Another program with the same environment.
    pub(crate) fn program(&self, path: &Path) -> Command {
        let mut res = Command::new(path);
        res.current_dir(self.folder.path()).env_clear();
        res.env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()));
        res.env("HOME", self.folder.path()).env("XDG_STATE_HOME", self.path("state"));
        res.env("PLANTED", SecretLocation::Environment.mark())
            .env("PLANTED_CLIENT", SecretLocation::ClientSecret.mark());
        res.env("RUST_LOG", "trace").env("RUST_BACKTRACE", "1").env("SHELL", "/bin/sh");
        res.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        res
    }

    /// Runs to the end while the servers run, with this standard input.
    pub(crate) async fn run(&self, arguments: &[&str], input: &str) -> ProgramOutput {
        let mut command = self.command(arguments);
        let input = input.to_owned();
        let run = move || {
            let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
            // A program that does not read may have exited.
            let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes());
            ended(child)
        };
        tokio::task::spawn_blocking(run).await.unwrap()
    }

    /// `http://USER:PASSWORD@127.0.0.1:PORT/MODE/PATH?QUERY`, with a marker in each part.
    fn url(&self, scheme: &str, mode: &str) -> String {
        let [user, password, path, query] =
            [SecretLocation::User, SecretLocation::Password, SecretLocation::Path, SecretLocation::Query]
                .map(SecretLocation::mark);
        format!("{scheme}://{user}:{password}@127.0.0.1:{}/{mode}/{path}?key={query}", self.web.port)
    }

    /// Unreachable URLs: no listener, unknown name, no TLS, and an invalid URL.
    fn unreachable_urls(&self) -> [(&'static str, String); 4] {
        let (user, query) = (SecretLocation::Password.mark(), SecretLocation::Query.mark());
        [
            ("refused", format!("http://u:{user}@127.0.0.1:1/mcp?k={query}")),
            ("nameless", format!("https://u:{user}@no-such-host.invalid/mcp?k={query}")),
            ("no-tls", format!("https://u:{user}@127.0.0.1:{}/mcp?k={query}", self.web.port)),
            ("no-url", format!("http://u:{user}@[::/mcp?k={query}")),
        ]
    }

    fn holodeck(&self) -> String {
        let mut res = "name: planted\ntools:\n".to_owned();
        let item = |name: &str, rest: &str| {
            format!(
                "  - name: {name}\n    type: mcp\n    description: d\n    server: s\n    request_timeout: 2\n    \
                 timeout: 2\n{rest}"
            )
        };
        for mode in PIPES {
            let command = format!(
                "    command: npx\n    args: [{mode}, '--key={}', '${{PLANTED}}']\n    env: {{ TOKEN: \
                 '${{PLANTED}}', LITERAL: '{}', DOTENV: '${{DOTENV}}' }}\n    envFile: values.env\n    config: {{ a: \
                 {{ key: '{}' }} }}\n",
                SecretLocation::Argument.mark(),
                SecretLocation::Literal.mark(),
                SecretLocation::Config.mark(),
            );
            res += &item(&format!("pipe-{mode}"), &command);
        }
        let headers = format!(
            "    config: {{ a: {{ key: '{}' }} }}\n    headers: {{ Authorization: 'Bearer {}', X-Key: '${{PLANTED}}' \
            }}\n",
            SecretLocation::Config.mark(),
            SecretLocation::Header.mark()
        );
        for mode in WEBS {
            res += &item(
                &format!("http-{mode}"),
                &format!("    transport: http\n    url: '{}'\n{headers}", self.url("http", mode)),
            );
        }
        for (wire, scheme) in [("sse", "http"), ("websocket", "ws")] {
            for mode in ["unauthorized", "missing", "page", "silent"] {
                let url = self.url(scheme, mode);
                res += &item(
                    &format!("{wire}-{mode}"),
                    &format!("    transport: {wire}\n    url: '{url}'\n{headers}"),
                );
            }
        }
        res
    }

    fn dominds(&self) -> String {
        let mut res = "version: 1\nservers:\n".to_owned();
        for mode in PIPES.into_iter().filter(|it| *it != "silent") {
            res += &format!(
                "  pipe-{mode}:\n    transport: stdio\n    command: echoing\n    args: [{mode}, 'secret', '{}']\n    \
                 env: {{ TOKEN: {{ env: PLANTED }}, LITERAL: '{}' }}\n",
                SecretLocation::Argument.mark(),
                SecretLocation::Literal.mark(),
            );
        }
        let webs = WEBS.into_iter().filter(|it| *it != "silent").map(|it| (it, self.url("http", it)));
        for (name, url) in webs.chain(self.unreachable_urls()) {
            res += &format!(
                "  http-{name}:\n    transport: streamable_http\n    url: '{url}'\n    headers: {{ Authorization: \
                 {{ env: PLANTED, prefix: 'Bearer ' }}, X-Key: '{}' }}\n",
                SecretLocation::Header.mark(),
            );
        }
        res += &format!(
            "  http-session:\n    transport: streamable_http\n    url: '{}'\n    sessionId: '{}'\n",
            self.url("http", "missing"),
            SecretLocation::SessionId.mark()
        );
        res
    }

    fn mcp_json(&self) -> String {
        let mut servers = serde_json::Map::new();
        for mode in PIPES.into_iter().filter(|it| *it != "silent") {
            let entry = serde_json::json!({
                "command": "echoing", "args": [mode, SecretLocation::Argument.mark(), "${env:PLANTED}"],
                "env": {"TOKEN": "${env:PLANTED}", "LITERAL": SecretLocation::Literal.mark()}, "envFile": "values.env",
                "startup_timeout_sec": 10,
            });
            servers.insert(format!("pipe-{mode}"), entry);
        }
        for (name, url) in
            WEBS.map(|it| (it, self.url("http", it))).into_iter().chain(self.unreachable_urls())
        {
            if name == "silent" {
                continue;
            }
            let entry = serde_json::json!({
                "url": url, "headers": {"Authorization": format!("Bearer {}", SecretLocation::Header.mark())},
                "oauth": {"clientSecret": SecretLocation::ClientSecret.mark()},
            });
            servers.insert(format!("http-{name}"), entry);
        }
        serde_json::json!({"mcpServers": servers}).to_string()
    }

    fn acp(&self) -> String {
        let [argument, variable, header, query] = [
            SecretLocation::AcpArgument,
            SecretLocation::AcpVariable,
            SecretLocation::AcpHeader,
            SecretLocation::AcpQuery,
        ]
        .map(SecretLocation::mark);
        let pipes = ["ok", "crash", "refuse"].map(|mode| {
            serde_json::json!({
                "name": format!("pipe-{mode}"), "command": self.path("bin/echoing"), "args": [mode, argument],
                "env": [{"name": "TOKEN", "value": variable}],
            })
        });
        let webs = ["ok", "unauthorized", "broken"].map(|mode| {
            let url = format!("http://127.0.0.1:{}/{mode}/mcp?key={query}", self.web.port);
            serde_json::json!({
                "type": "http", "name": format!("http-{mode}"), "url": url,
                "headers": [{"name": "Authorization", "value": format!("Bearer {header}")}],
            })
        });
        serde_json::Value::from([&pipes[..], &webs[..]].concat()).to_string()
    }
}

/// Invalid entries of all kinds, each next to a secret or with a secret in the wrong location.
fn wrong() -> String {
    let mark = SecretLocation::Literal.mark();
    format!(
        "version: 1\nservers:\n  a:\n    transport: stdio\n    command: ['{mark}']\n    env: ['{mark}']\n  b:\n    \
         transport: 'pigeon'\n    args: '{mark}'\n  c:\n    transport: streamable_http\n    url: \
         'ftp://u:{mark}@h/?{mark}'\n    headers: {{ 'bad name': '{mark}', A: 5 }}\n  d:\n    transport: stdio\n    \
         command: x\n    env: {{ A: {{ env: UNSET, prefix: '{mark}' }}, B: {{ env: 5, x: '{mark}' }} }}\n    tools: \
         {{ whitelist: ['x', 5] }}\n  e:\n    tranport: stdio\n    comand: x\n    env: {{ A: '{mark}' }}\n"
    )
}

/// Waits for the end of a run.
pub(crate) fn ended(child: Child) -> ProgramOutput {
    let output = child.wait_with_output().unwrap();
    let text = |it: Vec<u8>| String::from_utf8_lossy(&it).into_owned();
    ProgramOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}
