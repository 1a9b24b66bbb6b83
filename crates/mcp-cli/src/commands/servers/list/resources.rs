//! The output of `resources`: a table of resources and a table of resource templates.

use std::borrow::Cow;

use mcp_host_model::ServerId;
use mcp_host_runtime::HostSnapshot;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::output::table::{Column, TableStyle, table};

/// One line per resource, then one line per template.
pub(crate) fn resource_tables(published: &HostSnapshot, style: TableStyle) -> String {
    let row = |uri: &str, server: &ServerId, name: &str, description: Cow<'_, str>| {
        vec![uri.to_owned(), server.to_string(), name.to_owned(), description.into_owned()]
    };
    let resources = published.catalog.resources().iter().map(|entry| {
        row(&entry.resource.uri, &entry.server, entry.name.as_str(), entry.resource.description_text())
    });
    let templates = published.catalog.templates().iter().map(|entry| {
        row(
            &entry.template.uri_template,
            &entry.server,
            entry.name.as_str(),
            entry.template.description_text(),
        )
    });
    let columns = |first| [first, "SERVER", "NAME", "DESCRIPTION"].map(Column::Text);
    let mut tables = vec![
        table(&columns("URI"), &resources.collect::<Vec<_>>(), style),
        table(&columns("URI TEMPLATE"), &templates.collect::<Vec<_>>(), style),
    ];
    tables.retain(|table| !table.is_empty());
    tables.join("\n")
}

/// The JSON document of `resources`: `{"generation", "resources", "templates", "servers", "problems"}`.
pub(crate) struct ResourcesJson<'a>(pub(crate) &'a HostSnapshot);

impl Serialize for ResourcesJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let HostSnapshot { generation, catalog, servers, problems, .. } = self.0;
        let mut object = serializer.serialize_struct("ResourcesJson", 5)?;
        object.serialize_field("generation", generation)?;
        object.serialize_field("resources", &catalog.resources())?;
        object.serialize_field("templates", &catalog.templates())?;
        object.serialize_field("servers", servers)?;
        object.serialize_field("problems", problems)?;
        object.end()
    }
}
