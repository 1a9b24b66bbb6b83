//! Parses YAML into a tree. Only this module depends on the YAML parser.
//!
//! Reports in one pass: syntax errors, duplicate keys with both positions, a second document, keys that are not
//! scalars, unresolved aliases, unsupported tags. A merge key (`<<`) is an ordinary key, as in YAML 1.2. The limits are
//! checked before copying and recursion.

mod mistakes;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use granit_parser::{Event, Parser, ScalarStyle, Span, Tag};

use crate::diagnostic::{Code, RawDiagnostic, quoted};
use crate::syntax::key_index::KeyIndex;
use crate::syntax::key_interner::KeyInterner;
use crate::syntax::parsed_text::{
    MAX_BYTES, MAX_DEPTH, MAX_VALUES, duplicate_key_diagnostic, too_deep_message, too_large_diagnostic,
    too_many_values_message,
};
use crate::syntax::{Content, Key, KeyKind, Member, Node, ParsedText, child_pointer, look_alike, scalar};
use mistakes::{Cause, Mistake};

/// Parses a text. Never fails and never panics.
pub(super) fn parse(text: &str) -> ParsedText {
    if text.len() > MAX_BYTES {
        return ParsedText::too_large();
    }
    let (mut builder, stop) = YamlBuilder::read(text);
    let mut root = builder.root.take();
    match stop {
        None if !builder.is_misread => {
            root.get_or_insert_with(|| Node::new(Content::Null, builder.skipped..builder.skipped));
        }
        None => root = None,
        Some(StopReason::Limit(diagnostic)) => {
            root = None;
            builder.diagnostics.push(*diagnostic);
        }
        Some(StopReason::Syntax(mistake)) => {
            root = None;
            report_mistakes(text, *mistake, &mut builder.diagnostics);
        }
    }
    let YamlBuilder { dropped, diagnostics, .. } = builder;
    ParsedText { root, dropped, diagnostics, ..ParsedText::default() }
}

/// Reports a syntax error and those after it, as far as the parser can continue.
fn report_mistakes(text: &str, first: Mistake, diagnostics: &mut Vec<RawDiagnostic>) {
    // Each mistake parses the text again.
    const MAX_MISTAKES: usize = 10;
    let mut text = Cow::Borrowed(text);
    let mut mistake = first;
    for _ in 0..MAX_MISTAKES {
        let masked = mistakes::mask_mistake(&text, &mistake);
        let before = mistake.diagnostic.span.start;
        diagnostics.push(mistake.diagnostic);
        let Some(masked) = masked else { return };
        text = Cow::Owned(masked);
        let Some(StopReason::Syntax(next)) = YamlBuilder::read(&text).1 else { return };
        // An error of unknown cause may be an effect of the masked lines.
        if next.cause == Cause::Unknown || next.diagnostic.span.start <= before {
            return;
        }
        mistake = *next;
    }
}

/// Why reading stopped.
enum StopReason {
    Syntax(Box<Mistake>),
    Limit(Box<RawDiagnostic>),
}

/// Builds the tree from the events of the parser.
#[derive(Default)]
struct YamlBuilder {
    /// The size of the byte order mark, which the parser does not see.
    skipped: usize,
    /// The open collections, outermost first.
    stack: Vec<Frame>,
    /// The values with an anchor, by the id of the anchor.
    anchors: HashMap<usize, Rc<Node>>,
    root: Option<Node>,
    document_count: usize,
    value_count: usize,
    dropped: Vec<Range<usize>>,
    diagnostics: Vec<RawDiagnostic>,
    keys: KeyInterner,
    /// A line was read as something else than its author wrote, so the tree is wrong.
    is_misread: bool,
}

/// An open collection.
struct Frame {
    start: usize,
    /// The id of its anchor; 0 for none.
    anchor: usize,
    kind: FrameKind,
}

/// The content of an open collection so far.
enum FrameKind {
    Sequence(Vec<Node>),
    Mapping { members: Vec<Member>, index: KeyIndex, key: Option<PendingKey> },
}

/// The last key of a mapping. Its value is parsed next.
enum PendingKey {
    Key(Key),
    /// The value is parsed and dropped, because its key is a duplicate or invalid.
    Dropped,
}

type EventResult = Result<(), StopReason>;

impl YamlBuilder {
    /// Reads a text up to its end, or to the first error that stops the parser.
    fn read(text: &str) -> (YamlBuilder, Option<StopReason>) {
        let skipped = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let options = granit_parser::options! { emit_unresolved_aliases: true, emit_comments: false };
        let mut builder = YamlBuilder { skipped, ..YamlBuilder::default() };
        for event in Parser::new_from_str_with_options(&text[skipped..], options) {
            let step = match event {
                Ok((event, span)) => builder.handle_event(event, span),
                Err(error) => Err(builder.stop_reason(text, &error)),
            };
            if let Err(stop) = step {
                return (builder, Some(stop));
            }
        }
        (builder, None)
    }

    /// Handles an event of the parser.
    fn handle_event(&mut self, event: Event<'_>, span: Span) -> EventResult {
        let range = self.range(&span);
        match event {
            Event::DocumentStart(..) => {
                self.document_count += 1;
                if self.document_count > 1 {
                    let message = "the file has more than one YAML document";
                    return Err(StopReason::Limit(Box::new(
                        RawDiagnostic::new(Code::ManyDocuments, message, "", range)
                            .help("keep one document, and remove the `---` between them"),
                    )));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let content = self.read_scalar(&text, style, tag.as_deref(), &span);
                let source = matches!(style, ScalarStyle::Plain).then_some(text.as_ref());
                self.add_node(Node::new(content, range), anchor, source)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.check_collection_tag(tag.as_deref(), "seq", &span);
                self.open_collection(range, anchor, FrameKind::Sequence(Vec::new()))
            }
            Event::MappingStart(_, anchor, tag) => {
                self.check_collection_tag(tag.as_deref(), "map", &span);
                let kind = FrameKind::Mapping { members: Vec::new(), index: KeyIndex::default(), key: None };
                self.open_collection(range, anchor, kind)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close_collection(range),
            Event::Alias(id) => {
                let content = match self.anchors.get(&id) {
                    Some(target) => Content::Shared(Rc::clone(target)),
                    None => self.report_broken_alias(
                        "the alias is inside the value that it refers to",
                        range.clone(),
                    ),
                };
                self.add_node(Node::new(content, range), 0, None)
            }
            Event::UnresolvedAlias(name) => {
                let message = format!("there is no anchor `&{}` before this alias", quoted(&name));
                let content = self.report_broken_alias(message, range.clone());
                self.add_node(Node::new(content, range), 0, None)
            }
            _ => Ok(()),
        }
    }

    /// The bytes of a span in the file.
    fn range(&self, span: &Span) -> Range<usize> {
        let range = span.byte_range().unwrap_or(0..0);
        range.start + self.skipped..range.end + self.skipped
    }

    /// Opens a list or mapping. `anchor` is the parser's number of its anchor; 0 without one.
    fn open_collection(&mut self, range: Range<usize>, anchor: usize, kind: FrameKind) -> EventResult {
        if self.stack.len() >= MAX_DEPTH {
            return Err(self.exceeded_limit(too_deep_message(), range));
        }
        self.stack.push(Frame { start: range.start, anchor, kind });
        Ok(())
    }

    /// Closes the innermost collection and adds it to its parent.
    fn close_collection(&mut self, range: Range<usize>) -> EventResult {
        let Some(Frame { start, anchor, kind }) = self.stack.pop() else { return Ok(()) };
        let (content, last) = match kind {
            FrameKind::Sequence(items) => {
                let last = items.last().map(|it| it.span.end);
                (Content::Sequence(items), last)
            }
            FrameKind::Mapping { members, index: _, key: _ } => {
                let last = members.last().map(|it| it.value.span.end.max(it.key.span.end));
                (Content::Mapping(members), last)
            }
        };
        // The parser reports the end of a block collection at the next token, and the end of a flow collection at
        // its bracket.
        let end = if range.is_empty() { last.unwrap_or(start) } else { range.end };
        self.add_node(Node::new(content, start..end.max(start)), anchor, None)
    }

    /// Adds a node to its parent. `source` is the text of a plain scalar.
    fn add_node(&mut self, node: Node, anchor: usize, source: Option<&str>) -> EventResult {
        let alias = matches!(node.content, Content::Shared(_));
        self.value_count = self.value_count.saturating_add(if alias { node.size } else { 1 });
        if self.value_count > MAX_VALUES {
            let message = too_many_values_message() + ", aliases followed";
            return Err(self.exceeded_limit(message, node.span));
        }
        if alias && self.stack.len() + node.depth > MAX_DEPTH {
            let message = too_deep_message() + ", aliases followed";
            return Err(self.exceeded_limit(message, node.span));
        }
        let node = if anchor == 0 {
            node
        } else {
            let span = node.span.clone();
            let target = Rc::new(node);
            self.anchors.insert(anchor, Rc::clone(&target));
            Node::new(Content::Shared(target), span)
        };
        let Some(Frame { kind, .. }) = self.stack.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match kind {
            FrameKind::Sequence(items) => items.push(node),
            FrameKind::Mapping { members, index: _, key } => match key.take() {
                Some(PendingKey::Key(key)) => members.push(Member { key, value: node }),
                Some(PendingKey::Dropped) => self.dropped.push(node.span),
                None => self.add_key(node, source),
            },
        }
        Ok(())
    }

    /// Makes a node the next key of the innermost mapping.
    fn add_key(&mut self, node: Node, source: Option<&str>) {
        if let Some(blank) = source.and_then(|it| it.chars().next())
            && look_alike::is_blank(blank)
        {
            let span = node.span.start..node.span.start + blank.len_utf8();
            self.diagnostics.push(mistakes::unusual_blank_diagnostic(span, blank));
            self.is_misread = true;
        }
        let (text, kind): (Rc<str>, _) = match node.resolved_content() {
            Content::Text(text) => (self.keys.intern(text), KeyKind::Text),
            Content::Integer(value) => (value.to_string().into(), KeyKind::Scalar),
            Content::Large(digits) => (digits.as_str().into(), KeyKind::Scalar),
            Content::Bool(_) | Content::Float(_) | Content::Null => {
                (source.unwrap_or_default().into(), KeyKind::Scalar)
            }
            Content::Sequence(_) | Content::Mapping(_) | Content::Shared(_) | Content::Broken => {
                if !matches!(node.resolved_content(), Content::Broken) {
                    let message = format!("a key must be text, not {}", node.kind());
                    let diagnostic =
                        RawDiagnostic::new(Code::BadKey, message, self.pointer(), node.span.clone());
                    self.diagnostics.push(diagnostic.help("write a word, or quoted text"));
                }
                self.set_pending(PendingKey::Dropped);
                return;
            }
        };
        let Some(Frame { kind: FrameKind::Mapping { members, index, .. }, .. }) = self.stack.last_mut()
        else {
            return;
        };
        if let Some(first) = index.find(members, &text) {
            let first = first.key.span.clone();
            let parent = self.pointer();
            self.diagnostics.push(duplicate_key_diagnostic(&parent, &text, node.span, first));
            self.set_pending(PendingKey::Dropped);
            return;
        }
        self.set_pending(PendingKey::Key(Key { text, span: node.span, kind }));
    }

    fn set_pending(&mut self, pending: PendingKey) {
        if let Some(Frame { kind: FrameKind::Mapping { key, .. }, .. }) = self.stack.last_mut() {
            *key = Some(pending);
        }
    }

    /// The pointer to the innermost open collection.
    fn pointer(&self) -> String {
        let inner = self.stack.len().saturating_sub(1);
        self.stack[..inner].iter().fold(String::new(), |res, frame| match &frame.kind {
            FrameKind::Sequence(items) => child_pointer(&res, &items.len().to_string()),
            FrameKind::Mapping { key: Some(PendingKey::Key(key)), .. } => child_pointer(&res, &key.text),
            FrameKind::Mapping { .. } => res,
        })
    }

    /// Reads a scalar by its style and its tag.
    fn read_scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, span: &Span) -> Content {
        if style == ScalarStyle::Plain && look_alike::is_quoted_word(text) {
            let message = "the typographic quotes are part of the value";
            let diagnostic = RawDiagnostic::new(Code::Syntax, message, self.next_pointer(), self.range(span));
            self.diagnostics.push(diagnostic.warning().help("write straight quotes: `\"`"));
        }
        let first = text.chars().next().filter(|it| look_alike::is_blank(*it));
        if let Some(blank) = first.filter(|_| style == ScalarStyle::Plain && !self.expects_key()) {
            let start = self.range(span).start;
            let message = format!("the unusual whitespace (U+{:04X}) is part of the value", u32::from(blank));
            let range = start..start + blank.len_utf8();
            let diagnostic = RawDiagnostic::new(Code::Syntax, message, self.next_pointer(), range);
            self.diagnostics.push(diagnostic.warning().help("replace it by a space"));
        }
        let untagged = || match style {
            ScalarStyle::Plain => scalar::parse_plain(text),
            _ => Content::Text(text.to_owned()),
        };
        let Some(tag) = tag else { return untagged() };
        let value = scalar::parse_plain(text);
        match tag.core_suffix() {
            Some("str") => Content::Text(if span.is_empty() { String::new() } else { text.to_owned() }),
            Some("null") if matches!(value, Content::Null) => value,
            Some("bool") if matches!(value, Content::Bool(_)) => value,
            Some("int") if matches!(value, Content::Integer(_) | Content::Large(_)) => value,
            Some("float") if matches!(value, Content::Float(_) | Content::Integer(_) | Content::Large(_)) => {
                value
            }
            Some("null" | "bool" | "int" | "float") => {
                let range = self.range(span);
                let message = "the value does not match its tag";
                let diagnostic = RawDiagnostic::new(Code::Syntax, message, self.next_pointer(), range);
                self.diagnostics.push(diagnostic.help("remove the tag, or correct the value"));
                Content::Broken
            }
            // The tag `!` alone means a string.
            _ if tag.original() == "!" => Content::Text(text.to_owned()),
            _ => {
                self.report_unknown_tag(tag, span);
                untagged()
            }
        }
    }

    /// Reports a tag other than that of the collection's own type.
    fn check_collection_tag(&mut self, tag: Option<&Tag>, own: &str, span: &Span) {
        if let Some(tag) = tag
            && tag.core_suffix() != Some(own)
            && tag.original() != "!"
        {
            self.report_unknown_tag(tag, span);
        }
    }

    fn report_unknown_tag(&mut self, tag: &Tag, span: &Span) {
        let range = span.tag_span().map_or_else(|| self.range(span), |it| self.range(&it));
        let message = format!("the tag `{}` is not supported here", quoted(&tag.original()));
        self.diagnostics.push(
            RawDiagnostic::new(Code::UnknownTag, message, self.next_pointer(), range).help("remove the tag"),
        );
    }

    /// Whether the next node is a key.
    fn expects_key(&self) -> bool {
        matches!(self.stack.last().map(|it| &it.kind), Some(FrameKind::Mapping { key: None, .. }))
    }

    /// The pointer to the next value.
    fn next_pointer(&self) -> String {
        let parent = self.pointer();
        match self.stack.last().map(|it| &it.kind) {
            Some(FrameKind::Sequence(items)) => child_pointer(&parent, &items.len().to_string()),
            Some(FrameKind::Mapping { key: Some(PendingKey::Key(key)), .. }) => {
                child_pointer(&parent, &key.text)
            }
            Some(FrameKind::Mapping { .. }) | None => parent,
        }
    }

    /// Reports an alias without a value. Returns its content.
    fn report_broken_alias(&mut self, message: impl Into<String>, range: Range<usize>) -> Content {
        let pointer = self.next_pointer();
        let diagnostic = RawDiagnostic::new(Code::Syntax, message, pointer, range);
        self.diagnostics
            .push(diagnostic.help("write the value itself, or put an anchor (`&name`) before another value"));
        Content::Broken
    }

    /// The reason to stop at an exceeded limit.
    fn exceeded_limit(&self, message: String, range: Range<usize>) -> StopReason {
        StopReason::Limit(Box::new(too_large_diagnostic(message, &self.next_pointer(), range)))
    }

    /// The reason to stop at an error of the parser.
    fn stop_reason(&self, text: &str, error: &granit_parser::ScanError) -> StopReason {
        let mistake = mistakes::diagnose(text, self.skipped, error);
        if matches!(error.kind(), granit_parser::ErrorKind::RecursionLimitExceeded) {
            return self.exceeded_limit(too_deep_message(), mistake.diagnostic.span);
        }
        StopReason::Syntax(Box::new(mistake))
    }
}

#[cfg(test)]
mod tests;
