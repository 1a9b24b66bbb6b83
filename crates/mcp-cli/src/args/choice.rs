//! Options with a fixed set of values, which are values of the libraries.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use mcp_host_config::Profile;
use mcp_host_model::Dialect;
use schema_evolution::SchemaUser;

/// The values of an option: name, help and value. A value without help is accepted and not listed.
pub(super) type Choices<T> = &'static [(&'static str, &'static str, T)];

/// Returns a parser that accepts the names of `choices`.
pub(super) fn choice_parser<T: Copy + Send + Sync>(choices: Choices<T>) -> impl TypedValueParser<Value = T> {
    let names =
        choices.iter().map(|(name, help, _)| PossibleValue::new(*name).help(*help).hide(help.is_empty()));
    PossibleValuesParser::new(names).map(|name| {
        let (_, _, value) =
            choices.iter().find(|choice| choice.0 == name).expect("clap accepts only these names");
        *value
    })
}

pub(super) const DIALECTS: Choices<Dialect> = &[
    ("holodeck", "HoloDeck's agent.yaml", Dialect::HoloDeck),
    ("dominds", "Dominds' .minds/mcp.yaml", Dialect::Dominds),
    ("acp", "The servers of an ACP session: a request, its params, or the list", Dialect::Acp),
    ("mcp-json", "The mcp.json or settings file of an editor or agent", Dialect::McpJson),
];

pub(super) const PROFILES: Choices<Profile> = &[
    ("holodeck", "HoloDeck's configuration contract", Profile::HoloDeck),
    ("holodeck-0.7", "What HoloDeck 0.7 accepts", Profile::HoloDeck07),
    ("dominds", "Dominds", Profile::Dominds),
    ("acp-v1", "ACP, protocol version 1", Profile::AcpV1),
    ("acp", "", Profile::AcpV1),
    ("acp-v2", "ACP, draft of protocol version 2", Profile::AcpV2),
    ("mcp-json", "Editors and agents", Profile::McpJson),
];

/// The schemas, each by the profile that it describes by default.
pub(super) const SCHEMAS: Choices<Profile> = &[
    ("holodeck", "HoloDeck's agent.yaml", Profile::HoloDeck),
    ("dominds", "Dominds' .minds/mcp.yaml", Profile::Dominds),
    ("acp-v1", "The servers of an ACP session, protocol version 1", Profile::AcpV1),
    ("acp-v2", "The servers of an ACP session, draft of protocol version 2", Profile::AcpV2),
    ("mcp-json", "The mcp.json of an editor or agent", Profile::McpJson),
];

/// The kinds of programs that a comparison of two schemas protects.
pub(super) const USES: Choices<SchemaUser> = &[
    ("reader", "A program that reads documents which others wrote by the old schema", SchemaUser::Reader),
    (
        "writer",
        "A program that writes documents by the new schema, for readers of the old one",
        SchemaUser::Writer,
    ),
];
