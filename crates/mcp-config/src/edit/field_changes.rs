//! Changes single fields of a server. Everything else stays.
//!
//! A field is named by its key in the file, or by another key with the same meaning: `headers` is `http_headers` in
//! Codex's file. A value is written with the type of the field.

use std::iter;

use mcp_host_model::Profile;

use crate::diagnostic::{Code, Diagnostic};
use crate::dialect::editor::conventions::Program;
use crate::dialect::editor::keys;
use crate::dialect::write::report::{UnsupportedField, WriteReport, WrittenFile};
use crate::dialect::write::values::dominds_value;
use crate::edit::editable_file::{EditableFile, error_diagnostics, ok_or_unsupported, unsupported_layout};
use crate::edit::error::EditError;
use crate::edit::inputs::declare_input;
use crate::read::{Document, Reading, read};
use crate::syntax::output::OutputValue;
use crate::syntax::template::{ReferenceRule, parse_value};
use crate::syntax::{Node, child_pointer, last_key, parent_pointer, pointer_contains};

/// A change of one field. `Debug` hides the value, which may be secret.
#[derive(derive_more::Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldChange {
    /// The path of the field in its server: `url`, `env.NAME`, `args.0`. Items of a list are counted from 0, and are
    /// added only by [`FieldOperation::Append`]. The rest of a path below `env` and `headers` is one name.
    pub field: String,
    /// What changes.
    pub operation: FieldOperation,
}

/// What changes in a field. `Debug` hides values, which may be secret.
#[derive(derive_more::Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldOperation {
    /// The value, as text. `${NAME}` is an environment variable, in any dialect. A text that spells a number or a
    /// boolean is written as such where the field has this type.
    Set(#[debug("***")] String),
    /// The value, as JSON.
    SetJson(#[debug("***")] mcp_host_model::RawJson),
    /// Adds an item at the end of a list.
    Append(#[debug("***")] String),
    /// Removes the items of a list with this text.
    RemoveItem(#[debug("***")] String),
    /// Removes the field.
    Remove,
}

impl FieldChange {
    /// A change of the field at this path of its server.
    pub fn new(field: impl Into<String>, operation: FieldOperation) -> FieldChange {
        FieldChange { field: field.into(), operation }
    }

    /// Parses `FIELD=VALUE`, `FIELD+=ITEM`, `FIELD-=ITEM` or `FIELD:=JSON`.
    pub fn parse(text: &str) -> Result<FieldChange, FieldChangeError> {
        let (field, value) = text.split_once('=').ok_or(FieldChangeError::NoValue)?;
        let owned_value = || value.to_owned();
        let (field, operation) = if let Some(field) = field.strip_suffix('+') {
            (field, FieldOperation::Append(owned_value()))
        } else if let Some(field) = field.strip_suffix('-') {
            (field, FieldOperation::RemoveItem(owned_value()))
        } else if let Some(field) = field.strip_suffix(':') {
            let json = mcp_host_model::RawJson::parse(owned_value().into())
                .map_err(|_| FieldChangeError::InvalidJson)?;
            (field, FieldOperation::SetJson(json))
        } else {
            (field, FieldOperation::Set(owned_value()))
        };
        if field.trim().is_empty() {
            return Err(FieldChangeError::NoField);
        }
        Ok(FieldChange { field: field.to_owned(), operation })
    }
}

/// Why a text is not a change. The text itself may be secret and is not quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldChangeError {
    /// There is no `=`.
    #[error("write a change as FIELD=VALUE, FIELD+=ITEM, FIELD-=ITEM or FIELD:=JSON")]
    NoValue,
    /// There is nothing before the `=`.
    #[error("write the name of a field before the `=`")]
    NoField,
    /// The text after `:=` is not JSON.
    #[error("the text after `:=` is not valid JSON")]
    InvalidJson,
}

/// Changes fields of a server, in order. Changes nothing if one of them fails, or if the file would have a new mistake.
/// Comments and layout stay.
///
/// ```
/// use mcp_host_config::{Document, FieldChange, Profile, set_fields};
///
/// let text = r#"{
///   // the weather
///   "mcpServers": { "weather": { "url": "http://127.0.0.1:8000/mcp", "timeout": 5 } }
/// }"#;
/// let document = Document::new("mcp.json", text, Profile::McpJson);
/// let change = FieldChange::parse("url=http://127.0.0.1:9000/mcp")?;
/// let written = set_fields(&document, "weather", &[change])?;
/// assert_eq!(written.text, text.replace("8000", "9000"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// `mcp_host_runtime::save` writes the text to a file that has not changed in the meantime.
pub fn set_fields(
    document: &Document<'_>,
    name: &str,
    changes: &[FieldChange],
) -> Result<WrittenFile, EditError> {
    let mut res = WrittenFile { text: document.text.to_owned(), unsupported: Vec::new() };
    for change in changes {
        let current = Document { text: &res.text, ..*document };
        let WrittenFile { text, unsupported } = set_field(&current, name, change)?;
        res.text = text;
        res.unsupported.extend(unsupported);
    }
    Ok(res)
}

/// Makes one change.
fn set_field(document: &Document<'_>, name: &str, change: &FieldChange) -> Result<WrittenFile, EditError> {
    let file = EditableFile::read(document)?;
    let server = file.find_server(name)?.pointer.clone();
    let FieldChange { field, operation } = change;
    let list = parent_pointer(&server).unwrap_or_default();
    let program = file.program_of(list);
    let target = FieldTarget { profile: document.profile, program, name, server: &server, field };
    let pointer = target.pointer(&file, operation)?;
    if matches!(operation, FieldOperation::Set(_) | FieldOperation::SetJson(_)) {
        target.check_item_exists(&file, &pointer)?;
    }
    let (unsupported, inputs) = (Vec::new(), Vec::new());
    let mut writer = ValueWriter { target, pointer: &pointer, unsupported, inputs };
    let texts = writer.changed_texts(&file, operation)?;
    let ValueWriter { unsupported, inputs, .. } = writer;
    // The first value without a new mistake has the type of the field. The mistake of a text is the clearest.
    let mut mistake = None;
    for mut text in texts {
        for id in &inputs {
            text = declare_input(&document.with_text(&text), list, id)?;
        }
        match find_new_mistake(&file.reading, &read(&document.with_text(&text)), &server) {
            None => return Ok(WrittenFile { text, unsupported }),
            Some(found) => mistake = mistake.or(Some(found)),
        }
    }
    Err(EditError::InvalidResult { message: mistake.unwrap_or_default() })
}

/// The field that a change concerns.
#[derive(Clone, Copy)]
struct FieldTarget<'a> {
    profile: Profile,
    /// The program of the file.
    program: &'a Program,
    /// The name of the server.
    name: &'a str,
    /// The pointer to the server.
    server: &'a str,
    /// The path of the field, as the change states it.
    field: &'a str,
}

impl FieldTarget<'_> {
    /// The pointer to the field. Its key is the one that the server has, else the one of the other servers, else the
    /// one of the program, else as given.
    fn pointer(&self, file: &EditableFile<'_>, operation: &FieldOperation) -> Result<String, EditError> {
        let FieldTarget { profile, program, name: _, server, field } = *self;
        let (first, rest) = field.split_once('.').map_or((field, None), |it| (it.0, Some(it.1)));
        let node = ok_or_unsupported(file.root.at(server), "the server was not found")?;
        if node.members().is_none() {
            return Err(unsupported_layout("the server is not a mapping"));
        }
        let others = file.reading.entries.iter().filter_map(|it| file.root.at(&it.pointer));
        let spelling = |node: &Node| keys::spellings(first).find(|it| node.get(it).is_some());
        let own_key = if node.get(first).is_some() { Some(first) } else { spelling(node) };
        let of_program = || program.path_of(first).filter(|_| profile == Profile::McpJson);
        let key =
            own_key.or_else(|| others.into_iter().find_map(spelling)).or_else(of_program).unwrap_or(first);
        let mut pointer = key.split('/').fold(server.to_owned(), |it, segment| child_pointer(&it, segment));
        // opencode: the program and its arguments are one list.
        let command = node.get("command").filter(|it| it.value.items().is_some());
        match (first, operation, command) {
            ("args", FieldOperation::Append(_) | FieldOperation::RemoveItem(_), Some(_))
                if own_key.is_none() =>
            {
                pointer = child_pointer(server, "command");
            }
            ("args", _, Some(_)) if own_key.is_none() => {
                return Err(unsupported_layout("the arguments are part of `command` there"));
            }
            ("command", FieldOperation::Set(_), Some(_)) if rest.is_none() => {
                pointer = child_pointer(&pointer, "0")
            }
            (_, _, _) => {}
        }
        Ok(match rest {
            None => pointer,
            Some(name) if keys::is_text_map(&last_key(key)) => child_pointer(&pointer, name),
            Some(path) => path.split('.').fold(pointer, |it, segment| child_pointer(&it, segment)),
        })
    }

    /// Fails if the pointer leads to an item that its list does not have: [`FieldOperation::Append`] adds items.
    fn check_item_exists(&self, file: &EditableFile<'_>, pointer: &str) -> Result<(), EditError> {
        let mut above = iter::successors(parent_pointer(pointer), |it| parent_pointer(it));
        if file.root.at(pointer).is_none()
            && let Some(list) = above.find(|it| file.root.at(it).is_some())
            && let Some(items) = file.root.at(list).and_then(Node::items)
        {
            let (server, field) = (self.name.to_owned(), self.field.to_owned());
            return Err(EditError::NoSuchItem { server, field, list: last_key(list), len: items.len() });
        }
        Ok(())
    }

    fn no_such_field(&self) -> EditError {
        EditError::NoSuchField { server: self.name.to_owned(), field: self.field.to_owned() }
    }
}

/// Writes the value of a field.
struct ValueWriter<'a> {
    target: FieldTarget<'a>,
    /// The pointer to the field.
    pointer: &'a str,
    /// What the dialect cannot express.
    unsupported: Vec<UnsupportedField>,
    /// The ids of the inputs that the value refers to.
    inputs: Vec<String>,
}

impl ValueWriter<'_> {
    /// The texts of the file after the change: one for each value that the new text may mean.
    fn changed_texts(
        &mut self,
        file: &EditableFile<'_>,
        operation: &FieldOperation,
    ) -> Result<Vec<String>, EditError> {
        let (target, pointer) = (self.target, self.pointer);
        let node = file.root.at(pointer);
        let no_such_field = || target.no_such_field();
        Ok(match operation {
            FieldOperation::Remove => {
                node.ok_or_else(no_such_field)?;
                vec![file.remove(file.outermost_emptied(target.server, pointer))?]
            }
            FieldOperation::RemoveItem(item) => {
                let items = node.and_then(Node::items).ok_or_else(no_such_field)?;
                let item = self.write_item(item)?;
                let index = items.iter().position(|it| it.text() == Some(&item)).ok_or_else(no_such_field)?;
                let item_pointer = child_pointer(pointer, &index.to_string());
                vec![file.remove(file.outermost_emptied(target.server, &item_pointer))?]
            }
            FieldOperation::SetJson(json) => {
                let value = ok_or_unsupported(OutputValue::from_json(json), "the value is too deep")?;
                vec![file.set(pointer, &value)?]
            }
            FieldOperation::Append(item) => {
                let item = self.write_item(item)?;
                possible_values(&item).map(|value| file.append(pointer, &value)).collect::<Result<_, _>>()?
            }
            FieldOperation::Set(text) => {
                let values: Vec<OutputValue> = match self.write(text)? {
                    OutputValue::Text(text) if !self.is_in_text_map() => {
                        let list = OutputValue::List(vec![OutputValue::text(&text)]);
                        possible_values(&text).chain([list]).collect()
                    }
                    value => vec![value],
                };
                values.iter().map(|value| file.set(pointer, value)).collect::<Result<_, _>>()?
            }
        })
    }

    /// Whether the field is a member of a map of texts, such as `env`.
    fn is_in_text_map(&self) -> bool {
        parent_pointer(self.pointer).is_some_and(|it| keys::is_text_map(&last_key(it)))
    }

    /// Writes a text, with references as the program of the file has them.
    fn write(&mut self, text: &str) -> Result<OutputValue, EditError> {
        let FieldTarget { profile, program, name, server, field } = self.target;
        let mut data = OutputValue::text(text);
        match profile {
            Profile::McpJson => {
                let key = self.pointer[server.len()..].split('/').nth(1).unwrap_or_default();
                let mut report = WriteReport {
                    profile,
                    find_program: &|_| None,
                    server: name.to_owned(),
                    unsupported: &mut self.unsupported,
                };
                self.inputs.extend(program.rewrite_references([(key, &mut data)], &mut report));
            }
            Profile::Dominds if self.is_in_text_map() => {
                let value = parse_value(text, ReferenceRule::ExpandWithFolder);
                data = dominds_value(&value).map_err(|reason| EditError::Unsupported {
                    field: field.to_owned(),
                    reason: reason.to_owned(),
                })?;
            }
            Profile::HoloDeck | Profile::HoloDeck07 | Profile::Dominds | Profile::AcpV1 | Profile::AcpV2 => {}
        }
        Ok(data)
    }

    /// Writes an item of a list, which has only texts.
    fn write_item(&mut self, text: &str) -> Result<String, EditError> {
        let OutputValue::Text(item) = self.write(text)? else { return Err(self.target.no_such_field()) };
        Ok(item)
    }
}

/// The values that a text may mean: the number or boolean that it spells, then the text itself.
fn possible_values(text: &str) -> impl Iterator<Item = OutputValue> {
    let is_scalar = matches!(text, "true" | "false") || text.parse::<serde_json::Number>().is_ok();
    is_scalar.then(|| OutputValue::scalar(text)).into_iter().chain([OutputValue::text(text)])
}

/// The first new mistake, as a message: an error, or an unknown key of the server.
fn find_new_mistake(before: &Reading, after: &Reading, server: &str) -> Option<String> {
    let is_known = |it: &Diagnostic| {
        before.diagnostics.iter().any(|old| (old.code, &old.pointer) == (it.code, &it.pointer))
    };
    let unknown = after
        .diagnostics
        .iter()
        .filter(|it| it.code == Code::UnknownKey && pointer_contains(server, &it.pointer));
    let found = error_diagnostics(after).chain(unknown).find(|it| !is_known(it))?;
    let help = found.help.as_ref().map(|it| format!("; {it}")).unwrap_or_default();
    Some(format!("{found}{help}"))
}
