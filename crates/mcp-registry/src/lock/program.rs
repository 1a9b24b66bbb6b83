//! What a server starts or connects to, as it is approved: no values of variables and headers, and no secrets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::VariantArray;

/// A part of what a server starts or connects to.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    strum::IntoStaticStr,
    strum::VariantArray,
    Serialize,
    Deserialize,
)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ProgramPart {
    /// The transport.
    Transport,
    /// The program.
    Command,
    /// The arguments, without secrets.
    Arguments,
    /// The package that `npx`, `uvx` or a container program loads, with the version or digest that the entry pins.
    Package,
    /// The URL, without secrets.
    Url,
    /// The working directory.
    Directory,
    /// The names of variables, and the values of those that choose programs, such as `PATH`.
    Variables,
    /// The names of headers.
    Headers,
    /// Files of the project that are run, with hashes of their content.
    Files,
    /// Other settings, such as those of logins.
    Settings,
}

/// What a server starts or connects to. Each part is a list of texts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProgramRecord(BTreeMap<ProgramPart, Vec<String>>);

impl ProgramRecord {
    /// Adds a text to a part.
    pub fn add(&mut self, part: ProgramPart, text: impl Into<String>) {
        self.0.entry(part).or_default().push(text.into());
    }

    /// Returns the texts of a part.
    pub fn part(&self, part: ProgramPart) -> &[String] {
        self.0.get(&part).map_or(&[], Vec::as_slice)
    }

    /// Returns the parts that differ.
    pub fn changed_parts(&self, other: &ProgramRecord) -> Vec<ProgramPart> {
        ProgramPart::VARIANTS.iter().copied().filter(|it| self.part(*it) != other.part(*it)).collect()
    }

    /// Describes each part that differs, for messages: ``arguments: `b`, approved: `a` ``.
    pub fn describe_changes(&self, now: &ProgramRecord) -> Vec<String> {
        let text = |texts: &[String]| match texts {
            [] => "none".to_owned(),
            texts => format!("`{}`", visible(&texts.join(" "))),
        };
        let describe = |part: ProgramPart| {
            let (before, now) = (text(self.part(part)), text(now.part(part)));
            format!("{}: {now}, approved: {before}", part.as_str())
        };
        self.changed_parts(now).into_iter().map(describe).collect()
    }
}

/// Makes characters outside of ASCII visible, because some look like others.
fn visible(text: &str) -> String {
    text.chars()
        .flat_map(|it| match it {
            ' '..='~' => vec![it],
            _ => it.escape_unicode().collect(),
        })
        .take(500)
        .collect()
}

impl ProgramPart {
    /// Returns the name in the lock file.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
