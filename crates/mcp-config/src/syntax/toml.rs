//! Parses TOML into a tree. The only file, besides the TOML editor, that depends on the TOML parser.
//!
//! The span of a table includes its header and its members. A date is text. The parser's messages describe tokens and
//! never quote the text. The limits are those of YAML.

use std::borrow::Cow;
use std::ops::Range;

use toml_edit::{Document, Item, Key as TomlKey, Table, TableLike, TomlError, Value};

use crate::diagnostic::{Code, RawDiagnostic, floor_char_boundary};
use crate::syntax::key_interner::KeyInterner;
use crate::syntax::layout::Layout;
use crate::syntax::parsed_text::{
    MAX_BYTES, MAX_DEPTH, MAX_VALUES, too_deep_message, too_large_diagnostic, too_many_values_message,
};
use crate::syntax::{Content, Key, KeyKind, Member, Node, ParsedText, look_alike};

/// Reads a text. Never fails, never panics.
pub(super) fn parse(text: &str) -> ParsedText {
    if text.len() > MAX_BYTES {
        return ParsedText::too_large();
    }
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => return ParsedText { diagnostics: diagnose(text, error), ..ParsedText::default() },
    };
    let mut builder = TreeBuilder { keys: KeyInterner::default() };
    let root = builder.build_table(document.as_table(), 0..text.len());
    if root.size > MAX_VALUES {
        return ParsedText::failed(too_large_diagnostic(too_many_values_message(), "", 0..0));
    }
    if root.depth > MAX_DEPTH {
        return ParsedText::failed(too_large_diagnostic(too_deep_message(), "", 0..0));
    }
    ParsedText { root: Some(root), ..ParsedText::default() }
}

/// The diagnostics for the first error, and for those after it as long as they are characters that look like others.
fn diagnose(text: &str, first: TomlError) -> Vec<RawDiagnostic> {
    // Each mistake parses the rest again.
    const MAX_MISTAKES: usize = 10;
    let mut res = Vec::new();
    let mut rest = Cow::Borrowed(text);
    let mut error = first;
    while let Some((span, look_alike)) = find_look_alike(&rest, &error).filter(|_| res.len() < MAX_MISTAKES) {
        let (message, help) = look_alike;
        res.push(
            RawDiagnostic::new(Code::Syntax, format!("invalid TOML: {message}"), "", span.clone()).help(help),
        );
        let layout = Layout::new(&rest);
        let start = layout.line_start(span.start);
        let line = start..start + layout.line(start).len();
        let blanks = " ".repeat(line.len());
        rest.to_mut().replace_range(line, &blanks);
        error = match Document::parse(&*rest) {
            Err(next) => next,
            Ok(_) => return res,
        };
    }
    if res.is_empty() {
        let (message, help) = match error.message() {
            "integer number overflowed" => (OUT_OF_RANGE, INTEGER_HELP),
            "floating-point number overflowed" => (OUT_OF_RANGE, "write a number up to 1.7e308"),
            message if is_escape(text, &error) => (message, ESCAPE_HELP),
            message if is_lone_return(text, &error) => (message, LINE_END_HELP),
            message => (message, "check this line: quotes, brackets, and a key that appears twice"),
        };
        let message = format!("invalid TOML: {message}");
        res.push(RawDiagnostic::new(Code::Syntax, message, "", error_span(text, &error)).help(help));
    }
    res
}

const OUT_OF_RANGE: &str = "the number is out of range";
const INTEGER_HELP: &str = "TOML has whole numbers from -9,223,372,036,854,775,808 to 9,223,372,036,854,775,807; \
                            write such a number, or a text in quotes if the program reads one";

const LINE_END_HELP: &str =
    "end each line with a line feed: save the file with the line ends of Unix or Windows";

const ESCAPE_HELP: &str = "a backslash begins an escape: write it twice, or put the text into single quotes";

/// Whether an error is right behind a backslash, or in the digits of its escape.
fn is_escape(text: &str, error: &TomlError) -> bool {
    let start = error_span(text, error).start;
    let before = text[..start].trim_end_matches(|it: char| it.is_ascii_hexdigit());
    let before = before.strip_suffix(['u', 'U', 'x']).unwrap_or(before);
    before.ends_with('\\') || text[start..].starts_with('\\')
}

/// Whether an error is at a carriage return without a line feed.
fn is_lone_return(text: &str, error: &TomlError) -> bool {
    let (before, after) = text.split_at(error_span(text, error).start);
    let after = if before.ends_with('\r') { Some(after) } else { after.strip_prefix('\r') };
    after.is_some_and(|it| !it.starts_with('\n'))
}

/// The bytes of an error, on character boundaries.
fn error_span(text: &str, error: &TomlError) -> Range<usize> {
    let span = error.span().unwrap_or(text.len()..text.len());
    let start = floor_char_boundary(text, span.start.min(text.len()));
    start..floor_char_boundary(text, span.end.clamp(start, text.len()))
}

/// The first look-alike outside of quotes in the line of an error, with its description.
fn find_look_alike(text: &str, error: &TomlError) -> Option<(Range<usize>, (String, String))> {
    let layout = Layout::new(text);
    let start = layout.line_start(error_span(text, error).start);
    let mut open = None;
    for (offset, character) in layout.line(start).char_indices() {
        match (open, character) {
            (None, '#') => return None,
            (None, '"' | '\'') => open = Some(character),
            (Some(quote), _) if quote == character => open = None,
            (None, _) => {
                let at = start + offset;
                if let Some(description) = look_alike::describe(character) {
                    return Some((at..at + character.len_utf8(), description));
                }
            }
            (Some(_), _) => {}
        }
    }
    None
}

/// Converts the items of the TOML parser to nodes.
struct TreeBuilder {
    keys: KeyInterner,
}

impl TreeBuilder {
    /// Converts a table. `span` is used if the parser has none.
    fn build_table(&mut self, table: &Table, span: Range<usize>) -> Node {
        let span = table.span().filter(|it| !it.is_empty()).unwrap_or(span);
        self.build_mapping(table, span)
    }

    /// Converts a table at `span`, which is extended to the end of its last member.
    fn build_mapping(&mut self, table: &dyn TableLike, mut span: Range<usize>) -> Node {
        let mut members = Vec::with_capacity(table.len());
        for (text, item) in table.iter() {
            let key_span = table.key(text).and_then(TomlKey::span).unwrap_or(span.start..span.start);
            let value = self.build_item(item, key_span.clone());
            span.end = span.end.max(value.span.end);
            let key = Key { text: self.keys.intern(text), span: key_span, kind: KeyKind::Text };
            members.push(Member { key, value });
        }
        Node::new(Content::Mapping(members), span)
    }

    /// Converts an item. `key_span` is used if the parser has no span of it.
    fn build_item(&mut self, item: &Item, key_span: Range<usize>) -> Node {
        match item {
            Item::None => Node::new(Content::Null, key_span),
            Item::Value(value) => self.build_value(value, key_span),
            Item::Table(table) => self.build_table(table, key_span),
            Item::ArrayOfTables(tables) => {
                let items: Vec<Node> =
                    tables.iter().map(|it| self.build_table(it, key_span.clone())).collect();
                let ends = items.iter().map(|it| it.span.end);
                let span = key_span.start..ends.max().unwrap_or(key_span.end);
                Node::new(Content::Sequence(items), span)
            }
        }
    }

    fn build_value(&mut self, value: &Value, key_span: Range<usize>) -> Node {
        let span = value.span().unwrap_or(key_span);
        let content = match value {
            Value::String(text) => Content::Text(text.value().clone()),
            Value::Integer(number) => Content::Integer(*number.value()),
            Value::Float(number) => Content::Float(*number.value()),
            Value::Boolean(value) => Content::Bool(*value.value()),
            Value::Datetime(date) => Content::Text(date.value().to_string()),
            Value::Array(array) => {
                Content::Sequence(array.iter().map(|it| self.build_value(it, span.clone())).collect())
            }
            Value::InlineTable(table) => return self.build_mapping(table, span),
        };
        Node::new(content, span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::to_json;

    const CODEX: &str = "\
# mine
model = \"gpt-5\"

[mcp_servers.a]
command = \"npx\"
args = [\"-y\", 'p'] # both
env = { A = \"b\" }
startup_timeout_sec = 20

[mcp_servers.a.tools.x]
approval_mode = \"approve\"

[[list]]
since = 2026-01-02
";

    #[test]
    fn toml_is_read_as_a_tree_with_spans() {
        let root = parse(CODEX).root.unwrap();
        let json = r#"{"model":"gpt-5","mcp_servers":{"a":{"command":"npx","args":["-y","p"],"env":{"A":"b"},"startup_timeout_sec":20,"tools":{"x":{"approval_mode":"approve"}}}},"list":[{"since":"2026-01-02"}]}"#;
        assert_eq!(to_json(&root).as_deref(), Some(json));
        let text = |pointer: &str| &CODEX[root.at(pointer).unwrap().span.clone()];
        assert_eq!(text("/mcp_servers/a/args/1"), "'p'");
        assert_eq!(text("/mcp_servers/a/env"), "{ A = \"b\" }");
        assert!(text("/mcp_servers/a").starts_with("[mcp_servers.a]\ncommand"));
        assert!(text("/mcp_servers/a").ends_with("approval_mode = \"approve\""));
        assert_eq!(&CODEX[root.at("/mcp_servers").unwrap().get("a").unwrap().key.span.clone()], "a");
    }

    #[track_caller]
    fn check(text: &str, want: &str) {
        check_all(text, &[want]);
    }

    #[track_caller]
    fn check_all(text: &str, want: &[&str]) {
        let ParsedText { root, diagnostics, .. } = parse(text);
        assert!(root.is_none());
        let found: Vec<_> = diagnostics.iter().map(|it| format!("{:?} {}", it.span, it.message)).collect();
        assert_eq!(found, want);
    }

    #[test]
    fn characters_that_look_like_others_are_named() {
        const QUOTES: &str = "invalid TOML: typographic quotes are not quotes";
        const BLANK: &str = "invalid TOML: unusual whitespace (U+00A0) where only a space is allowed";
        check("a = “b”\n", &format!("4..7 {QUOTES}"));
        check("[x]\n‘a’ = 'b'\n", &format!("4..7 {QUOTES}"));
        check("a = [\"“b”\", “c”] # “\n", &format!("16..19 {QUOTES}"));
        check("a =\u{a0}'b'\n", &format!("3..5 {BLANK}"));
        check_all(
            "[x]\na = “b”\nc = 1\n\u{a0}d = 2\n[y]\ne = ‘f’\n",
            &[&format!("8..11 {QUOTES}"), &format!("22..24 {BLANK}"), &format!("38..41 {QUOTES}")],
        );
        assert_eq!(parse(&"a = “b”\n".repeat(20)).diagnostics.len(), 10);
        assert!(parse("a = \"“b”\u{a0}\" # ‘c’\n").root.is_some());
        // Another mistake stays as it is.
        check("a = “b”\nc = \n", &format!("4..7 {QUOTES}"));
        check("a = '“' b\n", "10..10 invalid TOML: unexpected key or value, expected newline, `#`");
    }

    #[test]
    fn mistakes_of_toml_are_reported_without_the_text() {
        check("a = 1\na = 2\n", "6..7 invalid TOML: duplicate key");
        check("a = \"secret\n", "11..11 invalid TOML: invalid basic string, expected `\"`");
        check(
            &format!("a = {}{}", "[".repeat(70), "]".repeat(70)),
            "0..0 the file is nested deeper than 64 levels",
        );
    }
}
