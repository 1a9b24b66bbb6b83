//! One catalog of tools under names that can be trusted.
//!
//! Servers come and go, list tools under any name, and clash. This crate decides, as functions of values, which tools,
//! prompts and resources a host shows ([`decide`]), under which unique names ([`Catalog`]), who may change them
//! ([`Ownership`]), what a user should know about the rest ([`Problem`]) and since when ([`Generation`]), what a new
//! configuration changes ([`ReloadPlan`], [`CatalogDiff`]), what one agent sees ([`ViewFilter`]), what of a server is not as it was approved ([`LockFile`]), what a model's provider is told
//! ([`project`]), and whether arguments and results fit a tool's schemas ([`ValidatorCache`]). It connects to nothing and
//! waits for nothing: a host with transports of its own takes this crate and mcp-model alone.
//!
//! ```
//! use std::sync::Arc;
//!
//! use mcp_model::{Exposure, NameClass, NamePolicy, RawJson, ServerId, read_tools};
//! use mcp_registry::{Builtins, Catalog, ServerLists, ToolLookup, ServerEntry, ValidatorCache};
//!
//! let page = br#"{"tools": [{"name": "read.file", "inputSchema": {
//!     "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]
//! }}]}"#;
//! let tools = read_tools(&RawJson::parse(page.as_slice().into())?)?.into_shared();
//! let files = ServerEntry {
//!     id: ServerId::parse("files")?,
//!     exposure: Exposure::all(NamePolicy::Qualify { class: NameClass::Strict }),
//!     lists: Arc::new(ServerLists { tools, ..ServerLists::default() }),
//! };
//! let catalog = Catalog::build(&Builtins::default(), &[files]);
//! assert_eq!(catalog.tools()[0].name.as_str(), "files__read-file");
//!
//! let ToolLookup::Found(tool) = catalog.find("read.file") else { panic!("the bare name is unambiguous") };
//! let arguments = RawJson::parse(br#"{"path": 7}"#.as_slice().into())?;
//! let invalid = ValidatorCache::new().check_arguments(&tool.tool.input_schema, &arguments).unwrap_err();
//! assert_eq!(invalid.to_string(), "/path: value is not of type \"string\"");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod catalog;
mod filter;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod hash;
mod lock;
mod name;
mod problem;
mod projection;
mod provider_retry;
mod reload;
mod validate;

pub use catalog::catalog::Catalog;
pub use catalog::diff::{CatalogDiff, CatalogStep, ListDiff, ResourceKey};
pub use catalog::generation::{ActiveProblem, Generation};
pub use catalog::lists::{Builtins, ListKind, RejectedItem, ServerEntry, ServerLists};
pub use catalog::lookup::ToolLookup;
pub use catalog::ownership::{Owner, Ownership, OwnershipError, Token};
pub use catalog::server_slice::decide_all;
pub use catalog::view::{CatalogView, Selection, ViewFilter};
pub use filter::rules::{CompiledRules, Decision, RuleKind, RuleStep, Verdict, decide};
pub use hash::CatalogHash;
pub use lock::{
    DefinitionPart, Drift, DriftPolicy, Enforcement, IdentityPart, ItemChange, ItemDrift, ItemKind,
    ItemSnapshot, JsonDigest, LockFile, LockParseError, ServerIdentity, ServerSnapshot,
};
pub use name::exposed_items::{ExposedPrompt, ExposedResource, ExposedTemplate, ExposedTool};
pub use name::exposed_name::ExposedName;
pub use problem::{Problem, ProblemKind};
pub use projection::{ProjectedTool, Projection, Provider, project};
pub use provider_retry::{NetworkFailure, ProviderFailure, ProviderRejection, RetryDecision, retry_decision};
pub use reload::fingerprint::Fingerprint;
pub use reload::plan::{DesiredServer, ReloadPlan};
pub use validate::{InvalidArguments, InvalidResult, SchemaViolation, ValidationOutcome, ValidatorCache};
