//! Findings: places in the definitions of a server that try to influence a model or a user beyond their purpose.
//!
//! A model follows the descriptions of all tools that it sees. The rules here recognize published attacks: orders to
//! the model, hidden text, requests for secrets, and text about tools of other servers. They read English, and find
//! known forms only: no finding is no proof that a server is harmless.
//!
//! The time is linear in the size of the definition, and the number of findings is limited.

mod characters;
mod definition_texts;
mod encoded;
mod finding;
mod markup;
mod phrases;
mod rules;
mod scan;
mod tokens;

use mcp_host_model::RawJson;

use crate::lists::ServerLists;
use crate::lock::ItemKind;

pub use finding::{Finding, FindingKind, FindingSeverity, FindingText, ItemFinding, OtherTools};

/// Returns the findings of a tool, prompt, resource or template, as its server sent it. Hard ones are first.
pub fn definition_findings(definition: &RawJson, others: &OtherTools) -> Vec<Finding> {
    let mut findings = scan::Findings::new(others);
    definition_texts::scan_definition(definition, &mut findings);
    findings.into_list()
}

/// Returns the findings of the instructions of a server. Hard ones are first.
pub fn instruction_findings(instructions: &str, others: &OtherTools) -> Vec<Finding> {
    let mut findings = scan::Findings::new(others);
    findings.scan_text(instructions, &finding::TextPlace::instructions());
    findings.into_list()
}

/// Returns the findings of everything that a server offers: those of its instructions, then those of its items.
pub fn server_findings(
    instructions: Option<&str>,
    lists: &ServerLists,
    others: &OtherTools,
) -> Vec<ItemFinding> {
    let ServerLists { tools, prompts, resources, templates, rejected: _ } = lists;
    let mut res: Vec<ItemFinding> = instruction_findings(instructions.unwrap_or_default(), others)
        .into_iter()
        .map(|finding| ItemFinding { item: None, finding })
        .collect();
    let mut add = |kind: ItemKind, key: &str, raw: &RawJson| {
        let found = definition_findings(raw, others).into_iter();
        res.extend(found.map(|finding| ItemFinding { item: Some((kind, key.to_owned())), finding }));
    };
    tools.iter().for_each(|it| add(ItemKind::Tool, &it.name, &it.raw));
    prompts.iter().for_each(|it| add(ItemKind::Prompt, &it.name, &it.raw));
    resources.iter().for_each(|it| add(ItemKind::Resource, &it.uri, &it.raw));
    templates.iter().for_each(|it| add(ItemKind::Template, &it.uri_template, &it.raw));
    res
}
