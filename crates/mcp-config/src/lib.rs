//! Reads and writes configuration files of MCP servers.
//!
//! [`read`] turns the text of a file, in the dialect of a [`Profile`], into servers and diagnostics with
//! positions and help ([`Reading`]). [`resolve()`] replaces variables and returns an endpoint to connect to.
//! Everything is pure: no files, no process environment, no clock. Diagnostics, [`render()`] and `Debug`
//! never print secrets. The module [`reader`] reads configurations that have nothing to do with MCP.
//!
//! ```
//! use mcp_host_config::{Colour, Document, Profile, read, render};
//!
//! let text = "version: 1\nservers:\n  files:\n    transport: stdio\n    comand: npx\n";
//! let reading = read(&Document::new("mcp.yaml", text, Profile::Dominds));
//! assert!(reading.servers.is_empty());
//! let mistakes: Vec<_> = reading.diagnostics.iter().map(|it| (it.line, it.to_string())).collect();
//! let missing = "MCPConfigError: Invalid mcp.yaml: servers.files.command must be a non-empty string";
//! assert_eq!(mistakes[0], (5, missing.into()));
//! assert_eq!(mistakes[1], (5, "ValidationError: unknown key 'comand'".into()));
//! assert_eq!(reading.diagnostics[1].help.as_deref(), Some("did you mean `command`?"));
//! println!("{}", render("mcp.yaml", text, &reading.diagnostics, Colour::Never));
//! ```
//!
//! Ids such as `DM-020` name rules, the promised behaviour; `docs/rules.md` in the repository lists them.

#![forbid(unsafe_code)]
// A public type is `#[non_exhaustive]`, or gives a reason in an `#[expect]`.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]
#![cfg_attr(
    not(feature = "files"),
    expect(
        dead_code,
        unreachable_pub,
        unused_imports,
        reason = "most of the rules and of the tree are for files"
    )
)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod de;
mod diagnostic;
mod dialect;
#[cfg(feature = "files")]
mod edit;
mod profile;
mod read;
#[cfg(feature = "files")]
pub mod reader;
#[cfg(feature = "files")]
mod render;
#[cfg(feature = "files")]
mod resolve;
mod syntax;

/// The servers of ACP session requests.
pub mod acp {
    #[cfg(feature = "files")]
    pub use crate::dialect::acp::{
        EnvVariable, HttpHeader, HttpServer, HttpType, McpServerConfig, SseServer, SseType, StdioServer,
    };
    pub use crate::dialect::acp::{Leniency, ListMember, SessionEntry, SessionMembers, Tolerance};
    pub use crate::read::{SessionReading, read_session as read};
}

/// HoloDeck's configuration types.
#[cfg(feature = "files")]
pub mod holodeck {
    pub use crate::dialect::holodeck::{CommandType, McpToolConfig, ToolType, TransportType};
}

/// For mcp-cli, and parsers for the properties of the fuzz targets in mcp-testkit. Not part of the public API.
#[cfg(feature = "files")]
#[doc(hidden)]
pub mod internal {
    pub use crate::dialect::editor::program::is_user_file;
    pub use crate::syntax::{
        ChangedPointers, Content, Node, ParsedText, Syntax, find_difference, parse_as, template, to_json,
    };
}

pub use diagnostic::{Applicability, Code, Diagnostic, Fix, Label, TextEdit};
/// For documents, diagnostics and the servers that were read.
#[doc(no_inline)]
pub use mcp_host_model::{Dialect, ErrorKind, Profile, Secret, ServerId, ServerSpec, Severity};
pub use read::{Document, Reading, ServerEntry};
/// For [`schema`], [`render_sarif`] and [`holodeck::McpToolConfig`].
#[cfg(feature = "files")]
#[doc(no_inline)]
pub use serde_json;

#[cfg(feature = "files")]
pub use crate::{
    dialect::detect::{UnsupportedFormat, detect, detect_unsupported_format},
    dialect::editor::program::{ProgramFile, UserFolders, program_files, program_of_path},
    dialect::editor::references::InputDeclarations,
    dialect::schema::schema,
    dialect::write::report::{FieldFallback, ProgramLookup, UnsupportedField, WrittenFile},
    dialect::write::{write_editor_file, write_servers},
    edit::error::EditError,
    edit::field_changes::{FieldChange, FieldChangeError, FieldOperation, set_fields},
    edit::fix::{FixError, FixedFile, apply_fixes, fix_all},
    edit::inputs::prompts_for_inputs,
    edit::new_server::{NewServer, NewTransport, UrlTransportKind},
    edit::proposed_sandbox::{propose_sandbox, sandbox_text},
    edit::server_json::{PackageKind, PublishedServer, ServerJsonError, parse_server_json},
    edit::{Switch, add_server, remove_server, set_enabled},
    read::{DetectedReading, read, read_detecting},
    render::{CheckOutcome, CheckedFile, Colour, SarifTool},
    render::{render, render_diff, render_github, render_sarif, secret_fields, split_scheme},
    resolve::context::{ResolveContext, ResolveError, SecretAccess, SecretSource},
    resolve::dotenv::{parse_editor_env_file, parse_env_file},
    resolve::server_secrets::ServerSecrets,
    resolve::{ResolveErrors, ResolvedServer, resolve},
    syntax::template::{INPUT_PREFIX, is_secret_name},
    syntax::text_to_json,
};

/// Compiles the program of the README.
#[cfg(all(doctest, feature = "files"))]
#[doc = include_str!("../README.md")]
struct Readme;
