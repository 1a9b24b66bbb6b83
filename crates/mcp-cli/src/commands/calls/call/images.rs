//! Draws images in the terminal with the protocols of kitty and iTerm2.
//!
//! Other terminals would print the escape sequences as text. The protocols are therefore used only if the terminal
//! identifies itself, and never behind a multiplexer. The base64 is decoded and encoded again, so that a server cannot
//! insert escape sequences.

use std::env;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use mcp_host_model::Content;

use super::base64_data;

/// The maximum size of an image, in bytes.
const MAX_IMAGE_BYTES: usize = 4 << 20;
/// The maximum number of images per result.
const MAX_IMAGES: usize = 8;
/// The maximum number of base64 bytes per escape sequence of kitty.
const KITTY_CHUNK: usize = 4096;
/// The signature of a PNG file.
const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// A protocol for images in a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImageProtocol {
    /// kitty, Ghostty, WezTerm.
    Kitty,
    /// iTerm2.
    Iterm,
}

/// The protocol of this terminal, according to its environment variables.
pub(super) fn detect_protocol() -> Option<ImageProtocol> {
    detect_from(&|name| env::var(name).ok())
}

/// The protocol of the terminal with these environment variables.
fn detect_from(variable: &dyn Fn(&str) -> Option<String>) -> Option<ImageProtocol> {
    let is_set = |name| variable(name).is_some_and(|it| !it.is_empty());
    let term = variable("TERM").unwrap_or_default();
    if is_set("TMUX") || is_set("STY") || term.starts_with("screen") || term.starts_with("tmux") {
        return None;
    }
    let program = variable("TERM_PROGRAM").unwrap_or_default();
    if is_set("KITTY_WINDOW_ID") || term == "xterm-kitty" || ["ghostty", "WezTerm"].contains(&&*program) {
        return Some(ImageProtocol::Kitty);
    }
    (program == "iTerm.app").then_some(ImageProtocol::Iterm)
}

/// The escape sequences that draw the images of a result.
pub(super) fn escape_sequences(content: &[Content], protocol: ImageProtocol) -> String {
    let images = content.iter().filter_map(|block| match block {
        Content::Image { data, mime_type: _ } if data.len() / 4 * 3 <= MAX_IMAGE_BYTES => {
            base64_data::decode(data).ok()
        }
        _ => None,
    });
    images.take(MAX_IMAGES).map(|image| draw_sequence(&image, protocol)).collect()
}

/// The escape sequences that draw one image; empty if the protocol does not support its format.
fn draw_sequence(image: &[u8], protocol: ImageProtocol) -> String {
    let data = BASE64_STANDARD.encode(image);
    match protocol {
        ImageProtocol::Iterm => {
            format!("\u{1b}]1337;File=inline=1;preserveAspectRatio=1;size={}:{data}\u{7}\n", image.len())
        }
        // kitty supports only PNG.
        ImageProtocol::Kitty if !image.starts_with(PNG_SIGNATURE) => String::new(),
        ImageProtocol::Kitty => {
            let mut text = String::new();
            let chunks: Vec<&[u8]> = data.as_bytes().chunks(KITTY_CHUNK).collect();
            for (index, chunk) in chunks.iter().enumerate() {
                let more = u8::from(index + 1 < chunks.len());
                let head = if index == 0 { format!("f=100,a=T,m={more}") } else { format!("m={more}") };
                text.push_str(&format!("\u{1b}_G{head};{}\u{1b}\\", String::from_utf8_lossy(chunk)));
            }
            text.push('\n');
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], want: Option<ImageProtocol>) {
        let variable =
            |name: &str| variables.iter().find(|it| it.0 == name).map(|(_, value)| (*value).to_owned());
        assert_eq!(detect_from(&variable), want, "{variables:?}");
    }

    #[test]
    fn protocol_needs_a_known_terminal() {
        check(&[("TERM", "xterm-256color")], None);
        check(&[("TERM", "xterm-kitty")], Some(ImageProtocol::Kitty));
        check(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "ghostty")], Some(ImageProtocol::Kitty));
        check(&[("TERM_PROGRAM", "iTerm.app")], Some(ImageProtocol::Iterm));
        check(&[("TERM_PROGRAM", "iTerm.app"), ("TMUX", "/tmp/x")], None);
        check(&[("KITTY_WINDOW_ID", "1"), ("TERM", "screen-256color")], None);
    }

    #[test]
    fn images_are_reencoded_and_bounded() {
        let image = |bytes: &[u8]| Content::Image {
            data: BASE64_STANDARD.encode(bytes),
            mime_type: "image/png".into(),
        };
        let png = [PNG_SIGNATURE, &[7; 5000]].concat();
        let got = escape_sequences(&[image(&png)], ImageProtocol::Kitty);
        assert!(got.starts_with("\u{1b}_Gf=100,a=T,m=1;iVBOR") && got.contains("\u{1b}_Gm=0;"), "{got:?}");
        assert_eq!(got.matches('\u{1b}').count(), 4);
        assert_eq!(escape_sequences(&[image(b"GIF89a")], ImageProtocol::Kitty), "");
        assert!(escape_sequences(&[image(b"GIF89a")], ImageProtocol::Iterm).contains("size=6:R0lGODlh\u{7}"));
        let hostile = Content::Image { data: "\u{1b}]0;x\u{7}".into(), mime_type: "image/png".into() };
        assert_eq!(escape_sequences(&[hostile], ImageProtocol::Iterm), "");
        assert_eq!(escape_sequences(&[image(&vec![0; MAX_IMAGE_BYTES + 3])], ImageProtocol::Iterm), "");
    }
}
