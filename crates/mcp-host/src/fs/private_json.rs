//! JSON files of the state folder that only their owner can read.

use std::io::{self, Read};
use std::path::Path;

use mcp_host_transport::open_regular_file;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fs::atomic_write::replace_private_file;

/// The maximum size of a file.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// Reads a file. A missing one is the default; an invalid one is an error. Blocks.
pub(crate) fn read<T: DeserializeOwned + Default>(path: &Path) -> io::Result<T> {
    let file = match open_regular_file(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(T::default()),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    file.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// Replaces a file, and creates its folder. Only their owner can read both. Blocks.
pub(crate) fn write(path: &Path, content: &impl Serialize) -> io::Result<()> {
    replace_private_file(path, serde_json::to_string_pretty(content)?.as_bytes())
}

/// The error of a file in a format that this version does not know.
pub(crate) fn unknown_version(path: &Path, version: u32) -> io::Error {
    let message = format!("{} has the unknown version {version}", path.display());
    io::Error::new(io::ErrorKind::InvalidData, message)
}
