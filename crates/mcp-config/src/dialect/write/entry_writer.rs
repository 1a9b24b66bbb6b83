//! A builder for the members of an entry. Reports what the dialect cannot express.

use mcp_host_model::{ConfigValue, Dialect, ServerSpec};

use crate::dialect::write::common;
use crate::dialect::write::report::WriteReport;
use crate::dialect::write::values::{self, rewrite_text, value_text};
use crate::syntax::output::{OutputMembers, OutputValue};
use crate::syntax::template::ReferenceRule;

/// Collects the members of one server's entry. In its methods, `key` is the key of a member, and `field` is the field
/// of the model that a report names.
pub(crate) struct EntryWriter<'e, 'r> {
    pub(crate) members: OutputMembers,
    pub(crate) report: &'e mut WriteReport<'r>,
    /// The dialect in which the server was read.
    origin: Dialect,
    /// How the dialect treats variables.
    rule: ReferenceRule,
}

impl<'e, 'r> EntryWriter<'e, 'r> {
    /// An entry without members.
    pub(crate) fn new(
        server: &ServerSpec,
        rule: ReferenceRule,
        report: &'e mut WriteReport<'r>,
    ) -> EntryWriter<'e, 'r> {
        EntryWriter { members: Vec::new(), report, origin: server.origin.dialect(), rule }
    }

    /// Adds a member.
    pub(crate) fn add(&mut self, key: &str, value: OutputValue) {
        self.members.push((key.to_owned(), value));
    }

    /// Adds a member with a text.
    pub(crate) fn add_text(&mut self, key: &str, text: impl Into<String>) {
        self.add(key, OutputValue::text(text));
    }

    /// Adds a member unless its list or map is empty.
    pub(crate) fn add_non_empty(&mut self, key: &str, value: OutputValue) {
        common::push_non_empty(&mut self.members, key, value);
    }

    /// Adds an optional text of the model; reports one that cannot be written.
    pub(crate) fn add_model_text(&mut self, key: &str, field: &str, text: Option<&String>) {
        let text = text.map(|it| rewrite_text(it, self.origin, self.rule));
        self.members.extend(self.report.optional_member(key, field, text));
    }

    /// Adds an optional value; reports one that cannot be written.
    pub(crate) fn add_value(&mut self, key: &str, field: &str, value: Option<&ConfigValue>) {
        let text = value.map(|it| value_text(it, self.rule));
        self.members.extend(self.report.optional_member(key, field, text));
    }

    /// The text of a value without which the server would behave differently; reports one that cannot be written.
    pub(crate) fn required_text(&mut self, field: &str, value: &ConfigValue) -> Option<String> {
        self.report.required_text(field, value_text(value, self.rule))
    }

    /// The text of the command, as [`EntryWriter::required_text`].
    pub(crate) fn command_text(&mut self, command: &str) -> Option<String> {
        self.report.required_text("command", rewrite_text(command, self.origin, self.rule))
    }

    /// The arguments as a list. `None` if one of them cannot be written, because the program would behave differently.
    pub(crate) fn argument_list(&mut self, args: &[ConfigValue]) -> Option<OutputValue> {
        let mut res = Vec::new();
        for (index, value) in args.iter().enumerate() {
            res.push(OutputValue::Text(self.required_text(&format!("args.{index}"), value)?));
        }
        Some(OutputValue::List(res))
    }

    /// Names and values as the members of a map, as [`values::writable_map`].
    pub(crate) fn value_map(&mut self, field: &str, entries: &[(String, ConfigValue)]) -> OutputMembers {
        let rule = self.rule;
        values::writable_map(field, entries, self.report, |it| value_text(it, rule).map(OutputValue::Text))
    }
}
