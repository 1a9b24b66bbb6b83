//! The tool names that a configuration had when its servers last ran, for completions in a shell.
//!
//! A completion must not start servers. The names are in the state folder, in one file per configuration. A failure to
//! read or write it is ignored.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use mcp_host_runtime::HostSnapshot;
use mcp_host_transport::open_regular_file;
use serde::{Deserialize, Serialize};

use crate::host::startup::starting_servers;
use crate::host::state_path;
use crate::runtime::bounded_read::read_bytes;
use crate::runtime::run_blocking;

/// The maximum size of a file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// A tool of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownTool {
    /// The exposed name.
    pub(crate) name: String,
    /// The server.
    pub(crate) server: String,
    /// The server's name of the tool.
    pub(crate) original: String,
}

/// Stores the tools of a configuration, if all its servers have started or failed.
pub(crate) async fn remember_tools(config: &Path, published: &HostSnapshot) {
    if published.catalog.tools().is_empty() || !starting_servers(published).is_empty() {
        return;
    }
    let tool = |tool: &mcp_host_registry::ExposedTool| KnownTool {
        name: tool.name.to_string(),
        server: tool.server.to_string(),
        original: tool.tool.name.to_string(),
    };
    let tools: Vec<KnownTool> = published.catalog.tools().iter().map(tool).collect();
    let config = config.to_owned();
    // A failure is ignored: only completions are missing then.
    run_blocking(move || write_if_changed(&config, &tools)).await;
}

/// Writes the file, unless it has this content already. `None` if nothing was written.
fn write_if_changed(config: &Path, tools: &[KnownTool]) -> Option<()> {
    let (path, text) = (storage_path(config)?, serde_json::to_string(tools).ok()?);
    if text.len() as u64 > MAX_BYTES || read_stored(&path).is_ok_and(|known| known == text) {
        return None;
    }
    fs::create_dir_all(path.parent()?).ok()?;
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&temporary, text).ok()?;
    fs::rename(&temporary, &path).ok()
}

fn read_stored(path: &Path) -> io::Result<String> {
    String::from_utf8(read_bytes(open_regular_file(path)?, MAX_BYTES)?).map_err(io::Error::other)
}

/// Loads the stored tools of a configuration. Reads the disk.
pub(crate) fn load_known_tools(config: &Path) -> Vec<KnownTool> {
    let text = storage_path(config).and_then(|path| read_stored(&path).ok());
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// The path of the file with the tools of a configuration. `None` for standard input and without a state folder.
fn storage_path(config: &Path) -> Option<PathBuf> {
    let config = fs::canonicalize(config).ok().filter(|path| path.is_file())?;
    let mut hasher = DefaultHasher::new();
    config.hash(&mut hasher);
    let name = format!("known-tools/{:016x}.json", hasher.finish());
    state_path(&name, &|name| env::var_os(name))
}
