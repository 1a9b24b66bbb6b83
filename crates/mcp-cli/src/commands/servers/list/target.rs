//! The choice of what a list command prints.

use crate::commands::servers::list::name_filter::NameFilter;
use crate::commands::servers::list::tools::ToolsView;

/// The output for a configuration without servers.
pub(super) const NO_SERVERS: &str = "no servers are configured\n";

/// What a list command prints.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ListTarget<'a> {
    /// The tools that a filter accepts.
    Tools(ToolsView<'a>, &'a NameFilter),
    /// Prompts.
    Prompts,
    /// Resources and resource templates.
    Resources,
}
