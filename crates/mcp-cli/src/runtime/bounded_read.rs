//! Reading of text with a limit on its size.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads UTF-8 text of at most `max` bytes. Blocks.
pub(crate) fn read_text(reader: impl Read, max: u64) -> io::Result<String> {
    let mut text = String::new();
    if reader.take(max + 1).read_to_string(&mut text)? as u64 > max {
        return Err(io::Error::other(format!("larger than {} MiB", max >> 20)));
    }
    Ok(text)
}

/// Reads a file, or standard input for `-`. Blocks.
pub(crate) fn read_file(path: &Path, max: u64) -> io::Result<String> {
    if path == Path::new("-") {
        read_text(io::stdin().lock(), max)
    } else {
        read_text(File::open(path)?, max)
    }
}

/// The name of the input in a message.
pub(crate) fn input_name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}
