//! The output of `tools`: a table, a tree, or one tool with its arguments.

use std::fmt::Write as _;

use mcp_host_config::Colour;
use mcp_host_model::{TaskSupport, Tool, ToolHints};
use mcp_host_registry::{ExposedTool, ToolLookup, project};
use mcp_host_runtime::{HostSnapshot, Projection, Provider, ServerStatus};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use unicode_width::UnicodeWidthStr;

use crate::commands::servers::list::name_filter::NameFilter;
use crate::output::table::{Column, TableStyle, table, truncate};
use crate::output::{count, json, sanitize, style};
use crate::render::schema_table::{argument_table, result_table};
use crate::render::status::{server_line, server_warning};

/// The columns of the table.
pub(super) const COLUMNS: [Column; 5] = [
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

/// One line per tool that a filter accepts, then the total number of tokens.
pub(crate) fn tool_table(published: &HostSnapshot, filter: &NameFilter, table_style: TableStyle) -> String {
    let tools: Vec<&ExposedTool> =
        published.catalog.tools().iter().filter(|tool| filter.accepts(tool)).collect();
    if tools.is_empty() {
        return String::new();
    }
    let rows: Vec<_> = tools.iter().map(|tool| tool_row(tool)).collect();
    format!("{}\n{}", table(&COLUMNS, &rows, table_style), total_line(&tools, table_style.colour))
}

/// The row of a tool.
pub(super) fn tool_row(entry: &ExposedTool) -> Vec<String> {
    vec![
        entry.name.to_string(),
        entry.server.to_string(),
        token_count(entry).to_string(),
        hint_text(&entry.tool),
        entry.tool.description_text().into_owned(),
    ]
}

/// The number of tools and tokens; empty if there are no tools.
pub(super) fn total_line(tools: &[&ExposedTool], colour: Colour) -> String {
    if tools.is_empty() {
        return String::new();
    }
    let tokens: usize = tools.iter().map(|tool| token_count(tool)).sum();
    let total = format!("{}, about {tokens} tokens", count(tools.len(), "tool"));
    style::paint(colour, style::DIM, &total) + "\n"
}

/// A server with its tools below.
pub(super) fn server_tree(
    published: &HostSnapshot,
    server: &ServerStatus,
    filter: &NameFilter,
    table_style: TableStyle,
) -> String {
    let mut text = server_line(server, server_warning(published, server), 0, table_style.colour);
    let tools = published.catalog.tools().iter().filter(|tool| server.id == tool.server);
    let own: Vec<&ExposedTool> = tools.filter(|tool| filter.accepts(tool)).collect();
    let width = own.iter().map(|tool| tool.name.as_str().width()).max().unwrap_or_default();
    for (index, tool) in own.iter().enumerate() {
        let branch = if index + 1 == own.len() { "└─" } else { "├─" };
        let name = sanitize::line(tool.name.as_str());
        let padding = " ".repeat(width.saturating_sub(name.width()));
        let line = format!("{branch} {name}{padding}  {}", sanitize::line(&tool.tool.description_text()));
        // Only the description is cut.
        let min_width = branch.width() + 1 + name.width() + 1;
        text.push_str(&truncate(line.trim_end(), table_style.width.max(min_width)));
        text.push('\n');
    }
    text
}

/// The JSON document of `tools`: `{"generation", "tools", "servers", "problems"}`, with the tools that a
/// filter accepts.
pub(crate) struct ToolsJson<'a>(pub(crate) &'a HostSnapshot, pub(crate) &'a NameFilter);

impl Serialize for ToolsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let HostSnapshot { generation, catalog, servers, problems, .. } = self.0;
        let tools: Vec<&ExposedTool> = catalog.tools().iter().filter(|tool| self.1.accepts(tool)).collect();
        let mut object = serializer.serialize_struct("ToolsJson", 4)?;
        object.serialize_field("generation", generation)?;
        object.serialize_field("tools", &tools)?;
        object.serialize_field("servers", servers)?;
        object.serialize_field("problems", problems)?;
        object.end()
    }
}

/// The tools that a filter accepts, adapted to a provider.
pub(crate) fn project_tools(published: &HostSnapshot, provider: Provider, filter: &NameFilter) -> Projection {
    let tools = published.catalog.tools().iter().filter(|tool| filter.accepts(tool));
    project(&tools.cloned().collect::<Vec<_>>(), provider)
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
    let Tool {
        name: original, description: _, input_schema, output_schema, hints, task_support, raw: _, ..
    } = &*exposed.tool;
    let mut text = format!("{}\n", style::paint(colour, style::NOTE, &sanitize::line(exposed.name.as_str())));
    let summary = format!(
        "tool `{}` of server `{}`, about {} tokens{}{}",
        sanitize::line(original),
        exposed.server,
        token_count(exposed),
        annotations_text(*hints),
        match task_support {
            TaskSupport::Optional => "; can run as a task",
            TaskSupport::Required => "; runs as a task",
            _ => "",
        }
    );
    let _ = writeln!(text, "{}", style::paint(colour, style::DIM, &summary));
    let app = exposed.tool.app_uri().map(|uri| format!("app {}", sanitize::line(&uri)));
    let audience = (!exposed.tool.is_for_models()).then(|| "for apps only".to_owned());
    let app: Vec<String> = app.into_iter().chain(audience).collect();
    if !app.is_empty() {
        let _ = writeln!(text, "{}", style::paint(colour, style::DIM, &app.join("; ")));
    }
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

/// The most important annotation of a tool in one word, and whether it has an app or is for apps only; `-` without any.
fn hint_text(tool: &Tool) -> String {
    let ToolHints { read_only, destructive, .. } = tool.hints;
    let effect = match (read_only, destructive) {
        (Some(true), _) => Some("reads"),
        (_, Some(true)) => Some("destroys"),
        (_, Some(false)) => Some("adds"),
        (Some(false), None) => Some("writes"),
        (None, None) => None,
    };
    let app = match (tool.is_for_models(), tool.app_uri()) {
        (false, _) => Some("app only"),
        (true, Some(_)) => Some("app"),
        (true, None) => None,
    };
    match (effect, app) {
        (Some(effect), Some(app)) => format!("{effect}, {app}"),
        (effect, app) => effect.or(app).unwrap_or("-").to_owned(),
    }
}

/// All annotations of a tool. They are claims of the server.
fn annotations_text(hints: ToolHints) -> String {
    let ToolHints { read_only, destructive, idempotent, open_world, .. } = hints;
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

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use mcp_host_model::{Exposure, NamePolicy, RawJson, ServerId, read_tools};
    use mcp_host_registry::{Builtins, Catalog, CatalogServer, ServerLists};
    use mcp_host_runtime::ServerState;

    use super::*;

    const STYLE: TableStyle = TableStyle { width: 60, colour: Colour::Never };

    /// A ready server with three tools, a failed server, and a ready one without tools.
    pub(in super::super) fn published() -> HostSnapshot {
        let json = r#"{"tools":[
            {"name":"read","description":"Reads a file that is somewhere, whatever is in it, and more","annotations":{"readOnlyHint":true,"openWorldHint":false},
             "inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"Where"}},"required":["path"]}},
            {"name":"wipe","annotations":{"destructiveHint":true},"inputSchema":{"type":"object"}},
            {"name":"note","inputSchema":{}}]}"#;
        let tools = read_tools(&RawJson::parse(json.into()).unwrap()).unwrap().into_shared();
        let entry = CatalogServer::new(
            ServerId::parse("files").unwrap(),
            Exposure::all(NamePolicy::Pass),
            Arc::new(ServerLists::of_tools(tools)),
        );
        let catalog = Arc::new(Catalog::build(&Builtins::default(), &[entry]));
        let servers =
            [("files", ServerState::Ready), ("gone", ServerState::Failed), ("slow", ServerState::Ready)];
        let mut snapshot = crate::tests::published(&servers);
        snapshot.catalog = catalog;
        snapshot
    }

    #[test]
    fn table_has_tokens_and_hints() {
        assert_eq!(
            tool_table(&published(), &NameFilter::default(), STYLE),
            "TOOL  SERVER  TOKENS  HINT      DESCRIPTION\n\
             read  files       41  reads     Reads a file that is somewh…\n\
             wipe  files        6  destroys\n\
             note  files        2  -\n\n\
             3 tools, about 49 tokens\n"
        );
    }

    #[test]
    fn tree_cuts_only_descriptions() {
        let published = published();
        let tree = |width| {
            let style = TableStyle { width, ..STYLE };
            server_tree(&published, &published.servers[0], &NameFilter::new(&["e".to_owned()]), style)
        };
        let head = "✓ files  ready\n";
        assert_eq!(
            tree(60),
            format!("{head}├─ read  Reads a file that is somewhere, whatever is in it,…\n├─ wipe\n└─ note\n")
        );
        assert_eq!(tree(5), format!("{head}├─ read…\n├─ wipe\n└─ note\n"));
    }

    #[test]
    fn filter_applies_to_every_form() {
        let (published, filter) = (published(), NameFilter::new(&["w*".to_owned()]));
        assert_eq!(
            tool_table(&published, &filter, STYLE),
            "TOOL  SERVER  TOKENS  HINT      DESCRIPTION\nwipe  files        6  destroys\n\n1 tool, about 6 tokens\n"
        );
        let document = serde_json::to_value(ToolsJson(&published, &filter)).unwrap();
        assert_eq!(document["tools"].as_array().unwrap().len(), 1);
        assert_eq!(project_tools(&published, Provider::Gemini, &filter).tools.len(), 1);
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
