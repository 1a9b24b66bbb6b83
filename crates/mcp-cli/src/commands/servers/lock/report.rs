//! The output of `lock`: each server with its changes since the approval.
//!
//! Each line of a server's text begins with a sign that this module adds, so that it cannot imitate our messages.

use std::fmt::Write as _;
use std::path::Path;

use mcp_host_config::Colour;
use mcp_host_model::RawJson;
use mcp_host_registry::{
    DefinitionPart, Drift, ItemChange, ItemDrift, ItemFinding, ItemKind, LockFile, ServerLists,
    ServerSnapshot,
};
use mcp_host_runtime::ServerDefinitions;
use serde::Serialize;

use super::findings::OfferFindings;
use crate::output::{count, sanitize, style};
use crate::render::findings::{FindingJson, push_finding};

/// The maximum number of lines of a text of a server, such as a description.
const MAX_LINES: usize = 40;

/// The maximum length of a line of such a text, in characters.
const MAX_LINE_CHARS: usize = 400;

/// One server and its changes since the approval.
pub(super) struct ServerDrift<'a> {
    pub(super) server: String,
    /// What the server offers; `None` if it could not be reached.
    pub(super) offer: Option<&'a ServerDefinitions>,
    /// The difference from the previous lock file; `None` if the server could not be reached.
    pub(super) drift: Option<Drift>,
    /// What the previous lock file contains of the server; `None` if it was never approved.
    pub(super) approved: Option<&'a ServerSnapshot>,
    /// The findings of the items that differ.
    pub(super) findings: Vec<ItemFinding>,
    /// How the program differs from the approved one.
    pub(super) program_changes: Vec<String>,
    /// Whether it was not started, because its program is not approved.
    pub(super) is_waiting: bool,
    /// How many items with hard findings are not approved.
    pub(super) held_back: usize,
}

/// The JSON document of `lock`.
#[derive(Serialize)]
pub(super) struct LockJson<'a> {
    /// The path of the lock file.
    lock: String,
    /// Whether the lock file was written.
    written: bool,
    servers: Vec<ServerDriftJson<'a>>,
}

/// A server in the JSON document.
#[derive(Serialize)]
struct ServerDriftJson<'a> {
    name: &'a str,
    /// Whether the server could be reached.
    reached: bool,
    /// Whether the previous lock file contains the server.
    approved: bool,
    /// What changed of the server itself: `name`, `version` or `instructions`.
    #[serde(rename = "about")]
    identity_changes: Vec<&'static str>,
    changes: Vec<ChangeJson>,
    /// How its program differs. It is not started then, unless the command approves it.
    program: &'a [String],
    /// The findings of what differs.
    findings: Vec<FindingJson<'a>>,
}

/// A changed tool, prompt, resource or template in the JSON document.
#[derive(Serialize)]
struct ChangeJson {
    /// The kind of the item.
    item: &'static str,
    name: String,
    /// `new`, `changed` or `gone`.
    change: &'static str,
    /// The changed parts of the definition.
    parts: Vec<&'static str>,
    /// The beginning of the approved description.
    before: Option<String>,
    /// The beginning of the current description.
    after: Option<String>,
}

impl<'a> LockJson<'a> {
    /// The JSON document.
    pub(super) fn new(lock: &Path, written: bool, servers: &'a [ServerDrift<'a>]) -> LockJson<'a> {
        LockJson {
            lock: lock.display().to_string(),
            written,
            servers: servers.iter().map(ServerDrift::to_json).collect(),
        }
    }
}

impl<'a> ServerDrift<'a> {
    /// Adds the findings of what differs, and what `lock` does not approve.
    pub(super) fn with_findings(self, all: &OfferFindings, lock: &LockFile) -> ServerDrift<'a> {
        let findings = self.drift.as_ref().map(|drift| all.of_drift(&self.server, drift));
        let held_back = self.offer.map_or(0, |offer| all.unapproved(&self.server, offer, lock).len());
        ServerDrift { findings: findings.unwrap_or_default(), held_back, ..self }
    }

    fn to_json(&self) -> ServerDriftJson<'_> {
        let drift = self.drift.as_ref();
        let changes = drift.map(Drift::items).unwrap_or_default();
        ServerDriftJson {
            name: &self.server,
            reached: self.offer.is_some(),
            approved: self.approved.is_some(),
            identity_changes: drift
                .into_iter()
                .flat_map(Drift::identity_changes)
                .map(|it| it.as_str())
                .collect(),
            changes: changes.iter().map(|it| self.change_json(it)).collect(),
            program: &self.program_changes,
            findings: self.findings.iter().map(FindingJson::new).collect(),
        }
    }

    fn change_json(&self, drifted: &ItemDrift) -> ChangeJson {
        let ItemDrift { item, key, change, .. } = drifted;
        let (change, parts): (&str, &[DefinitionPart]) = match change {
            None => ("gone", &[]),
            Some(ItemChange::New) => ("new", &[]),
            Some(ItemChange::Changed(parts)) => ("changed", parts),
        };
        ChangeJson {
            item: item.as_str(),
            name: key.clone(),
            change,
            parts: parts.iter().map(|it| it.as_str()).collect(),
            before: self.approved.and_then(|it| it.item(*item, key)).and_then(|it| it.text.clone()),
            after: self.offer.and_then(|it| it.observed.item(*item, key)).and_then(|it| it.text.clone()),
        }
    }

    /// The changes as text. A server that is approved for the first time has one line.
    pub(super) fn text(&self, colour: Colour, is_written: bool) -> String {
        let name = sanitize::line(&self.server);
        let line =
            |style, mark: &str, text: &str| format!("{} {name}  {text}\n", style::paint(colour, style, mark));
        let mut program = String::new();
        for change in &self.program_changes {
            let _ = writeln!(program, "  program {}", sanitize::line(change));
        }
        let (Some(offer), Some(drift)) = (self.offer, &self.drift) else {
            if self.is_waiting {
                let why = "not started: it is not what the lock file approves";
                return line(style::WARNING, "!", why) + &program;
            }
            return line(style::FAILURE, "✗", "could not be reached; its approval is unchanged");
        };
        let items = count(offer.observed.items.values().map(|items| items.len()).sum(), "item");
        if drift.is_empty() && !program.is_empty() {
            return line(style::WARNING, "!", "changed since approval") + &program;
        }
        if drift.is_empty() {
            return line(style::SUCCESS, "✓", &format!("unchanged since approval: {items}"));
        }
        if drift.is_never_approved() {
            let mut text = if !is_written {
                line(style::WARNING, "!", &format!("never approved: {items}"))
            } else if self.held_back > 0 {
                let held_back = format!("approved now, except {} of {items}", self.held_back);
                line(style::WARNING, "!", &held_back)
            } else {
                line(style::SUCCESS, "✓", &format!("approved now: {items}"))
            };
            self.findings.iter().for_each(|it| push_finding(&mut text, it));
            return text;
        }
        let mut text = line(style::WARNING, "!", "changed since approval");
        text.push_str(&program);
        for part in drift.identity_changes() {
            let _ = writeln!(text, "  its {}", part.as_str());
        }
        if drift.identity_changes().iter().any(|it| it.as_str() == "instructions") {
            push_lines(&mut text, '+', offer.instructions.as_deref().unwrap_or_default());
        }
        for drifted in drift.items() {
            self.push_item(&mut text, offer, &drifted);
        }
        self.findings.iter().for_each(|it| push_finding(&mut text, it));
        text
    }

    /// Appends the lines about one changed item.
    fn push_item(&self, text: &mut String, offer: &ServerDefinitions, drifted: &ItemDrift) {
        let ItemDrift { item, key, change, .. } = drifted;
        let name = sanitize::line(key);
        let kind = item.as_str();
        let before = self.approved.and_then(|it| it.item(*item, key)).and_then(|it| it.text.as_deref());
        let after = offer.observed.item(*item, key).and_then(|it| it.text.as_deref());
        match change {
            None => {
                let _ = writeln!(text, "  {kind} `{name}` was removed");
            }
            Some(ItemChange::New) => {
                let _ = writeln!(text, "  {kind} `{name}` is new");
                push_lines(text, '+', after.unwrap_or_default());
            }
            Some(ItemChange::Changed(parts)) => {
                let names: Vec<&str> = parts.iter().map(|part| part.description()).collect();
                let _ = writeln!(text, "  {kind} `{name}` has changed: {}", names.join(", "));
                if parts.contains(&DefinitionPart::Description) {
                    push_lines(text, '-', before.unwrap_or_default());
                    push_lines(text, '+', after.unwrap_or_default());
                }
                for part in parts.iter().filter(|it| **it != DefinitionPart::Description) {
                    // The lock file stores only a hash of these, so only the new value can be shown.
                    if let Some(value) = definition_member(*item, key, &offer.lists, *part) {
                        push_lines(text, '+', &format!("{} {value}", part.as_str()));
                    }
                }
            }
        }
    }
}

/// A member of an item's definition, as its server sent it.
fn definition_member(item: ItemKind, key: &str, lists: &ServerLists, part: DefinitionPart) -> Option<String> {
    let raw: &RawJson = match item {
        ItemKind::Tool => &lists.tools.iter().find(|it| *it.name == *key)?.raw,
        ItemKind::Prompt => &lists.prompts.iter().find(|it| *it.name == *key)?.raw,
        ItemKind::Resource => &lists.resources.iter().find(|it| *it.uri == *key)?.raw,
        ItemKind::Template => &lists.templates.iter().find(|it| *it.uri_template == *key)?.raw,
    };
    let members: std::collections::BTreeMap<String, &serde_json::value::RawValue> = raw.read().ok()?;
    members.get(part.as_str()).map(|it| it.get().to_owned())
}

/// Appends the lines of an untrusted text, each after `sign`.
fn push_lines(output: &mut String, sign: char, text: &str) {
    let text = sanitize::block(text.trim());
    if text.is_empty() {
        return;
    }
    let length = text.lines().count();
    for line in text.lines().take(MAX_LINES) {
        let shown: String = line.chars().take(MAX_LINE_CHARS).collect();
        let more = if shown.len() < line.len() { "…" } else { "" };
        let _ = writeln!(output, "    {sign} {shown}{more}");
    }
    if length > MAX_LINES {
        let _ = writeln!(output, "    {sign} … and {} more lines", length - MAX_LINES);
    }
}
