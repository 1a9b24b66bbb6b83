//! What `prompts` shows: the prompts under their names, with what each wants to be given.

use mcp_host::HostSnapshot;
use mcp_model::PromptArgument;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::output::table::{Column, Look, table};

const COLUMNS: [Column; 4] = [
    Column::Words("PROMPT"),
    Column::Words("SERVER"),
    Column::Words("ARGUMENTS"),
    Column::Words("DESCRIPTION"),
];

/// A line for each prompt.
pub(super) fn text(published: &HostSnapshot, look: Look) -> String {
    let rows = published.catalog.prompts().iter().map(|it| {
        let arguments: Vec<String> = it.prompt.arguments().iter().map(argument).collect();
        vec![
            it.name.to_string(),
            it.server.to_string(),
            if arguments.is_empty() { "-".to_owned() } else { arguments.join(", ") },
            it.prompt.description_text().into_owned(),
        ]
    });
    table(&COLUMNS, &rows.collect::<Vec<_>>(), look)
}

/// `name`, or `[name]` where the prompt can do without.
fn argument(argument: &PromptArgument) -> String {
    let PromptArgument { name, description: _, required } = argument;
    if *required { name.clone() } else { format!("[{name}]") }
}

/// `{"generation", "prompts", "servers", "problems"}`.
pub(super) struct Document<'a>(pub(super) &'a HostSnapshot);

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let HostSnapshot { generation, catalog, servers, problems } = self.0;
        let mut res = serializer.serialize_struct("Document", 4)?;
        res.serialize_field("generation", generation)?;
        res.serialize_field("prompts", catalog.prompts())?;
        res.serialize_field("servers", servers)?;
        res.serialize_field("problems", problems)?;
        res.end()
    }
}
