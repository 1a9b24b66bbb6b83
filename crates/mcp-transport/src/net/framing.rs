//! What both ends of a connection of HTTP/1.1 have to know: where a head ends, and where a body in chunks does.
//!
//! Functions of bytes: no I/O. What a head says is read by the end that it is for.

mod chunked;

use std::sync::LazyLock;

use memchr::memmem::Finder;

pub use chunked::{ChunkedBody, ChunkedPart, NotChunked};

/// Where the head of a message of HTTP/1.1 at the beginning of `text` ends: how many bytes it has with its empty line.
///
/// Up to `known` bytes it is known to have no end. Lines that end with a line feed alone are lines here: whoever reads the
/// head decides whether that is one.
pub fn head_end(text: &[u8], known: usize) -> Option<usize> {
    static END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\r\n\r\n"));
    // The end may have been there in part.
    let from = known.saturating_sub(3);
    let rest = text.get(from..)?;
    if let Some(at) = END.find(rest) {
        return Some(from + at + 4);
    }
    memchr::memchr_iter(b'\n', rest).map(|it| from + it + 1).find_map(|at| match text[at..] {
        [b'\n', ..] => Some(at + 1),
        [b'\r', b'\n', ..] => Some(at + 2),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_found_wherever_the_bytes_were_cut() {
        for text in ["GET / HTTP/1.1\r\nx: y\r\n\r\nrest", "GET / HTTP/1.1\nx: y\n\nrest"] {
            let whole = head_end(text.as_bytes(), 0).unwrap();
            assert_eq!(&text[whole..], "rest");
            for known in 0..whole {
                assert_eq!(head_end(&text.as_bytes()[..known], 0), None);
                assert_eq!(head_end(text.as_bytes(), known), Some(whole), "{known}");
            }
        }
        assert_eq!(head_end(b"", 9), None);
    }
}
