//! Results that are too large for their caller are cut, and say so, and where the rest is if there is such a place.
//!
//! Text is cut between characters; a block of another kind is useless in part, and goes as a whole. Every block costs
//! something, also one that holds nothing, so that no number of blocks is without an end.

use std::path::PathBuf;

use mcp_model::{Content, RawJson};

use crate::calls::spill::Whole;
use crate::failure::excerpt::boundary;

/// What a block costs beside what it holds, in bytes: about its place in memory. It is paid by what comes after the
/// block, so that one block may hold all of the budget.
const BLOCK_BYTES: usize = 32;

/// How many parts of one result get files of their own: its first ones.
const MOST_FILES: usize = 8;

/// May what is left out be kept somewhere else?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Kept,
    Lost,
}

/// A result within its budget, and what is to be done with the rest.
pub(super) struct Bounded {
    content: Vec<Content>,
    structured: Option<RawJson>,
    over: Vec<Over>,
    dropped: LeftOut,
    budget: usize,
    /// What it held before, in bytes.
    pub(super) bytes: usize,
    /// Whether anything is left out.
    pub(super) is_cut: bool,
}

/// A part that has no room, but may be kept.
struct Over {
    part: Part,
    bytes: usize,
    whole: Whole,
}

/// What it is a part of.
enum Part {
    /// A text of which this block has the beginning.
    TextOf(usize),
    /// A block that is left out, in words.
    Block(&'static str),
    /// The structured content.
    Structured,
}

/// The content, and the structured result, with at most `budget` bytes each.
pub(super) fn bound(
    content: Vec<Content>,
    structured: Option<RawJson>,
    budget: usize,
    rest: Rest,
) -> Bounded {
    let (mut over, mut dropped, mut is_cut) = (Vec::new(), LeftOut::default(), false);
    let mut res = Vec::with_capacity(content.len());
    let mut total = structured.as_ref().map_or(0, |it| it.as_bytes().len());
    let mut left = budget;
    let room = |over: &Vec<Over>| rest == Rest::Kept && over.len() < MOST_FILES;
    for block in content {
        let bytes = weight(&block);
        total = total.saturating_add(bytes);
        if left > 0 && bytes <= left {
            left = left.saturating_sub(bytes + BLOCK_BYTES);
            res.push(block);
            continue;
        }
        is_cut = true;
        match block {
            Content::Text(text) if left > 0 => {
                let end = boundary(&text, left);
                let cut = text.len() - end;
                res.push(Content::Text(format!(
                    "{}\n[{cut} more bytes of this text are left out]",
                    &text[..end]
                )));
                if room(&over) {
                    let part = Part::TextOf(res.len() - 1);
                    over.push(Over { part, bytes, whole: Whole::Text(text) });
                }
                left = 0;
            }
            block @ (Content::Text(_)
            | Content::Image { .. }
            | Content::Audio { .. }
            | Content::Binary { .. }
            | Content::Unknown(_)) => {
                // What holds nothing is not worth a file.
                if room(&over) && !block.is_empty() {
                    let part = Part::Block(noun(&block));
                    over.push(Over { part, bytes, whole: Whole::Block(block) });
                } else {
                    dropped.add(bytes);
                }
            }
        }
    }
    let structured = structured.filter(|it| {
        let bytes = it.as_bytes().len();
        let fits = bytes <= budget;
        if !fits {
            is_cut = true;
            // It is worth a file however many blocks have one.
            match rest {
                Rest::Kept => {
                    over.push(Over { part: Part::Structured, bytes, whole: Whole::Structured(it.clone()) });
                }
                Rest::Lost => dropped.structured = Some(bytes),
            }
        }
        fits
    });
    Bounded { content: res, structured, over, dropped, budget, bytes: total, is_cut }
}

impl Bounded {
    /// What is worth a file, in order; not to be asked for twice.
    pub(super) fn over(&mut self) -> Vec<Whole> {
        let nothing = || Whole::Text(String::new());
        self.over.iter_mut().map(|it| std::mem::replace(&mut it.whole, nothing())).collect()
    }

    /// The result with a word about all that is not in it. `files` has a path for each part that [`Bounded::over`] gave,
    /// if it was kept; for parts behind its end there is none.
    pub(super) fn told(self, files: Vec<Option<PathBuf>>) -> (Vec<Content>, Option<RawJson>) {
        let Bounded { mut content, structured, over, mut dropped, budget, bytes: _, is_cut: _ } = self;
        let mut files = files.into_iter();
        let mut notes = Vec::new();
        for Over { part, bytes, whole: _ } in over {
            match (files.next().flatten(), part) {
                (Some(path), Part::TextOf(at)) => {
                    if let Content::Text(text) = &mut content[at] {
                        text.truncate(text.len() - 1);
                        text.push_str(&format!("; all of it is in {}]", path.display()));
                    }
                }
                (Some(path), Part::Block(noun)) => {
                    notes.push(format!("[left out: {noun} of {bytes} bytes; it is in {}]", path.display()));
                }
                (Some(path), Part::Structured) => {
                    let path = path.display();
                    notes.push(format!(
                        "[left out: the structured content of {bytes} bytes; it is in {path}]"
                    ));
                }
                (None, Part::TextOf(_)) => {}
                (None, Part::Block(_)) => dropped.add(bytes),
                (None, Part::Structured) => dropped.structured = Some(bytes),
            }
        }
        content.extend(notes.into_iter().map(Content::Text));
        content.extend(dropped.note(budget));
        (content, structured)
    }
}

fn noun(block: &Content) -> &'static str {
    match block {
        Content::Text(_) => "a text",
        Content::Image { .. } => "an image",
        Content::Audio { .. } => "a sound",
        Content::Binary { .. } => "a resource",
        Content::Unknown(_) => "a block of an unknown kind",
    }
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

    /// Without a place for the rest.
    fn cut(
        content: Vec<Content>,
        structured: Option<RawJson>,
        budget: usize,
    ) -> (Vec<Content>, Option<RawJson>) {
        let mut bounded = bound(content, structured, budget, Rest::Lost);
        assert!(bounded.over().is_empty());
        bounded.told(Vec::new())
    }

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
        let (content, _) = cut(content.collect(), None, budget);
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
        let (content, _) = cut(vec![block; times], None, 3200);
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
        assert_eq!(cut(Vec::new(), Some(structured.clone()), 7), (Vec::new(), Some(structured.clone())));
        let (content, left) = cut(Vec::new(), Some(structured), 6);
        assert_eq!(left, None);
        let want = "[left out: the structured content of 7 bytes; a result of this server may hold 6 bytes]";
        assert_eq!(content, [Content::Text(want.to_owned())]);
    }

    #[test]
    fn hd_133_what_is_kept_elsewhere_says_where() {
        let content = vec![Content::Text("abcdef".into()), image(4), Content::Text("xy".into()), image(3)];
        let structured = RawJson::parse("[1,2,3]".into()).unwrap();
        let mut bounded = bound(content, Some(structured.clone()), 4, Rest::Kept);
        assert!(bounded.is_cut);
        assert_eq!(bounded.bytes, 6 + 13 + 2 + 12 + 7);
        let text = |it: &str| Whole::Text(it.to_owned());
        let over = bounded.over();
        let blocks = [image(4), Content::Text("xy".into()), image(3)].map(Whole::Block);
        assert_eq!(over[0], text("abcdef"));
        assert_eq!(over[1..4], blocks);
        assert_eq!(over[4], Whole::Structured(structured));
        let file = |it: &str| Some(PathBuf::from(it));
        let (content, left) = bounded.told(vec![file("/1"), None, file("/3"), file("/4"), file("/5")]);
        assert_eq!(left, None);
        let got: Vec<_> = content.iter().filter_map(Content::text).collect();
        let want = [
            "abcd\n[2 more bytes of this text are left out; all of it is in /1]",
            "[left out: a text of 2 bytes; it is in /3]",
            "[left out: an image of 12 bytes; it is in /4]",
            "[left out: the structured content of 7 bytes; it is in /5]",
            "[left out: 1 block of 13 bytes; a result of this server may hold 4 bytes]",
        ];
        assert_eq!(got, want);
    }

    #[test]
    fn hd_133_no_number_of_blocks_makes_files_without_end() {
        let mut bounded = bound(vec![image(9); 1000], None, 4, Rest::Kept);
        assert_eq!(bounded.over().len(), MOST_FILES);
        let (content, _) = bounded.told(vec![Some("/f".into()); MOST_FILES]);
        assert_eq!(content.len(), MOST_FILES + 1);
        // What holds nothing needs no file.
        let mut bounded = bound(vec![Content::Text(String::new()); 9], None, 0, Rest::Kept);
        assert_eq!(bounded.over(), []);
    }
}
