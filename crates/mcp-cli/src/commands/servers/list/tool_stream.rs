//! Prints tools in parts: those of each server as soon as it is done.
//!
//! A part has the servers that are done since the last part. Their tool names may still change: a server that starts
//! later can claim a name if it is configured before. The problems at the end then name both tools.

use std::collections::HashSet;

use mcp_host_registry::ExposedTool;
use mcp_host_runtime::{HostSnapshot, ServerState, ServerStatus};

use crate::args::Format;
use crate::commands::servers::list::name_filter::NameFilter;
use crate::commands::servers::list::target::{ListTarget, NO_SERVERS};
use crate::commands::servers::list::tools::{COLUMNS, ToolsView, server_tree, tool_row, total_line};
use crate::config::context::Context;
use crate::output::table::{TableStyle, TableWriter};
use crate::render::status::{problem_lines, server_lines_where};

/// A list of tools that is printed in parts.
pub(super) struct ToolStream<'a> {
    is_tree: bool,
    filter: &'a NameFilter,
    style: TableStyle,
    writer: TableWriter<'static>,
    /// Whether anything was printed.
    has_output: bool,
    /// The servers whose tools were printed.
    printed: HashSet<String>,
    /// The servers whose status lines were printed.
    reported: HashSet<String>,
}

impl<'a> ToolStream<'a> {
    /// Creates a stream. `None` if the output is neither a table nor a tree.
    pub(super) fn new(context: &Context, target: ListTarget<'a>) -> Option<ToolStream<'a>> {
        let (is_tree, filter) = match (target, context.format) {
            (ListTarget::Tools(ToolsView::Tree, filter), Format::Text) => (true, filter),
            (ListTarget::Tools(ToolsView::Table, filter), Format::Text) => (false, filter),
            (_, _) => return None,
        };
        let style = context.console.table_style();
        Some(ToolStream {
            is_tree,
            filter,
            style,
            writer: TableWriter::new(&COLUMNS, style),
            has_output: false,
            printed: HashSet::new(),
            reported: HashSet::new(),
        })
    }

    /// The tools of the servers that are done since the last part. Empty if there are none.
    pub(super) fn take_part(&mut self, published: &HostSnapshot) -> String {
        let mut text = self.take_tools(published, |status| status.state != ServerState::Starting);
        if !self.is_tree {
            text.push_str(&self.take_server_lines(published, |status| status.state == ServerState::Failed));
        }
        self.has_output |= !text.is_empty();
        text
    }

    /// The tools of the remaining servers, and the summary.
    pub(super) fn into_rest(mut self, published: &HostSnapshot) -> String {
        let mut text = self.take_tools(published, |_| true);
        let mut sections = Vec::new();
        if !self.is_tree {
            let tools = published.catalog.tools().iter().filter(|tool| self.filter.accepts(tool));
            sections.push(total_line(&tools.collect::<Vec<_>>(), self.style.colour));
            sections.push(self.take_server_lines(published, |_| true));
        }
        // The problems of other tools are of no interest to a filter.
        if self.filter.is_empty() {
            sections.push(problem_lines(published, self.style.colour));
        }
        for section in sections.into_iter().filter(|section| !section.is_empty()) {
            if self.has_output || !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&section);
        }
        if published.servers.is_empty() && text.is_empty() { NO_SERVERS.to_owned() } else { text }
    }

    /// The tools of the servers that `is_due` accepts and that were not printed yet.
    fn take_tools(&mut self, published: &HostSnapshot, is_due: impl Fn(&ServerStatus) -> bool) -> String {
        let due = published.servers.iter().filter(|it| is_due(it) && !self.printed.contains(&*it.id));
        let due: Vec<&ServerStatus> = due.collect();
        let text = if self.is_tree {
            due.iter().map(|status| server_tree(published, status, self.filter, self.style)).collect()
        } else {
            let is_of = |tool: &&ExposedTool| due.iter().any(|status| status.id == tool.server);
            let tools = published.catalog.tools().iter().filter(is_of);
            let rows: Vec<_> = tools.filter(|tool| self.filter.accepts(tool)).map(tool_row).collect();
            self.writer.rows(&rows)
        };
        self.printed.extend(due.iter().map(|status| status.id.to_string()));
        text
    }

    /// The status lines of the servers that `is_due` accepts and that were not printed yet.
    fn take_server_lines(
        &mut self,
        published: &HostSnapshot,
        is_due: impl Fn(&ServerStatus) -> bool,
    ) -> String {
        let is_new = |status: &ServerStatus| is_due(status) && !self.reported.contains(&*status.id);
        let text = server_lines_where(published, is_new, self.style.colour);
        let due = published.servers.iter().filter(|status| is_due(status));
        self.reported.extend(due.map(|status| status.id.to_string()));
        text
    }
}

#[cfg(test)]
mod tests {
    use mcp_host_config::Colour;

    use super::super::tools::tests::published;
    use super::*;

    #[test]
    fn each_server_is_printed_once() {
        use ServerState::{Failed, Ready, Starting};
        let state = |states: [ServerState; 3]| {
            let mut res = published();
            for (status, state) in res.servers.iter_mut().zip(states) {
                status.state = state;
            }
            res
        };
        let style = TableStyle { width: 30, colour: Colour::Never };
        let filter = NameFilter::default();
        let stream = || ToolStream {
            is_tree: false,
            filter: &filter,
            style,
            writer: TableWriter::new(&COLUMNS, style),
            has_output: false,
            printed: HashSet::new(),
            reported: HashSet::new(),
        };
        let table = "TOOL  SERVER  TOKENS  HINT\nread  files       41  reads\nwipe  files        6  destroys\n\
            note  files        2  -\n";
        let total = "3 tools, about 49 tokens\n";
        let mut parts = stream();
        assert_eq!(parts.take_part(&state([Starting, Starting, Starting])), "");
        assert_eq!(parts.take_part(&state([Starting, Failed, Starting])), "✗ gone  failed\n");
        assert_eq!(parts.take_part(&state([Ready, Failed, Starting])), table);
        assert_eq!(parts.take_part(&state([Ready, Failed, Starting])), "");
        assert_eq!(
            parts.into_rest(&state([Ready, Failed, Starting])),
            format!("\n{total}\n✓ files  ready\n… slow   starting\n")
        );
        assert_eq!(
            stream().into_rest(&state([Ready, Failed, Ready])),
            format!("{table}\n{total}\n✓ files  ready\n✗ gone   failed\n✓ slow   ready\n")
        );
    }
}
