//! Images shown where they stand, by terminals that are known to draw them: kitty's protocol and iTerm2's.
//!
//! A terminal that knows neither would print letters, so that only one that names itself is trusted, and none behind a
//! multiplexer. What is sent is base64 that was decoded and encoded anew: nothing of a server's own spelling.

use std::env;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use mcp_model::Content;

/// The most bytes of one image.
const LARGEST: usize = 4 << 20;
/// The most images of one answer.
const MOST: usize = 8;
/// How many bytes kitty takes at once.
const PIECE: usize = 4096;
/// What a PNG begins with.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// What a terminal draws images by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// kitty, Ghostty, WezTerm.
    Kitty,
    /// iTerm2.
    Iterm,
}

/// What this terminal draws by, as far as its variables say.
pub(super) fn protocol() -> Option<Protocol> {
    by(&|name| env::var(name).ok())
}

fn by(variable: &dyn Fn(&str) -> Option<String>) -> Option<Protocol> {
    let is_set = |name| variable(name).is_some_and(|it| !it.is_empty());
    let term = variable("TERM").unwrap_or_default();
    if is_set("TMUX") || is_set("STY") || term.starts_with("screen") || term.starts_with("tmux") {
        return None;
    }
    let program = variable("TERM_PROGRAM").unwrap_or_default();
    if is_set("KITTY_WINDOW_ID") || term == "xterm-kitty" || ["ghostty", "WezTerm"].contains(&&*program) {
        return Some(Protocol::Kitty);
    }
    (program == "iTerm.app").then_some(Protocol::Iterm)
}

/// What draws the images among the blocks of an answer.
pub(super) fn drawn(content: &[Content], protocol: Protocol) -> String {
    let images = content.iter().filter_map(|it| match it {
        Content::Image { data, mime_type: _ } if data.len() / 4 * 3 <= LARGEST => {
            BASE64_STANDARD.decode(data).ok()
        }
        Content::Image { .. }
        | Content::Text(_)
        | Content::Audio { .. }
        | Content::Binary { .. }
        | Content::Unknown(_) => None,
    });
    images.take(MOST).map(|it| draw(&it, protocol)).collect()
}

fn draw(image: &[u8], protocol: Protocol) -> String {
    let data = BASE64_STANDARD.encode(image);
    match protocol {
        Protocol::Iterm => {
            format!("\u{1b}]1337;File=inline=1;preserveAspectRatio=1;size={}:{data}\u{7}\n", image.len())
        }
        // It reads no other format.
        Protocol::Kitty if !image.starts_with(PNG) => String::new(),
        Protocol::Kitty => {
            let mut res = String::new();
            let pieces: Vec<&[u8]> = data.as_bytes().chunks(PIECE).collect();
            for (at, piece) in pieces.iter().enumerate() {
                let more = u8::from(at + 1 < pieces.len());
                let head = if at == 0 { format!("f=100,a=T,m={more}") } else { format!("m={more}") };
                res.push_str(&format!("\u{1b}_G{head};{}\u{1b}\\", String::from_utf8_lossy(piece)));
            }
            res.push('\n');
            res
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], want: Option<Protocol>) {
        let variable =
            |name: &str| variables.iter().find(|it| it.0 == name).map(|(_, value)| (*value).to_owned());
        assert_eq!(by(&variable), want, "{variables:?}");
    }

    #[test]
    fn only_a_terminal_that_names_itself_is_sent_images() {
        check(&[("TERM", "xterm-256color")], None);
        check(&[("TERM", "xterm-kitty")], Some(Protocol::Kitty));
        check(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "ghostty")], Some(Protocol::Kitty));
        check(&[("TERM_PROGRAM", "iTerm.app")], Some(Protocol::Iterm));
        check(&[("TERM_PROGRAM", "iTerm.app"), ("TMUX", "/tmp/x")], None);
        check(&[("KITTY_WINDOW_ID", "1"), ("TERM", "screen-256color")], None);
    }

    #[test]
    fn images_are_spelt_anew_and_bounded() {
        let image = |bytes: &[u8]| Content::Image {
            data: BASE64_STANDARD.encode(bytes),
            mime_type: "image/png".into(),
        };
        let png = [PNG, &[7; 5000]].concat();
        let got = drawn(&[image(&png)], Protocol::Kitty);
        assert!(got.starts_with("\u{1b}_Gf=100,a=T,m=1;iVBOR") && got.contains("\u{1b}_Gm=0;"), "{got:?}");
        assert_eq!(got.matches('\u{1b}').count(), 4);
        assert_eq!(drawn(&[image(b"GIF89a")], Protocol::Kitty), "");
        assert!(drawn(&[image(b"GIF89a")], Protocol::Iterm).contains("size=6:R0lGODlh\u{7}"));
        let hostile = Content::Image { data: "\u{1b}]0;x\u{7}".into(), mime_type: "image/png".into() };
        assert_eq!(drawn(&[hostile], Protocol::Iterm), "");
        assert_eq!(drawn(&[image(&vec![0; LARGEST + 3])], Protocol::Iterm), "");
    }
}
