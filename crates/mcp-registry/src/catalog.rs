//! Every server's tools, prompts and resources under names that are unique: an immutable value.
//!
//! There is no change here, only a new catalog: whoever holds one holds all of it. The order is that of the
//! configuration, then each server's own, so the same content gives the same catalog.

use std::collections::HashMap;

use mcp_model::{Prompt, Resource, ServerId, Tool};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::build;
use crate::hash::Encoder;
use crate::lookup::nearest;
use crate::{Builtins, Decision, ExposedName, Hash, Lookup, Problem, ServerEntry};

/// What a host shows, and how it got there.
///
/// Invariant: exposed names are unique among tools, and among prompts; URIs are unique within a server.
#[derive(Debug, Clone)]
pub struct Catalog {
    tools: Vec<ExposedTool>,
    prompts: Vec<ExposedPrompt>,
    resources: Vec<ExposedResource>,
    decisions: Vec<Decision>,
    problems: Vec<Problem>,
    toolsets: Vec<ServerId>,
    builtin_toolsets: Vec<String>,
    tool_index: HashMap<ExposedName, usize>,
    prompt_index: HashMap<ExposedName, usize>,
    /// Positions of `tools`, ordered by original name.
    by_original: Vec<usize>,
    hash: Hash,
}

/// A tool that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExposedTool {
    /// The name it is shown under.
    pub name: ExposedName,
    /// The server it belongs to.
    pub server: ServerId,
    /// The tool as its server defines it.
    pub tool: Tool,
}

/// A prompt that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExposedPrompt {
    /// The name it is shown under.
    pub name: ExposedName,
    /// The server it belongs to.
    pub server: ServerId,
    /// The prompt as its server defines it.
    pub prompt: Prompt,
}

/// A resource that is shown. It is asked for by server and URI; its name is a label, and need be neither unique nor
/// a function's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExposedResource {
    /// Its name after the transforms.
    pub name: String,
    /// The server it belongs to.
    pub server: ServerId,
    /// The resource as its server defines it.
    pub resource: Resource,
}

impl Catalog {
    /// Puts together what `servers`, in the configuration's order, have to show beside `builtins`.
    ///
    /// Where two want one name the host's own wins, then the earlier server, then within a server the earlier item;
    /// the other is left out with a problem that names both (DM-032, DM-051). A server whose id is the name of
    /// another toolset is left out as a whole (DM-033).
    pub fn build(builtins: &Builtins, servers: &[ServerEntry]) -> Catalog {
        let parts = build::parts(builtins, servers);
        let build::Parts { tools, prompts, resources, decisions, problems, toolsets } = parts;
        let tool_index = tools.iter().enumerate().map(|(at, it)| (it.name.clone(), at)).collect();
        let prompt_index = prompts.iter().enumerate().map(|(at, it)| (it.name.clone(), at)).collect();
        let mut by_original: Vec<usize> = (0..tools.len()).collect();
        by_original.sort_by_key(|at| &tools[*at].tool.name);
        let hash = hash(&tools, &prompts, &resources);
        Catalog {
            tools,
            prompts,
            resources,
            decisions,
            problems,
            toolsets,
            builtin_toolsets: builtins.toolsets.clone(),
            tool_index,
            prompt_index,
            by_original,
            hash,
        }
    }

    /// A catalog of nothing.
    pub fn empty() -> Catalog {
        Catalog::build(&Builtins::default(), &[])
    }

    /// The tools, in order.
    pub fn tools(&self) -> &[ExposedTool] {
        &self.tools
    }

    /// The tool shown under exactly this name.
    pub fn tool(&self, exposed: &str) -> Option<&ExposedTool> {
        self.tool_index.get(exposed).map(|at| &self.tools[*at])
    }

    /// The tool that somebody means by `name`: its exposed name, else the original name of one tool only.
    pub fn find(&self, name: &str) -> Lookup<'_> {
        if let Some(tool) = self.tool(name) {
            return Lookup::Found(tool);
        }
        let original = |at: &usize| &*self.tools[*at].tool.name;
        let start = self.by_original.partition_point(|at| original(at) < name);
        let end = start + self.by_original[start..].partition_point(|at| original(at) == name);
        match self.by_original[start..end] {
            [] => Lookup::Missing { nearest: nearest(&self.tools, name) },
            [at] => Lookup::Found(&self.tools[at]),
            ref many => Lookup::Ambiguous(many.iter().map(|at| &self.tools[*at]).collect()),
        }
    }

    /// The prompts, in order.
    pub fn prompts(&self) -> &[ExposedPrompt] {
        &self.prompts
    }

    /// The prompt shown under exactly this name.
    pub fn prompt(&self, exposed: &str) -> Option<&ExposedPrompt> {
        self.prompt_index.get(exposed).map(|at| &self.prompts[*at])
    }

    /// The resources, in order.
    pub fn resources(&self) -> &[ExposedResource] {
        &self.resources
    }

    /// What became of each tool, shown or not, in order; of each server the malformed ones last.
    pub fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    /// What a user should know about tools, prompts, resources and servers that are not shown. No two have one id.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The servers that are shown, each of which is a toolset (DM-030), in order; those without tools too.
    pub fn toolsets(&self) -> &[ServerId] {
        &self.toolsets
    }

    /// The host's own toolsets.
    pub fn builtin_toolsets(&self) -> &[String] {
        &self.builtin_toolsets
    }

    /// The hash of everything that is shown: names, servers and definitions byte for byte, in order.
    pub fn hash(&self) -> Hash {
        self.hash
    }
}

impl Default for Catalog {
    fn default() -> Catalog {
        Catalog::empty()
    }
}

fn hash(tools: &[ExposedTool], prompts: &[ExposedPrompt], resources: &[ExposedResource]) -> Hash {
    let mut encoder = Encoder::new("mcp-registry catalog 1");
    let mut item = |name: &str, server: &ServerId, raw: &[u8]| {
        encoder.text(name);
        encoder.text(server.as_str());
        encoder.bytes(raw);
    };
    for it in tools {
        item(it.name.as_str(), &it.server, it.tool.raw.as_bytes());
    }
    for it in prompts {
        item(it.name.as_str(), &it.server, it.prompt.raw.as_bytes());
    }
    for it in resources {
        item(&it.name, &it.server, it.resource.raw.as_bytes());
    }
    for length in [tools.len(), prompts.len(), resources.len()] {
        encoder.number(length as u64);
    }
    encoder.hash()
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
    /// Gives `name`, `server`, `original_name` and `description`, in this order.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut res = serializer.serialize_struct("ExposedPrompt", 4)?;
        res.serialize_field("name", &self.name)?;
        res.serialize_field("server", &self.server)?;
        res.serialize_field("original_name", &self.prompt.name)?;
        res.serialize_field("description", &self.prompt.description)?;
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

#[cfg(test)]
pub(crate) mod tests;
