//! Reading of input with a limit on its size.

use std::io::{self, Read};
use std::path::Path;

use mcp_host_transport::open_named_file;

/// Reads at most `max` bytes. Blocks.
pub(crate) fn read_bytes(reader: impl Read, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if reader.take(max + 1).read_to_end(&mut bytes)? as u64 > max {
        let limit = if max < 1 << 20 { format!("{} KiB", max >> 10) } else { format!("{} MiB", max >> 20) };
        return Err(io::Error::other(format!("larger than {limit}")));
    }
    Ok(bytes)
}

/// Reads the text of a file, or of standard input for `-`. Blocks.
pub(crate) fn read_file(path: &Path, max: u64) -> io::Result<String> {
    let bytes = if path == Path::new("-") {
        read_bytes(io::stdin().lock(), max)?
    } else {
        read_bytes(open_named_file(path)?, max)?
    };
    to_text(bytes)
}

/// The text of a file.
pub(crate) fn to_text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not valid UTF-8"))
}

/// The name of the input in a message.
pub(crate) fn input_name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}
