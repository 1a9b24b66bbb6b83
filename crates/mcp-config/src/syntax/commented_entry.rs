//! Turns a member of a JSON object into line comments, and back.
//!
//! Both directions only insert or delete comment markers and commas, so restoring a member reproduces its bytes. The
//! caller must read the new text again.

use std::ops::Range;

use crate::diagnostic::TextEdit;
use crate::syntax::layout::Layout;
use crate::syntax::{Content, Node, Syntax, parse_as};

/// Returns edits that comment out member `key` and keep the commas valid. `None` if the node is not an object, has no
/// such member, or if the lines of the member have other content.
pub(crate) fn comment_out(layout: Layout<'_>, node: &Node, key: &str) -> Option<Vec<TextEdit>> {
    let members = node.members()?;
    let index = members.iter().position(|it| *it.key.text == *key)?;
    let member = &members[index];
    let (start, end) = (member.key.span.start, member.value.span.end);
    let indent = layout.text_before(start);
    let comma = layout.skip_blanks_and_comments(end);
    let has_comma = layout.text()[comma..].starts_with(',');
    let rest_of_line = layout.line(if has_comma { comma + 1 } else { end }).trim();
    let is_alone = indent.trim().is_empty() && (rest_of_line.is_empty() || rest_of_line.starts_with("//"));
    if !is_alone {
        return None;
    }
    let mut edits = Vec::new();
    let mut line = layout.line_start(start);
    let last_byte = if has_comma { comma } else { end };
    while line <= last_byte {
        let content = layout.line(line);
        let line_indent = content.len() - content.trim_start().len();
        // Lines that are indented more keep their indentation after the marker.
        let at = line + line_indent.min(indent.len());
        let marker = if line_indent == content.len() { "//" } else { "// " };
        edits.push(TextEdit { span: at..at, text: marker.to_owned() });
        let next = layout.next_line(line);
        if next == line {
            break;
        }
        line = next;
    }
    // The member before a last one without a comma becomes the last and must not keep its comma.
    let is_last = index + 1 == members.len();
    if is_last
        && !has_comma
        && let Some(before) = index.checked_sub(1)
    {
        let comma = layout.skip_blanks_and_comments(members[before].value.span.end);
        edits.insert(0, TextEdit { span: comma..comma + 1, text: String::new() });
    }
    Some(edits)
}

/// The maximum number of lines of a commented-out member.
const MAX_LINES: usize = 200;

/// A commented-out member of an object.
#[derive(Debug)]
pub(crate) struct CommentedEntry {
    key: String,
    /// The comment markers of its lines.
    markers: Vec<Range<usize>>,
    /// The position of its trailing comma, or where one would be.
    comma: Range<usize>,
}

impl CommentedEntry {
    /// Finds the commented-out member `key` whose value is an object.
    pub(crate) fn find(layout: Layout<'_>, key: &str) -> Option<CommentedEntry> {
        CommentedEntry::find_all(layout).find(|it| it.key == key)
    }

    /// The commented-out members whose values are objects.
    pub(crate) fn find_all(layout: Layout<'_>) -> impl Iterator<Item = CommentedEntry> {
        let mut line = 0;
        std::iter::from_fn(move || {
            while line < layout.text().len() {
                let is_start =
                    split_line_comment(layout, line).is_some_and(|it| it.1.trim_start().starts_with('"'));
                let found = is_start.then(|| CommentedEntry::parse_at(layout, line)).flatten();
                let end = found.as_ref().map_or(line, |it| it.comma.end);
                line = layout.next_line(end);
                if found.is_some() {
                    return found;
                }
            }
            None
        })
    }

    /// Parses the commented-out member that starts at this line. It ends at the line that closes its object.
    fn parse_at(layout: Layout<'_>, mut line: usize) -> Option<CommentedEntry> {
        // The member without its markers, as an object on its own.
        let (mut markers, mut text) = (Vec::new(), String::from("{"));
        for _ in 0..MAX_LINES {
            let (marker, content) = split_line_comment(layout, line)?;
            let (content_start, line_offset) = (marker.end, text.len());
            markers.push(marker);
            text.push_str(content);
            text.push('\n');
            if content.contains('}')
                && let Some((key, end)) = parse_single_member(&format!("{text}}}"))
            {
                // From the assembled text to the file: the member ends on this line.
                let end = content_start + end.checked_sub(line_offset)?;
                let comma = layout.skip_blanks_and_comments(end);
                let has_comma = layout.text()[comma..].starts_with(',');
                let comma = if has_comma { comma..comma + 1 } else { end..end };
                return Some(CommentedEntry { key, markers, comma });
            }
            let next = layout.next_line(line);
            if next == line || next == layout.text().len() {
                return None;
            }
            line = next;
        }
        None
    }

    /// Returns the member as a JSON object, padded with spaces so that offsets equal those in the file.
    pub(crate) fn padded_json(&self, text: &str) -> String {
        let start = self.markers[0].start;
        let mut res = " ".repeat(start);
        let mut at = start;
        for marker in &self.markers {
            res.push_str(&text[at..marker.start]);
            let brace = if marker.start == start { "{" } else { " " };
            res.push_str(brace);
            res.push_str(&" ".repeat(marker.len() - 1));
            at = marker.end;
        }
        res.push_str(&text[at..self.comma.start]);
        res + "}"
    }

    /// Whether the comment is inside an object.
    pub(crate) fn is_in(&self, object: &Node) -> bool {
        object.span.start < self.markers[0].start && self.comma.end < object.span.end
    }

    /// Edits that make the comment a member of this object again, and insert or delete commas so that the object is
    /// valid.
    pub(crate) fn restore(&self, layout: Layout<'_>, object: &Node) -> Vec<TextEdit> {
        let CommentedEntry { key: _, markers, comma } = self;
        let mut edits: Vec<_> =
            markers.iter().map(|it| TextEdit { span: it.clone(), text: String::new() }).collect();
        let members = object.members().unwrap_or_default();
        let before = members.iter().rfind(|it| it.value.span.end <= markers[0].start);
        let previous_comma = match before {
            None => PreviousComma::NoMember,
            Some(before) => {
                let end = before.value.span.end;
                let rest = &layout.text()[layout.skip_blanks_and_comments(end)..];
                if rest.starts_with(',') {
                    PreviousComma::Present
                } else {
                    PreviousComma::Missing { at: end }
                }
            }
        };
        if let PreviousComma::Missing { at } = previous_comma {
            edits.insert(0, TextEdit { span: at..at, text: ",".to_owned() });
        }
        let is_last = members.last().is_none_or(|it| it.key.span.start < markers[0].start);
        // If the previous member still has its comma, the file used trailing commas, so keep this one.
        if is_last && !comma.is_empty() && previous_comma != PreviousComma::Present {
            edits.push(TextEdit { span: comma.clone(), text: String::new() });
        } else if !is_last && comma.is_empty() {
            edits.push(TextEdit { span: comma.clone(), text: ",".to_owned() });
        }
        edits
    }
}

/// The comma after the member before a commented-out one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PreviousComma {
    /// There is no member before it.
    NoMember,
    /// The member before it ends at this position, without a comma.
    Missing {
        at: usize,
    },
    Present,
}

/// The key and the end of the only member of an object, if its value is an object.
fn parse_single_member(object: &str) -> Option<(String, usize)> {
    let parsed = parse_as(object, Syntax::JsonWithComments);
    let root = parsed.root.filter(|_| parsed.diagnostics.is_empty())?;
    let [member] = root.members()? else { return None };
    let is_object = matches!(member.value.resolved_content(), Content::Mapping(_));
    is_object.then(|| (member.key.text.to_string(), member.value.span.end))
}

/// Splits a comment-only line into its `//` marker, with one space after it, and its content.
fn split_line_comment(layout: Layout<'_>, line: usize) -> Option<(Range<usize>, &str)> {
    let text = layout.line(line);
    let start = text.len() - text.trim_start().len();
    let rest = text[start..].strip_prefix("//")?;
    let content = rest.strip_prefix(' ').unwrap_or(rest);
    Some((line + start..line + text.len() - content.len(), content))
}
