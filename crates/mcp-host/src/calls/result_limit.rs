//! The size limit of results. Results above it are cut, with notes about the missing parts and the files that have
//! them.
//!
//! Text is cut at a character boundary; other blocks are dropped as a whole. Each block has a minimum cost, which
//! limits their number.

use std::path::PathBuf;

use mcp_host_model::{Content, RawJson};

use crate::calls::spill::SpillPart;
use crate::error::excerpt::floor_char_boundary;

/// The cost of a block in addition to its content, about its size in memory. It is subtracted after the block, so that
/// one block may use the whole limit.
const BLOCK_OVERHEAD_BYTES: usize = 32;

/// The maximum number of parts of one result that are written to files.
const MAX_FILES: usize = 8;

/// The handling of the parts above the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OverflowHandling {
    /// They are written to files.
    Spill,
    /// They are dropped.
    Drop,
}

/// A result within its limit, and the parts above the limit.
pub(super) struct LimitedResult {
    content: Vec<Content>,
    structured: Option<RawJson>,
    /// The parts to write to files.
    overflow: Vec<OverflowPart>,
    omitted: OmittedParts,
    /// The limit in bytes.
    budget: usize,
    /// The size before the cut, in bytes.
    pub(super) bytes: usize,
    /// Whether anything was cut.
    pub(super) is_cut: bool,
}

/// A part above the limit that is written to a file.
struct OverflowPart {
    kind: PartKind,
    /// The size of the complete part.
    bytes: usize,
    /// The complete part.
    part: SpillPart,
}

/// The kind of a part above the limit.
enum PartKind {
    /// A text whose beginning is the block with this index.
    TextAt(usize),
    /// A dropped block, with its noun for messages.
    Block(&'static str),
    /// The structured content.
    Structured,
}

/// Limits the content and the structured content to `budget` bytes each.
pub(super) fn limit_result(
    content: Vec<Content>,
    structured: Option<RawJson>,
    budget: usize,
    handling: OverflowHandling,
) -> LimitedResult {
    let (mut overflow, mut omitted, mut is_cut) = (Vec::new(), OmittedParts::default(), false);
    let mut kept = Vec::with_capacity(content.len());
    let mut total = structured.as_ref().map_or(0, |it| it.as_bytes().len());
    let mut remaining = budget;
    let has_file_left =
        |overflow: &Vec<OverflowPart>| handling == OverflowHandling::Spill && overflow.len() < MAX_FILES;
    for block in content {
        let bytes = block_bytes(&block);
        total = total.saturating_add(bytes);
        if remaining > 0 && bytes <= remaining {
            remaining = remaining.saturating_sub(bytes + BLOCK_OVERHEAD_BYTES);
            kept.push(block);
            continue;
        }
        is_cut = true;
        match block {
            Content::Text(text) if remaining > 0 => {
                let end = floor_char_boundary(&text, remaining);
                let cut = text.len() - end;
                kept.push(Content::Text(format!(
                    "{}\n[{cut} more bytes of this text are left out]",
                    &text[..end]
                )));
                if has_file_left(&overflow) {
                    let kind = PartKind::TextAt(kept.len() - 1);
                    overflow.push(OverflowPart { kind, bytes, part: SpillPart::Text(text) });
                }
                remaining = 0;
            }
            block => {
                // An empty block needs no file.
                if has_file_left(&overflow) && !block.is_empty() {
                    let kind = PartKind::Block(block_noun(&block));
                    overflow.push(OverflowPart { kind, bytes, part: SpillPart::Block(block) });
                } else {
                    omitted.add(bytes);
                }
            }
        }
    }
    let structured = structured.filter(|it| {
        let bytes = it.as_bytes().len();
        let fits = bytes <= budget;
        if !fits {
            is_cut = true;
            // It gets a file even if the blocks have used up theirs.
            match handling {
                OverflowHandling::Spill => {
                    overflow.push(OverflowPart {
                        kind: PartKind::Structured,
                        bytes,
                        part: SpillPart::Structured(it.clone()),
                    });
                }
                OverflowHandling::Drop => omitted.structured = Some(bytes),
            }
        }
        fits
    });
    LimitedResult { content: kept, structured, overflow, omitted, budget, bytes: total, is_cut }
}

impl LimitedResult {
    /// Takes the parts to write to files, in order. Call it once.
    pub(super) fn take_overflow(&mut self) -> Vec<SpillPart> {
        let nothing = || SpillPart::Text(String::new());
        self.overflow.iter_mut().map(|it| std::mem::replace(&mut it.part, nothing())).collect()
    }

    /// Returns the content, with notes about the missing parts, and the structured content. `files` has a path for each
    /// part of [`LimitedResult::take_overflow`] that was written; missing entries count as not written.
    pub(super) fn finish(self, files: Vec<Option<PathBuf>>) -> (Vec<Content>, Option<RawJson>) {
        let LimitedResult { mut content, structured, overflow, mut omitted, budget, bytes: _, is_cut } = self;
        if !is_cut {
            return (content, structured);
        }
        let mut files = files.into_iter();
        let mut notes = Vec::new();
        for OverflowPart { kind, bytes, part: _ } in overflow {
            match (files.next().flatten(), kind) {
                (Some(path), PartKind::TextAt(at)) => {
                    if let Content::Text(text) = &mut content[at] {
                        text.truncate(text.len() - 1);
                        text.push_str(&format!("; all of it is in {}]", path.display()));
                    }
                }
                (Some(path), PartKind::Block(noun)) => {
                    notes.push(format!("[left out: {noun} of {bytes} bytes; it is in {}]", path.display()));
                }
                (Some(path), PartKind::Structured) => {
                    let path = path.display();
                    notes.push(format!(
                        "[left out: the structured content of {bytes} bytes; it is in {path}]"
                    ));
                }
                (None, PartKind::TextAt(_)) => {}
                (None, PartKind::Block(_)) => omitted.add(bytes),
                (None, PartKind::Structured) => omitted.structured = Some(bytes),
            }
        }
        content.extend(notes.into_iter().map(Content::Text));
        content.extend(omitted.note(budget));
        (content, structured)
    }
}

/// Returns the noun of a block for messages.
fn block_noun(block: &Content) -> &'static str {
    match block {
        Content::Text(_) => "a text",
        Content::Image { .. } => "an image",
        Content::Audio { .. } => "a sound",
        Content::Binary { .. } => "a resource",
        _ => "a block of an unknown kind",
    }
}

/// Returns the size of a block in bytes: content and metadata.
fn block_bytes(block: &Content) -> usize {
    let optional = |it: &Option<String>| it.as_ref().map_or(0, String::len);
    block.len()
        + match block {
            Content::Image { data: _, mime_type } | Content::Audio { data: _, mime_type } => mime_type.len(),
            Content::Binary { data: _, mime_type, uri, text: _ } => optional(mime_type) + optional(uri),
            _ => 0,
        }
}

/// The parts that are neither in the result nor in a file.
#[derive(Default)]
struct OmittedParts {
    blocks: usize,
    bytes: usize,
    /// The size of the structured content in bytes, if it is omitted.
    structured: Option<usize>,
}

impl OmittedParts {
    /// Adds a block.
    fn add(&mut self, bytes: usize) {
        self.blocks += 1;
        self.bytes += bytes;
    }

    /// Returns a note about the omitted parts, if there are any.
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

    /// Cuts without files.
    fn cut(
        content: Vec<Content>,
        structured: Option<RawJson>,
        budget: usize,
    ) -> (Vec<Content>, Option<RawJson>) {
        let mut bounded = limit_result(content, structured, budget, OverflowHandling::Drop);
        assert!(bounded.take_overflow().is_empty());
        bounded.finish(Vec::new())
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
    fn hd_133_cut_text_names_the_missing_bytes() {
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
    fn hd_133_other_blocks_are_dropped_whole() {
        check(
            "i:80 t:ab i:2",
            45,
            &["ab", "i:2", "[left out: 1 block of 89 bytes; a result of this server may hold 45 bytes]"],
        );
    }

    /// Repeats a block; expects the number kept.
    #[track_caller]
    fn check_count(block: Content, times: usize, want: usize) {
        let (content, _) = cut(vec![block; times], None, 3200);
        assert_eq!(content.len(), want + 1);
        let note = content.last().and_then(Content::text).unwrap();
        assert!(note.starts_with(&format!("[left out: {} blocks of", times - want)), "{note}");
    }

    #[test]
    fn hd_133_empty_blocks_count() {
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
    fn hd_133_structured_result_is_kept_whole_or_dropped() {
        let structured = RawJson::parse("{\"a\":1}".into()).unwrap();
        assert_eq!(cut(Vec::new(), Some(structured.clone()), 7), (Vec::new(), Some(structured.clone())));
        let (content, left) = cut(Vec::new(), Some(structured), 6);
        assert_eq!(left, None);
        let want = "[left out: the structured content of 7 bytes; a result of this server may hold 6 bytes]";
        assert_eq!(content, [Content::Text(want.to_owned())]);
    }

    #[test]
    fn hd_133_notes_name_the_files() {
        let content = vec![Content::Text("abcdef".into()), image(4), Content::Text("xy".into()), image(3)];
        let structured = RawJson::parse("[1,2,3]".into()).unwrap();
        let mut bounded = limit_result(content, Some(structured.clone()), 4, OverflowHandling::Spill);
        assert!(bounded.is_cut);
        assert_eq!(bounded.bytes, 6 + 13 + 2 + 12 + 7);
        let text = |it: &str| SpillPart::Text(it.to_owned());
        let over = bounded.take_overflow();
        let blocks = [image(4), Content::Text("xy".into()), image(3)].map(SpillPart::Block);
        assert_eq!(over[0], text("abcdef"));
        assert_eq!(over[1..4], blocks);
        assert_eq!(over[4], SpillPart::Structured(structured));
        let file = |it: &str| Some(PathBuf::from(it));
        let (content, left) = bounded.finish(vec![file("/1"), None, file("/3"), file("/4"), file("/5")]);
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
    fn hd_133_files_per_result_are_limited() {
        let mut bounded = limit_result(vec![image(9); 1000], None, 4, OverflowHandling::Spill);
        assert_eq!(bounded.take_overflow().len(), MAX_FILES);
        let (content, _) = bounded.finish(vec![Some("/f".into()); MAX_FILES]);
        assert_eq!(content.len(), MAX_FILES + 1);
        // Empty blocks need no file.
        let mut bounded =
            limit_result(vec![Content::Text(String::new()); 9], None, 0, OverflowHandling::Spill);
        assert_eq!(bounded.take_overflow(), []);
    }
}
