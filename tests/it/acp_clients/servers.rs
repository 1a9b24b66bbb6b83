//! MCP servers as a client declares them.

use std::path::{Path, PathBuf};

use mcp_host_acp::AcpVersion;
use mcp_testkit::program::binary;
use serde_json::{Value, json};

use crate::compare::{Server, demo};

/// The bundled demo server as a child process, with this value in its environment.
pub(crate) fn stdio(version: AcpVersion, name: &str, colour: &str) -> Value {
    let env = json!([{ "name": "DEMO_COLOUR", "value": colour }]);
    child(version, name, binary(), &["demo-server"], env)
}

/// A child process.
pub(crate) fn child(version: AcpVersion, name: &str, command: &Path, args: &[&str], env: Value) -> Value {
    let mut res = json!({ "name": name, "command": command, "args": args, "env": env });
    if version == AcpVersion::V2 {
        res["type"] = "stdio".into();
    }
    res
}

/// A shell that writes its process id into `file` and then executes `then`.
pub(crate) fn shell(version: AcpVersion, name: &str, file: &Path, then: &str) -> Value {
    let script = format!("echo $$ > '{0}.new'; mv '{0}.new' '{0}'; exec {then}", file.display());
    child(version, name, Path::new("/bin/sh"), &["-c", &script], json!([]))
}

/// The demo server, started by a shell.
pub(crate) fn demo_in_shell(version: AcpVersion, name: &str, file: &Path) -> Value {
    shell(version, name, file, &format!("'{}' demo-server", binary().display()))
}

/// The path of a program on `PATH`.
pub(crate) fn on_path(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).map(|it| it.join(name)).find(|it| it.is_file()).unwrap()
}

/// The bundled demo server over HTTP, killed on drop.
pub(crate) struct DemoHttpServer {
    _server: Server,
    url: String,
}

impl DemoHttpServer {
    pub(crate) fn start(folder: &Path) -> DemoHttpServer {
        let (server, url) = demo(folder, |url| url.ends_with("/mcp"));
        DemoHttpServer { _server: server, url }
    }

    /// The server as Streamable HTTP, with this header.
    pub(crate) fn http(&self, name: &str, colour: &str) -> Value {
        let headers = json!([{ "name": "X-Colour", "value": colour }]);
        json!({ "type": "http", "name": name, "url": self.url, "headers": headers })
    }

    /// The server as HTTP with server-sent events, with this header.
    pub(crate) fn sse(&self, name: &str, colour: &str) -> Value {
        let mut res = self.http(name, colour);
        res["type"] = "sse".into();
        res["url"] = self.url.replace("/mcp", "/sse").into();
        res
    }
}
