//! The members of an entry that is written, and the reports about what its dialect cannot express.

use mcp_host_model::{ConfigValue, Dialect, ServerSpec};

use crate::dialect::write::report::WriteReport;
use crate::dialect::write::values::{self, reference_text, rewrite_text};
use crate::syntax::output::OutputValue;
use crate::syntax::template::ReferenceRule;

/// Writes the entry of one server.
pub(crate) struct EntryWriter<'e, 'r> {
    pub(crate) members: Vec<(String, OutputValue)>,
    pub(crate) report: &'e mut WriteReport<'r>,
    /// The dialect that the server was read by.
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
        if !value.is_empty_collection() {
            self.add(key, value);
        }
    }

    /// Adds an optional text of the model; reports one that cannot be written.
    pub(crate) fn add_model_text(&mut self, key: &str, field: &str, text: Option<&String>) {
        let text = text.map(|it| rewrite_text(it, self.origin, self.rule));
        self.members.extend(self.report.optional(key, field, text));
    }

    /// Adds an optional value; reports one that cannot be written.
    pub(crate) fn add_value(&mut self, key: &str, field: &str, value: Option<&ConfigValue>) {
        let text = value.map(|it| reference_text(it, self.rule));
        self.members.extend(self.report.optional(key, field, text));
    }

    /// The text of a value without which the server would behave differently; reports one that cannot be written.
    pub(crate) fn required(&mut self, field: &str, value: &ConfigValue) -> Option<String> {
        self.report.required(field, reference_text(value, self.rule))
    }

    /// The command, as [`EntryWriter::required`].
    pub(crate) fn command(&mut self, command: &str) -> Option<String> {
        self.report.required("command", rewrite_text(command, self.origin, self.rule))
    }

    /// The arguments. `None` if one of them cannot be written, because the program would behave differently.
    pub(crate) fn arguments(&mut self, args: &[ConfigValue]) -> Option<OutputValue> {
        let mut res = Vec::new();
        for (index, value) in args.iter().enumerate() {
            res.push(OutputValue::Text(self.required(&format!("args.{index}"), value)?));
        }
        Some(OutputValue::List(res))
    }

    /// Names and values for a map, as [`values::entry_map`].
    pub(crate) fn values(
        &mut self,
        field: &str,
        entries: &[(String, ConfigValue)],
    ) -> Vec<(String, OutputValue)> {
        let rule = self.rule;
        values::entry_map(field, entries, self.report, |it| reference_text(it, rule).map(OutputValue::Text))
    }
}
