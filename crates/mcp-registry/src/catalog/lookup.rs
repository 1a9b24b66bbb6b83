//! Tool lookup by a name that a person or a model wrote.

use crate::name::exposed_items::ExposedTool;

/// The result of a lookup.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_enums,
    reason = "mcp-host, mcp-gateway and mcp-cli decide on each, so that none is forgotten"
)]
pub enum ToolLookup<'a> {
    /// One tool.
    Found(&'a ExposedTool),
    /// The original name of several tools, in the catalog's order.
    Ambiguous(Vec<&'a ExposedTool>),
    /// No tool.
    Missing {
        /// The tool with the most similar exposed or original name, if one is similar.
        nearest: Option<&'a ExposedTool>,
    },
}

/// Returns the tool with the most similar name: at most a third of the characters, and at most three, may differ.
pub(crate) fn nearest<'a>(tools: &'a [ExposedTool], name: &str) -> Option<&'a ExposedTool> {
    // A very long name is not similar to any, and would be slow to compare.
    const MAX_NAME_BYTES: usize = 256;
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let limit = (name.chars().count() / 3).clamp(1, 3);
    let wanted = counts(name);
    // One edit replaces at most one character, so names with too many different characters are skipped.
    let distance = |it: &str| {
        let differ: usize = counts(it).iter().zip(&wanted).map(|(left, right)| left.abs_diff(*right)).sum();
        (differ <= 2 * limit && it.len() <= MAX_NAME_BYTES).then(|| strsim::osa_distance(it, name))
    };
    tools
        .iter()
        .filter_map(|it| {
            let nearer = distance(it.name.as_str()).into_iter().chain(distance(&it.tool.name)).min()?;
            (nearer <= limit).then_some((nearer, it))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, it)| it)
}

/// Counts the characters of `name`, by their last five bits.
fn counts(name: &str) -> [usize; 32] {
    let mut res = [0; 32];
    for it in name.chars() {
        res[it as usize % 32] += 1;
    }
    res
}
