//! Reading of text files, with a size limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use mcp_host_transport::{open_named_file, open_regular_file};

/// The maximum file size, about a thousand times the largest known configuration.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// The error of a file that could not be read as text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// An I/O error.
    #[error("{}", io_message(.0))]
    Io(io::Error),
    /// The file exceeds the size limit.
    #[error("it is larger than {} MiB", MAX_FILE_BYTES >> 20)]
    TooLarge,
    /// The file is a pipe, a device or the like: reading it could block forever, or succeed only once.
    #[error("it is not a regular file")]
    NotRegular,
    /// The file is not UTF-8.
    #[error("{}", not_text_message(*.line, *.utf16))]
    NotText {
        /// The first invalid line, from 1.
        line: usize,
        /// Whether the file is probably UTF-16.
        utf16: Utf16,
    },
}

/// Reads a file that the user names as UTF-8 text of at most `MAX_FILE_BYTES`; see [`open_named_file`].
pub(crate) fn read_text(path: &Path) -> Result<String, FileError> {
    read_text_of(open_named_file(path).map_err(open_error)?)
}

fn read_text_of(file: File) -> Result<String, FileError> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(FileError::Io)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(FileError::TooLarge);
    }
    // A text in UTF-16 without a mark can be UTF-8 with a NUL beside each character.
    if let [a, b, c, d, ..] = *bytes
        && matches!([a == 0, b == 0, c == 0, d == 0], [true, false, true, false] | [false, true, false, true])
    {
        return Err(FileError::NotText { line: 1, utf16: Utf16::Likely });
    }
    String::from_utf8(bytes).map_err(|it| {
        let before = &it.as_bytes()[..it.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|it| **it == b'\n').count();
        let has_utf16_mark = matches!(it.as_bytes(), [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]);
        FileError::NotText { line, utf16: if has_utf16_mark { Utf16::Likely } else { Utf16::No } }
    })
}

/// Reads a regular file like [`read_text`]. Fails for any other file.
pub(crate) fn read_regular_file(path: &Path) -> Result<String, FileError> {
    read_text_of(open_regular_file(path).map_err(open_error)?)
}

fn open_error(error: io::Error) -> FileError {
    match error.kind() {
        io::ErrorKind::InvalidInput => FileError::NotRegular,
        _ => FileError::Io(error),
    }
}

impl FileError {
    /// Returns whether the file does not exist. A path through a file does not exist either.
    pub(crate) fn is_absent(&self) -> bool {
        let absent = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
        matches!(self, FileError::Io(error) if absent.contains(&error.kind()))
    }
}

/// Whether a file is probably UTF-16, judged by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Utf16 {
    /// It begins with the byte order mark of UTF-16, or with characters beside NULs.
    Likely,
    /// It begins otherwise.
    No,
}

/// Returns the message for a file that is not UTF-8.
fn not_text_message(line: usize, utf16: Utf16) -> String {
    match utf16 {
        Utf16::Likely => "it is UTF-16; save it as UTF-8".to_owned(),
        Utf16::No => format!("line {line} is not UTF-8; save the file as UTF-8 text"),
    }
}

/// Returns a short text for common kinds of errors, else the system's message.
pub(super) fn io_message(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "it does not exist".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(content: &[u8], want: Result<&str, &str>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, content).unwrap();
        let got = read_text(&path).map_err(|it| it.to_string());
        assert_eq!(got.as_deref().map_err(String::as_str), want);
    }

    #[test]
    fn files_are_read_as_text_with_a_size_limit() {
        check("é\n".as_bytes(), Ok("é\n"));
        check(b"a\nb\xff", Err("line 2 is not UTF-8; save the file as UTF-8 text"));
        check(b"\xff\xfe{\0", Err("it is UTF-16; save it as UTF-8"));
        check(b"{\0\"\0", Err("it is UTF-16; save it as UTF-8"));
        check(b"\0{\0\"", Err("it is UTF-16; save it as UTF-8"));
        check(&vec![b'a'; MAX_FILE_BYTES as usize + 1], Err("it is larger than 8 MiB"));
        let folder = tempfile::tempdir().unwrap();
        // RPT-250
        for read in [read_text, read_regular_file] {
            assert_eq!(read(folder.path()).unwrap_err().to_string(), "it is a directory");
            assert_eq!(read(&folder.path().join("no")).unwrap_err().to_string(), "it does not exist");
            let error = read(Path::new("/dev/zero")).unwrap_err();
            assert_eq!(error.to_string(), "it is not a regular file");
        }
    }
}
