//! Results that are too large for their caller are cut, and say so.
//!
//! Text is cut between characters; a block of another kind is useless in part, and goes as a whole.

use mcp_model::{Content, RawJson};

/// The content, and the structured result, with at most `budget` bytes each; what is left out is told in a text block.
pub(super) fn bound(
    content: Vec<Content>,
    structured: Option<RawJson>,
    budget: usize,
) -> (Vec<Content>, Option<RawJson>) {
    let mut res = Vec::with_capacity(content.len());
    let mut left = budget;
    let mut dropped = LeftOut::default();
    for block in content {
        if block.len() <= left {
            left -= block.len();
            res.push(block);
            continue;
        }
        match block {
            Content::Text(text) if left > 0 => {
                let end = boundary(&text, left);
                let cut = text.len() - end;
                res.push(Content::Text(format!(
                    "{}\n[{cut} more bytes of this text are left out]",
                    &text[..end]
                )));
                left = 0;
            }
            Content::Text(_)
            | Content::Image { .. }
            | Content::Audio { .. }
            | Content::Binary { .. }
            | Content::Unknown(_) => dropped.add(block.len()),
        }
    }
    let structured = structured.filter(|it| {
        let fits = it.as_bytes().len() <= budget;
        if !fits {
            dropped.structured = Some(it.as_bytes().len());
        }
        fits
    });
    res.extend(dropped.note(budget));
    (res, structured)
}

/// The last place at or before `at` where `text` may be cut.
pub(super) fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|it| text.is_char_boundary(*it)).unwrap_or_default()
}

/// What does not fit at all.
#[derive(Default)]
struct LeftOut {
    blocks: usize,
    bytes: usize,
    structured: Option<usize>,
}

impl LeftOut {
    fn add(&mut self, bytes: usize) {
        self.blocks += 1;
        self.bytes += bytes;
    }

    fn note(&self, budget: usize) -> Option<Content> {
        let mut parts = Vec::new();
        match self.blocks {
            0 => {}
            1 => parts.push(format!("1 block of {} bytes", self.bytes)),
            many => parts.push(format!("{many} blocks of {} bytes together", self.bytes)),
        }
        parts.extend(self.structured.map(|it| format!("the structured content of {it} bytes")));
        if parts.is_empty() {
            return None;
        }
        let parts = parts.join(" and ");
        Some(Content::Text(format!("[left out: {parts}; a result of this server may hold {budget} bytes]")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(bytes: usize) -> Content {
        Content::Image { data: "A".repeat(bytes), mime_type: "image/png".to_owned() }
    }

    /// `t:<text>` is a text block, `i:<bytes>` an image.
    #[track_caller]
    fn check(blocks: &str, budget: usize, want: &[&str]) {
        let content =
            blocks.split(' ').filter(|it| !it.is_empty()).map(|it| match it.split_once(':').unwrap() {
                ("t", text) => Content::Text(text.to_owned()),
                (_, bytes) => image(bytes.parse().unwrap()),
            });
        let (content, _) = bound(content.collect(), None, budget);
        let got: Vec<String> = content
            .into_iter()
            .map(|it| match it {
                Content::Text(text) => text,
                other => format!("i:{}", other.len()),
            })
            .collect();
        assert_eq!(got, want);
    }

    #[test]
    fn hd_133_text_is_cut_and_says_by_how_much() {
        check("", 0, &[]);
        check("t:abc t:def", 6, &["abc", "def"]);
        check("t:abcdef", 4, &["abcd\n[2 more bytes of this text are left out]"]);
        check("t:abé", 3, &["ab\n[2 more bytes of this text are left out]"]);
        check("t:éa", 1, &["\n[3 more bytes of this text are left out]"]);
        check(
            "t:abc t:defg t:hi t:j",
            4,
            &[
                "abc",
                "d\n[3 more bytes of this text are left out]",
                "[left out: 2 blocks of 3 bytes together; a result of this server may hold 4 bytes]",
            ],
        );
    }

    #[test]
    fn hd_133_other_blocks_go_as_a_whole() {
        check(
            "i:8 t:ab i:2",
            4,
            &["ab", "i:2", "[left out: 1 block of 8 bytes; a result of this server may hold 4 bytes]"],
        );
    }

    #[test]
    fn hd_133_a_structured_result_is_kept_whole_or_left_out() {
        let structured = RawJson::parse("{\"a\":1}".into()).unwrap();
        assert_eq!(bound(Vec::new(), Some(structured.clone()), 7), (Vec::new(), Some(structured.clone())));
        let (content, left) = bound(Vec::new(), Some(structured), 6);
        assert_eq!(left, None);
        let want = "[left out: the structured content of 7 bytes; a result of this server may hold 6 bytes]";
        assert_eq!(content, [Content::Text(want.to_owned())]);
    }
}
