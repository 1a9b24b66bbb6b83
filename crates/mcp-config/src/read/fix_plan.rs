//! Turns an intended fix into text edits that match the formatting of the file.

use mcp_host_model::RawJson;

use crate::diagnostic::{
    Applicability, Fix, FixIntent, RawDiagnostic, ScalarKind, TextEdit, apply_edits, quoted,
};
use crate::syntax::entry_edits::{self, InsertPosition, NewEntry};
use crate::syntax::layout::Layout;
use crate::syntax::output::OutputValue;
use crate::syntax::{self, Node, Syntax, child_pointer, last_key, parent_pointer};

/// The text of a file with its syntax and its tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SourceTree<'a> {
    pub(crate) text: &'a str,
    pub(crate) syntax: Syntax,
    pub(crate) root: Option<&'a Node>,
}

impl<'a> SourceTree<'a> {
    /// Turns the intended fix of a diagnostic into edits. `None` if it has none, or if the layout is not supported.
    pub(crate) fn plan_fix(self, diagnostic: &RawDiagnostic) -> Option<Fix> {
        let pointer = &diagnostic.pointer;
        let same_pointer = [vec![pointer.clone()], vec![pointer.clone()]];
        let source = self.text.get(diagnostic.span.clone())?;
        let fix = |title: String, applicability, edits, changed| Fix { title, applicability, edits, changed };
        let res = match diagnostic.fix.as_ref()? {
            FixIntent::RenameKey(word, applicability) => {
                let edits = vec![self.replacement_edit(diagnostic, word)?];
                if self.syntax == Syntax::Toml && self.is_named_again(pointer, &edits) {
                    return None;
                }
                let changed = [vec![pointer.clone()], vec![child_pointer(parent_pointer(pointer)?, word)]];
                fix(format!("write `{word}`"), *applicability, edits, changed)
            }
            FixIntent::ReplaceScalar(word, applicability) => {
                let edits = vec![self.replacement_edit(diagnostic, word)?];
                fix(format!("write `{word}`"), *applicability, edits, same_pointer)
            }
            FixIntent::Quote => {
                let edits = quote_edits(diagnostic, source)?;
                fix("put it into quotes".to_owned(), Applicability::Certain, edits, same_pointer)
            }
            FixIntent::Unquote(kind) => {
                let word = unquoted_value(source, *kind)?;
                let edit = TextEdit { span: diagnostic.span.clone(), text: word.to_owned() };
                fix(format!("write `{word}`"), Applicability::Certain, vec![edit], same_pointer)
            }
            FixIntent::WrapInList => {
                let brackets = bracket_edits(diagnostic, source)?;
                fix("make it a list of one".to_owned(), Applicability::Suggested, brackets, same_pointer)
            }
            FixIntent::ReplaceScheme(from, to) => {
                let edit = scheme_edit(diagnostic, source, from, to)?;
                fix(format!("write `{to}://`"), Applicability::Suggested, vec![edit], same_pointer)
            }
            // Members of TOML have another layout.
            FixIntent::RemoveMember(..) | FixIntent::AddMembers { .. } if self.syntax == Syntax::Toml => {
                return None;
            }
            FixIntent::RemoveMember(pointer, applicability) => {
                let key = last_key(pointer);
                let edits = self.removal_edits(parent_pointer(pointer)?, &key)?;
                let changed = [vec![pointer.clone()], Vec::new()];
                fix(format!("remove `{}`", quoted(&key)), *applicability, edits, changed)
            }
            FixIntent::AddMembers { mapping, after, members, applicability } => {
                let names: Vec<_> = members.iter().map(|it| format!("`{}`", it.0)).collect();
                let new = members.iter().map(|it| child_pointer(mapping, it.0)).collect();
                let edit = self.insertion_edit(mapping, *after, members)?;
                fix(format!("add {}", names.join(" and ")), *applicability, vec![edit], [Vec::new(), new])
            }
        };
        let fits = |it: &TextEdit| self.text.get(it.span.clone()).is_some();
        res.edits.iter().all(fits).then_some(res)
    }

    /// Edits that remove the member `key` of a mapping.
    fn removal_edits(self, mapping: &str, key: &str) -> Option<Vec<TextEdit>> {
        let mapping = self.node(mapping)?;
        let index = mapping.members()?.iter().position(|it| &*it.key.text == key)?;
        entry_edits::remove(Layout::new(self.text), mapping, index)
    }

    /// One edit that inserts members into a mapping, after the member `after` or at the beginning.
    fn insertion_edit(
        self,
        mapping: &str,
        after: Option<&str>,
        members: &[(&'static str, serde_json::Value)],
    ) -> Option<TextEdit> {
        let mapping = self.node(mapping)?;
        let position = match after {
            None => InsertPosition::First,
            Some(key) => {
                InsertPosition::After(mapping.members()?.iter().position(|it| &*it.key.text == key)?)
            }
        };
        let text = Layout::new(self.text);
        let mut edit: Option<TextEdit> = None;
        for (key, value) in members {
            let value = &OutputValue::from_json(&RawJson::from_value(value).ok()?)?;
            let mut next = entry_edits::insert(text, mapping, position, NewEntry::Member(key, value))?;
            let next = next.pop().filter(|_| next.is_empty())?;
            edit = Some(match edit {
                None => next,
                Some(edit) => TextEdit { span: edit.span, text: edit.text + &next.text },
            });
        }
        edit
    }

    /// An edit that replaces the key or scalar of a diagnostic and keeps its quotes. `None` if it is neither plain nor
    /// quoted.
    fn replacement_edit(self, diagnostic: &RawDiagnostic, word: &str) -> Option<TextEdit> {
        let source = self.text.get(diagnostic.span.clone())?;
        let quote = match source.chars().next()? {
            it @ ('"' | '\'') => it.to_string(),
            // A block scalar, an alias, or a value behind a tag or an anchor.
            '|' | '>' | '*' | '&' | '!' | '[' | '{' | '?' => return None,
            _ => String::new(),
        };
        Some(TextEdit { span: diagnostic.span.clone(), text: format!("{quote}{word}{quote}") })
    }

    /// Whether the key at a pointer is still there after the edits: several headers of TOML can name a table.
    fn is_named_again(self, pointer: &str, edits: &[TextEdit]) -> bool {
        let root = apply_edits(self.text, edits).and_then(|text| syntax::parse_as(&text, self.syntax).root);
        root.is_none_or(|it| it.at(pointer).is_some())
    }

    fn node(self, pointer: &str) -> Option<&'a Node> {
        self.root?.at(pointer)
    }
}

/// An edit that replaces the scheme of a URL. `None` if the text does not begin with `from`.
fn scheme_edit(diagnostic: &RawDiagnostic, source: &str, from: &str, to: &str) -> Option<TextEdit> {
    let quote = usize::from(source.starts_with(['"', '\'']));
    let found = source.get(quote..quote + from.len())?;
    let start = diagnostic.span.start + quote;
    let edit = TextEdit { span: start..start + from.len(), text: to.to_owned() };
    found.eq_ignore_ascii_case(from).then_some(edit)
}

/// Edits that quote a plain scalar on one line.
fn quote_edits(diagnostic: &RawDiagnostic, source: &str) -> Option<Vec<TextEdit>> {
    let is_plain = source.bytes().all(|it| it.is_ascii_alphanumeric() || b"+-._~".contains(&it));
    let insert_quote = |at: usize| TextEdit { span: at..at, text: "\"".to_owned() };
    (is_plain && !source.is_empty())
        .then(|| vec![insert_quote(diagnostic.span.start), insert_quote(diagnostic.span.end)])
}

/// The number or boolean that a quoted string spells, as text.
fn unquoted_value(source: &str, kind: ScalarKind) -> Option<&str> {
    let inner =
        ['"', '\''].iter().find_map(|it| source.strip_prefix(*it)?.strip_suffix(*it)).unwrap_or(source);
    if kind == ScalarKind::Boolean {
        return match inner.to_ascii_lowercase().as_str() {
            "yes" | "on" | "true" | "y" => Some("true"),
            "no" | "off" | "false" | "n" => Some("false"),
            _ => None,
        };
    }
    let has_number_bytes =
        inner.bytes().all(|it| it.is_ascii_digit() || (it == b'.' && kind == ScalarKind::Number));
    let is_number = has_number_bytes
        && inner.starts_with(|it: char| it.is_ascii_digit())
        && !inner.ends_with('.')
        && inner.parse::<f64>().is_ok();
    is_number.then_some(inner)
}

/// Edits that wrap one scalar in brackets, and quote a plain one.
fn bracket_edits(diagnostic: &RawDiagnostic, source: &str) -> Option<Vec<TextEdit>> {
    let quoted = source.starts_with(['"', '\'']);
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./@:=+".contains(it);
    if source.is_empty() || source.contains('\n') || !(quoted || source.chars().all(is_plain)) {
        return None;
    }
    let insert = |at: usize, text: &str| TextEdit { span: at..at, text: text.to_owned() };
    let marks = if quoted { ["[", "]"] } else { ["[\"", "\"]"] };
    Some(vec![insert(diagnostic.span.start, marks[0]), insert(diagnostic.span.end, marks[1])])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, kind: ScalarKind, want: Option<&str>) {
        assert_eq!(unquoted_value(source, kind), want, "{source}");
    }

    #[test]
    fn string_that_spells_a_value_is_unquoted() {
        check("'30'", ScalarKind::Integer, Some("30"));
        check("\"1.5\"", ScalarKind::Number, Some("1.5"));
        check("1.5", ScalarKind::Integer, None);
        check("yes", ScalarKind::Boolean, Some("true"));
        check("'off'", ScalarKind::Boolean, Some("false"));
        check("30", ScalarKind::Boolean, None);
        for text in ["30s", "", "'", "1.", ".5", "1:30", "0x10", "1e5", "yes", "1.2.3", "-1"] {
            check(text, ScalarKind::Number, None);
        }
    }
}
