//! The names of the built-in tools.

use strum::{EnumString, IntoStaticStr, VariantArray};

/// The built-in tools, in the order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum BuiltInTool {
    Echo,
    Add,
    Sleep,
    Fail,
    Mixed,
    ChangeTools,
    Log,
    Grow,
    Exit,
    Ask,
    Env,
    Header,
}

impl BuiltInTool {
    pub(super) fn find(name: &str) -> Option<BuiltInTool> {
        name.parse().ok()
    }
}
