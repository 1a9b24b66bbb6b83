//! What `lock` shows: each server, and what of it is not as it was approved. A stranger's words stand behind a sign of
//! ours on lines of their own, so that none of them looks like a line of ours.

use std::fmt::Write as _;
use std::path::Path;

use mcp_config::Colour;
use mcp_host::ServerDefinitions;
use mcp_model::RawJson;
use mcp_registry::{DefinitionPart, Drift, ItemChange, ItemDrift, ItemKind, ServerLists, ServerSnapshot};
use serde::Serialize;

use crate::output::{paint, plain};

/// How many lines of a description are shown.
const MOST_LINES: usize = 40;

/// How much of a line, or of a schema, in characters.
const LONGEST: usize = 400;

/// A server that was looked at.
pub(super) struct Looked<'a> {
    pub(super) server: String,
    /// What it offers; `None` where it could not be reached.
    pub(super) offer: Option<&'a ServerDefinitions>,
    /// How that differs from what was approved.
    pub(super) drift: Option<Drift>,
    /// What was approved before.
    pub(super) approved: Option<&'a ServerSnapshot>,
}

/// `{"lock", "written", "servers"}`.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    lock: String,
    written: bool,
    servers: Vec<ServerDocument<'a>>,
}

#[derive(Serialize)]
struct ServerDocument<'a> {
    name: &'a str,
    reached: bool,
    approved: bool,
    about: Vec<&'static str>,
    changes: Vec<ChangeDocument>,
}

#[derive(Serialize)]
struct ChangeDocument {
    item: &'static str,
    name: String,
    change: &'static str,
    parts: Vec<&'static str>,
    before: Option<String>,
    after: Option<String>,
}

impl<'a> Document<'a> {
    /// What programs are told.
    pub(super) fn of(lock: &Path, written: bool, looked: &'a [Looked<'a>]) -> Document<'a> {
        Document {
            lock: lock.display().to_string(),
            written,
            servers: looked.iter().map(Looked::document).collect(),
        }
    }
}

impl Looked<'_> {
    fn document(&self) -> ServerDocument<'_> {
        let drift = self.drift.as_ref();
        let changes = drift.map(Drift::items).unwrap_or_default();
        ServerDocument {
            name: &self.server,
            reached: self.offer.is_some(),
            approved: self.approved.is_some(),
            about: drift.into_iter().flat_map(Drift::about).map(|it| it.words()).collect(),
            changes: changes.iter().map(|it| self.change(it)).collect(),
        }
    }

    fn change(&self, drifted: &ItemDrift) -> ChangeDocument {
        let ItemDrift { item, key, change } = drifted;
        let (change, parts): (&str, &[DefinitionPart]) = match change {
            None => ("gone", &[]),
            Some(ItemChange::New) => ("new", &[]),
            Some(ItemChange::Changed(parts)) => ("changed", parts),
        };
        ChangeDocument {
            item: item.as_str(),
            name: key.clone(),
            change,
            parts: parts.iter().map(|it| it.as_str()).collect(),
            before: self.approved.and_then(|it| it.item(*item, key)).and_then(|it| it.text.clone()),
            after: self.offer.and_then(|it| it.observed.item(*item, key)).and_then(|it| it.text.clone()),
        }
    }

    /// What people read; of a server that is approved as a whole just now, not every word.
    pub(super) fn text(&self, colour: Colour, written: bool) -> String {
        let name = plain::line(&self.server);
        let line = |style, mark: &str, words: &str| {
            format!("{} {name}  {words}\n", paint::paint(colour, style, mark))
        };
        let (Some(offer), Some(drift)) = (self.offer, &self.drift) else {
            return line(
                paint::BAD,
                "✗",
                "was not reached: nothing is known of it, and nothing of it is changed",
            );
        };
        let count = match offer.observed.items.values().map(|it| it.len()).sum::<usize>() {
            1 => "1 item".to_owned(),
            many => format!("{many} items"),
        };
        if drift.is_empty() {
            return line(paint::GOOD, "✓", &format!("is as it was approved: {count}"));
        }
        if drift.is_never_approved() {
            let words = match written {
                true => format!("is approved now: {count}"),
                false => format!("was never approved: {count}"),
            };
            return line(
                if written { paint::GOOD } else { paint::DOUBTFUL },
                if written { "✓" } else { "!" },
                &words,
            );
        }
        let mut res = line(paint::DOUBTFUL, "!", "is not as it was approved");
        for part in drift.about() {
            let _ = writeln!(res, "  its {}", part.words());
        }
        if drift.about().iter().any(|it| it.words() == "instructions") {
            lines(&mut res, '+', offer.instructions.as_deref().unwrap_or_default());
        }
        for drifted in drift.items() {
            self.item(&mut res, offer, &drifted);
        }
        res
    }

    fn item(&self, res: &mut String, offer: &ServerDefinitions, drifted: &ItemDrift) {
        let ItemDrift { item, key, change } = drifted;
        let name = plain::line(key);
        let kind = item.as_str();
        let before = self.approved.and_then(|it| it.item(*item, key)).and_then(|it| it.text.as_deref());
        let after = offer.observed.item(*item, key).and_then(|it| it.text.as_deref());
        match change {
            None => {
                let _ = writeln!(res, "  {kind} `{name}` is gone");
            }
            Some(ItemChange::New) => {
                let _ = writeln!(res, "  {kind} `{name}` is new");
                lines(res, '+', after.unwrap_or_default());
            }
            Some(ItemChange::Changed(parts)) => {
                let words: Vec<&str> = parts.iter().map(|it| it.description()).collect();
                let _ = writeln!(res, "  {kind} `{name}` has changed: {}", words.join(", "));
                if parts.contains(&DefinitionPart::Description) {
                    lines(res, '-', before.unwrap_or_default());
                    lines(res, '+', after.unwrap_or_default());
                }
                for part in parts.iter().filter(|it| **it != DefinitionPart::Description) {
                    // Of these only the hash was kept: what they are now is all there is to be shown.
                    if let Some(value) = member(*item, key, &offer.lists, *part) {
                        lines(res, '+', &format!("{} {value}", part.as_str()));
                    }
                }
            }
        }
    }
}

/// A member of an item's definition, as its server wrote it.
fn member(item: ItemKind, key: &str, lists: &ServerLists, part: DefinitionPart) -> Option<String> {
    let raw: &RawJson = match item {
        ItemKind::Tool => &lists.tools.iter().find(|it| *it.name == *key)?.raw,
        ItemKind::Prompt => &lists.prompts.iter().find(|it| *it.name == *key)?.raw,
        ItemKind::Resource => &lists.resources.iter().find(|it| *it.uri == *key)?.raw,
        ItemKind::Template => &lists.templates.iter().find(|it| *it.uri_template == *key)?.raw,
    };
    let members: std::collections::BTreeMap<String, &serde_json::value::RawValue> = raw.read().ok()?;
    members.get(part.as_str()).map(|it| it.get().to_owned())
}

/// Each line of a stranger's text behind a sign.
fn lines(res: &mut String, sign: char, text: &str) {
    let text = plain::block(text.trim());
    if text.is_empty() {
        return;
    }
    let count = text.lines().count();
    for line in text.lines().take(MOST_LINES) {
        let shown: String = line.chars().take(LONGEST).collect();
        let more = if shown.len() < line.len() { "…" } else { "" };
        let _ = writeln!(res, "    {sign} {shown}{more}");
    }
    if count > MOST_LINES {
        let _ = writeln!(res, "    {sign} … and {} more lines", count - MOST_LINES);
    }
}
