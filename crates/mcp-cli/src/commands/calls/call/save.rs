//! Saves binary content of a result to files.
//!
//! File names are derived from the tool's name, never from the server's data. Existing files are never overwritten.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use mcp_host_model::Content;

use super::base64_data;
use crate::output::sanitize;

/// The maximum number of file names that are tried for one block.
const MAX_ATTEMPTS: usize = 10_000;

/// The maximum length of the part of a file name that the tool's name determines, in characters.
const MAX_STEM_CHARS: usize = 64;

/// The result of saving the binary blocks of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SaveReport {
    /// One line per file.
    pub(super) text: String,
    /// Whether a file could not be written.
    pub(super) has_failed: bool,
}

/// Writes each binary block to a new file in `folder`; creates the folder. Blocks.
pub(super) fn save_binary_blocks(content: &[Content], folder: &Path, tool: &str) -> SaveReport {
    let mut report = SaveReport { text: String::new(), has_failed: false };
    let name = file_stem(tool);
    let mut next_number = 1;
    for (index, block) in content.iter().enumerate() {
        let Some((data, mime_type)) = binary_data(block) else { continue };
        let line = match write_new_file(data, folder, &name, extension(mime_type), &mut next_number) {
            Ok(path) => format!("saved block {} as {}\n", index + 1, path.display()),
            Err(error) => {
                report.has_failed = true;
                format!("error: could not save block {} in {}: {error}\n", index + 1, folder.display())
            }
        };
        report.text.push_str(&line);
    }
    report
}

/// The base64 data and MIME type of a binary block.
fn binary_data(content: &Content) -> Option<(&str, &str)> {
    match content {
        Content::Image { data, mime_type } | Content::Audio { data, mime_type } => Some((data, mime_type)),
        // A link has no data, and text is printed already.
        Content::Binary { data, mime_type, uri: _, text: None } if !data.is_empty() => {
            Some((data, mime_type.as_deref().unwrap_or_default()))
        }
        _ => None,
    }
}

/// Decodes base64 and writes it to the new file `NAME-NUMBER.EXTENSION`. `next_number` becomes the number after it.
fn write_new_file(
    data: &str,
    folder: &Path,
    name: &str,
    extension: &str,
    next_number: &mut usize,
) -> io::Result<PathBuf> {
    let invalid = |error| io::Error::new(ErrorKind::InvalidData, format!("invalid base64: {error}"));
    let bytes = base64_data::decode(data).map_err(invalid)?;
    fs::create_dir_all(folder)?;
    for _ in 0..MAX_ATTEMPTS {
        let path = folder.join(format!("{name}-{next_number}.{extension}"));
        *next_number += 1;
        match File::create_new(&path) {
            Ok(mut file) => return file.write_all(&bytes).map(|()| path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, "no free file name"))
}

/// The beginning of the file names: the tool's name with special characters replaced.
fn file_stem(tool: &str) -> String {
    let is_safe = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
    let name = sanitize::line(tool);
    name.chars()
        .map(|character| if is_safe(character) { character } else { '-' })
        .take(MAX_STEM_CHARS)
        .collect()
}

/// The file extension for a MIME type; `bin` if the type is not known.
fn extension(mime_type: &str) -> &'static str {
    const KNOWN: [(&str, &str); 17] = [
        ("image/png", "png"),
        ("image/jpeg", "jpg"),
        ("image/gif", "gif"),
        ("image/webp", "webp"),
        ("image/svg+xml", "svg"),
        ("image/avif", "avif"),
        ("image/bmp", "bmp"),
        ("audio/wav", "wav"),
        ("audio/x-wav", "wav"),
        ("audio/mpeg", "mp3"),
        ("audio/ogg", "ogg"),
        ("audio/flac", "flac"),
        ("video/mp4", "mp4"),
        ("application/pdf", "pdf"),
        ("application/zip", "zip"),
        ("application/gzip", "gz"),
        ("text/csv", "csv"),
    ];
    let essence = mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    KNOWN.iter().find(|it| it.0 == essence).map_or("bin", |it| it.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(data: &str) -> Content {
        Content::Image { data: data.to_owned(), mime_type: "image/PNG; q=1".to_owned() }
    }

    #[test]
    fn existing_files_are_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("out");
        fs::create_dir(&at).unwrap();
        fs::write(at.join("a-b-1.png"), "mine").unwrap();
        let binary_block = |data: &str, text: Option<&str>| Content::Binary {
            data: data.to_owned(),
            mime_type: None,
            uri: Some("../../evil".to_owned()),
            text: text.map(str::to_owned),
        };
        let content = [
            Content::Text("t".into()),
            image("AAEC"),
            binary_block("/w==", None),
            binary_block("", None),
            binary_block("AA==", Some("t")),
        ];
        let SaveReport { text, has_failed } = save_binary_blocks(&content, &at, "a/b");
        let shown = at.display();
        assert_eq!(text, format!("saved block 2 as {shown}/a-b-2.png\nsaved block 3 as {shown}/a-b-3.bin\n"));
        assert!(!has_failed);
        assert_eq!(fs::read(at.join("a-b-1.png")).unwrap(), b"mine");
        assert_eq!(fs::read(at.join("a-b-2.png")).unwrap(), [0, 1, 2]);
        assert_eq!(fs::read(at.join("a-b-3.bin")).unwrap(), [0xff]);
        assert_eq!(fs::read_dir(&at).unwrap().count(), 3);
    }

    #[test]
    fn save_errors_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let SaveReport { text, has_failed } =
            save_binary_blocks(&[image("?"), image("AAEC")], folder.path(), "t");
        assert!(
            has_failed && text.contains("could not save block 1") && text.contains("saved block 2"),
            "{text}"
        );
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(save_binary_blocks(&[image("AAEC")], &file, "t").has_failed);
    }
}
