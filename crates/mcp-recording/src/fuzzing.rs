//! Properties checked by the fuzz targets and, on their seeds, by the tests. Not part of the public API.

use crate::recording::Recording;

/// Any text: a recording that parses is written as text that parses to the same recording.
pub fn recording(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(recording) = Recording::parse(text) else { return };
    let written = recording.to_text();
    assert_eq!(Recording::parse(&written).expect("written text parses"), recording);
}

#[cfg(test)]
#[path = "../../../fuzz/src/feed.rs"]
mod feed;

#[cfg(test)]
mod tests {
    use super::feed::feed;

    #[test]
    fn any_text_as_a_recording() {
        feed("recording", super::recording);
    }
}
