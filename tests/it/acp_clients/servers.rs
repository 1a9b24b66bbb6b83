//! MCP servers as a client names them.

use std::path::{Path, PathBuf};

use mcp_acp::Version;
use mcp_tests::binary;
use serde_json::{Value, json};

use crate::same::{Server, demo};

/// The bundled demo server as a child process, with this value in its environment.
pub(crate) fn stdio(version: Version, name: &str, colour: &str) -> Value {
    let env = json!([{ "name": "DEMO_COLOUR", "value": colour }]);
    child(version, name, binary(), &["demo-server"], env)
}

/// A child process.
pub(crate) fn child(version: Version, name: &str, command: &Path, args: &[&str], env: Value) -> Value {
    let mut res = json!({ "name": name, "command": command, "args": args, "env": env });
    if version == Version::V2 {
        res["type"] = "stdio".into();
    }
    res
}

/// A shell that writes its process id into `file`, and then is whatever `then` says.
pub(crate) fn shell(version: Version, name: &str, file: &Path, then: &str) -> Value {
    let script = format!("echo $$ > '{0}.new'; mv '{0}.new' '{0}'; exec {then}", file.display());
    child(version, name, Path::new("/bin/sh"), &["-c", &script], json!([]))
}

/// The demo server, behind a shell.
pub(crate) fn demo_in_shell(version: Version, name: &str, file: &Path) -> Value {
    shell(version, name, file, &format!("'{}' demo-server", binary().display()))
}

/// A program as it is found on `PATH`.
pub(crate) fn on_path(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).map(|it| it.join(name)).find(|it| it.is_file()).unwrap()
}

/// The bundled demo server over HTTP. It ends with the test.
pub(crate) struct Web {
    _server: Server,
    url: String,
}

impl Web {
    pub(crate) fn start(folder: &Path) -> Web {
        let (server, url) = demo(folder, |it| it.ends_with("/mcp"));
        Web { _server: server, url }
    }

    /// As Streamable HTTP, with this header.
    pub(crate) fn http(&self, name: &str, colour: &str) -> Value {
        let headers = json!([{ "name": "X-Colour", "value": colour }]);
        json!({ "type": "http", "name": name, "url": self.url, "headers": headers })
    }

    /// As HTTP with server-sent events, likewise.
    pub(crate) fn sse(&self, name: &str, colour: &str) -> Value {
        let mut res = self.http(name, colour);
        res["type"] = "sse".into();
        res["url"] = self.url.replace("/mcp", "/sse").into();
        res
    }
}
