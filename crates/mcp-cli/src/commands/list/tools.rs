//! The output of `tools`: a table, a tree, or one tool with its arguments.

use std::fmt::Write as _;

use mcp_host::{HostSnapshot, Projection, Provider};
use mcp_model::{Tool, ToolHints};
use mcp_registry::{ExposedTool, ToolLookup};

use crate::output::table::{Column, TableStyle, table};
use crate::output::{count, json, sanitize, style};
use crate::render::schema_table::{argument_table, result_table};
use crate::render::status::{server_line, server_warning};

const COLUMNS: [Column; 5] = [
    Column::Text("TOOL"),
    Column::Text("SERVER"),
    Column::Number("TOKENS"),
    Column::Text("HINT"),
    Column::Text("DESCRIPTION"),
];

/// The estimated number of bytes per token of a model.
const BYTES_PER_TOKEN: usize = 4;

/// The presentation of the tools.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ToolsView<'a> {
    /// One line per tool.
    Table,
    /// Grouped by server.
    Tree,
    /// One tool with its arguments.
    Single(&'a str),
    /// Adapted to a model provider.
    Provider(Provider),
}

/// One line per tool, then the total number of tokens.
pub(crate) fn tool_table(published: &HostSnapshot, table_style: TableStyle) -> String {
    let tools = published.catalog.tools();
    let rows = tools.iter().map(|entry| {
        vec![
            entry.name.to_string(),
            entry.server.to_string(),
            token_count(entry).to_string(),
            hint(entry.tool.hints).to_owned(),
            entry.tool.description_text().into_owned(),
        ]
    });
    let mut text = table(&COLUMNS, &rows.collect::<Vec<_>>(), table_style);
    if !text.is_empty() {
        let tokens: usize = tools.iter().map(token_count).sum();
        let total = format!("{}, about {tokens} tokens", count(tools.len(), "tool"));
        let _ = writeln!(text, "\n{}", style::paint(table_style.colour, style::DIM, &total));
    }
    text
}

/// The servers, each with its tools below.
pub(crate) fn tree(published: &HostSnapshot, table_style: TableStyle) -> String {
    let tools = published.catalog.tools();
    let mut text = String::new();
    for server in &published.servers {
        text.push_str(&server_line(server, server_warning(published, server), 0, table_style.colour));
        let own: Vec<&ExposedTool> = tools.iter().filter(|tool| tool.server.as_str() == server.id).collect();
        let width = own.iter().map(|tool| tool.name.as_str().chars().count()).max().unwrap_or_default();
        for (index, tool) in own.iter().enumerate() {
            let branch = if index + 1 == own.len() { "└─" } else { "├─" };
            let line = format!(
                "{branch} {:width$}  {}",
                sanitize::line(tool.name.as_str()),
                sanitize::line(&tool.tool.description_text())
            );
            text.push_str(&truncate(line.trim_end(), table_style.width));
            text.push('\n');
        }
    }
    text
}

/// The tools that a provider's API accepts, and whether their schemas were adapted.
pub(crate) fn provider_table(projection: &Projection, table_style: TableStyle) -> String {
    let columns = [Column::Text("TOOL"), Column::Text("SERVER"), Column::Text("SCHEMA")];
    let rows = projection.tools.iter().map(|tool| {
        let schema = match (&tool.not_strict, tool.is_adapted) {
            (Some(_), _) => "not strict",
            (None, true) => "adapted",
            (None, false) => "unchanged",
        };
        vec![tool.name.to_string(), tool.server.to_string(), schema.to_owned()]
    });
    let mut text = table(&columns, &rows.collect::<Vec<_>>(), table_style);
    let total = format!(
        "{} for {}, {} left out",
        count(projection.tools.len(), "tool"),
        projection.provider.as_str(),
        projection.problems.len()
    );
    let _ = writeln!(text, "\n{}", style::paint(table_style.colour, style::DIM, &total));
    text
}

/// One line per tool that the provider's API does not accept, or not as a strict function, with the reason.
pub(crate) fn provider_notes(projection: &Projection) -> String {
    let not_strict = projection.tools.iter().filter_map(|tool| {
        let reason = tool.not_strict.as_ref()?;
        Some(format!("tool `{}` of server `{}` is not strict: {reason}", tool.name, tool.server))
    });
    let left_out = projection.problems.iter().map(|problem| problem.message.clone());
    not_strict.chain(left_out).map(|line| sanitize::line(&line) + "\n").collect()
}

/// One tool with its arguments. Fails with a message if the name is unknown or ambiguous.
pub(crate) fn tool_text(
    published: &HostSnapshot,
    name: &str,
    table_style: TableStyle,
) -> Result<String, String> {
    let exposed = find_tool(published, name)?;
    let colour = table_style.colour;
    let Tool { name: original, description: _, input_schema, output_schema, hints, raw: _ } = &*exposed.tool;
    let mut text = format!("{}\n", style::paint(colour, style::NOTE, &sanitize::line(exposed.name.as_str())));
    let summary = format!(
        "tool `{}` of server `{}`, about {} tokens{}",
        sanitize::line(original),
        exposed.server,
        token_count(exposed),
        annotations(*hints)
    );
    let _ = writeln!(text, "{}", style::paint(colour, style::DIM, &summary));
    let description = exposed.tool.description_text();
    if !description.trim().is_empty() {
        // Indent the description, so that none of its lines can imitate a line of ours.
        let lines = sanitize::block(description.trim());
        let lines = lines.lines().map(|line| format!("  {line}").trim_end().to_owned() + "\n");
        let _ = write!(text, "\n{}", lines.collect::<String>());
    }
    let arguments = argument_table(input_schema, table_style);
    let _ = write!(text, "\n{}", if arguments.is_empty() { "No arguments.\n" } else { &arguments });
    if let Some(output) = output_schema {
        let fields = result_table(output, table_style);
        if !fields.is_empty() {
            let _ = write!(text, "\n{fields}");
        }
    }
    Ok(text)
}

/// One tool as JSON, or `null` if it does not exist.
pub(crate) fn tool_document(published: &HostSnapshot, name: &str) -> String {
    json::document(&find_tool(published, name).ok())
}

fn find_tool<'a>(published: &'a HostSnapshot, name: &str) -> Result<&'a ExposedTool, String> {
    let quoted = sanitize::line(name);
    match published.catalog.find(name) {
        ToolLookup::Found(tool) => Ok(tool),
        ToolLookup::Ambiguous(tools) => {
            let names: Vec<&str> = tools.iter().map(|it| it.name.as_str()).collect();
            Err(format!(
                "several servers have a tool `{quoted}`; use one of these names: {}",
                names.join(", ")
            ))
        }
        ToolLookup::Missing { nearest: Some(near) } => {
            Err(format!("there is no tool `{quoted}`; did you mean `{}`?", near.name))
        }
        ToolLookup::Missing { nearest: None } => Err(format!("there is no tool `{quoted}`")),
    }
}

/// The estimated number of tokens of a tool's name, description and schema.
fn token_count(exposed: &ExposedTool) -> usize {
    let tool = &exposed.tool;
    let description = tool.description_text().len();
    let bytes = exposed.name.as_str().len() + description + tool.input_schema.as_bytes().len();
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// The most important annotation of a tool in one word; `-` without annotations.
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

/// All annotations of a tool. They are claims of the server.
fn annotations(hints: ToolHints) -> String {
    let ToolHints { read_only, destructive, idempotent, open_world } = hints;
    let texts = [
        (read_only, "read-only", "writes"),
        (destructive, "destructive", "only adds"),
        (idempotent, "idempotent", "not idempotent"),
        (open_world, "open world", "closed world"),
    ];
    let texts = texts.iter().filter_map(|(hint, yes, no)| hint.map(|hint| if hint { *yes } else { *no }));
    let texts: Vec<&str> = texts.collect();
    if texts.is_empty() { String::new() } else { format!("; annotations: {}", texts.join(", ")) }
}

/// Truncates a line to a width, with an ellipsis.
fn truncate(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let mut text: String = line.chars().take(width.saturating_sub(1)).collect();
    text.truncate(text.trim_end().len());
    text.push('…');
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mcp_config::Colour;
    use mcp_host::ServerState;
    use mcp_model::{Exposure, NamePolicy, RawJson, ServerId, read_tools};
    use mcp_registry::{Builtins, Catalog, ServerEntry, ServerLists};

    use super::*;

    const STYLE: TableStyle = TableStyle { width: 60, colour: Colour::Never };

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
        HostSnapshot { catalog, ..crate::tests::published(&servers) }
    }

    #[test]
    fn table_has_tokens_and_hints() {
        assert_eq!(
            tool_table(&published(), STYLE),
            "TOOL  SERVER  TOKENS  HINT      DESCRIPTION\n\
             read  files       41  reads     Reads a file that is…\n\
             wipe  files        6  destroys\n\
             note  files        2  -\n\n\
             3 tools, about 49 tokens\n"
        );
    }

    #[test]
    fn tree_groups_tools_by_server() {
        assert_eq!(
            tree(&published(), STYLE),
            "✓ files  ready\n\
             ├─ read  Reads a file that is somewhere, whatever is in it,…\n\
             ├─ wipe\n\
             └─ note\n\
             ✗ gone  failed\n"
        );
    }

    #[test]
    fn single_tool_has_its_arguments() {
        assert_eq!(
            tool_text(&published(), "read", STYLE).unwrap(),
            "read\ntool `read` of server `files`, about 41 tokens; annotations: read-only, closed world\n\n  \
             Reads a file that is somewhere, whatever is in it, and more\n\n\
             ARGUMENT  TYPE    REQUIRED  DESCRIPTION\n\
             path      string  yes       Where\n"
        );
        assert!(tool_text(&published(), "note", STYLE).unwrap().ends_with("\n\nNo arguments.\n"));
        assert_eq!(
            tool_text(&published(), "raed", STYLE).unwrap_err(),
            "there is no tool `raed`; did you mean `read`?"
        );
        assert_eq!(tool_text(&published(), "zzzzzz", STYLE).unwrap_err(), "there is no tool `zzzzzz`");
        assert_eq!(tool_document(&published(), "zzzzzz"), "null\n");
    }
}
