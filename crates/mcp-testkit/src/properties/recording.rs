//! Properties of mcp-recording.

use mcp_host_recording::Recording;

/// Any text: a recording that parses is written as text that parses to the same recording.
pub fn recording(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(recording) = Recording::parse(text) else { return };
    let written = recording.to_text();
    assert_eq!(Recording::parse(&written).expect("written text parses"), recording);
}
