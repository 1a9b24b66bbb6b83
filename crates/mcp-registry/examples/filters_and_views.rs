//! A catalog of two servers with filters, renamed tools and one view per agent:
//! `cargo run -p mcp-host-registry --no-default-features --example filters_and_views`.
//!
//! The lists are texts here. A program takes them from its connections.

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;
use std::sync::Arc;

use mcp_host_model::{Exposure, NameClass, NamePolicy, NameTransform, RawJson, ServerId, read_tools};
use mcp_host_registry::{
    Builtins, Catalog, CatalogServer, ListKind, Selection, ServerLists, ToolLookup, ViewFilter,
};

/// A server whose tools have these names.
fn server(id: &str, exposure: Exposure, tools: &[&str]) -> Result<CatalogServer, Box<dyn Error>> {
    let tools: Vec<_> =
        tools.iter().map(|name| format!(r#"{{"name": "{name}", "inputSchema": {{}}}}"#)).collect();
    let page = RawJson::parse(format!(r#"{{"tools": [{}]}}"#, tools.join(",")).into_bytes().into())?;
    let lists = ServerLists::of_tools(read_tools(&page)?.into_shared());
    Ok(CatalogServer::new(ServerId::parse(id)?, exposure, Arc::new(lists)))
}

/// The names of the tools that a view shows.
fn names(catalog: &Catalog, view: &ViewFilter) -> Vec<String> {
    catalog.view(view).tools.iter().map(|tool| tool.name.to_string()).collect()
}

/// Returns the lines that the example prints.
pub(crate) fn run() -> Result<Vec<String>, Box<dyn Error>> {
    // Of `files`, everything except what deletes. Names are `files__…`, so that they cannot collide.
    let mut files = Exposure::all(NamePolicy::Qualify { class: NameClass::Strict });
    files.tools.filter.blacklist = vec!["delete*".to_owned()];
    // Of `git`, only two tools, as `git_…`.
    let mut git = Exposure::all(NamePolicy::Reject);
    git.tools.filter.whitelist = vec!["log".to_owned(), "diff".to_owned()];
    git.tools.transforms = vec![NameTransform::Prefix { remove: String::new(), add: "git_".to_owned() }];
    let servers = [
        server("files", files.clone(), &["read.file", "write.file", "delete.file"])?,
        server("git", git.clone(), &["log", "diff", "push"])?,
    ];
    let catalog = Catalog::build(&Builtins::default(), &servers);
    let mut lines = vec![];

    // Every decision, with its reason.
    for decision in catalog.decisions(ListKind::Tool) {
        let shown = decision.exposed.as_ref().map_or("hidden".to_owned(), ToString::to_string);
        lines.push(format!("{} {}: {shown}", decision.server, decision.original));
    }

    // A view narrows what one agent sees; it renames nothing.
    let tools = Selection::Patterns(vec!["git_*".to_owned(), "*read*".to_owned()]);
    let reviewer = ViewFilter { tools, ..ViewFilter::default() };
    lines.push(format!("reviewer: {}", names(&catalog, &reviewer).join(", ")));

    // A model that leaves out the prefix means a tool that is unique without it.
    if let ToolLookup::Found(tool) = catalog.find("read.file") {
        lines.push(format!("read.file is {} of {}", tool.name, tool.server));
    }

    // After a change, the lists of which clients are notified.
    let next = [
        server("files", files, &["read.file", "write.file", "list"])?,
        server("git", git, &["log", "diff", "push"])?,
    ];
    let changed = Catalog::build(&Builtins::default(), &next);
    let diff = Catalog::diff(&catalog, &changed);
    lines.push(format!("added: {:?}, removed: {:?}", diff.tools.added, diff.tools.removed));
    Ok(lines)
}

fn main() -> Result<(), Box<dyn Error>> {
    for line in run()? {
        println!("{line}");
    }
    Ok(())
}
