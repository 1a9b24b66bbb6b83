//! Markup that poses as a message of the system or the user, that is not displayed, or that loads a URL.

use super::finding::{FindingKind, FindingSeverity, Match};
use super::phrases::has_address;

/// Texts of chat templates and of tool calls, in lower case. A description has no use for them.
const TEMPLATE_MARKS: &[&str] = &[
    "<|im_start|>",
    "<|im_end|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|eot_id|>",
    "<|endoftext|>",
    "<|start_header_id|>",
    "[inst]",
    "[/inst]",
    "<<sys>>",
    "<</sys>>",
    "[system]",
    "[system message]",
    "<function_calls>",
    "</tool_result>",
    "</function_results>",
    "</tool_description>",
    "</description>",
    "\n\nhuman:",
    "\n\nassistant:",
    "### system:",
    "### instruction:",
];

/// Tags that mark orders in published attacks.
const ORDER_TAGS: &[&str] = &["important", "critical", "urgent", "secret", "hidden"];

/// Tags that are hard only if their text addresses the model.
const MESSAGE_TAGS: &[&str] =
    &["system", "system-prompt", "system_prompt", "instructions", "instruction", "admin", "prompt"];

/// Styles that hide an element, without blanks.
const HIDING_STYLES: &[&str] =
    &["display:none", "visibility:hidden", "font-size:0", "opacity:0", "color:transparent"];

/// The longest part of a tag or URL that is read.
const MAX_PART: usize = 512;

/// Finds such markup.
pub(super) fn find(text: &str, matches: &mut Vec<Match>) {
    if !text.contains(['<', '[', '#', '\n']) {
        return;
    }
    let lower = text.to_ascii_lowercase();
    let mut add = |severity, span| {
        matches.push(Match { kind: FindingKind::Markup, severity, span, evidence: None });
    };
    for mark in TEMPLATE_MARKS {
        if let Some(at) = lower.find(mark) {
            add(FindingSeverity::Hard, at..at + mark.len());
        }
    }
    for (at, _) in lower.match_indices('<') {
        let rest = cut(&lower[at + 1..]);
        if let Some(comment) = rest.strip_prefix("!--") {
            let inner = comment.split_once("-->").map_or(comment, |it| it.0);
            let severity = if has_address(inner) { FindingSeverity::Hard } else { FindingSeverity::Soft };
            add(severity, at..at + 4 + inner.len());
            continue;
        }
        let name_length = rest.find(|it: char| !it.is_ascii_alphanumeric() && !matches!(it, '-' | '_'));
        let Some(name) = name_length.map(|it| &rest[..it]) else { continue };
        let Some((tag, after)) = rest.split_once('>') else { continue };
        let inner = after.find(&format!("</{name}")).map(|it| &after[..it]);
        if ORDER_TAGS.contains(&name) {
            add(FindingSeverity::Hard, at..at + 1 + tag.len());
        } else if MESSAGE_TAGS.contains(&name) {
            let is_message = inner.is_some_and(has_address);
            let severity = if is_message { FindingSeverity::Hard } else { FindingSeverity::Soft };
            add(severity, at..at + 1 + tag.len() + inner.map_or(0, str::len));
        } else if tag.contains("style") {
            let style: String = tag.chars().filter(|it| !it.is_whitespace()).collect();
            if HIDING_STYLES.iter().any(|it| style.contains(it)) {
                let severity = if has_address(inner.unwrap_or(after)) {
                    FindingSeverity::Hard
                } else {
                    FindingSeverity::Soft
                };
                add(severity, at..at + 1 + tag.len());
            }
        }
    }
    find_images(text, matches);
}

/// Finds images whose URL has a place for data: displaying one sends the data.
fn find_images(text: &str, matches: &mut Vec<Match>) {
    let markdown = text.match_indices("![").filter_map(|(at, _)| {
        let rest = cut(&text[at..]);
        let (label, url) = rest.split_once("](")?;
        let url = url.split_once(')').map_or(url, |it| it.0);
        Some((at..at + label.len() + 2 + url.len(), url))
    });
    let html = text.match_indices("<img").filter_map(|(at, _)| {
        let rest = cut(&text[at..]);
        let tag = rest.split_once('>').map_or(rest, |it| it.0);
        let url = tag.split_once("src=")?.1;
        Some((at..at + tag.len(), url))
    });
    for (span, url) in markdown.chain(html) {
        let Some((_, path)) = url.split_once("//") else { continue };
        let has_place =
            path.contains(['{', '<', '[', '$', '%']) || path.trim_end_matches(['"', '\'']).ends_with('=');
        let (kind, severity) = if has_place && path.contains(['?', '/', '=']) {
            (FindingKind::Exfiltration, FindingSeverity::Hard)
        } else {
            (FindingKind::Markup, FindingSeverity::Soft)
        };
        matches.push(Match { kind, severity, span, evidence: None });
    }
}

/// The text, or its beginning if it is longer than [`MAX_PART`].
fn cut(text: &str) -> &str {
    let mut end = text.len().min(MAX_PART);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
