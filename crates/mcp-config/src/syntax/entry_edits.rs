//! Inserts an entry into a collection, or removes one; everything else stays.
//!
//! Edits are derived from text and spans only. The caller must read the new text again and compare the trees.

use std::ops::Range;

use crate::diagnostic::TextEdit;
use crate::syntax::layout::Layout;
use crate::syntax::output::{OutputValue, QuoteStyle, item_lines, member_lines};
use crate::syntax::{Content, Node};

/// An entry to insert into a collection.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NewEntry<'a> {
    Member(&'a str, &'a OutputValue),
    Item(&'a OutputValue),
}

/// Where an entry is inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InsertPosition {
    First,
    /// After the entry with this index.
    After(usize),
    Last,
}

impl NewEntry<'_> {
    /// The entry as lines of block YAML.
    fn to_block_lines(self) -> Vec<String> {
        match self {
            NewEntry::Member(key, value) => member_lines(key, value),
            NewEntry::Item(value) => item_lines(value),
        }
    }

    /// The entry as lines, for a collection with brackets over several lines.
    fn to_json_lines(self) -> Vec<String> {
        match self {
            NewEntry::Member(key, value) => {
                let mut res = value.to_json_lines();
                res[0] = format!("{}: {}", OutputValue::text(key).to_flow(QuoteStyle::Always), res[0]);
                res
            }
            NewEntry::Item(value) => value.to_json_lines(),
        }
    }

    /// The entry on one line, for a collection with brackets.
    fn to_flow(self, quotes: QuoteStyle) -> String {
        match self {
            NewEntry::Member(key, value) => {
                let key = OutputValue::text(key).to_flow(quotes);
                format!("{key}: {}", value.to_flow(quotes))
            }
            NewEntry::Item(value) => value.to_flow(quotes),
        }
    }
}

/// The start and end of each entry, in order.
fn spans(node: &Node) -> Vec<(usize, usize)> {
    let members = node.members().unwrap_or_default().iter();
    let members = members.map(|it| (it.key.span.start, it.value.span.end.max(it.key.span.end)));
    let items = node.items().unwrap_or_default().iter().map(|item| (item.span.start, item.span.end));
    members.chain(items).collect()
}

/// Returns whether the collection has brackets.
pub(crate) fn is_flow(layout: Layout<'_>, node: &Node) -> bool {
    // An unindented list starts at its first item, which may have brackets of its own.
    let own = spans(node).first().is_none_or(|it| it.0 > node.span.start);
    own && layout.text()[node.span.start..].starts_with(['{', '['])
}

/// Inserts an entry into a non-empty collection. Returns `None` if the layout is not supported.
pub(crate) fn insert(
    layout: Layout<'_>,
    node: &Node,
    position: InsertPosition,
    entry: NewEntry<'_>,
) -> Option<Vec<TextEdit>> {
    if is_flow(layout, node) {
        insert_into_flow(layout, node, position, entry)
    } else {
        Some(vec![insert_into_block(layout, node, position, entry)?])
    }
}

fn insert_into_block(
    layout: Layout<'_>,
    node: &Node,
    position: InsertPosition,
    entry: NewEntry<'_>,
) -> Option<TextEdit> {
    let spans = spans(node);
    let first = spans.first()?.0;
    let mark = entry_start(layout, node, 0)?;
    let column = layout.column(mark)?;
    let at = match position {
        InsertPosition::First => layout.line_start(mark),
        InsertPosition::After(index) => value_lines_end(layout, node, index)?,
        InsertPosition::Last => lines_end(layout, node, spans.len() - 1)?,
    };
    // The first key of an item follows its dash, so whole lines cannot be inserted between them.
    if position == InsertPosition::First && !layout.text_before(mark).trim().is_empty() {
        return insert_after_dash(layout, first, entry);
    }
    let blank_line_before = position == InsertPosition::Last && spans.len() > 1 && {
        let start = lines_start(layout, node, spans.len() - 1)?;
        layout.previous_line(start).is_some_and(|it| layout.is_blank(it))
    };
    Some(insert_lines(layout, at, column, blank_line_before, entry))
}

/// Inserts an entry as whole lines at the start of a line or the end of the text, after an optional blank line.
pub(crate) fn insert_lines(
    layout: Layout<'_>,
    at: usize,
    column: usize,
    blank_line_before: bool,
    entry: NewEntry<'_>,
) -> TextEdit {
    let end = layout.line_end();
    let mut text = String::new();
    // A file without a line end at its end stays so.
    let is_open = at > 0 && !layout.text()[..at].ends_with(['\n', '\u{feff}']);
    if is_open {
        text.push_str(end);
    }
    if blank_line_before {
        text.push_str(end);
    }
    for line in entry.to_block_lines() {
        text += &format!("{}{line}{end}", " ".repeat(column));
    }
    if is_open {
        text.truncate(text.len() - end.len());
    }
    TextEdit { span: at..at, text }
}

/// The range of whole lines, with the line end before them if the text has none at its end.
pub(crate) fn removed_lines(layout: Layout<'_>, lines: Range<usize>) -> Range<usize> {
    let text = layout.text();
    if lines.end < text.len() || text.ends_with('\n') {
        return lines;
    }
    let before = &text[..lines.start];
    let before = before.strip_suffix('\n').unwrap_or(before);
    before.strip_suffix('\r').unwrap_or(before).len()..lines.end
}

/// Inserts an entry before the one at `first`, on the line of its dash.
fn insert_after_dash(layout: Layout<'_>, first: usize, entry: NewEntry<'_>) -> Option<TextEdit> {
    let column = layout.column(first)?;
    let gap = format!("{}{}", layout.line_end(), " ".repeat(column));
    let text = entry.to_block_lines().into_iter().map(|line| line + &gap).collect();
    Some(TextEdit { span: first..first, text })
}

fn insert_into_flow(
    layout: Layout<'_>,
    node: &Node,
    position: InsertPosition,
    entry: NewEntry<'_>,
) -> Option<Vec<TextEdit>> {
    let spans = spans(node);
    let text = layout.text();
    let (first, _) = *spans.first()?;
    // Each entry on its own line, or all on one line.
    let has_own_lines = layout.text_before(first).trim().is_empty() && first > node.span.start;
    let gap = if has_own_lines {
        format!("{}{}", layout.line_end(), layout.text_before(first))
    } else {
        " ".to_owned()
    };
    let new = match quote_style_of(text, node, entry) {
        QuoteStyle::Always if has_own_lines => entry.to_json_lines().join(&gap),
        quotes => entry.to_flow(quotes),
    };
    let index = match position {
        InsertPosition::First => {
            return Some(vec![TextEdit { span: first..first, text: format!("{new},{gap}") }]);
        }
        InsertPosition::After(index) => index,
        InsertPosition::Last => spans.len() - 1,
    };
    let end = spans.get(index)?.1;
    let comma = layout.skip_blanks_and_comments(end);
    let is_last = index + 1 == spans.len();
    let insertion = |at: usize, text: String| TextEdit { span: at..at, text };
    if text[comma..].starts_with(',') {
        // Insert after the trailing comma and add another one, so that the last entry keeps a trailing comma.
        let at = if has_own_lines { comment_end(layout, comma + 1) } else { comma + 1 };
        return Some(vec![insertion(at, format!("{gap}{new},"))]);
    }
    if !is_last {
        return None;
    }
    // A comment after the entry stays there.
    let after_comma = if has_own_lines { comment_end(layout, end) } else { end };
    if after_comma == end {
        return Some(vec![insertion(end, format!(",{gap}{new}"))]);
    }
    Some(vec![insertion(end, ",".to_owned()), insertion(after_comma, format!("{gap}{new}"))])
}

/// The end of a comment after `at` on the same line; `at` if there is none.
fn comment_end(layout: Layout<'_>, at: usize) -> usize {
    let line = layout.line(at);
    if is_comment(line) { at + line.len() } else { at }
}

/// Fills an empty collection of a file with brackets; `start` is the start of its key.
pub(crate) fn fill_empty(
    layout: Layout<'_>,
    start: usize,
    node: &Node,
    entry: NewEntry<'_>,
) -> Option<TextEdit> {
    if node.span.is_empty() {
        return None;
    }
    let source = &layout.text()[node.span.clone()];
    let inside = if source.starts_with(['{', '[']) { &source[1..source.len() - 1] } else { "" };
    if !inside.trim().is_empty() {
        // Comments stay below the entry.
        let at = layout.next_line(node.span.start);
        let first = node.span.end - 1 - inside.trim_start().len();
        let indent = layout.text_before(first);
        let opens_line = layout.line(node.span.start + 1).trim().is_empty() && indent.trim().is_empty();
        let lines = entry.to_json_lines().into_iter().map(|it| format!("{indent}{it}{}", layout.line_end()));
        return opens_line.then(|| TextEdit { span: at..at, text: lines.collect() });
    }
    let indent = layout.text_before(start);
    let marks = match entry {
        NewEntry::Member(..) => ["{", "}"],
        NewEntry::Item(_) => ["[", "]"],
    };
    let is_json = layout.text()[start..].starts_with('"');
    let text = if is_json && indent.trim().is_empty() && !indent.is_empty() {
        let end = layout.line_end();
        let gap = format!("{end}{indent}{}", " ".repeat(indent.len().min(8)));
        format!("{}{gap}{}{end}{indent}{}", marks[0], entry.to_json_lines().join(&gap), marks[1])
    } else {
        let quotes = if is_json { QuoteStyle::Always } else { QuoteStyle::AsNeeded };
        format!("{}{}{}", marks[0], entry.to_flow(quotes), marks[1])
    };
    Some(TextEdit { span: node.span.clone(), text })
}

/// The quotes of the collection's strings, as far as its first key shows them.
fn quote_style_of(text: &str, node: &Node, entry: NewEntry<'_>) -> QuoteStyle {
    let own = match entry {
        NewEntry::Member(..) => node.members().and_then(|it| it.first()).map(|it| it.key.span.start),
        NewEntry::Item(_) => {
            let first = node.items().and_then(|it| it.first());
            first.map(|it| it.members().and_then(<[_]>::first).map_or(it.span.start, |it| it.key.span.start))
        }
    };
    match own.and_then(|it| text.get(it..)) {
        Some(key) if key.starts_with('"') => QuoteStyle::Always,
        Some(_) | None => QuoteStyle::AsNeeded,
    }
}

/// Replaces the value of an entry. Returns `None` if the layout is not supported.
pub(crate) fn replace(
    layout: Layout<'_>,
    node: &Node,
    index: usize,
    value: &OutputValue,
) -> Option<TextEdit> {
    let (key, old) = match (node.members(), node.items()) {
        (Some(members), _) => members.get(index).map(|it| (Some(&it.key), &it.value))?,
        (None, items) => (None, items?.get(index)?),
    };
    if matches!(old.content, Content::Shared(_)) {
        return None;
    }
    let text = layout.text();
    let source = text.get(old.span.clone())?;
    let span = old.span.start..old.span.start + source.trim_end().len();
    let start = key.map_or(span.start, |it| it.span.start);
    if is_flow(layout, node) {
        let is_json = key.is_none_or(|it| text[it.span.start..].starts_with('"'));
        let quotes = if is_json { QuoteStyle::Always } else { QuoteStyle::AsNeeded };
        let indent = layout.text_before(start);
        let has_own_lines = is_json && indent.trim().is_empty() && start > node.span.start;
        let gap = format!("{}{indent}", layout.line_end());
        let text = if has_own_lines { value.to_json_lines().join(&gap) } else { value.to_flow(quotes) };
        return Some(TextEdit { span, text });
    }
    let flow = value.to_flow(QuoteStyle::AsNeeded);
    let Some(key) = key else {
        let is_line = value.to_block_lines().len() == 1 && !source.contains('\n');
        return is_line.then_some(TextEdit { span, text: flow });
    };
    let column = layout.column(start)?;
    let lines = member_lines(&key.text, value);
    let colon = text[key.span.end..].find(':').map(|it| key.span.end + it + 1)?;
    // A comment after the key stays there.
    let has_comment = text.get(colon..span.start).is_some_and(|it| it.contains('#'));
    let is_inline = text.get(colon..span.start).is_some_and(|it| !it.contains('\n'));
    if lines.len() == 1 && is_inline && !span.is_empty() {
        return Some(TextEdit { span, text: flow });
    }
    if lines.len() == 1 && !has_comment {
        return Some(TextEdit { span: colon..span.end.max(colon), text: format!(" {flow}") });
    }
    let below = if lines.len() == 1 { vec![flow] } else { value.to_block_lines() };
    let gap = format!("{}{}", layout.line_end(), " ".repeat(column + 2));
    let below: String = below.iter().map(|line| format!("{gap}{line}")).collect();
    // The line end before the old value, after the comment.
    let from = if has_comment { colon + layout.line(colon).len() } else { colon };
    Some(TextEdit { span: from..span.end.max(from), text: below })
}

/// Removes an entry. Returns `None` if the layout is not supported, or if it is the only entry.
pub(crate) fn remove(layout: Layout<'_>, node: &Node, index: usize) -> Option<Vec<TextEdit>> {
    let spans = spans(node);
    if spans.len() < 2 {
        return None;
    }
    let text = layout.text();
    if is_flow(layout, node) {
        return remove_from_flow(layout, &spans, index);
    }
    let mark = entry_start(layout, node, index)?;
    if !layout.text_before(mark).trim().is_empty() {
        // The first entry of a mapping in a list follows a dash: the next entry moves to its position.
        let next = spans.get(index + 1)?.0;
        let can_move = index == 0 && layout.column(mark)? == layout.column(next)?;
        return can_move.then(|| vec![deletion(mark..next)]);
    }
    let (mut start, mut end) = (lines_start(layout, node, index)?, lines_end(layout, node, index)?);
    let blank_before = layout.previous_line(start).filter(|it| layout.is_blank(*it));
    let is_last = index + 1 == spans.len();
    if end == text.len() {
        while let Some(previous) = layout.previous_line(start).filter(|it| layout.is_blank(*it)) {
            start = previous;
        }
    } else if let Some(blank) = blank_before.filter(|_| is_last)
        && index > 0
        && lines_end(layout, node, index - 1) == Some(blank)
    {
        // The blank line separates the last two entries.
        start = blank;
    } else if blank_before.is_some() || index == 0 {
        while layout.is_blank(end) {
            end = layout.next_line(end);
        }
    }
    Some(vec![deletion(removed_lines(layout, start..end))])
}

fn deletion(span: Range<usize>) -> TextEdit {
    TextEdit { span, text: String::new() }
}

/// The bytes of an entry between brackets, with its comma and the comment on its line.
struct FlowEntry {
    /// From the start of the entry; from the comments directly above it, if it is alone on its lines.
    from: usize,
    /// The end of its comma.
    after_comma: usize,
    /// The end of the comment on its line.
    line_end: usize,
    /// Whether nothing else is on its lines.
    is_alone: bool,
}

impl FlowEntry {
    /// The entry whose value is at `start..end`.
    fn find(layout: Layout<'_>, start: usize, end: usize) -> FlowEntry {
        let comma = layout.skip_blanks_and_comments(end);
        let after_comma = if layout.text()[comma..].starts_with(',') { comma + 1 } else { end };
        let line_end = comment_end(layout, after_comma);
        let is_alone = layout.text_before(start).trim().is_empty() && layout.line(line_end).trim().is_empty();
        let mut from = start;
        if is_alone {
            from = layout.line_start(start);
            while let Some(line) = layout.previous_line(from).filter(|it| is_own_comment(layout.line(*it))) {
                from = line;
            }
        }
        FlowEntry { from, after_comma, line_end, is_alone }
    }
}

/// Removes one of several entries in brackets. `spans` are the starts and ends of all.
fn remove_from_flow(layout: Layout<'_>, spans: &[(usize, usize)], index: usize) -> Option<Vec<TextEdit>> {
    let (start, end) = *spans.get(index)?;
    let FlowEntry { from, after_comma, line_end, is_alone } = FlowEntry::find(layout, start, end);
    // Comments of the next entry stay.
    let mut res = vec![match spans.get(index + 1) {
        _ if is_alone => deletion(from..layout.next_line(line_end)),
        Some(next) if layout.text()[after_comma..next.0].trim().is_empty() => deletion(start..next.0),
        Some(_) => deletion(start..line_end),
        None => return Some(vec![deletion(spans[index - 1].1..end)]),
    }];
    // If the last entry has no trailing comma, remove the comma before it too.
    if index + 1 == spans.len() && after_comma == end {
        let before = layout.skip_blanks_and_comments(spans[index - 1].1);
        res.push(deletion(before..before + 1));
    }
    Some(res)
}

/// Removes the only entry between brackets; other comments and their lines stay.
pub(crate) fn remove_only_entry(layout: Layout<'_>, list: &Node, empty: &str) -> Option<TextEdit> {
    let (start, end) = *spans(list).first()?;
    let FlowEntry { from, after_comma: _, line_end, is_alone } = FlowEntry::find(layout, start, end);
    let to = if is_alone { layout.next_line(line_end) } else { line_end };
    let inside = |range: Range<usize>| layout.text().get(range).map(str::trim);
    let kept = [inside(list.span.start + 1..from)?, inside(to..list.span.end - 1)?];
    let is_empty = kept.iter().all(|it| it.is_empty());
    if is_empty {
        return Some(TextEdit { span: list.span.clone(), text: empty.to_owned() });
    }
    Some(deletion(from..to))
}

/// Returns whether the line is only a comment.
fn is_comment(line: &str) -> bool {
    let line = line.trim();
    let is_block_comment = line.starts_with("/*") && line.find("*/") == Some(line.len().saturating_sub(2));
    is_block_comment || line.starts_with("//") || line.starts_with('#')
}

/// Returns whether a comment above an entry belongs to it. The end of a commented-out entry does not.
fn is_own_comment(line: &str) -> bool {
    is_comment(line) && !line.trim_end().trim_end_matches(',').ends_with('}')
}

/// The lines of an entry of a block, including its comments.
pub(crate) fn entry_lines(layout: Layout<'_>, node: &Node, index: usize) -> Option<Range<usize>> {
    Some(lines_start(layout, node, index)?..lines_end(layout, node, index)?)
}

/// The start of an entry of a block: its key or its dash.
fn entry_start(layout: Layout<'_>, node: &Node, index: usize) -> Option<usize> {
    let (start, _) = *spans(node).get(index)?;
    if node.members().is_some() {
        return Some(start);
    }
    // The dash may be on an earlier line than its value.
    let mut line = layout.line_start(start);
    let mut until = start;
    loop {
        let before = &layout.text()[line..until];
        let indent = before.len() - before.trim_start_matches(' ').len();
        if before[indent..].starts_with('-') {
            // `- - a` has the dashes of two lists.
            return (before[indent + 1..].trim().is_empty() || !before[indent + 1..].contains("- "))
                .then_some(line + indent);
        }
        if !(before.trim().is_empty() || before.trim_start().starts_with(['#', '&', '!'])) {
            return None;
        }
        until = line;
        line = layout.previous_line(line)?;
    }
}

/// The start of an entry's lines, including the comments directly above.
fn lines_start(layout: Layout<'_>, node: &Node, index: usize) -> Option<usize> {
    let mark = entry_start(layout, node, index)?;
    let column = layout.column(mark)?;
    let mut res = layout.line_start(mark);
    while let Some(previous) =
        layout.previous_line(res).filter(|it| layout.comment_indent(*it) == Some(column))
    {
        res = previous;
    }
    Some(res)
}

/// The start of the line after an entry.
fn value_lines_end(layout: Layout<'_>, node: &Node, index: usize) -> Option<usize> {
    let (start, end) = *spans(node).get(index)?;
    Some(layout.next_line(layout.last_line_start(&(start..end))))
}

/// The end of an entry's lines, including comments that are indented deeper.
fn lines_end(layout: Layout<'_>, node: &Node, index: usize) -> Option<usize> {
    let column = layout.column(entry_start(layout, node, index)?)?;
    let mut res = value_lines_end(layout, node, index)?;
    let mut at = res;
    while at < layout.text().len() {
        if layout.comment_indent(at).is_some_and(|it| it > column) {
            res = layout.next_line(at);
        } else if !layout.is_blank(at) {
            break;
        }
        at = layout.next_line(at);
    }
    Some(res)
}
