//! The shared types of an MCP host. Values only: no I/O, no clock, no async.
//!
//! The other crates of the workspace exchange these types: a server as its configuration describes it
//! ([`ServerSpec`]) and as it is reached ([`Endpoint`]), what it offers ([`Tool`], [`Prompt`], [`Resource`]), the
//! result of a call ([`CallResult`]), and the kinds of errors ([`ErrorKind`]). JSON that is only forwarded stays
//! bytes ([`RawJson`]).
//!
//! ```
//! use mcp_host_model::{RawJson, read_tools};
//!
//! let page = RawJson::parse(r#"{"tools":[
//!     {"name": "echo", "inputSchema": {"type": "object"}},
//!     {"name": "broken", "inputSchema": 7}
//! ]}"#.into())?;
//! let page = read_tools(&page)?;
//! assert_eq!(&*page.items[0].name, "echo");
//! assert_eq!(page.items[0].input_schema.as_str(), r#"{"type": "object"}"#);
//! assert_eq!(page.rejected[0].reason, "its `inputSchema` is no object");
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! Ids such as `DM-042` name rules, the promised behaviour; `docs/rules.md` in the repository lists them.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
// A type that is exhaustive states the reason for it.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

pub mod code;
mod error_kind;
mod invisible;
mod json;
mod lists;
mod protocol;
mod result;
mod server;

/// Interfaces for other crates of this workspace. Not part of the public API; may change in any release.
#[doc(hidden)]
pub mod internal {
    pub use crate::json::base64_text::is_base64_text;
    pub use crate::json::cursor::{JsonCursor, JsonSlice};
    pub use crate::json::depth::is_deeper_than;
    pub use crate::json::unescape::{
        UnescapedString, replace_escape_if_unpaired, replace_unpaired_surrogates,
    };
    #[cfg(feature = "endpoint")]
    pub use crate::server::loopback::is_loopback;
    pub use crate::server::value_name::{may_name_secret, names_secret, names_setting};
}

/// The error of [`ResourceBody::to_bytes`].
#[doc(no_inline)]
pub use base64::DecodeError;
/// For [`RawJson`], which shares its bytes.
#[doc(no_inline)]
pub use bytes::Bytes;
pub use error_kind::{ErrorKind, Severity};
pub use invisible::{is_invisible, is_joiner};
pub use json::raw::RawJson;
pub use lists::header_argument::{HeaderArgument, InvalidHeaderMark};
pub use lists::page::{CacheScope, Freshness, InvalidItem, Page, PageCursor, PageDefect};
pub use lists::prompt::{
    Prompt, PromptArgument, PromptMessage, PromptResult, read_prompt_result, read_prompts,
};
pub use lists::resource::{
    Resource, ResourceBody, ResourceContent, ResourceResult, ResourceTemplate, read_resource_result,
    read_resource_templates, read_resources,
};
pub use lists::skill::{SKILLS_EXTENSION, Skill, SkillFile, read_skill_result, read_skills};
pub use lists::tool::{APPS_EXTENSION, TaskSupport, Tool, ToolHints, read_tools};
pub use protocol::era::{Era, ProtocolVersion, UnknownProtocolVersion};
pub use protocol::log_level::{LogLevel, UnknownLogLevel};
pub use protocol::method::{Method, MethodName};
pub use protocol::rpc::RpcError;
pub use protocol::trace::{InvalidTraceContext, TraceContext};
pub use result::call::{
    CallFailure, CallMetadata, CallResult, ParsedToolResult, StructuredResultError, ToolResult,
};
pub use result::completion::Completion;
pub use result::content::{Content, MissingMember, UNKNOWN_MEDIA_TYPE};
pub use result::kind::{ResultInfo, ResultKind, ResultTypeMember, read_result};
pub use result::task::{TASKS_EXTENSION, Task, TaskStatus, read_created_task};
/// For [`RawJson::copy_of`], and for errors of reading.
#[doc(no_inline)]
pub use serde_json;
pub use server::call_rule::{CallEffect, CallRule, CallRules, InvalidCallRule, ToolAction};
pub use server::credentials::{ClientCredentials, ClientGrant, ClientKey};
#[cfg(feature = "endpoint")]
pub use server::endpoint::{Endpoint, UrlEndpoint};
pub use server::exposure::{
    Exposure, ExposureFilter, ExposureRules, NameClass, NameLimit, NamePolicy, NameTransform,
};
pub use server::id::{InvalidServerId, ServerId};
pub use server::limits::Limits;
pub use server::name::ServerName;
pub use server::origin::{Dialect, Profile, SpecOrigin, StartLimit, UnsetVariablePolicy};
pub use server::sandbox::{Sandbox, SandboxPreset};
pub use server::secret::Secret;
pub use server::sharing::Sharing;
pub use server::spec::{
    ConfigValue, Discovery, EnvInheritance, Passthrough, ServerSpec, SseFallback, StdioSpec, TemplatePart,
    TransportKind, TransportSpec, UrlSpec,
};
pub use server::stdio_endpoint::StdioEndpoint;
/// For [`UrlEndpoint`].
#[cfg(feature = "endpoint")]
#[doc(no_inline)]
pub use url::Url;

/// Compiles the program in the README as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
