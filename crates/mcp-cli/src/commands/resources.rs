//! What `resources` shows: what can be read by its URI, and the templates that make more of them.

use mcp_host::HostSnapshot;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::output::table::{Column, Look, table};

/// A line for each resource, then a line for each template.
pub(super) fn text(published: &HostSnapshot, look: Look) -> String {
    let resources = published.catalog.resources().iter().map(|it| {
        let description = it.resource.description_text();
        vec![
            it.resource.uri.to_string(),
            it.server.to_string(),
            it.name.to_string(),
            description.into_owned(),
        ]
    });
    let templates = published.catalog.templates().iter().map(|it| {
        let description = it.template.description_text();
        vec![
            it.template.uri_template.to_string(),
            it.server.to_string(),
            it.name.to_string(),
            description.into_owned(),
        ]
    });
    let columns = |first| [first, "SERVER", "NAME", "DESCRIPTION"].map(Column::Words);
    let parts = [
        table(&columns("URI"), &resources.collect::<Vec<_>>(), look),
        table(&columns("URI TEMPLATE"), &templates.collect::<Vec<_>>(), look),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|it| !it.is_empty()).collect();
    parts.join("\n")
}

/// `{"generation", "resources", "templates", "servers", "problems"}`.
pub(super) struct Document<'a>(pub(super) &'a HostSnapshot);

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let HostSnapshot { generation, catalog, servers, problems } = self.0;
        let mut res = serializer.serialize_struct("Document", 5)?;
        res.serialize_field("generation", generation)?;
        res.serialize_field("resources", catalog.resources())?;
        res.serialize_field("templates", catalog.templates())?;
        res.serialize_field("servers", servers)?;
        res.serialize_field("problems", problems)?;
        res.end()
    }
}
