//! The log of a shared host: a private file in the state folder, of limited size.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::host::state_path;
use crate::runtime::system::{create_private_folder, private_file_options};
use crate::shared_host::identity::HostIdentity;

/// The size above which a log is moved to the file for older lines.
const MAX_LOG_BYTES: u64 = 4 << 20;

/// The maximum number of logs. The oldest ones are deleted.
const MAX_LOGS: usize = 64;

/// The maximum size of the end of a log that is shown.
const MAX_TAIL_BYTES: u64 = 16 * 1024;

/// The log of a shared host.
#[derive(Debug, Clone)]
pub(crate) struct HostLog {
    path: PathBuf,
}

impl HostLog {
    /// The log of the host with this identity. `None` if there is no private state folder.
    pub(crate) fn new(identity: &HostIdentity) -> Option<HostLog> {
        let folder = state_path("shared-hosts", &|name| std::env::var_os(name))?;
        Some(HostLog { path: folder.join(format!("{}.log", identity.as_str())) })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it for a host that starts. Blocks.
    pub(crate) fn open(&self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            create_private_folder(folder)?;
            delete_oldest(folder)?;
        }
        self.limit_size()?;
        private_file_options().append(true).create(true).open(&self.path)
    }

    /// Moves the lines to the file for older ones if there are too many. The host keeps the file open. Blocks.
    pub(crate) fn limit_size(&self) -> io::Result<()> {
        match fs::metadata(&self.path) {
            Ok(metadata) if metadata.len() > MAX_LOG_BYTES => {}
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        }
        fs::copy(&self.path, self.path.with_extension("log.old"))?;
        private_file_options().write(true).open(&self.path)?.set_len(0)
    }

    /// Its size. Blocks.
    pub(crate) fn size(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }

    /// The text from this position to its end, at most the last 16 KiB. Blocks.
    pub(crate) fn text_from(&self, position: u64) -> io::Result<String> {
        let mut file = File::open(&self.path)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(position.max(size.saturating_sub(MAX_TAIL_BYTES))))?;
        let mut bytes = Vec::new();
        file.take(MAX_TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Deletes the oldest logs of a folder if there are too many. Blocks.
fn delete_oldest(folder: &Path) -> io::Result<()> {
    let mut logs: Vec<_> = fs::read_dir(folder)?
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    logs.sort();
    let excess = logs.len().saturating_sub(MAX_LOGS);
    for (_, path) in &logs[..excess] {
        // Another process may delete it at the same time.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn sh_007_log_is_limited_and_its_end_is_readable() {
        let folder = tempfile::tempdir().unwrap();
        let log = HostLog { path: folder.path().join("logs/a.log") };
        let mut file = log.open().unwrap();
        file.write_all(b"one\n").unwrap();
        let position = log.size();
        file.write_all(b"two\n").unwrap();
        assert_eq!(log.text_from(position).unwrap(), "two\n");
        file.write_all(&vec![b'x'; MAX_LOG_BYTES as usize]).unwrap();
        log.limit_size().unwrap();
        assert_eq!(log.size(), 0);
        // The open file goes on at the beginning.
        file.write_all(b"three\n").unwrap();
        assert_eq!(log.text_from(0).unwrap(), "three\n");
        assert!(fs::read_to_string(log.path().with_extension("log.old")).unwrap().starts_with("one\ntwo\n"));
        for number in 0..MAX_LOGS + 5 {
            fs::write(folder.path().join(format!("logs/{number}.log")), "").unwrap();
        }
        log.open().unwrap();
        assert!(fs::read_dir(folder.path().join("logs")).unwrap().count() <= MAX_LOGS + 1);
    }
}
