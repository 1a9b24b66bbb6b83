//! Edits TOML and keeps comments and formatting. Returns the whole new text; the caller compares the trees.

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

use crate::syntax::output::OutputValue;
use crate::syntax::{last_key, parent_pointer, pointer_segments};

/// Tables down to this depth have a header: the map of servers, and a server.
const HEADER_DEPTH: usize = 2;

/// Sets the value at a pointer, and adds the missing tables above it. `None` if the value at or above the
/// pointer is not supported.
pub(super) fn set(text: &str, pointer: &str, value: &OutputValue) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let (above, key) = (parent_pointer(pointer)?, last_key(pointer));
    let mut at = document.as_item_mut();
    for (depth, segment) in pointer_segments(above).enumerate() {
        let is_new = at.as_table_like().is_some_and(|it| !it.contains_key(&segment));
        if is_new {
            at.as_table_like_mut()?.insert(&segment, empty_table(depth + 1));
        }
        at = child_item(at, &segment)?;
    }
    let depth = pointer_segments(pointer).count();
    match at {
        Item::Value(Value::Array(array)) => {
            let old = array.get_mut(key.parse().ok()?)?;
            *old = toml_value(value)?.decorated(prefix_of(old), suffix_of(old));
        }
        Item::Value(Value::InlineTable(table)) => {
            let is_on_one_line = !table.to_string().contains('\n');
            table.insert(&key, toml_value(value)?);
            if is_on_one_line {
                table.fmt();
            }
        }
        Item::Table(table) => match (table.get_mut(&key), value) {
            (Some(Item::Value(old)), _) => {
                *old = toml_value(value)?.decorated(prefix_of(old), suffix_of(old));
            }
            (None, OutputValue::Map(members)) if depth <= HEADER_DEPTH => {
                let mut new = empty_table(depth).into_table().ok()?;
                for (key, value) in members {
                    new.insert(key, Item::Value(toml_value(value)?));
                }
                new.set_implicit(false);
                table.insert(&key, Item::Table(new));
            }
            (_, _) => {
                table.insert(&key, Item::Value(toml_value(value)?));
            }
        },
        Item::None | Item::ArrayOfTables(_) | Item::Value(_) => return None,
    }
    Some(to_text(text, &document))
}

/// Appends a value to the list at a pointer.
pub(super) fn append(text: &str, pointer: &str, value: &OutputValue) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let array = item_at(&mut document, pointer)?.as_array_mut()?;
    let value = toml_value(value)?;
    let (has_comma, trailing) =
        (array.trailing_comma(), array.trailing().as_str().unwrap_or_default().to_owned());
    // Each item of a list over several lines has a line of its own, after the comment of the previous item.
    let Some(previous) = array.iter_mut().last().filter(|it| prefix_of(it).contains('\n')) else {
        array.push(value);
        return Some(to_text(text, &document));
    };
    let (line, suffix) = (prefix_of(previous), suffix_of(previous));
    let line = &line[line.rfind('\n').unwrap_or_default()..];
    let (comment, rest) = split_line(if has_comma { &trailing } else { &suffix });
    let value = value.decorated(format!("{comment}{line}"), if has_comma { "" } else { rest });
    if has_comma {
        array.set_trailing(rest);
    } else {
        previous.decor_mut().set_suffix("");
    }
    array.push_formatted(value);
    Some(to_text(text, &document))
}

/// Removes the member or item at a pointer, with the comments directly above it.
pub(super) fn remove(text: &str, pointer: &str) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let key = last_key(pointer);
    let mut kept = None;
    match item_at(&mut document, parent_pointer(pointer)?)? {
        Item::Value(Value::Array(array)) => remove_item(array, key.parse().ok()?)?,
        Item::Value(Value::InlineTable(table)) => {
            let is_on_one_line = !table.to_string().contains('\n');
            table.remove(&key)?;
            if is_on_one_line {
                table.fmt();
            }
        }
        Item::Table(table) => {
            let next = table.iter().skip_while(|it| it.0 != key).nth(1).filter(|it| it.1.is_value());
            let next = next.map(|it| it.0.to_owned());
            let comments =
                table.key(&key)?.leaf_decor().prefix().and_then(|it| it.as_str()).map(str::to_owned);
            let removed = table.remove(&key)?;
            match (removed, next) {
                (Item::Value(_), Some(next)) => {
                    let comments = comments.unwrap_or_default();
                    if let (Some(mut next), Some(kept)) = (table.key_mut(&next), detached_comments(&comments))
                    {
                        let own = next.leaf_decor().prefix().and_then(|it| it.as_str()).unwrap_or_default();
                        let prefix = format!("{kept}{own}");
                        next.leaf_decor_mut().set_prefix(prefix);
                    }
                }
                (Item::Value(_), None) => {
                    let detached = comments.as_deref().and_then(detached_comments);
                    kept = table.position().zip(detached.map(str::to_owned));
                }
                (Item::Table(removed), _) => kept = removed_table_comments(&removed),
                (Item::ArrayOfTables(_) | Item::None, _) => {}
            }
        }
        Item::None | Item::ArrayOfTables(_) | Item::Value(_) => return None,
    }
    if let Some((position, kept)) = kept {
        prepend_comments(&mut document, position, &kept);
    }
    Some(to_text(text, &document))
}

/// Removes an item and the comment on its line, which is in the prefix of the next item.
fn remove_item(array: &mut Array, index: usize) -> Option<()> {
    let removed = array.get(index)?;
    let (prefix, suffix) = (prefix_of(removed), suffix_of(removed));
    let comment = split_line(&prefix).0;
    let comment = if comment.contains('#') { comment } else { "" };
    let with_comment =
        |it: &str| format!("{comment}{}", if it.contains('\n') { split_line(it).1 } else { it });
    array.remove(index);
    if let Some(next) = array.get_mut(index) {
        let own = prefix_of(next);
        next.decor_mut().set_prefix(if index == 0 { prefix } else { with_comment(&own) });
    } else if array.trailing_comma() {
        let own = array.trailing().as_str().unwrap_or_default().to_owned();
        array.set_trailing(with_comment(&own));
    } else if let Some(previous) = array.iter_mut().last() {
        previous.decor_mut().set_suffix(with_comment(&suffix));
    }
    Some(())
}

/// A text up to its first line end, and the rest.
fn split_line(text: &str) -> (&str, &str) {
    text.split_at(text.find('\n').unwrap_or(text.len()))
}

/// The position and the detached comments of the first header of a table or of the tables in it.
fn removed_table_comments(table: &Table) -> Option<(isize, String)> {
    let mut first: Option<(isize, String)> = None;
    visit_headers(table, &mut |header| {
        let prefix = header.decor().prefix().and_then(|it| it.as_str()).unwrap_or_default();
        if let Some(position) = header.position()
            && first.as_ref().is_none_or(|it| position < it.0)
        {
            first = Some((position, detached_comments(prefix).unwrap_or_default().to_owned()));
        }
    });
    first.filter(|it| !it.1.is_empty())
}

/// Puts comments before the first header after a position, else at the end of the document.
fn prepend_comments(document: &mut DocumentMut, position: isize, comments: &str) {
    let mut next: Option<isize> = None;
    visit_headers(document.as_table(), &mut |header| {
        let later = header.position().filter(|it| *it > position);
        next = next.into_iter().chain(later).min();
    });
    let Some(next) = next else {
        let own = document.trailing().as_str().unwrap_or_default();
        let trailing = format!("{comments}{own}");
        document.set_trailing(trailing.trim_end_matches('\n').to_owned() + "\n");
        return;
    };
    visit_headers_mut(document.as_table_mut(), &mut |header| {
        if header.position() == Some(next) {
            let own = header.decor().prefix().and_then(|it| it.as_str()).unwrap_or_default();
            // The comments end with a blank line.
            let prefix = format!("{comments}{}", own.trim_start_matches('\n'));
            header.decor_mut().set_prefix(prefix);
        }
    });
}

/// Calls `visit` for a table and for all tables with a header in it.
fn visit_headers(table: &Table, visit: &mut dyn FnMut(&Table)) {
    visit(table);
    for (_, item) in table.iter() {
        match item {
            Item::Table(table) => visit_headers(table, visit),
            Item::ArrayOfTables(tables) => tables.iter().for_each(|it| visit_headers(it, visit)),
            Item::None | Item::Value(_) => {}
        }
    }
}

fn visit_headers_mut(table: &mut Table, visit: &mut dyn FnMut(&mut Table)) {
    visit(table);
    for (_, item) in table.iter_mut() {
        match item {
            Item::Table(table) => visit_headers_mut(table, visit),
            Item::ArrayOfTables(tables) => tables.iter_mut().for_each(|it| visit_headers_mut(it, visit)),
            Item::None | Item::Value(_) => {}
        }
    }
}

/// The comments that a blank line separates from the item below them, with this line.
fn detached_comments(prefix: &str) -> Option<&str> {
    let end = prefix.rfind("\n\n")? + 2;
    prefix[..end].contains('#').then_some(&prefix[..end])
}

/// The item at a pointer.
fn item_at<'a>(document: &'a mut DocumentMut, pointer: &str) -> Option<&'a mut Item> {
    pointer_segments(pointer).try_fold(document.as_item_mut(), |item, segment| child_item(item, &segment))
}

/// The child of an item with this key or index.
fn child_item<'a>(item: &'a mut Item, segment: &str) -> Option<&'a mut Item> {
    match item {
        Item::Table(_) | Item::Value(Value::InlineTable(_)) => item.as_table_like_mut()?.get_mut(segment),
        Item::None | Item::ArrayOfTables(_) | Item::Value(_) => item.get_mut(segment.parse::<usize>().ok()?),
    }
}

/// An empty table at a depth: with a header down to [`HEADER_DEPTH`], else inline.
fn empty_table(depth: usize) -> Item {
    if depth > HEADER_DEPTH {
        return Item::Value(Value::InlineTable(InlineTable::new()));
    }
    let mut table = Table::new();
    table.set_implicit(depth < HEADER_DEPTH);
    table.decor_mut().set_prefix("\n");
    Item::Table(table)
}

/// A value; `None` for null, which TOML does not have.
fn toml_value(value: &OutputValue) -> Option<Value> {
    Some(match value {
        OutputValue::Scalar(word) => word.parse().ok()?,
        OutputValue::Text(text) => Value::from(text),
        OutputValue::List(items) => Value::Array(items.iter().map(toml_value).collect::<Option<Array>>()?),
        OutputValue::Map(members) => {
            let members = members.iter().map(|(key, value)| Some((key, toml_value(value)?)));
            Value::InlineTable(members.collect::<Option<InlineTable>>()?)
        }
    })
}

/// The blanks and comments before a value.
fn prefix_of(value: &Value) -> String {
    value.decor().prefix().and_then(|it| it.as_str()).unwrap_or(" ").to_owned()
}

/// The blanks and comments after a value.
fn suffix_of(value: &Value) -> String {
    value.decor().suffix().and_then(|it| it.as_str()).unwrap_or_default().to_owned()
}

/// The text of a document, with the line ends and the byte order mark of the old text.
fn to_text(old: &str, document: &DocumentMut) -> String {
    let text = document.to_string().replace("\r\n", "\n");
    let text = if old.trim().is_empty() { text.trim_start().to_owned() } else { text };
    let text = if old.starts_with('\u{feff}') && !text.starts_with('\u{feff}') {
        format!("\u{feff}{text}")
    } else {
        text
    };
    if old.contains("\r\n") { text.replace('\n', "\r\n") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODEX: &str = "\
# Codex of mine

# about a
[mcp_servers.a] # c
command = \"npx\"
args = [
  \"-y\", # yes
  \"p\", # of p
]
env = { A = \"b\" }

[mcp_servers.a.tools.x]
approval_mode = \"approve\"

[profiles.fast]
# detached

# of the model
model = \"m\"
";

    #[track_caller]
    fn check(got: Option<String>, from: &str, to: &str) {
        assert!(CODEX.contains(from));
        assert_eq!(got.unwrap(), CODEX.replacen(from, to, 1));
    }

    #[test]
    fn values_of_toml_are_changed_in_place() {
        let text = OutputValue::text;
        check(set(CODEX, "/mcp_servers/a/command", &text("uvx")), "\"npx\"", "\"uvx\"");
        check(set(CODEX, "/mcp_servers/a/env/B", &text("c")), "{ A = \"b\" }", "{ A = \"b\", B = \"c\" }");
        check(set(CODEX, "/mcp_servers/a/args/0", &text("-q")), "\"-y\", # yes", "\"-q\", # yes");
        let env = "env = { A = \"b\" }\n";
        check(
            set(CODEX, "/mcp_servers/a/enabled", &OutputValue::scalar(false)),
            env,
            &format!("{env}enabled = false\n"),
        );
        check(
            append(CODEX, "/mcp_servers/a/args", &text("q")),
            "\"p\", # of p\n",
            "\"p\", # of p\n  \"q\",\n",
        );
        assert_eq!(set(CODEX, "/mcp_servers/a/enabled", &OutputValue::scalar("null")), None);
        let windows = CODEX.replace('\n', "\r\n");
        let got = set(&windows, "/mcp_servers/a/command", &text("uvx")).unwrap();
        assert_eq!(got, windows.replacen("npx", "uvx", 1));
    }

    #[test]
    fn a_table_of_a_server_is_added_and_removed() {
        let server = OutputValue::Map(vec![
            ("command".to_owned(), OutputValue::text("npx")),
            ("env".to_owned(), OutputValue::Map(vec![("A".to_owned(), OutputValue::text("b"))])),
        ]);
        let entry = "\n[mcp_servers.new]\ncommand = \"npx\"\nenv = { A = \"b\" }\n";
        let before = "approval_mode = \"approve\"\n";
        check(set(CODEX, "/mcp_servers/new", &server), before, &format!("{before}{entry}"));
        assert_eq!(set("a = 1\n", "/mcp_servers/new", &server).unwrap(), format!("a = 1\n{entry}"));
        let (start, end) = (CODEX.find("# about a").unwrap(), CODEX.find("[profiles").unwrap());
        check(remove(CODEX, "/mcp_servers/a"), &CODEX[start..end], "");
        check(remove(CODEX, "/mcp_servers/a/env"), "env = { A = \"b\" }\n", "");
        check(remove(CODEX, "/mcp_servers/a/args/1"), "  \"p\", # of p\n", "");
        check(remove(CODEX, "/mcp_servers/a/args/0"), "  \"-y\", # yes\n", "");
        check(remove(CODEX, "/profiles/fast/model"), "\n# of the model\nmodel = \"m\"\n", "");
    }
}
