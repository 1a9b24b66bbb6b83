//! Parses TOML into a tree. The only file, besides the TOML editor, that depends on the TOML parser.
//!
//! The span of a table includes its header and its members. A date is text. The parser's messages describe tokens and
//! never quote the text. The limits are those of YAML.

use std::ops::Range;

use toml_edit::{Document, Item, Key as TomlKey, Table, TableLike, Value};

use crate::diagnostic::{Code, RawDiagnostic, floor_char_boundary};
use crate::syntax::key_interner::KeyInterner;
use crate::syntax::{
    Content, ExtensionSpans, Key, KeyKind, MAX_BYTES, MAX_DEPTH, MAX_VALUES, Member, Node, ParsedText,
    SPLIT_FILE_HELP,
};

/// Reads a text. Never fails, never panics.
pub(super) fn parse(text: &str) -> ParsedText {
    if text.len() > MAX_BYTES {
        return ParsedText::too_large();
    }
    let parsed = |root, diagnostics| ParsedText {
        root,
        dropped: Vec::new(),
        diagnostics,
        extensions: ExtensionSpans::default(),
    };
    let failed = |diagnostic| parsed(None, vec![diagnostic]);
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let span = error.span().unwrap_or(text.len()..text.len());
            let start = floor_char_boundary(text, span.start.min(text.len()));
            let end = floor_char_boundary(text, span.end.clamp(start, text.len()));
            let message = format!("invalid TOML: {}", error.message());
            let help = "check this line: quotes, brackets, and a key that appears twice";
            return failed(RawDiagnostic::new(Code::Syntax, message, "", start..end).help(help));
        }
    };
    let mut builder = TreeBuilder { keys: KeyInterner::default() };
    let root = builder.table(document.as_table(), 0..text.len());
    let too_large =
        |message: String| failed(RawDiagnostic::new(Code::TooLarge, message, "", 0..0).help(SPLIT_FILE_HELP));
    if root.size > MAX_VALUES {
        return too_large(format!("the file has more than {MAX_VALUES} values"));
    }
    if root.depth > MAX_DEPTH {
        return too_large(format!("the file is nested deeper than {MAX_DEPTH} levels"));
    }
    parsed(Some(root), Vec::new())
}

struct TreeBuilder {
    keys: KeyInterner,
}

impl TreeBuilder {
    /// A table. `span` is the start of its span, if the parser has none.
    fn table(&mut self, table: &Table, span: Range<usize>) -> Node {
        let span = table.span().filter(|it| !it.is_empty()).unwrap_or(span);
        self.mapping(table, span)
    }

    fn mapping(&mut self, table: &dyn TableLike, mut span: Range<usize>) -> Node {
        let mut members = Vec::with_capacity(table.len());
        for (text, item) in table.iter() {
            let key_span = table.key(text).and_then(TomlKey::span).unwrap_or(span.start..span.start);
            let value = self.item(item, key_span.clone());
            span.end = span.end.max(value.span.end);
            let key = Key { text: self.keys.intern(text), span: key_span, kind: KeyKind::Text };
            members.push(Member { key, value });
        }
        Node::new(Content::Mapping(members), span)
    }

    fn item(&mut self, item: &Item, key_span: Range<usize>) -> Node {
        match item {
            Item::None => Node::new(Content::Null, key_span),
            Item::Value(value) => self.value(value, key_span),
            Item::Table(table) => self.table(table, key_span),
            Item::ArrayOfTables(tables) => {
                let items: Vec<Node> = tables.iter().map(|it| self.table(it, key_span.clone())).collect();
                let ends = items.iter().map(|it| it.span.end);
                let span = key_span.start..ends.max().unwrap_or(key_span.end);
                Node::new(Content::Sequence(items), span)
            }
        }
    }

    fn value(&mut self, value: &Value, key_span: Range<usize>) -> Node {
        let span = value.span().unwrap_or(key_span);
        let content = match value {
            Value::String(text) => Content::Text(text.value().clone()),
            Value::Integer(number) => Content::Integer(*number.value()),
            Value::Float(number) => Content::Float(*number.value()),
            Value::Boolean(value) => Content::Bool(*value.value()),
            Value::Datetime(date) => Content::Text(date.value().to_string()),
            Value::Array(array) => {
                Content::Sequence(array.iter().map(|it| self.value(it, span.clone())).collect())
            }
            Value::InlineTable(table) => return self.mapping(table, span),
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
        let ParsedText { root, diagnostics, .. } = parse(text);
        assert!(root.is_none());
        let found: Vec<_> = diagnostics.iter().map(|it| format!("{:?} {}", it.span, it.message)).collect();
        assert_eq!(found, [want]);
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
