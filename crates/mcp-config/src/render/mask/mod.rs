//! Masks everything in a file's text that may be a secret.
//!
//! Only text that is known to be safe is shown: keys, structure, values of listed keys, and what `safe_values` accepts
//! of arguments and variables. Each hidden character becomes `*`, so columns stay. The names in `${NAME}`,
//! `${env:NAME}` and `${input:id}`, and the path in `{file:path}` are shown. Of a file that cannot be parsed,
//! only known keys, programs that start packages, and punctuation are shown.

mod by_key;
mod comments;
mod ranges;

use std::ops::Range;

use url::Url;

use crate::diagnostic::{Code, ends_key_name, is_invisible, redact_pointer};
use crate::dialect::editor::is_map_of_servers;
use crate::dialect::editor::program::server_keys;
use crate::render::safe_values::{self, WordList};
use crate::syntax::commented_entry::CommentedEntry;
use crate::syntax::layout::Layout;
use crate::syntax::{self, Content, Member, Node, Syntax};
pub(crate) use by_key::ShownValues;
use ranges::{RangeCursor, reference_ranges};

/// Keys whose scalar values are shown.
const SAFE_KEYS: WordList = WordList(
    "name type description server transport command envFile env_file encoding timeout sse_read_timeout \
    terminate_on_close load_tools load_prompts request_timeout registry_name is_retrieval defer_loading \
    version enabled truely-stateless cwd whitelist blacklist prefix suffix remove add mimeTypes maxBytes \
    disabled transportType requestTimeout connectionTimeout method startup_timeout_sec tool_timeout_sec",
);

/// Keys whose collections have keys of their own.
const CONTAINER_KEYS: WordList = WordList(
    "tools servers mcpServers mcp.servers context_servers mcp params prompts resources skills transform \
    prefix whitelist blacklist mimeTypes amp.mcpServers mcp_servers extensions requestOptions customizations vscode",
);

/// Keys of lists whose items are shown: patterns, types and names of tools.
const ITEM_KEYS: WordList = WordList(
    "whitelist blacklist mimeTypes includeTools excludeTools disabledTools disabled_tools enabled_tools \
    alwaysAllow autoApprove excluded allowed available_tools",
);

/// Keys of the program to start.
const COMMAND_KEYS: [&str; 2] = ["command", "cmd"];

/// Keys with hidden values; the keys are shown in files that cannot be parsed.
const SECRET_KEYS: WordList = WordList("env headers args config url sessionId manual instructions model");

/// A masked text, with a map from the original offsets.
pub(crate) struct MaskedText {
    text: String,
    /// The offset in the masked text, by original offset.
    offsets: Vec<usize>,
    /// The starts of the lines.
    line_starts: Vec<usize>,
}

/// Some lines of a masked text.
pub(super) struct LineWindow<'a> {
    pub(super) text: &'a str,
    /// Their bytes in the masked text.
    pub(super) bytes: Range<usize>,
    /// The number of the first line.
    pub(super) line: usize,
}

impl MaskedText {
    /// Masks a text in the syntax of the file `name`.
    pub(super) fn new(name: &str, text: &str) -> MaskedText {
        let syntax = Syntax::of_editor_file(name, text);
        let parsed = match syntax {
            Syntax::Toml => syntax::parse_as(text, syntax),
            Syntax::Yaml | Syntax::Json | Syntax::JsonWithComments => syntax::parse_any(text),
        };
        let syntax::ParsedText { root, dropped, diagnostics, extensions: _ } = parsed;
        let duplicates = diagnostics.into_iter().filter(|it| it.code == Code::DuplicateKey);
        let mut masker = Masker { syntax, visible: Vec::new(), hidden: dropped };
        for diagnostic in duplicates {
            let shows = if redact_pointer(&diagnostic.pointer) == diagnostic.pointer {
                Visibility::SafeValues
            } else {
                Visibility::KeysOnly
            };
            masker.show_key(&diagnostic.span, None, text, shows);
        }
        match &root {
            Some(root) if is_map_of_servers(root) => masker.mark_value(root, text, Visibility::Entries),
            Some(root) => masker.mark_value(root, text, Visibility::SafeValues),
            None => masker.show_known_keys(text),
        }
        if root.is_some() {
            masker.show_plain_comments(text);
        }
        masker.mark_commented_entries(text);
        masker.into_masked_text(text, &reference_ranges(text))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Maps a span of the original text, cut at the end of its first line.
    pub(super) fn first_line(&self, span: Range<usize>) -> Range<usize> {
        let start = self.offsets[span.start];
        let end = self.offsets[span.end].max(start);
        let length = self.text[start..end].find('\n').unwrap_or(end - start);
        let line = self.text[start..start + length].trim_end();
        start..start + line.len()
    }

    /// Maps a span of the original text.
    pub(super) fn map_span(&self, span: &Range<usize>) -> Range<usize> {
        let start = self.offsets[span.start];
        start..self.offsets[span.end].max(start)
    }

    /// Returns whether a character of a span of the original text may be masked.
    pub(super) fn hides(&self, span: &Range<usize>) -> bool {
        self.text[self.map_span(span)].contains('*')
    }

    /// Returns whether a line other than the first starts here.
    pub(super) fn begins_line(&self, at: usize) -> bool {
        self.text[..at].ends_with('\n')
    }

    /// The lines without their ends; as many as in the original text.
    pub(super) fn lines(&self) -> Vec<&str> {
        self.text.split('\n').collect()
    }

    /// The whole lines that contain a span of the masked text.
    pub(super) fn window(&self, span: Range<usize>) -> LineWindow<'_> {
        let line = self.line_starts.partition_point(|it| *it <= span.start);
        let start = self.line_starts[line - 1];
        let end = self.line_starts[self.line_starts.partition_point(|it| *it <= span.end)..].first();
        let end = end.map_or(self.text.len(), |it| it - 1);
        LineWindow { text: &self.text[start..end], bytes: start..end, line }
    }
}

/// The parts of a collection that are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visibility {
    /// Keys, and the values of safe keys.
    SafeValues,
    /// Keys; each value is a collection with `SafeValues` visibility (`servers`).
    Entries,
    /// As `SafeValues`, and the items of a list, which are safe words such as names of tools.
    Items,
    /// Keys, at any depth.
    KeysOnly,
}

/// Collects the ranges of a text that are shown or hidden.
struct Masker {
    syntax: Syntax,
    visible: Vec<Range<usize>>,
    /// Values whose punctuation is hidden too.
    hidden: Vec<Range<usize>>,
}

impl Masker {
    /// Marks what is shown of a value and all values below it.
    fn mark_value(&mut self, node: &Node, text: &str, shows: Visibility) {
        // An alias shows its name; its target is masked at its definition.
        if let Content::Shared(target) = &node.content
            && target.span != node.span
        {
            self.visible.push(node.span.clone());
            return;
        }
        match node.resolved_content() {
            Content::Mapping(members) => {
                let command = members.iter().find(|it| COMMAND_KEYS.contains(&&*it.key.text));
                for member in members {
                    self.show_table_header(&member.value, text);
                    self.show_key(&member.key.span, Some(&member.key.text), text, shows);
                    match (shows, &*member.key.text, &member.value.content) {
                        (Visibility::SafeValues, "args", Content::Sequence(items)) => {
                            self.mark_arguments(command.and_then(|it| it.value.text()), items, text);
                        }
                        (Visibility::SafeValues, "command", Content::Sequence(items)) => {
                            if let Some((program, arguments)) = items.split_first() {
                                let is_opencode = node.text_of("type") == Some("local");
                                if is_opencode {
                                    self.mark_command(program, text);
                                } else {
                                    self.hide(program, text);
                                }
                                self.mark_arguments(program.text(), arguments, text);
                            }
                        }
                        (
                            Visibility::SafeValues,
                            "env" | "environment" | "envs",
                            Content::Mapping(variables),
                        ) => self.mark_variables(variables, text),
                        (Visibility::SafeValues, "env_keys", Content::Sequence(items)) => {
                            for item in items.iter().filter(|it| it.text().is_some()) {
                                self.show_key(&item.span, item.text(), text, Visibility::KeysOnly);
                            }
                        }
                        (_, key, _) => self.mark_member(key, &member.value, text, shows),
                    }
                }
            }
            Content::Sequence(items) => {
                for item in items {
                    self.show_table_header(item, text);
                    let collection = item.members().is_some() || item.items().is_some();
                    match shows {
                        _ if collection => self.mark_value(item, text, shows),
                        Visibility::Items => self.visible.push(item.span.clone()),
                        Visibility::SafeValues | Visibility::Entries | Visibility::KeysOnly => {
                            self.hide(item, text)
                        }
                    }
                }
            }
            _ => self.hide(node, text),
        }
    }

    /// Shows the header of a table of TOML: names only.
    fn show_table_header(&mut self, node: &Node, text: &str) {
        let start = node.span.start;
        let is_table = self.syntax == Syntax::Toml && node.members().is_some();
        let header = text.get(start..).filter(|it| is_table && it.starts_with('['));
        // A comment may follow the bracket. For a name with `=`, `show_key` decides how much of it is shown.
        let end = header.and_then(|it| it.lines().next()?.find([']', '=', '#']));
        self.visible.extend(end.map(|it| start..start + it));
    }

    /// Shows a key. If it wrongly contains a value (`NAME=value`, or `Name: value` for variables and headers), only the
    /// name is shown. `key` is the parsed key, if known.
    fn show_key(&mut self, span: &Range<usize>, key: Option<&str>, text: &str, shows: Visibility) {
        let source = text.get(span.clone()).unwrap_or_default();
        let ends_name = |it: char| it == '=' || (shows == Visibility::KeysOnly && ends_key_name(it));
        let written = source.trim_end_matches(['"', '\'']);
        match written.find(ends_name) {
            Some(at) => {
                self.visible.push(span.start..span.start + at);
                self.hidden.push(span.start + at..span.start + written.len());
            }
            // The separator is written as an escape sequence.
            None if key.is_some_and(|it| it.contains(ends_name)) => self.hidden.push(span.clone()),
            None => self.visible.push(span.clone()),
        }
    }

    /// Hides a scalar except for its quotes. A boolean and null are shown, because they are no secrets. An
    /// unresolved alias is shown, because it is only a name.
    fn hide(&mut self, node: &Node, text: &str) {
        let span = node.span.clone();
        if let Content::Bool(_) | Content::Null = node.content {
            self.visible.push(span);
            return;
        }
        let Some(source) = text.get(span.clone()) else { return };
        let quoted = |it: char| source.len() > 1 && source.starts_with(it) && source.ends_with(it);
        if matches!(node.resolved_content(), Content::Broken) && source.starts_with('*') {
            self.visible.push(span);
        } else if quoted('"') || quoted('\'') {
            self.hidden.push(span.start + 1..span.end - 1);
        } else {
            self.hidden.push(span);
        }
    }

    /// Marks what is shown of a member's value.
    fn mark_member(&mut self, key: &str, value: &Node, text: &str, shows: Visibility) {
        let collection = value.members().is_some() || value.items().is_some();
        match shows {
            Visibility::KeysOnly => self.mark_value(value, text, Visibility::KeysOnly),
            Visibility::Entries if value.items().is_some() && ITEM_KEYS.contains(key) => {
                self.mark_value(value, text, Visibility::Items)
            }
            Visibility::Entries if collection => self.mark_value(value, text, Visibility::SafeValues),
            Visibility::Entries => self.hide(value, text),
            Visibility::SafeValues | Visibility::Items if collection => {
                let is_servers = match key {
                    "mcp" => value.get("servers").is_none() && value.get("inputs").is_none(),
                    // Claude Code: each project is a mapping that contains servers.
                    "projects" => {
                        let projects = value.members().unwrap_or_default();
                        projects.iter().any(|it| it.value.get("mcpServers").is_some())
                    }
                    _ => server_keys().any(|it| it == key),
                };
                let below = match key {
                    _ if is_servers && value.items().is_none() => Visibility::Entries,
                    _ if ITEM_KEYS.contains(key) => Visibility::Items,
                    _ if CONTAINER_KEYS.contains(key) => Visibility::SafeValues,
                    _ => Visibility::KeysOnly,
                };
                self.mark_value(value, text, below);
            }
            Visibility::SafeValues | Visibility::Items if COMMAND_KEYS.contains(&key) => {
                self.mark_command(value, text)
            }
            Visibility::SafeValues | Visibility::Items if SAFE_KEYS.contains(key) => {
                self.visible.push(value.span.clone())
            }
            Visibility::SafeValues | Visibility::Items
                if ["url", "serverUrl", "httpUrl", "uri", "$schema"].contains(&key) =>
            {
                self.mark_url(value, text);
            }
            Visibility::SafeValues | Visibility::Items => {
                self.hide(value, text);
                if let Some((start, written)) = literal_source(value, text)
                    && !SECRET_KEYS.contains(key)
                    && safe_values::is_safe_value(key, written)
                {
                    self.visible.push(start..start + written.len());
                }
            }
        }
    }

    /// Shows the arguments of a command that are known to be safe.
    fn mark_arguments(&mut self, command: Option<&str>, items: &[Node], text: &str) {
        let written: Vec<_> = items.iter().map(|it| literal_source(it, text)).collect();
        let words: Vec<_> = written.iter().map(|it| it.map(|it| it.1)).collect();
        let shown = safe_values::visible_arguments(command, &words);
        for ((item, written), shown) in items.iter().zip(&written).zip(shown) {
            self.mark_value(item, text, Visibility::KeysOnly);
            let Some((start, _)) = written else { continue };
            self.visible.extend(shown.into_iter().map(|it| start + it.start..start + it.end));
        }
    }

    /// Shows the names of variables, and the values of variables with safe names.
    fn mark_variables(&mut self, members: &[Member], text: &str) {
        for Member { key, value } in members {
            self.show_key(&key.span, Some(&key.text), text, Visibility::KeysOnly);
            self.mark_value(value, text, Visibility::KeysOnly);
            if let Some((start, written)) = literal_source(value, text)
                && safe_values::is_safe_value(&key.text, written)
            {
                self.visible.push(start..start + written.len());
            }
        }
    }

    /// Shows the program. Anything after it, in a whole command line, may be a secret.
    fn mark_command(&mut self, node: &Node, text: &str) {
        let Some(source) = text.get(node.span.clone()) else { return };
        let start = node.span.start;
        // `TOKEN=… program` is a command line too. In a text with escape sequences, the parts cannot be
        // distinguished.
        let assigned = source.split_whitespace().next().is_some_and(|it| it.contains('='));
        let escaped = source.starts_with('"') && source.contains('\\');
        let hides = |it: char| it.is_whitespace() || it == '=';
        if escaped && node.text().is_some_and(|it| it.contains(hides)) {
            self.hidden.push(node.span.clone());
            return;
        }
        let Some(end) = source.find(|it: char| it.is_whitespace() || (assigned && it == '=')) else {
            self.visible.push(node.span.clone());
            return;
        };
        self.visible.push(start..start + end);
        self.hidden.push(start + end..node.span.end - usize::from(source.ends_with(['"', '\''])));
    }

    /// Shows scheme, host, port and plain words of the path.
    fn mark_url(&mut self, node: &Node, text: &str) {
        let Some(source) = text.get(node.span.clone()) else { return };
        self.hidden.push(node.span.clone());
        let parsed = node.text().and_then(|it| Url::parse(it).ok());
        let start = source.find("://").map(|it| it + 3);
        let (Some(parsed), Some(start)) = (parsed, start) else { return };
        // Escape sequences, extra slashes before a user, and a `://` that does not follow the scheme are parsed
        // differently than here.
        let scheme = source[..start].trim_start_matches(['"', '\'']).trim_end_matches("://");
        if !scheme.eq_ignore_ascii_case(parsed.scheme()) {
            return;
        }
        let user = !parsed.username().is_empty() || parsed.password().is_some();
        if source.contains('\\') || (user && source[start..].starts_with('/')) {
            return;
        }
        let end = source.find(['?', '#']).unwrap_or(source.len());
        let host_end = source[start..end].find('/').map_or(end, |it| start + it);
        let host = source[start..host_end].rfind('@').map_or(start, |it| start + it + 1);
        let base = node.span.start;
        self.visible.push(base..base + start);
        self.visible.push(base + host..base + host_end);
        let mut at = host_end;
        for part in source[host_end..end].split_inclusive('/') {
            let word = part.trim_end_matches(['/', '"', '\'']);
            if part.len() < 32 && (word.is_empty() || safe_values::is_plain_words(word)) {
                self.visible.push(base + at..base + at + part.len());
            }
            at += part.len();
        }
    }

    /// Masks commented-out servers like servers, because `disable` writes them.
    fn mark_commented_entries(&mut self, text: &str) {
        for entry in CommentedEntry::find_all(Layout::new(text)) {
            let source = entry.padded_json(text);
            if let Some(root) = syntax::parse_as(&source, Syntax::JsonWithComments).root {
                self.mark_value(&root, &source, Visibility::Entries);
            }
        }
    }

    /// Shows the known keys at the starts of lines, and known words between quotes, for a text that cannot be parsed.
    fn show_known_keys(&mut self, text: &str) {
        let is_key =
            |it: &str| SAFE_KEYS.contains(it) || CONTAINER_KEYS.contains(it) || SECRET_KEYS.contains(it);
        let mut start = 0;
        for part in text.split_inclusive(['"', '\'']) {
            let word = part.trim_end_matches(['"', '\'']);
            let is_quoted = !word.is_empty() && text[..start].ends_with(['"', '\'']);
            if is_quoted && (is_key(word) || safe_values::is_launcher(word)) {
                self.visible.push(start..start + word.len());
            }
            start += part.len();
        }
        start = 0;
        for line in text.split_inclusive(['\n', '\r']) {
            let content = line.trim_start_matches([' ', '\t', '-', '\u{feff}', '{', '"', '[']);
            let at = start + line.len() - content.len();
            let ends: &[char] = if self.syntax == Syntax::Toml { &['=', '.', ']'] } else { &[':'] };
            let key = content.split_once(ends).map(|it| it.0.trim_end().trim_end_matches('"'));
            if let Some(key) = key.filter(|it| is_key(it)) {
                self.visible.push(at..at + key.len());
            }
            start += line.len();
        }
    }

    /// The masked text. `names` are the ranges that are shown in hidden ones too.
    fn into_masked_text(mut self, text: &str, names: &[Range<usize>]) -> MaskedText {
        self.visible.sort_by_key(|it| it.start);
        self.hidden.sort_by_key(|it| it.start);
        let (mut shown, mut hidden, mut named) =
            (RangeCursor::new(&self.visible), RangeCursor::new(&self.hidden), RangeCursor::new(names));
        let mut res = MaskedText {
            text: String::with_capacity(text.len()),
            offsets: vec![0; text.len() + 1],
            line_starts: vec![0],
        };
        for (at, character) in text.char_indices() {
            let offset = res.text.len();
            res.offsets[at..at + character.len_utf8()].fill(offset);
            let visible = shown.covers(at) || named.covers(at);
            let value = hidden.covers(at);
            match character {
                '\n' => {
                    res.text.push('\n');
                    res.line_starts.push(res.text.len());
                }
                '\r' | '\u{feff}' => {}
                ' ' | '\t' => res.text.push(character),
                it if visible => {
                    res.text.push(if is_invisible(it) { char::REPLACEMENT_CHARACTER } else { it })
                }
                it if !value && it.is_ascii_punctuation() => res.text.push(it),
                _ => res.text.push('*'),
            }
        }
        res.offsets[text.len()] = res.text.len();
        res
    }
}

/// The start and the text of a scalar without its quotes. `None` for other values, and for a text with escape
/// sequences.
fn literal_source<'a>(node: &Node, text: &'a str) -> Option<(usize, &'a str)> {
    let source = text.get(node.span.clone())?;
    match &node.content {
        Content::Text(read) => {
            let quoted = |it: char| source.len() > 1 && source.starts_with(it) && source.ends_with(it);
            let (start, inner) = match quoted('"') || quoted('\'') {
                true => (node.span.start + 1, &source[1..source.len() - 1]),
                false => (node.span.start, source),
            };
            (inner == read).then_some((start, inner))
        }
        Content::Bool(_) | Content::Integer(_) => Some((node.span.start, source)),
        _ => None,
    }
}
