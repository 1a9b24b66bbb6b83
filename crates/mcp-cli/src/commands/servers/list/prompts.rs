//! The output of `prompts`: a table of prompts with their arguments.

use mcp_host_model::PromptArgument;
use mcp_host_runtime::HostSnapshot;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::output::table::{Column, TableStyle, table};

const COLUMNS: [Column; 4] =
    [Column::Text("PROMPT"), Column::Text("SERVER"), Column::Text("ARGUMENTS"), Column::Text("DESCRIPTION")];

/// One line per prompt.
pub(crate) fn prompt_table(published: &HostSnapshot, style: TableStyle) -> String {
    let rows = published.catalog.prompts().iter().map(|entry| {
        let arguments: Vec<String> = entry.prompt.arguments().iter().map(argument_text).collect();
        vec![
            entry.name.to_string(),
            entry.server.to_string(),
            if arguments.is_empty() { "-".to_owned() } else { arguments.join(", ") },
            entry.prompt.description_text().into_owned(),
        ]
    });
    table(&COLUMNS, &rows.collect::<Vec<_>>(), style)
}

/// An argument as `name`, or as `[name]` if it is optional.
fn argument_text(argument: &PromptArgument) -> String {
    let PromptArgument { name, description: _, required, .. } = argument;
    if *required { name.clone() } else { format!("[{name}]") }
}

/// The JSON document of `prompts`: `{"generation", "prompts", "servers", "problems"}`.
pub(crate) struct PromptsJson<'a>(pub(crate) &'a HostSnapshot);

impl Serialize for PromptsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let HostSnapshot { generation, catalog, servers, problems, .. } = self.0;
        let mut object = serializer.serialize_struct("PromptsJson", 4)?;
        object.serialize_field("generation", generation)?;
        object.serialize_field("prompts", &catalog.prompts())?;
        object.serialize_field("servers", servers)?;
        object.serialize_field("problems", problems)?;
        object.end()
    }
}
