//! The nouns of an MCP host.
//!
//! Every other crate of the workspace speaks in these types: a server as it was written ([`ServerSpec`]) and as it is
//! reached ([`Endpoint`]), what it offers ([`Tool`], [`Prompt`], [`Resource`]), what a call brings ([`CallResult`]),
//! and the kinds of failure ([`ErrorKind`]). They are values: nothing here reads a file, waits, or asks the time, and JSON
//! that is only carried stays bytes ([`RawJson`]).
//!
//! ```
//! use mcp_model::{RawJson, read_tools};
//!
//! let page = RawJson::parse(r#"{"tools":[
//!     {"name": "echo", "inputSchema": {"type": "object"}},
//!     {"name": "broken"}
//! ]}"#.into())?;
//! let page = read_tools(&page)?;
//! assert_eq!(&*page.items[0].name, "echo");
//! assert_eq!(page.items[0].input_schema.as_str(), r#"{"type": "object"}"#);
//! assert_eq!(page.rejected[0].reason, "it has no `inputSchema`");
//! # Ok::<(), serde_json::Error>(())
//! ```

#![forbid(unsafe_code)]

pub mod code;
mod completion;
mod content;
mod cursor;
mod endpoint;
mod era;
mod error_kind;
mod exposure;
mod id;
mod limits;
mod list;
mod log_level;
mod prompt;
mod raw;
mod resource;
mod result;
mod rpc;
mod secret;
mod spec;
mod tool;
mod trace;
mod unescape;

pub use completion::Completion;
pub use content::Content;
pub use cursor::{JsonCursor, JsonSlice};
pub use endpoint::{Endpoint, StdioEndpoint, UrlEndpoint};
pub use era::{Era, ProtocolVersion, UnknownProtocolVersion};
pub use error_kind::{ErrorKind, Severity};
pub use exposure::{Exposure, Filter, NameClass, NameLimit, NamePolicy, Rules, Transform};
pub use id::{InvalidServerId, ServerId};
pub use limits::Limits;
pub use list::{CacheScope, Freshness, InvalidItem, Page};
pub use log_level::{LogLevel, UnknownLogLevel};
pub use prompt::{Prompt, PromptArgument, PromptMessage, PromptResult, read_prompt_result, read_prompts};
pub use raw::RawJson;
pub use resource::{
    ReadResult, Resource, ResourceBody, ResourceContent, ResourceTemplate, read_resource_result,
    read_resource_templates, read_resources,
};
pub use result::{CallFailure, CallMetadata, CallResult, ToolResult};
pub use rpc::RpcError;
pub use secret::Secret;
pub use spec::{
    ConfigValue, Dialect, Discovery, EnvInherit, Origin, Passthrough, ServerSpec, Sharing, SseFallback,
    StdioSpec, TemplatePart, TransportKind, TransportSpec, UrlSpec,
};
pub use tool::{Tool, ToolHints, read_tools};
pub use trace::{InvalidTraceContext, TraceContext};
