//! What `connect` keeps to undo its change of a client's file: a copy of the file as it was, and what it wrote.
//!
//! Each file of a client has a folder in the state folder of the user, which only its owner can read.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use mcp_host_runtime::{create_private, replace_private, state_path};
use serde::{Deserialize, Serialize};

use crate::output::error_chain;
use crate::runtime::bounded_read::read_file;
use crate::runtime::system::create_private_folder;

/// The name of the file with what was written.
const RECORD_FILE: &str = "record.json";

/// The maximum size of a client's file and of its copies, in bytes: that of a configuration.
pub(super) const MAX_CLIENT_BYTES: u64 = 8 << 20;

/// The maximum size of a record. It has the text of the file as JSON, which may be twice as long.
const MAX_RECORD_BYTES: u64 = 2 * MAX_CLIENT_BYTES + (1 << 16);

/// What `connect` did to a client's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ConnectRecord {
    /// The file of the client.
    pub(super) path: PathBuf,
    /// The copy of the file as it was, beside this record. `None` if there was no file.
    pub(super) backup: Option<PathBuf>,
    /// The text that was written.
    pub(super) written: String,
}

/// The place of the record of a client's file.
pub(super) struct RecordFolder(PathBuf);

impl RecordFolder {
    /// The folder for the file at `path`. The error is a message for the user. Reads the disk.
    pub(super) fn of(path: &Path) -> Result<RecordFolder, String> {
        let absolute =
            fs::canonicalize(path).or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned());
        // Stable, because a later version of the program must find the folder.
        let hash = blake3::hash(absolute.as_os_str().as_encoded_bytes()).to_hex();
        let name = format!("mcp-host/connected/{}", &hash[..16]);
        let folder = state_path(&name, &|name| env::var_os(name));
        folder
            .map(RecordFolder)
            .map_err(|error| format!("there is no folder for the copy of the file: {error}"))
    }

    /// The record; `None` if there is none that can be read.
    pub(super) fn read(&self) -> Option<ConnectRecord> {
        let text = read_file(&self.0.join(RECORD_FILE), MAX_RECORD_BYTES).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Stores the copy and the record. Earlier copies stay. The error is a message for the user. Blocks.
    pub(super) fn write(
        &self,
        path: &Path,
        before: Option<&str>,
        written: &str,
    ) -> Result<Option<PathBuf>, String> {
        let backup = before.map(|text| self.write_copy(path, text)).transpose()?;
        let record =
            ConnectRecord { path: path.to_owned(), backup: backup.clone(), written: written.to_owned() };
        let text = serde_json::to_string(&record).map_err(|error| error.to_string())?;
        let file = self.0.join(RECORD_FILE);
        create_private_folder(&self.0)
            .map_err(|error| format!("cannot create {}: {error}", self.0.display()))?;
        replace_private(&file, &text).map_err(|error| error_chain(&error))?;
        Ok(backup)
    }

    /// Writes a copy of the file under the first free name: its own, with a number.
    fn write_copy(&self, path: &Path, text: &str) -> Result<PathBuf, String> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let free = (1_u64..).map(|number| self.0.join(format!("{number}-{name}"))).find(|it| !it.exists());
        let copy = free.ok_or("there are too many copies")?;
        create_private(&copy, text).map_err(|error| error_chain(&error))?;
        Ok(copy)
    }

    /// Removes the record, and the copy if it is no longer needed. A failure is ignored: the record is of a file that
    /// no longer has what it says.
    pub(super) fn remove(&self, copy: Option<&Path>) {
        let removed = |path: &Path| -> io::Result<()> { fs::remove_file(path) };
        let _ = removed(&self.0.join(RECORD_FILE));
        if let Some(copy) = copy {
            let _ = removed(copy);
        }
    }
}
