//! The text of written servers, and reports about what their dialect cannot express.

use mcp_host_model::Profile;
use serde::{Serialize, Serializer};

use crate::syntax::output::OutputValue;

/// Why a value cannot be written.
pub(crate) type Reason = &'static str;

/// Servers as the text of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenFile {
    /// The text. It contains all literal values of the servers, including secrets.
    pub text: String,
    /// What the dialect cannot express, in server order. Contains no values.
    pub unsupported: Vec<UnsupportedField>,
}

/// A field that a dialect cannot express.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnsupportedField {
    /// The name of the server.
    pub server: String,
    /// The field of the model, such as `cwd` or `env.NAME`.
    pub field: String,
    /// Why it cannot be expressed.
    #[serde(rename = "why")]
    pub reason: String,
    /// What was written instead.
    #[serde(rename = "done")]
    pub fallback: FieldFallback,
}

impl UnsupportedField {
    /// A field with the reason, in any words, why it cannot be written.
    pub fn new(
        server: impl Into<String>,
        field: impl Into<String>,
        reason: impl Into<String>,
        fallback: FieldFallback,
    ) -> UnsupportedField {
        UnsupportedField { server: server.into(), field: field.into(), reason: reason.into(), fallback }
    }
}

/// What was written in place of a field that cannot be expressed.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[non_exhaustive]
pub enum FieldFallback {
    /// The field was omitted.
    #[display("left out")]
    FieldOmitted,
    /// The whole server was omitted, because it would behave differently without the field.
    #[display("the server is left out")]
    ServerOmitted,
    /// Something else was written, as described.
    Replaced(String),
}

impl Serialize for FieldFallback {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Looks up the absolute path of a program by name.
pub type ProgramLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Collects reports about the fields of one server that its dialect cannot express.
pub(crate) struct WriteReport<'a> {
    pub(crate) profile: Profile,
    pub(crate) find_program: ProgramLookup<'a>,
    pub(crate) server: String,
    pub(crate) unsupported: &'a mut Vec<UnsupportedField>,
}

impl WriteReport<'_> {
    /// The display name of the dialect.
    pub(crate) fn title(&self) -> &'static str {
        title(self.profile)
    }

    pub(crate) fn add(&mut self, field: impl Into<String>, why: impl Into<String>, fallback: FieldFallback) {
        self.unsupported.push(UnsupportedField::new(&self.server, field, why, fallback));
    }

    /// Reports a field that is not written.
    pub(crate) fn add_omitted(&mut self, field: impl Into<String>, why: impl Into<String>) {
        self.add(field, why, FieldFallback::FieldOmitted);
    }

    /// Reports a field that the dialect does not have. `feature` completes the sentence "… cannot express".
    pub(crate) fn add_unsupported(&mut self, field: impl Into<String>, feature: &str) {
        let why = format!("{} cannot express {feature}", self.title());
        self.add_omitted(field, why);
    }

    /// Reports a field that the dialect does not have, if it `is_set`.
    pub(crate) fn add_unsupported_if(&mut self, is_set: bool, field: &str, feature: &str) {
        if is_set {
            self.add_unsupported(field, feature);
        }
    }

    /// The member `key` with the text of an optional field. Reports a text that cannot be written.
    pub(crate) fn optional_member(
        &mut self,
        key: &str,
        field: &str,
        text: Option<Result<String, Reason>>,
    ) -> Option<(String, OutputValue)> {
        let text = text?.map_err(|why| self.add_omitted(field, why)).ok()?;
        Some((key.to_owned(), OutputValue::Text(text)))
    }

    /// The text of a field without which the server would behave differently. If it cannot be written, the server is
    /// not.
    pub(crate) fn required_text(&mut self, field: &str, text: Result<String, Reason>) -> Option<String> {
        text.map_or_else(|why| self.omit_server(field, why), Some)
    }

    /// Reports that something else was written: `done` says what.
    pub(crate) fn add_replaced(
        &mut self,
        field: impl Into<String>,
        why: impl Into<String>,
        done: impl Into<String>,
    ) {
        self.add(field, why, FieldFallback::Replaced(done.into()));
    }

    /// Reports a server that is not written. Returns `None`, which is the result of the callers.
    pub(crate) fn omit_server<T>(&mut self, field: impl Into<String>, why: impl Into<String>) -> Option<T> {
        self.add(field, why, FieldFallback::ServerOmitted);
        None
    }
}

/// The display name of a dialect.
fn title(profile: Profile) -> &'static str {
    match profile {
        Profile::HoloDeck => "HoloDeck",
        Profile::HoloDeck07 => "HoloDeck 0.7",
        Profile::Dominds => "Dominds",
        Profile::AcpV1 => "ACP 1",
        Profile::AcpV2 => "ACP 2",
        Profile::McpJson => "an mcp.json",
    }
}
