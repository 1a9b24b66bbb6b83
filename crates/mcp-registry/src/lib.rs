//! One catalog of tools under names that can be trusted.
//!
//! Servers come and go, list tools under any name, and clash. This crate decides, as functions of values, which tools,
//! prompts and resources a host shows ([`decide`]), under which unique names ([`Catalog`]), who may change them
//! ([`Ownership`]), what a user should know about the rest ([`Problem`]) and since when ([`Generation`]), what a new
//! configuration changes ([`Plan`], [`Difference`]), what one agent sees ([`View`]), what of a server is not as it was approved ([`Lock`]), what a model's provider is told
//! ([`project`]), and whether arguments and results fit a tool's schemas ([`Validators`]). It connects to nothing and
//! waits for nothing: a host with transports of its own takes this crate and mcp-model alone.
//!
//! ```
//! use std::sync::Arc;
//!
//! use mcp_model::{Exposure, NameClass, NamePolicy, RawJson, ServerId, read_tools};
//! use mcp_registry::{Builtins, Catalog, Lists, Lookup, ServerEntry, Validators};
//!
//! let page = br#"{"tools": [{"name": "read.file", "inputSchema": {
//!     "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]
//! }}]}"#;
//! let tools = read_tools(&RawJson::parse(page.as_slice().into())?)?.shared();
//! let files = ServerEntry {
//!     id: ServerId::parse("files")?,
//!     exposure: Exposure::all(NamePolicy::Qualify { class: NameClass::Strict }),
//!     lists: Arc::new(Lists { tools, ..Lists::default() }),
//! };
//! let catalog = Catalog::build(&Builtins::default(), &[files]);
//! assert_eq!(catalog.tools()[0].name.as_str(), "files__read-file");
//!
//! let Lookup::Found(tool) = catalog.find("read.file") else { panic!("the bare name is unambiguous") };
//! let arguments = RawJson::parse(br#"{"path": 7}"#.as_slice().into())?;
//! let invalid = Validators::new().check(&tool.tool.input_schema, &arguments).unwrap_err();
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
mod rejection;
mod reload;
mod validate;

pub use catalog::difference::{Changes, Difference, ResourceKey, Step};
pub use catalog::generation::{ActiveProblem, Generation};
pub use catalog::lists::{Builtins, ListKind, Lists, RejectedItem, ServerEntry};
pub use catalog::lookup::Lookup;
pub use catalog::ownership::{Owner, Ownership, OwnershipError, Token};
pub use catalog::server_slice::decide_all;
pub use catalog::snapshot::Catalog;
pub use catalog::view::{Selection, View, Viewed};
pub use filter::decide::{Decider, Decision, Stage, StageRule, Verdict, decide};
pub use hash::Hash;
pub use lock::{
    About, AboutPart, Approved, Change, Digest, Drift, Drifted, Enforcement, Item, Lock, LockError,
    LockPolicy, Part, Print,
};
pub use name::exposed::{ExposedPrompt, ExposedResource, ExposedTemplate, ExposedTool};
pub use name::rules::ExposedName;
pub use problem::{Problem, ProblemKind};
pub use projection::{ProjectedTool, Projection, Provider, project};
pub use rejection::{NetworkFailure, ProviderRejection, Reaction, Rejection, classify};
pub use reload::fingerprint::Fingerprint;
pub use reload::plan::{Desired, Plan};
pub use validate::{ArgumentError, ArgumentsInvalid, Checked, ResultInvalid, Validators};
