//! Tool lookup by a name that a person or a model wrote.

use std::sync::Arc;

use crate::catalog::exposed_items::ExposedTool;
use crate::catalog::server_slice::ServerSlice;

/// Maximum number of tools that are compared with a name. A lookup of an unknown name costs little more than that of
/// a tool.
const MAX_COMPARED: usize = 200;

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

/// Finds the tool with the most similar exposed or original name among the first ones; first are those of the servers
/// whose ids the name begins with. At most a third of the characters, and at most three, may differ.
pub(crate) fn find_nearest<'a>(slices: &'a [Arc<ServerSlice>], name: &str) -> Option<&'a ExposedTool> {
    // A very long name is not similar to any, and would be slow to compare.
    const MAX_NAME_BYTES: usize = 256;
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let limit = (name.chars().count() / 3).clamp(1, 3);
    let name_counts = count_characters(name);
    // An edit changes the length by at most one character, which has at most four bytes. Most names end here.
    let max_difference = if name.is_ascii() { limit } else { 4 * limit };
    let has_similar_length = |other: &str| {
        let difference = other.len().abs_diff(name.len());
        difference <= max_difference || (difference <= 4 * limit && !other.is_ascii())
    };
    // One edit replaces at most one character, so names with too many different characters are skipped.
    let distance = |other: &str| {
        if !has_similar_length(other) {
            return None;
        }
        let counts = count_characters(other);
        let difference: usize =
            counts.iter().zip(&name_counts).map(|(left, right)| usize::from(left.abs_diff(*right))).sum();
        (difference <= 2 * limit && other.len() <= MAX_NAME_BYTES).then(|| strsim::osa_distance(other, name))
    };
    let is_named = |slice: &&Arc<ServerSlice>| name.starts_with(slice.entry.id.as_str());
    let named = slices.iter().filter(is_named);
    let slices = named.chain(slices.iter().filter(|slice| !is_named(slice)));
    slices
        .flat_map(|slice| &slice.tools)
        .take(MAX_COMPARED)
        .filter_map(|tool| {
            let distances = [distance(tool.name.as_str()), distance(&tool.tool.name)];
            let smallest = distances.into_iter().flatten().min()?;
            (smallest <= limit).then_some((smallest, tool))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, tool)| tool)
}

/// Counts the characters of `name`, by their last five bits.
fn count_characters(name: &str) -> [u8; 32] {
    let mut res = [0; 32];
    for character in name.chars() {
        let count: &mut u8 = &mut res[character as usize % 32];
        *count = count.saturating_add(1);
    }
    res
}
