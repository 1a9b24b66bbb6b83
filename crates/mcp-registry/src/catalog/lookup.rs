//! Finding a tool by the name somebody typed.

use crate::name::exposed_items::ExposedTool;

/// What a name led to.
#[derive(Debug, Clone)]
pub enum ToolLookup<'a> {
    /// One tool.
    Found(&'a ExposedTool),
    /// No exposed name, but the original name of several tools, in the catalog's order.
    Ambiguous(Vec<&'a ExposedTool>),
    /// No tool.
    Missing {
        /// The tool whose exposed or original name is nearest, if any is near.
        nearest: Option<&'a ExposedTool>,
    },
}

/// The tool whose exposed or original name is at most a third of `name` away, three edits at the most; the first of
/// the nearest.
pub(crate) fn nearest<'a>(tools: &'a [ExposedTool], name: &str) -> Option<&'a ExposedTool> {
    // A very long name is near nothing, and comparing it would take long.
    const LONGEST: usize = 256;
    if name.len() > LONGEST {
        return None;
    }
    let limit = (name.chars().count() / 3).clamp(1, 3);
    let wanted = counts(name);
    // One edit puts at most one character in the place of another: names whose characters differ more need no closer
    // look.
    let distance = |it: &str| {
        let differ: usize = counts(it).iter().zip(&wanted).map(|(left, right)| left.abs_diff(*right)).sum();
        (differ <= 2 * limit && it.len() <= LONGEST).then(|| strsim::osa_distance(it, name))
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

/// How often each character stands in `name`, those that agree in their last five bits taken together.
fn counts(name: &str) -> [usize; 32] {
    let mut res = [0; 32];
    for it in name.chars() {
        res[it as usize % 32] += 1;
    }
    res
}
