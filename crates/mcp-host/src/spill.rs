//! Where results go that are too large for their caller: files that only this user can read, under names that nobody
//! can guess, in a folder of the host's own that goes with it.
//!
//! The folder is made anew, with 128 random bits in its name and closed to everybody else, so whatever somebody has put
//! beside it beforehand, a link included, is never opened. In it a file is made only where none is. What cannot be
//! written is not lost: its caller gets it cut.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mcp_model::{Content, RawJson};
use tempfile::{Builder, TempDir};

/// Where results go that are too large for their caller, and how much of them is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillPolicy {
    /// The folder in which each host makes one of its own, with its first such result. It is made if it is not there.
    /// One in which others may put something else in the place of ours is not used.
    pub directory: PathBuf,
    /// How many bytes all files of the host may have together. Those that were written first make room; what is larger
    /// by itself is cut.
    pub most_bytes: u64,
}

impl SpillPolicy {
    /// Files in `directory`, of 256 MiB together.
    pub fn in_directory(directory: impl Into<PathBuf>) -> SpillPolicy {
        SpillPolicy { directory: directory.into(), most_bytes: 256 << 20 }
    }
}

/// A part of a result that its caller has no room for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Whole {
    Text(String),
    Block(Content),
    Structured(RawJson),
}

/// Why a part was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpillError {
    /// It has more bytes than may be kept.
    #[error("it has {bytes} bytes, and the files of this host may have {most} together")]
    TooLarge { bytes: u64, most: u64 },
    /// The host keeps no files, or no more.
    #[error("the host keeps no results")]
    Off,
    /// It could not be done.
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// The files of one host.
#[derive(Debug)]
pub(crate) struct Spills(Mutex<State>);

#[derive(Debug)]
struct State {
    /// `None` where nothing is written, or nothing any more.
    policy: Option<SpillPolicy>,
    folder: Option<TempDir>,
    /// What is there, the oldest first.
    kept: VecDeque<(PathBuf, u64)>,
    bytes: u64,
}

impl Spills {
    /// No files yet; never any without a policy.
    pub(crate) fn new(policy: Option<SpillPolicy>) -> Spills {
        Spills(Mutex::new(State { policy, folder: None, kept: VecDeque::new(), bytes: 0 }))
    }

    /// Is anything written?
    pub(crate) fn is_on(&self) -> bool {
        self.lock().policy.is_some()
    }

    /// Writes a part to a file of its own. Blocks, also while others write.
    pub(crate) fn write(&self, whole: &Whole) -> Result<PathBuf, SpillError> {
        let (bytes, extension) = whole.file();
        self.lock().write(&bytes, extension)
    }

    /// Removes every file, and writes none from now on. Blocks.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.policy = None;
        state.kept.clear();
        state.bytes = 0;
        if let Some(error) = state.folder.take().and_then(|it| it.close().err()) {
            tracing::warn!(%error, "the folder of large results could not be removed");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // At worst a file that is there is not counted, and goes with the folder.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn write(&mut self, bytes: &[u8], extension: &str) -> Result<PathBuf, SpillError> {
        let Some(policy) = self.policy.clone() else { return Err(SpillError::Off) };
        let size = bytes.len() as u64;
        if size > policy.most_bytes {
            return Err(SpillError::TooLarge { bytes: size, most: policy.most_bytes });
        }
        while self.bytes + size > policy.most_bytes
            && let Some((path, old)) = self.kept.pop_front()
        {
            self.bytes -= old;
            // Whoever has removed it himself wanted the same.
            let _ = fs::remove_file(path);
        }
        let path = match self.write_new(&policy.directory, bytes, extension) {
            // Somebody who tidies up has removed the folder: another one is made.
            Err(SpillError::Io { source, .. })
                if source.kind() == io::ErrorKind::NotFound && self.folder.is_some() =>
            {
                (self.folder, self.bytes) = (None, 0);
                self.kept.clear();
                self.write_new(&policy.directory, bytes, extension)?
            }
            outcome => outcome?,
        };
        self.kept.push_back((path.clone(), size));
        self.bytes += size;
        Ok(path)
    }

    fn write_new(&mut self, directory: &Path, bytes: &[u8], extension: &str) -> Result<PathBuf, SpillError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            |source| SpillError::Io { path, source }
        };
        if self.folder.is_none() {
            self.folder = Some(new_folder(directory).map_err(failed(directory))?);
        }
        let folder = self.folder.as_ref().expect("it is there, or was just made").path();
        let suffix = format!(".{extension}");
        // A file that could not be written to its end is removed when this is dropped.
        let mut file = Builder::new()
            .prefix("result-")
            .rand_bytes(16)
            .suffix(&suffix)
            .tempfile_in(folder)
            .map_err(failed(folder))?;
        file.write_all(bytes).and_then(|()| file.flush()).map_err(failed(folder))?;
        let (_, path) = file.keep().map_err(|it| failed(folder)(it.error))?;
        Ok(path)
    }
}

/// A folder that is new, and nobody else's. Both folders that it makes are closed to others.
fn new_folder(directory: &Path) -> io::Result<TempDir> {
    let mut own = DirBuilder::new();
    own.recursive(true);
    let mut builder = Builder::new();
    builder.prefix("mcp-host-").rand_bytes(22);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
        own.mode(0o700);
        builder.permissions(fs::Permissions::from_mode(0o700));
    }
    own.create(directory)?;
    // What a result says of a file is read elsewhere: its path must not depend on where the reader stands, nor on a link
    // that somebody turns round later.
    let directory = directory.canonicalize()?;
    if may_be_swapped(&directory)? {
        let reason = "others may remove or rename what is in it";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    builder.tempdir_in(directory)
}

/// May somebody else put another folder in the place of one that we make there? Not where only we may write, nor where
/// each may only touch his own, as in the system's folder for temporary files.
fn may_be_swapped(directory: &Path) -> io::Result<bool> {
    let metadata = fs::metadata(directory)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = metadata.permissions().mode();
        Ok(mode & 0o022 != 0 && mode & 0o1000 == 0)
    }
    #[cfg(not(unix))]
    Ok(!metadata.is_dir())
}

impl Whole {
    /// What stands in the file, and what its name ends with.
    fn file(&self) -> (std::borrow::Cow<'_, [u8]>, &'static str) {
        let (data, mime_type) = match self {
            Whole::Text(text) | Whole::Block(Content::Text(text)) => return (text.as_bytes().into(), "txt"),
            Whole::Structured(raw) | Whole::Block(Content::Unknown(raw)) => {
                return (raw.as_bytes().into(), "json");
            }
            Whole::Block(Content::Binary { data, text: Some(text), .. }) if data.is_empty() => {
                return (text.as_bytes().into(), "txt");
            }
            Whole::Block(Content::Image { data, mime_type } | Content::Audio { data, mime_type }) => {
                (data, Some(mime_type.as_str()))
            }
            Whole::Block(Content::Binary { data, mime_type, .. }) => (data, mime_type.as_deref()),
        };
        match STANDARD.decode(data) {
            Ok(bytes) => (bytes.into(), extension(mime_type)),
            Err(_) => (data.as_bytes().into(), "base64"),
        }
    }
}

/// What the name of a file ends with that holds this. Never the server's own words.
fn extension(mime_type: Option<&str>) -> &'static str {
    match mime_type {
        Some("image/png") => "png",
        Some("image/jpeg") => "jpg",
        Some("image/gif") => "gif",
        Some("image/webp") => "webp",
        Some("audio/wav" | "audio/x-wav") => "wav",
        Some("audio/mpeg") => "mp3",
        Some("audio/ogg") => "ogg",
        Some("application/pdf") => "pdf",
        Some("application/zip") => "zip",
        Some("text/plain") => "txt",
        Some(_) | None => "bin",
    }
}

#[cfg(test)]
mod tests;
