//! What `tools` shows: a table, a tree, or one tool with the arguments it takes.

use std::fmt::Write as _;

use mcp_host::HostSnapshot;
use mcp_model::{Tool, ToolHints};
use mcp_registry::{ExposedTool, ToolLookup};

use crate::commands::{shape, status};
use crate::output::table::{Column, Look, table};
use crate::output::{json, paint, plain};

const COLUMNS: [Column; 5] = [
    Column::Words("TOOL"),
    Column::Words("SERVER"),
    Column::Number("TOKENS"),
    Column::Words("HINT"),
    Column::Words("DESCRIPTION"),
];

/// About how many bytes of a tool's definition make a token.
const BYTES_OF_A_TOKEN: usize = 4;

/// In which way tools are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Manner<'a> {
    /// A line for each.
    Table,
    /// Under their servers.
    Tree,
    /// This one, with its arguments.
    One(&'a str),
}

/// A line for each tool, and what all of them cost a model.
pub(super) fn text(published: &HostSnapshot, look: Look) -> String {
    let tools = published.catalog.tools();
    let rows = tools.iter().map(|it| {
        vec![
            it.name.to_string(),
            it.server.to_string(),
            tokens(it).to_string(),
            hint(it.tool.hints).to_owned(),
            it.tool.description_text().into_owned(),
        ]
    });
    let mut res = table(&COLUMNS, &rows.collect::<Vec<_>>(), look);
    if !res.is_empty() {
        res.push('\n');
        res.push_str(&paint::paint(look.colour, paint::FAINT, &total(tools)));
        res.push('\n');
    }
    res
}

/// The servers, each with its tools below it.
pub(super) fn tree(published: &HostSnapshot, look: Look) -> String {
    let tools = published.catalog.tools();
    let mut res = String::new();
    for server in &published.servers {
        res.push_str(&status::server(server, status::doubt(published, server), 0, look.colour));
        let own: Vec<&ExposedTool> = tools.iter().filter(|it| it.server.as_str() == server.id).collect();
        let longest = own.iter().map(|it| it.name.as_str().chars().count()).max().unwrap_or_default();
        for (at, it) in own.iter().enumerate() {
            let branch = if at + 1 == own.len() { "└─" } else { "├─" };
            let line = format!(
                "{branch} {:longest$}  {}",
                plain::line(it.name.as_str()),
                plain::line(&it.tool.description_text())
            );
            res.push_str(&fit(line.trim_end(), look.width));
            res.push('\n');
        }
    }
    res
}

/// One tool as a person reads it. Fails with a sentence when there is none, or more than one, of this name.
pub(super) fn one(published: &HostSnapshot, name: &str, look: Look) -> Result<String, String> {
    let it = found(published, name)?;
    let colour = look.colour;
    let Tool { name: original, description: _, input_schema, output_schema, hints, raw: _ } = &*it.tool;
    let mut res = format!("{}\n", paint::paint(colour, paint::NOTE, &plain::line(it.name.as_str())));
    let about = format!(
        "tool `{}` of server `{}`, about {} tokens{}",
        plain::line(original),
        it.server,
        tokens(it),
        claims(*hints)
    );
    let _ = writeln!(res, "{}", paint::paint(colour, paint::FAINT, &about));
    let description = it.tool.description_text();
    if !description.trim().is_empty() {
        // Set in, so that no line of it looks like one of ours.
        let lines = plain::block(description.trim());
        let lines = lines.lines().map(|it| format!("  {it}").trim_end().to_owned() + "\n");
        let _ = write!(res, "\n{}", lines.collect::<String>());
    }
    let arguments = shape::arguments(input_schema, look);
    let _ = write!(res, "\n{}", if arguments.is_empty() { "It takes no arguments.\n" } else { &arguments });
    if let Some(output) = output_schema {
        let fields = shape::results(output, look);
        if !fields.is_empty() {
            let _ = write!(res, "\n{fields}");
        }
    }
    Ok(res)
}

/// The document of one tool: the tool as `tools` writes it, or `null`.
pub(super) fn document(published: &HostSnapshot, name: &str) -> String {
    json::document(&found(published, name).ok())
}

fn found<'a>(published: &'a HostSnapshot, name: &str) -> Result<&'a ExposedTool, String> {
    let quoted = plain::line(name);
    match published.catalog.find(name) {
        ToolLookup::Found(tool) => Ok(tool),
        ToolLookup::Ambiguous(tools) => {
            let names: Vec<&str> = tools.iter().map(|it| it.name.as_str()).collect();
            Err(format!("several servers have a tool `{quoted}`; say one of: {}", names.join(", ")))
        }
        ToolLookup::Missing { nearest: Some(near) } => {
            Err(format!("there is no tool `{quoted}`; did you mean `{}`?", near.name))
        }
        ToolLookup::Missing { nearest: None } => Err(format!("there is no tool `{quoted}`")),
    }
}

/// About how many tokens a model reads of a tool: its name, its description and its schema, by their bytes.
fn tokens(it: &ExposedTool) -> usize {
    let description = it.tool.description_text().len();
    let bytes = it.name.as_str().len() + description + it.tool.input_schema.as_bytes().len();
    bytes.div_ceil(BYTES_OF_A_TOKEN)
}

fn total(tools: &[ExposedTool]) -> String {
    let tokens: usize = tools.iter().map(tokens).sum();
    let word = if tools.len() == 1 { "tool" } else { "tools" };
    format!("{} {word}, about {tokens} tokens", tools.len())
}

/// The first thing to know of what a tool claims about itself, in a word; `-` where it claims nothing.
fn hint(hints: ToolHints) -> &'static str {
    let ToolHints { read_only, destructive, idempotent: _, open_world: _ } = hints;
    match (read_only, destructive) {
        (Some(true), _) => "reads",
        (_, Some(true)) => "destroys",
        (_, Some(false)) => "adds",
        (Some(false), None) => "writes",
        (None, None) => "-",
    }
}

/// Everything that a tool claims about itself.
fn claims(hints: ToolHints) -> String {
    let ToolHints { read_only, destructive, idempotent, open_world } = hints;
    let words = [
        (read_only, "only reads", "writes"),
        (destructive, "may destroy", "only adds"),
        (idempotent, "may be repeated", "not to be repeated"),
        (open_world, "reaches the outside", "stays inside"),
    ];
    let said = words.iter().filter_map(|(claim, yes, no)| claim.map(|it| if it { *yes } else { *no }));
    let said: Vec<&str> = said.collect();
    if said.is_empty() { String::new() } else { format!("; it says: {}", said.join(", ")) }
}

/// A line cut to a width, with an ellipsis.
fn fit(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let mut res: String = line.chars().take(width.saturating_sub(1)).collect();
    res.truncate(res.trim_end().len());
    res.push('…');
    res
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mcp_config::Colour;
    use mcp_host::ServerState;
    use mcp_model::{Exposure, NamePolicy, RawJson, ServerId, read_tools};
    use mcp_registry::{Builtins, Catalog, ServerEntry, ServerLists};

    use super::*;
    use crate::fixture;

    const LOOK: Look = Look { width: 60, colour: Colour::Never };

    fn published() -> HostSnapshot {
        let json = r#"{"tools":[
            {"name":"read","description":"Reads a file that is somewhere, whatever is in it, and more","annotations":{"readOnlyHint":true,"openWorldHint":false},
             "inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"Where"}},"required":["path"]}},
            {"name":"wipe","annotations":{"destructiveHint":true},"inputSchema":{"type":"object"}},
            {"name":"note","inputSchema":{}}]}"#;
        let tools = read_tools(&RawJson::parse(json.into()).unwrap()).unwrap().into_shared();
        let entry = ServerEntry {
            id: ServerId::parse("files").unwrap(),
            exposure: Exposure::all(NamePolicy::Pass),
            lists: Arc::new(ServerLists { tools, ..ServerLists::default() }),
        };
        let catalog = Arc::new(Catalog::build(&Builtins::default(), &[entry]));
        let servers = [("files", ServerState::Ready), ("gone", ServerState::Failed)];
        HostSnapshot { catalog, ..fixture::published(&servers) }
    }

    #[test]
    fn a_table_says_what_tools_cost_and_claim() {
        assert_eq!(
            text(&published(), LOOK),
            "TOOL  SERVER  TOKENS  HINT      DESCRIPTION\n\
             read  files       41  reads     Reads a file that is…\n\
             wipe  files        6  destroys\n\
             note  files        2  -\n\n\
             3 tools, about 49 tokens\n"
        );
    }

    #[test]
    fn a_tree_has_the_tools_under_their_servers() {
        assert_eq!(
            tree(&published(), LOOK),
            "✓ files  ready\n\
             ├─ read  Reads a file that is somewhere, whatever is in it,…\n\
             ├─ wipe\n\
             └─ note\n\
             ✗ gone  failed\n"
        );
    }

    #[test]
    fn one_tool_is_told_with_its_arguments() {
        assert_eq!(
            one(&published(), "read", LOOK).unwrap(),
            "read\ntool `read` of server `files`, about 41 tokens; it says: only reads, stays inside\n\n  \
             Reads a file that is somewhere, whatever is in it, and more\n\n\
             ARGUMENT  TYPE    NEEDED  DESCRIPTION\n\
             path      string  yes     Where\n"
        );
        assert!(one(&published(), "note", LOOK).unwrap().ends_with("\n\nIt takes no arguments.\n"));
        assert_eq!(
            one(&published(), "raed", LOOK).unwrap_err(),
            "there is no tool `raed`; did you mean `read`?"
        );
        assert_eq!(one(&published(), "zzzzzz", LOOK).unwrap_err(), "there is no tool `zzzzzz`");
        assert_eq!(document(&published(), "zzzzzz"), "null\n");
    }
}
