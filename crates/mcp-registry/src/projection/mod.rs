//! Tools as one provider takes them: a pure function of the tools and the provider (DM-063, DM-064).
//!
//! A tool that a provider cannot be told about is left out with a problem; the others go on. What a schema *is* is
//! never changed: a keyword that shapes the arguments is said or the tool is left out. Mere bounds and remarks that
//! the provider does not know are dropped, since arguments are checked against the tool's own schema before a call.

mod anthropic;
mod dialect;
mod gemini;
mod openai;
mod profile;
mod rewrite;
pub(crate) mod tokens;

use mcp_model::{RawJson, ServerId, Severity};
use serde::Serialize;
use serde_json::Value;

use crate::name::display::{escape_name, truncate};
use crate::name::exposed_items::ExposedTool;
use crate::name::exposed_name::ExposedName;
use crate::problem::{Problem, ProblemKind};
use crate::validate::unread_schema;
use profile::ProviderProfile;

/// Who is told about the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Provider {
    /// Anybody: everything as it is, byte for byte (DM-061).
    #[default]
    Passthrough,
    /// OpenAI's functions with `strict: true`.
    OpenAiStrict,
    /// Gemini's function declarations.
    Gemini,
    /// Anthropic's tools.
    Anthropic,
}

impl Provider {
    /// `passthrough`, `openai_strict`, `gemini` or `anthropic`.
    pub fn as_str(self) -> &'static str {
        match self {
            Provider::Passthrough => "passthrough",
            Provider::OpenAiStrict => "openai_strict",
            Provider::Gemini => "gemini",
            Provider::Anthropic => "anthropic",
        }
    }
}

/// What a provider is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projection {
    /// The tools that it can be told about, in the order given.
    pub tools: Vec<ProjectedTool>,
    /// One warning for each of the others, in the order given.
    pub problems: Vec<Problem>,
}

/// A tool as a provider takes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProjectedTool {
    /// The name it is called by.
    pub name: ExposedName,
    /// The server it belongs to.
    pub server: ServerId,
    /// Its description, a JSON string.
    pub description: Option<RawJson>,
    /// The JSON Schema of its arguments; `None` where it takes none and the provider wants none said.
    pub schema: Option<RawJson>,
}

/// Makes the definitions that `provider` takes.
pub fn project(tools: &[ExposedTool], provider: Provider) -> Projection {
    let mut res = Projection { tools: Vec::with_capacity(tools.len()), problems: Vec::new() };
    for tool in tools {
        match project_schema(tool, provider) {
            Ok(schema) => res.tools.push(ProjectedTool {
                name: tool.name.clone(),
                server: tool.server.clone(),
                description: tool.tool.description.clone(),
                schema,
            }),
            Err(reason) => res.problems.push(excluded_problem(tool, provider, reason)),
        }
    }
    res
}

fn project_schema(tool: &ExposedTool, provider: Provider) -> Result<Option<RawJson>, String> {
    let as_it_is = || Ok(Some(tool.tool.input_schema.clone()));
    let profile: &ProviderProfile = match provider {
        Provider::Passthrough => return as_it_is(),
        Provider::OpenAiStrict => &openai::STRICT,
        Provider::Gemini => &gemini::PROFILE,
        Provider::Anthropic => {
            anthropic::NAMES.check(tool.name.as_str())?;
            anthropic::check(&read(tool)?)?;
            return as_it_is();
        }
    };
    profile.names.check(tool.name.as_str())?;
    rewrite::rewrite(&read(tool)?, profile)
}

/// The largest schema that is looked into, in bytes.
const MAX_SCHEMA_BYTES: usize = 256 << 10;

fn read(tool: &ExposedTool) -> Result<Value, String> {
    let schema = &tool.tool.input_schema;
    if schema.as_bytes().len() > MAX_SCHEMA_BYTES {
        return Err(format!("its schema is larger than {} KiB", MAX_SCHEMA_BYTES >> 10));
    }
    schema.read().map_err(|it| unread_schema(&it))
}

fn excluded_problem(tool: &ExposedTool, provider: Provider, reason: String) -> Problem {
    let (server, provider) = (&tool.server, provider.as_str());
    let (name, reason) = (escape_name(&tool.tool.name), truncate(reason, 300));
    Problem {
        id: format!("mcp/server/{server}/tool_excluded_by_{provider}/{name}"),
        kind: ProblemKind::ProviderExcluded,
        severity: Severity::Warning,
        server: Some(server.clone()),
        tool: Some(tool.tool.name.to_string()),
        message: format!("tool `{name}` of server `{server}` is not shown to {provider}: {reason}"),
    }
}

#[cfg(test)]
mod tests;
