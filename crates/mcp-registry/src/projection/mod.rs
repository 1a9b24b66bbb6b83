//! Adaptation of tools to a model provider: a pure function of the tools and the provider (DM-063, DM-064).
//!
//! A tool that a provider does not accept is left out with a problem. The meaning of a schema is never changed: a
//! keyword that constrains the shape of arguments is kept, or the tool is left out. Unsupported bounds and
//! annotations are dropped, because arguments are checked against the tool's own schema before a call. A tool that
//! OpenAI's strict mode does not accept becomes a function with `strict: false`. Tools that are for apps only
//! are left out without a problem.

mod anthropic;
mod client_definition;
mod client_result;
mod dialect;
mod gemini;
mod member_form;
mod openai;
mod profile;
mod projected_tool;
mod rewrite;
mod schema_out;

use mcp_host_model::RawJson;
use serde_json::Value;

use crate::catalog::exposed_items::ExposedTool;
use crate::name::display::{escape_name, truncate};
use crate::problem::{Problem, ProblemKind};
use crate::validate::unreadable_schema_reason;
use client_definition::complete_input_schema;
pub use client_definition::{prompt_for_clients, resource_for_clients, tool_for_clients};
pub use client_result::{ClientResult, InvalidMember, result_for_clients};
pub use projected_tool::ProjectedTool;

/// A model provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Provider {
    /// Unchanged, byte for byte (DM-061).
    #[default]
    Passthrough,
    /// OpenAI's functions, with `strict: true` where the schema allows it.
    #[strum(serialize = "openai_strict")]
    OpenAiStrict,
    /// Gemini's function declarations.
    Gemini,
    /// Anthropic's tools.
    Anthropic,
}

impl Provider {
    /// All providers.
    pub const ALL: &[Provider] =
        &[Provider::Passthrough, Provider::OpenAiStrict, Provider::Gemini, Provider::Anthropic];

    /// Returns `passthrough`, `openai_strict`, `gemini` or `anthropic`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The tools of a catalog in the form that a provider accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Projection {
    /// The provider.
    pub provider: Provider,
    /// The accepted tools, in order.
    pub tools: Vec<ProjectedTool>,
    /// One warning for each other tool, in order.
    pub problems: Vec<Problem>,
}

impl Projection {
    /// The `tools` array of a request as the provider's API takes it: OpenAI's Chat Completions, Gemini's
    /// `generateContent`, or Anthropic's Messages. Under [`Provider::Passthrough`] each item is a [`ProjectedTool`].
    pub fn to_tools_json(&self) -> RawJson {
        let tools = self.tools.iter();
        let json = match self.provider {
            Provider::Passthrough => RawJson::from_value(&self.tools),
            Provider::OpenAiStrict => {
                RawJson::from_value(&tools.map(openai::ToolJson::new).collect::<Vec<_>>())
            }
            Provider::Gemini => RawJson::from_value(&[gemini::ToolJson::new(tools)]),
            Provider::Anthropic => {
                RawJson::from_value(&tools.map(anthropic::ToolJson::new).collect::<Vec<_>>())
            }
        };
        json.expect("member names are strings")
    }
}

/// Adapts tools to `provider`: those of a catalog (`catalog.tools()`), or of a view (`catalog.view(&filter).tools`).
pub fn project<'a>(tools: impl IntoIterator<Item = &'a ExposedTool>, provider: Provider) -> Projection {
    let mut projection = Projection { provider, tools: Vec::new(), problems: Vec::new() };
    for tool in tools.into_iter().filter(|it| it.tool.is_for_models()) {
        match project_tool(tool, provider) {
            Ok(projected) => projection.tools.push(projected),
            Err(reason) => projection.problems.push(excluded_problem(tool, provider, reason)),
        }
    }
    projection
}

/// Adapts one tool. Fails with the reason why the provider does not accept it.
fn project_tool(tool: &ExposedTool, provider: Provider) -> Result<ProjectedTool, String> {
    let original = &match provider {
        Provider::Passthrough => tool.tool.input_schema.clone(),
        Provider::OpenAiStrict | Provider::Gemini | Provider::Anthropic => {
            complete_input_schema(&tool.tool.input_schema)
        }
    };
    let mut not_strict = None;
    let schema = match provider {
        Provider::Passthrough => Some(original.clone()),
        Provider::OpenAiStrict => {
            openai::STRICT.name_format.check(tool.name.as_str())?;
            let schema = read_schema(original)?;
            match rewrite::rewrite(&schema, &openai::STRICT) {
                Ok(strict) => strict,
                Err(reason) => {
                    not_strict = Some(truncate(reason, MAX_REASON_BYTES));
                    Some(openai::prepare_non_strict(original, schema)?)
                }
            }
        }
        Provider::Gemini => {
            gemini::PROFILE.name_format.check(tool.name.as_str())?;
            rewrite::rewrite(&read_schema(original)?, &gemini::PROFILE)?
        }
        Provider::Anthropic => {
            anthropic::NAME_FORMAT.check(tool.name.as_str())?;
            anthropic::check_schema(&read_schema(original)?)?;
            Some(original.clone())
        }
    };
    Ok(ProjectedTool {
        is_adapted: is_adapted(original, schema.as_ref()),
        name: tool.name.clone(),
        server: tool.server.clone(),
        description: tool.tool.description.clone(),
        schema,
        not_strict,
    })
}

/// Whether a schema differs from the original. The values are compared, because a rewritten schema has another order of
/// keys.
fn is_adapted(original: &RawJson, schema: Option<&RawJson>) -> bool {
    let value = |json: &RawJson| json.read::<Value>().ok();
    schema.is_none_or(|schema| schema != original && value(schema) != value(original))
}

/// The maximum size of a schema in bytes.
const MAX_SCHEMA_BYTES: usize = 256 << 10;
/// The maximum length of the reason for which a tool is not accepted, in bytes.
const MAX_REASON_BYTES: usize = 300;

/// Parses the input schema of a tool. Fails with the reason why it cannot be used.
fn read_schema(schema: &RawJson) -> Result<Value, String> {
    if schema.as_bytes().len() > MAX_SCHEMA_BYTES {
        return Err(format!("its schema is larger than {} KiB", MAX_SCHEMA_BYTES >> 10));
    }
    schema.read().map_err(|error| unreadable_schema_reason(&error))
}

/// The problem that a tool is left out.
fn excluded_problem(tool: &ExposedTool, provider: Provider, reason: String) -> Problem {
    let (server, provider) = (&tool.server, provider.as_str());
    let (name, reason) = (escape_name(&tool.tool.name), truncate(reason, MAX_REASON_BYTES));
    let id = format!("mcp/server/{server}/tool_excluded_by_{provider}/{name}");
    let message = format!("tool `{name}` of server `{server}` is left out for {provider}: {reason}");
    Problem::warning(id, ProblemKind::ProviderExcluded, Some(server), Some(&tool.tool.name), message)
}

#[cfg(test)]
mod tests;
