//! One catalog of tools under unique, valid names.
//!
//! Servers start and stop, use arbitrary names, and collide. As pure functions this crate decides which tools,
//! prompts and resources a host exposes ([`decide`]) under which unique names ([`Catalog`]), and what a user should
//! know about the rest ([`Problem`], [`ActiveProblem`]). It computes what a new configuration changes
//! ([`ReloadPlan`], [`CatalogDiff`]), what one agent sees ([`ViewFilter`]), and how a server differs from the
//! approved one ([`LockFile`]). It finds suspicious places in definitions ([`server_findings`]), adapts tools to model
//! providers ([`project`]), and validates arguments and results against schemas ([`ValidatorCache`]). It performs no
//! I/O: a host with its own transports needs only this crate and `mcp_host_model`.
//!
//! ```
//! use std::sync::Arc;
//!
//! use mcp_host_model::{Exposure, NameClass, NamePolicy, RawJson, ServerId, read_tools};
//! use mcp_host_registry::{Builtins, Catalog, ServerLists, ToolLookup, CatalogServer, ValidatorCache};
//!
//! let page = br#"{"tools": [{"name": "read.file", "inputSchema": {
//!     "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]
//! }}]}"#;
//! let tools = read_tools(&RawJson::parse(page.as_slice().into())?)?.into_shared();
//! let lists = ServerLists::of_tools(tools);
//! let exposure = Exposure::all(NamePolicy::Qualify { class: NameClass::Strict });
//! let files = CatalogServer::new(ServerId::parse("files")?, exposure, Arc::new(lists));
//! let catalog = Catalog::build(&Builtins::default(), &[files]);
//! assert_eq!(catalog.tools()[0].name.as_str(), "files__read-file");
//!
//! let ToolLookup::Found(tool) = catalog.find("read.file") else { panic!("the bare name is unambiguous") };
//! let arguments = RawJson::parse(br#"{"path": 7}"#.as_slice().into())?;
//! let invalid = tool.check_arguments(&ValidatorCache::new(), &arguments).unwrap_err();
//! assert_eq!(invalid.to_string(), "/path: value is not of type \"string\"");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Features, both on by default: `validator` has [`ValidatorCache`] and [`project`], `reload` has [`ReloadPlan`].
//!
//! Ids such as `DM-055` name rules, the promised behaviour; `docs/rules.md` in the repository lists them.

#![forbid(unsafe_code)]
// A type that is exhaustive states the reason.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod catalog;
mod filter;
mod hash;
mod lists;
mod lock;
mod name;
mod problem;
#[cfg(feature = "validator")]
mod projection;
mod provider_retry;
#[cfg(feature = "reload")]
mod reload;
#[cfg(feature = "validator")]
mod validate;

/// Name patterns, as in the filters of a configuration.
pub mod pattern {
    pub use crate::filter::pattern::first_match;
}

/// Parsers for the properties of the fuzz targets in mcp-testkit. Not part of the public API.
#[doc(hidden)]
pub mod internal {
    pub use crate::name::display::escape_name;
    pub use crate::name::exposed_name::{is_valid, shorten};
}

pub use catalog::active_problem::ActiveProblem;
pub use catalog::diff::{CatalogDiff, CatalogStep, ListDiff, ResourceKey};
pub use catalog::exposed_items::{ExposedPrompt, ExposedResource, ExposedTemplate, ExposedTool};
pub use catalog::item_list::{ItemIter, ItemList};
pub use catalog::lookup::ToolLookup;
pub use catalog::name_owner::NameOwner;
pub use catalog::server_slice::{ServerSlice, decide_all};
pub use catalog::snapshot::Catalog;
pub use catalog::tool_budget::{BudgetTracker, ToolBudget};
pub use catalog::view::{CatalogView, HintSelection, NamedView, Selection, ViewFilter};
pub use filter::call_rules::{CallFacts, find_call_rule, tool_action};
pub use filter::rules::{CompiledRules, Decision, ExposureVerdict, RuleKind, RuleStep, decide};
pub use hash::CatalogHash;
pub use lists::{Builtins, CatalogServer, ListKind, RejectedItem, ServerLists};
pub use lock::findings::{
    Finding, FindingKind, FindingSeverity, FindingText, ItemFinding, OtherTools, definition_findings,
    instruction_findings, server_findings,
};
pub use lock::{
    DefinitionPart, Drift, DriftConsequence, DriftPolicy, Enforcement, IdentityPart, ItemChange, ItemDrift,
    ItemKind, ItemSnapshot, JsonDigest, LockFile, LockParseError, ProgramPart, ProgramRecord, ServerIdentity,
    ServerSnapshot,
};
pub use name::exposed_name::ExposedName;
pub use problem::{Problem, ProblemKind};
#[cfg(feature = "validator")]
pub use projection::{
    ClientResult, InvalidMember, ProjectedTool, Projection, Provider, project, prompt_for_clients,
    resource_for_clients, result_for_clients, tool_for_clients,
};
pub use provider_retry::{NetworkFailure, ProviderFailure, ProviderRejection, RetryDecision, decide_retry};
#[cfg(feature = "reload")]
pub use reload::plan::{DesiredServer, ReloadPlan};
#[cfg(feature = "reload")]
pub use reload::settings::{ExposureSettings, RuntimeSettings};
#[cfg(feature = "validator")]
pub use validate::schema_defect::{input_schema_defect, output_schema_defect};
#[cfg(feature = "validator")]
pub use validate::{InvalidArguments, InvalidResult, SchemaViolation, ValidationOutcome, ValidatorCache};

/// Compiles the program of the README.
#[cfg(all(doctest, feature = "validator"))]
#[doc = include_str!("../README.md")]
struct Readme;
