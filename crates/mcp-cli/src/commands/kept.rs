//! What a tool answered and is no text, written to files that a person can open.
//!
//! Names are ours, never the server's, and a file that is there is never written over.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use mcp_model::Content;

use crate::output::plain;

/// How many names are tried for one file.
const TRIES: usize = 10_000;

/// What is said of the files.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// A line for each.
    pub(super) text: String,
    /// One at least could not be written.
    pub(super) failed: bool,
}

/// Writes each binary block to a file in `folder`, which is made if need be. Blocks.
pub(super) fn keep(content: &[Content], folder: &Path, tool: &str) -> Told {
    let mut res = Told { text: String::new(), failed: false };
    let name = name(tool);
    let mut next = 1;
    for (at, block) in content.iter().enumerate() {
        let Some((data, mime_type)) = binary(block) else { continue };
        let line = match write(data, folder, &name, extension(mime_type), &mut next) {
            Ok(path) => format!("block {} is saved as {}\n", at + 1, path.display()),
            Err(error) => {
                res.failed = true;
                format!("error: block {} could not be saved in {}: {error}\n", at + 1, folder.display())
            }
        };
        res.text.push_str(&line);
    }
    res
}

/// What is in a block that is no text, in base64.
fn binary(content: &Content) -> Option<(&str, &str)> {
    match content {
        Content::Image { data, mime_type } | Content::Audio { data, mime_type } => Some((data, mime_type)),
        // A link holds nothing, and a text is printed already.
        Content::Binary { data, mime_type, uri: _, text: None } if !data.is_empty() => {
            Some((data, mime_type.as_deref().unwrap_or_default()))
        }
        Content::Binary { .. } | Content::Text(_) | Content::Unknown(_) => None,
    }
}

fn write(data: &str, folder: &Path, name: &str, extension: &str, next: &mut usize) -> io::Result<PathBuf> {
    let wrong = |error| io::Error::new(ErrorKind::InvalidData, format!("its base64 is wrong: {error}"));
    let bytes = BASE64_STANDARD.decode(data).map_err(wrong)?;
    fs::create_dir_all(folder)?;
    for _ in 0..TRIES {
        let path = folder.join(format!("{name}-{next}.{extension}"));
        *next += 1;
        match File::create_new(&path) {
            Ok(mut file) => return file.write_all(&bytes).map(|()| path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, "every name for it is taken"))
}

/// A tool's name as the beginning of a file's.
fn name(tool: &str) -> String {
    let kept = plain::line(tool);
    let kept = kept.chars().map(|it| if it.is_ascii_alphanumeric() || "_-".contains(it) { it } else { '-' });
    kept.take(64).collect()
}

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
    fn binary_blocks_are_written_under_new_names() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("out");
        fs::create_dir(&at).unwrap();
        fs::write(at.join("a-b-1.png"), "mine").unwrap();
        let binary = |data: &str, text: Option<&str>| Content::Binary {
            data: data.to_owned(),
            mime_type: None,
            uri: Some("../../evil".to_owned()),
            text: text.map(str::to_owned),
        };
        let content = [
            Content::Text("t".into()),
            image("AAEC"),
            binary("/w==", None),
            binary("", None),
            binary("AA==", Some("t")),
        ];
        let Told { text, failed } = keep(&content, &at, "a/b");
        let shown = at.display();
        assert_eq!(
            text,
            format!("block 2 is saved as {shown}/a-b-2.png\nblock 3 is saved as {shown}/a-b-3.bin\n")
        );
        assert!(!failed);
        assert_eq!(fs::read(at.join("a-b-1.png")).unwrap(), b"mine");
        assert_eq!(fs::read(at.join("a-b-2.png")).unwrap(), [0, 1, 2]);
        assert_eq!(fs::read(at.join("a-b-3.bin")).unwrap(), [0xff]);
        assert_eq!(fs::read_dir(&at).unwrap().count(), 3);
    }

    #[test]
    fn what_cannot_be_saved_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let Told { text, failed } = keep(&[image("?"), image("AAEC")], folder.path(), "t");
        assert!(
            failed && text.contains("block 1 could not be saved") && text.contains("block 2 is saved"),
            "{text}"
        );
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(keep(&[image("AAEC")], &file, "t").failed);
    }
}
