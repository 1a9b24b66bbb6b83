//! Exposed items: an item, its server, and its exposed name.
//!
//! The definition is kept byte for byte. Tools and prompts have unique names; the names of resources are labels.

use std::sync::Arc;

#[cfg(feature = "validator")]
use mcp_host_model::RawJson;
use mcp_host_model::{Prompt, Resource, ResourceTemplate, ServerId, Tool};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::name::exposed_name::ExposedName;
#[cfg(feature = "validator")]
use crate::validate::{InvalidArguments, SchemaSlot, ValidationOutcome, ValidatorCache};

/// An exposed tool. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExposedTool {
    /// The exposed name.
    pub name: ExposedName,
    /// The server.
    pub server: ServerId,
    /// The tool as its server defines it.
    pub tool: Arc<Tool>,
    /// Whether a lock file approves this definition.
    pub is_approved: bool,
    #[cfg(feature = "validator")]
    arguments_schema: SchemaSlot,
}

impl ExposedTool {
    /// A tool that is not approved.
    pub(crate) fn new(name: ExposedName, server: ServerId, tool: Arc<Tool>) -> ExposedTool {
        ExposedTool {
            name,
            server,
            tool,
            is_approved: false,
            #[cfg(feature = "validator")]
            arguments_schema: SchemaSlot::default(),
        }
    }

    /// Validates the arguments of a call, as [`ValidatorCache::check_arguments`] does. The tool remembers its compiled
    /// schema, so this is the faster way.
    #[cfg(feature = "validator")]
    pub fn check_arguments(
        &self,
        validators: &ValidatorCache,
        arguments: &RawJson,
    ) -> Result<ValidationOutcome, InvalidArguments> {
        validators.check_arguments_in(&self.arguments_schema, &self.tool.input_schema, arguments)
    }
}

/// An exposed prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExposedPrompt {
    /// The exposed name.
    pub name: ExposedName,
    /// The server.
    pub server: ServerId,
    /// The prompt as its server defines it.
    pub prompt: Arc<Prompt>,
}

/// An exposed resource. It is requested by server and URI; its name is a label that need not be unique.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExposedResource {
    /// Its name after the transforms.
    pub name: ExposedName,
    /// The server.
    pub server: ServerId,
    /// The resource as its server defines it.
    pub resource: Arc<Resource>,
}

/// An exposed resource template. It is requested by server and URI template; its name is a label.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExposedTemplate {
    /// Its name after the transforms.
    pub name: ExposedName,
    /// The server.
    pub server: ServerId,
    /// The template as its server defines it.
    pub template: Arc<ResourceTemplate>,
}

impl Serialize for ExposedTool {
    /// Serializes `name`, `server`, `original_name`, `description` and `input_schema`, in this order. Then,
    /// if the tool has an app, its URI as `app`; and `"app_only": true`, if the tool is not for models.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (app, app_only) = (self.tool.app_uri(), !self.tool.is_for_models());
        let fields = 5 + usize::from(app.is_some()) + usize::from(app_only);
        let mut res = serializer.serialize_struct("ExposedTool", fields)?;
        res.serialize_field("name", &self.name)?;
        res.serialize_field("server", &self.server)?;
        res.serialize_field("original_name", &self.tool.name)?;
        res.serialize_field("description", &self.tool.description)?;
        res.serialize_field("input_schema", &self.tool.input_schema)?;
        match app {
            Some(app) => res.serialize_field("app", &app)?,
            None => res.skip_field("app")?,
        }
        match app_only {
            true => res.serialize_field("app_only", &true)?,
            false => res.skip_field("app_only")?,
        }
        res.end()
    }
}

impl Serialize for ExposedPrompt {
    /// Serializes `name`, `server`, `original_name`, `description` and `arguments`, in this order.
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
    /// Serializes `name`, `server`, `original_name`, `uri` and `description`, in this order.
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
    /// Serializes `name`, `server`, `original_name`, `uri_template` and `description`, in this order.
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
