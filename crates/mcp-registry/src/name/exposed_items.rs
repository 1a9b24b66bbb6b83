//! What is shown of a server's lists: an item, its server, and the name that it is shown under.
//!
//! An item is kept as its server defines it, byte for byte. What a language model calls by name has a name that no
//! other has; what is asked for by URI has a label.

use std::sync::Arc;

use mcp_model::{Prompt, Resource, ResourceTemplate, ServerId, Tool};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::name::exposed_name::ExposedName;

/// A tool that is shown. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExposedTool {
    /// The name it is shown under.
    pub name: ExposedName,
    /// The server it belongs to.
    pub server: ServerId,
    /// The tool as its server defines it.
    pub tool: Arc<Tool>,
}

/// A prompt that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExposedPrompt {
    /// The name it is shown under.
    pub name: ExposedName,
    /// The server it belongs to.
    pub server: ServerId,
    /// The prompt as its server defines it.
    pub prompt: Arc<Prompt>,
}

/// A resource that is shown. It is asked for by server and URI; its name is a label, and need be neither unique nor
/// a function's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExposedResource {
    /// Its name after the transforms.
    pub name: ExposedName,
    /// The server it belongs to.
    pub server: ServerId,
    /// The resource as its server defines it.
    pub resource: Arc<Resource>,
}

/// A resource template that is shown. It is asked for by server and URI template; its name is a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExposedTemplate {
    /// Its name after the transforms.
    pub name: ExposedName,
    /// The server it belongs to.
    pub server: ServerId,
    /// The template as its server defines it.
    pub template: Arc<ResourceTemplate>,
}

impl Serialize for ExposedTool {
    /// Gives `name`, `server`, `original_name`, `description` and `input_schema`, in this order.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut res = serializer.serialize_struct("ExposedTool", 5)?;
        res.serialize_field("name", &self.name)?;
        res.serialize_field("server", &self.server)?;
        res.serialize_field("original_name", &self.tool.name)?;
        res.serialize_field("description", &self.tool.description)?;
        res.serialize_field("input_schema", &self.tool.input_schema)?;
        res.end()
    }
}

impl Serialize for ExposedPrompt {
    /// Gives `name`, `server`, `original_name`, `description` and `arguments`, in this order.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut res = serializer.serialize_struct("ExposedPrompt", 5)?;
        res.serialize_field("name", &self.name)?;
        res.serialize_field("server", &self.server)?;
        res.serialize_field("original_name", &self.prompt.name)?;
        res.serialize_field("description", &self.prompt.description)?;
        res.serialize_field("arguments", &self.prompt.arguments())?;
        res.end()
    }
}

impl Serialize for ExposedResource {
    /// Gives `name`, `server`, `original_name`, `uri` and `description`, in this order.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut res = serializer.serialize_struct("ExposedResource", 5)?;
        res.serialize_field("name", &self.name)?;
        res.serialize_field("server", &self.server)?;
        res.serialize_field("original_name", &self.resource.name)?;
        res.serialize_field("uri", &self.resource.uri)?;
        res.serialize_field("description", &self.resource.description)?;
        res.end()
    }
}

impl Serialize for ExposedTemplate {
    /// Gives `name`, `server`, `original_name`, `uri_template` and `description`, in this order.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut res = serializer.serialize_struct("ExposedTemplate", 5)?;
        res.serialize_field("name", &self.name)?;
        res.serialize_field("server", &self.server)?;
        res.serialize_field("original_name", &self.template.name)?;
        res.serialize_field("uri_template", &self.template.uri_template)?;
        res.serialize_field("description", &self.template.description)?;
        res.end()
    }
}
