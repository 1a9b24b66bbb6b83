//! Tool lookup by a name that a person or a model wrote.

use std::sync::Arc;

use crate::catalog::exposed_items::ExposedTool;
use crate::catalog::server_slice::ServerSlice;

/// Maximum number of tools that are compared with a name, so that a call of an unknown tool costs about as much as a
/// call.
const MAX_COMPARED: usize = 64;

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
    let (name_set, name_counts) = (byte_set(name), count_bytes(name));
    // An edit changes the length by at most one character, which has at most four bytes. Most names end here.
    let max_difference = if name.is_ascii() { limit } else { 4 * limit };
    let has_similar_length = |other: &str| {
        let difference = other.len().abs_diff(name.len());
        difference <= max_difference || (difference <= 4 * limit && !other.is_ascii())
    };
    // One edit replaces at most one character, so names with too many different bytes are skipped.
    let distance = |other: &str| {
        if !has_similar_length(other) || other.len() > MAX_NAME_BYTES {
            return None;
        }
        let max_difference = if other.is_ascii() { max_difference } else { 4 * limit };
        // The set is cheaper, and most names end there.
        let has_similar_set = (byte_set(other) ^ name_set).count_ones() as usize <= 2 * max_difference;
        let is_similar =
            has_similar_set && difference(&count_bytes(other), &name_counts) <= 2 * max_difference;
        is_similar.then(|| strsim::osa_distance(other, name))
    };
    let is_named = |slice: &&Arc<ServerSlice>| name.starts_with(slice.entry.id.as_str());
    let named = slices.iter().filter(is_named);
    let slices = named.chain(slices.iter().filter(|slice| !is_named(slice)));
    slices
        .flat_map(|slice| &slice.tools)
        .take(MAX_COMPARED)
        .filter_map(|tool| {
            let (exposed, original) = (tool.name.as_str(), &*tool.tool.name);
            // A name with the prefix of the tool is closer to the exposed name.
            let has_prefix = exposed.strip_suffix(original).is_some_and(|prefix| name.starts_with(prefix));
            let original = if has_prefix { None } else { distance(original) };
            let distances = [distance(exposed), original];
            let smallest = distances.into_iter().flatten().min()?;
            (smallest <= limit).then_some((smallest, tool))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, tool)| tool)
}

/// The set of the bytes of `name`, by their last six bits.
fn byte_set(name: &str) -> u64 {
    name.bytes().fold(0, |set, byte| set | 1 << (byte % 64))
}

/// Counts the bytes of `name`, which are at most 256, by their last five bits.
fn count_bytes(name: &str) -> [u8; 32] {
    let mut res = [0_u8; 32];
    for byte in name.bytes() {
        let count = &mut res[usize::from(byte % 32)];
        *count = count.saturating_add(1);
    }
    res
}

/// The number of bytes by which two names differ, regardless of their order.
fn difference(left: &[u8; 32], right: &[u8; 32]) -> usize {
    // Small integers, so that the compiler compares many at once.
    let sum: u16 = left.iter().zip(right).map(|(left, right)| u16::from(left.abs_diff(*right))).sum();
    usize::from(sum)
}
