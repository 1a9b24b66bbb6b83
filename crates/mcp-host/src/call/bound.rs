//! Results that are too large for their caller are cut, and say so.
//!
//! Text is cut between characters; a block of another kind is useless in part, and goes as a whole. Every block costs
//! something, also one that holds nothing, so that no number of blocks is without an end.

use mcp_model::{Content, RawJson};

use crate::excerpt::boundary;

/// What a block costs beside what it holds, in bytes: about its place in memory. It is paid by what comes after the
/// block, so that one block may hold all of the budget.
const BLOCK_BYTES: usize = 32;

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
        let bytes = weight(&block);
        if left > 0 && bytes <= left {
            left = left.saturating_sub(bytes + BLOCK_BYTES);
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
            | Content::Unknown(_) => dropped.add(bytes),
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

/// What a block holds, in bytes: its content, and what is said of it.
fn weight(block: &Content) -> usize {
    let optional = |it: &Option<String>| it.as_ref().map_or(0, String::len);
    block.len()
        + match block {
            Content::Text(_) | Content::Unknown(_) => 0,
            Content::Image { data: _, mime_type } | Content::Audio { data: _, mime_type } => mime_type.len(),
            Content::Binary { data: _, mime_type, uri, text: _ } => optional(mime_type) + optional(uri),
        }
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
        check("t:abc t:def", 38, &["abc", "def"]);
        check("t:abc", 3, &["abc"]);
        check("t:abcdef", 4, &["abcd\n[2 more bytes of this text are left out]"]);
        check("t:abé", 3, &["ab\n[2 more bytes of this text are left out]"]);
        check("t:éa", 1, &["\n[3 more bytes of this text are left out]"]);
        check(
            "t:abc t:defg t:hi t:j",
            36,
            &[
                "abc",
                "d\n[3 more bytes of this text are left out]",
                "[left out: 2 blocks of 3 bytes together; a result of this server may hold 36 bytes]",
            ],
        );
    }

    #[test]
    fn hd_133_other_blocks_go_as_a_whole() {
        check(
            "i:80 t:ab i:2",
            45,
            &["ab", "i:2", "[left out: 1 block of 89 bytes; a result of this server may hold 45 bytes]"],
        );
    }

    /// So many of a block, and how many are kept of them.
    #[track_caller]
    fn check_count(block: Content, times: usize, want: usize) {
        let (content, _) = bound(vec![block; times], None, 3200);
        assert_eq!(content.len(), want + 1);
        let note = content.last().and_then(Content::text).unwrap();
        assert!(note.starts_with(&format!("[left out: {} blocks of", times - want)), "{note}");
    }

    #[test]
    fn hd_133_blocks_that_hold_nothing_count_as_well() {
        let long = || "x".repeat(368);
        let binary = |mime_type, uri| Content::Binary { data: String::new(), mime_type, uri, text: None };
        check_count(Content::Text(String::new()), 300_000, 100);
        check_count(binary(None, None), 1000, 100);
        check_count(binary(Some(long()), None), 1000, 8);
        check_count(binary(None, Some(long())), 1000, 8);
        check_count(Content::Image { data: String::new(), mime_type: long() }, 1000, 8);
        check_count(Content::Audio { data: String::new(), mime_type: long() }, 1000, 8);
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
