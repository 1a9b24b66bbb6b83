//! A reader for configurations of any program: YAML, JSON or TOML, every mistake in one pass, with positions,
//! suggestions and fixes.
//!
//! A configuration is a set of serde structs. Each field is a [`Required`] or an [`Optional`], which knows
//! its position. [`read`] reports every unknown key, missing key and wrong type at once; a check of the
//! program adds its own mistakes. [`fix_all`] corrects what can be corrected, and reads the text again to
//! verify it. Messages do not quote values, because these may be secrets.
//!
//! ```
//! use mcp_host_config::reader::{Format, Optional, Reporter, Required, read};
//! use serde::Deserialize;
//!
//! #[derive(Deserialize)]
//! struct Job {
//!     folder: Required<String>,
//!     keep: Optional<i64>,
//! }
//!
//! let check = |job: &Job, report: &Reporter| {
//!     if job.keep.value().is_some_and(|keep| *keep < 1) {
//!         report.error(&job.keep, "'keep' must be at least 1", "write the number of backups to keep");
//!     }
//! };
//! let document = read("folder: /home\nkeeep: 3\n", Format::Yaml, check);
//! let [mistake] = &document.diagnostics[..] else { panic!("the text has one mistake") };
//! assert_eq!((mistake.line, mistake.help.as_deref()), (2, Some("did you mean `keep`?")));
//! assert_eq!(document.value.unwrap().folder.value().unwrap(), "/home");
//! ```
//!
//! Limits: a text has at most 1 MiB, 64 levels and 100,000 values, with aliases expanded; more is one error
//! ([`Code::TooLarge`]).
//!
//! Types of values: `bool`, numbers of up to 64 bits, `String`, `Option`, lists, maps from `String`, structs
//! of at most 127 fields, and enums of unit variants. Others, such as tuples and untagged enums, cannot be
//! read; a diagnostic says that the program is at fault. Wrap items as well (`Vec<Required<T>>`,
//! `BTreeMap<String, Required<T>>`): after a mistake in an item that is not wrapped, the rest of the list or
//! map is not read, and it has no value. TOML has no integers above `i64::MAX`.
//!
//! A type may implement `Deserialize` itself, for example by `#[serde(try_from = "String")]`. Its error
//! ([`serde::de::Error::custom`]) is reported at the value with its message, which should not quote a secret.
//!
//! [`Configuration::render`] prints the diagnostics with their lines, and masks the secrets that the program names.
//! [`render`](crate::render()) is for configurations of MCP servers: it masks nearly all values of others.
//! Diagnostics have the codes of this crate's own dialects; [`Code::explain`] has examples from these.

use std::collections::BTreeSet;

use mcp_host_model::{ErrorKind, Severity};
use serde::de::{Deserialize, DeserializeOwned, Deserializer};

use crate::de::{Field, Location, OptionalField, ReadContext};
use crate::diagnostic::{Applicability, Code, Diagnostic, FixIntent, LineIndex, RawDiagnostic};
use crate::edit::fix::{FixError, FixedFile, apply_fixes_to_text, fix_all_in_text};
use crate::profile::rules::{GENERAL_JSON, GENERAL_TOML, GENERAL_YAML, ProfileRules};
use crate::read::fix_plan::SourceTree;
use crate::read::sort_diagnostics;
use crate::render::{Colour, MaskedText, ShownValues, render_masked};
use crate::syntax::{self, ParsedText, Syntax, child_pointer};

/// The format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// YAML 1.2.
    Yaml,
    /// JSON with comments and trailing commas.
    Json,
    /// TOML.
    Toml,
}

impl Format {
    fn syntax(self) -> Syntax {
        self.rules().syntax
    }

    fn rules(self) -> &'static ProfileRules {
        match self {
            Format::Yaml => &GENERAL_YAML,
            Format::Json => &GENERAL_JSON,
            Format::Toml => &GENERAL_TOML,
        }
    }
}

/// A field that must be in the file.
#[derive(Debug)]
pub struct Required<T>(Field<T>);

/// A field that may be missing.
#[derive(Debug)]
pub struct Optional<T>(OptionalField<T>);

impl<T> Required<T> {
    /// The value; `None` if it is missing or has a mistake, which is reported.
    pub fn value(&self) -> Option<&T> {
        self.0.value()
    }
}

impl<T> Optional<T> {
    /// The value; `None` if it is missing, or has a mistake, which is reported.
    pub fn value(&self) -> Option<&T> {
        self.0.value()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Required<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Field::deserialize(deserializer).map(Required)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Optional<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        OptionalField::deserialize(deserializer).map(Optional)
    }
}

/// A field with a position in the file: [`Required`] or [`Optional`].
pub trait Spanned: sealed::Sealed {}

impl<T> Spanned for Required<T> {}
impl<T> Spanned for Optional<T> {}

mod sealed {
    use super::{Location, Optional, Required};

    pub trait Sealed {
        #[doc(hidden)]
        #[expect(private_interfaces, reason = "only this module calls it")]
        fn location(&self) -> Location;
    }

    impl<T> Sealed for Required<T> {
        #[expect(private_interfaces, reason = "only this module calls it")]
        fn location(&self) -> Location {
            self.0.at
        }
    }

    impl<T> Sealed for Optional<T> {
        #[expect(private_interfaces, reason = "only this module calls it")]
        fn location(&self) -> Location {
            self.0.at
        }
    }
}

/// Receives the mistakes that a program finds itself.
#[derive(derive_more::Debug)]
pub struct Reporter<'a>(#[debug(skip)] &'a ReadContext);

impl Reporter<'_> {
    /// Adds an error at a field, with the code [`Code::OutOfRange`]. The message should not quote a value that may be a
    /// secret.
    pub fn error(&self, field: &impl Spanned, message: impl Into<String>, help: impl Into<String>) {
        self.0.error(Code::OutOfRange, &field.location(), message, help);
    }

    /// Adds a warning at a field, as [`Reporter::error`].
    pub fn warning(&self, field: &impl Spanned, message: impl Into<String>, help: impl Into<String>) {
        self.0.warning(Code::OutOfRange, &field.location(), message, help);
    }
}

/// A text that was read.
#[derive(Debug)]
#[non_exhaustive]
pub struct Configuration<T> {
    /// What was understood; `None` if the text has no readable root. Fields with mistakes have no value.
    pub value: Option<T>,
    /// Every mistake, in the order of the text. [`Configuration::render`] prints them.
    pub diagnostics: Vec<Diagnostic>,
    format: Format,
    /// The starts of the values that were read.
    read: BTreeSet<usize>,
}

impl<T> Configuration<T> {
    /// Returns whether a diagnostic is an error. A program should not run with such a configuration.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|it| it.severity == Severity::Error)
    }

    /// The diagnostics with their lines, for a terminal. `text` is the text that was read.
    ///
    /// Masks the values below the keys of secrets, at any level. So that a misspelt key reveals no secret, it
    /// also masks comments, values that were not read, and texts that cannot be parsed. Without keys of
    /// secrets nothing is masked.
    pub fn render(&self, name: &str, text: &str, colour: Colour, secret_keys: &[&str]) -> String {
        let shown = ShownValues { read: &self.read, secret_keys };
        let masked = MaskedText::by_key(text, self.format.syntax(), shown);
        render_masked(name, text, masked, &self.diagnostics, colour)
    }
}

/// Reads a text, and passes what was understood to `check`. Never fails: every mistake is in the diagnostics.
pub fn read<T: DeserializeOwned>(
    text: &str,
    format: Format,
    check: impl FnOnce(&T, &Reporter<'_>),
) -> Configuration<T> {
    let ParsedText { root, dropped: _, diagnostics, extensions: _ } = syntax::parse_as(text, format.syntax());
    let context = ReadContext::new(format.rules(), "");
    diagnostics.into_iter().for_each(|it| context.report(it));
    let value: Option<T> = root.as_ref().and_then(|root| context.read(root, &Location::root(root, &context)));
    if let Some(value) = &value {
        check(value, &Reporter(&context));
    }
    let read = context.locations.value_starts();
    let lines = LineIndex::new(text);
    let source = SourceTree { text, syntax: format.syntax(), root: root.as_ref() };
    let mut diagnostics = context.into_diagnostics();
    remove_misspelt(&mut diagnostics);
    let mut diagnostics: Vec<_> = diagnostics
        .into_iter()
        .map(|it| {
            let fix = source.plan_fix(&it);
            let mut res = it.locate(&lines, None, fix);
            // The kind `McpConfig` is about servers.
            if res.kind == ErrorKind::McpConfig {
                res.kind = ErrorKind::Validation;
            }
            res
        })
        .collect();
    sort_diagnostics(&mut diagnostics);
    Configuration { value, diagnostics, format, read }
}

/// Removes the missing keys that another diagnostic already reports as misspelt.
fn remove_misspelt(diagnostics: &mut Vec<RawDiagnostic>) {
    let intended_pointer = |it: &RawDiagnostic| match &it.fix {
        Some(FixIntent::RenameKey(name, _)) => {
            it.pointer.rsplit_once('/').map(|it| child_pointer(it.0, name))
        }
        _ => None,
    };
    let intended: BTreeSet<String> = diagnostics.iter().filter_map(intended_pointer).collect();
    diagnostics.retain(|it| it.code != Code::MissingKey || !intended.contains(&it.pointer));
}

/// Applies the fixes of these diagnostics to the text that they were made from. Diagnostics without a fix are ignored.
///
/// The new text is read again with `check`. Every mistake must have disappeared, and only the values that the
/// fixes name may differ; otherwise nothing is changed.
pub fn apply_fixes<'a, T: DeserializeOwned>(
    text: &str,
    format: Format,
    check: impl Fn(&T, &Reporter<'_>),
    diagnostics: impl IntoIterator<Item = &'a Diagnostic>,
) -> Result<String, FixError> {
    apply_fixes_to_text(text, format.syntax(), &|text| read(text, format, &check).diagnostics, diagnostics)
}

/// Applies every fix that is at least as certain as `least`, repeatedly, until none is left. A fix that cannot be
/// verified is skipped.
pub fn fix_all<T: DeserializeOwned>(
    text: &str,
    format: Format,
    check: impl Fn(&T, &Reporter<'_>),
    least: Applicability,
) -> FixedFile {
    fix_all_in_text(text, format.syntax(), &|text| read(text, format, &check).diagnostics, least)
}
