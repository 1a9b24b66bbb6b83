//! Reads and writes configuration files of MCP servers.
//!
//! [`read`] turns the text of a file, in the dialect of a [`Profile`], into servers and diagnostics with positions and help
//! ([`Reading`]). [`resolve()`] replaces variables and returns an endpoint to connect to. Everything is pure: no files, no
//! process environment, no clock. Diagnostics, [`render()`] and `Debug` never print secrets.
//!
//! ```
//! use mcp_config::{Colour, Document, Profile, read, render};
//!
//! let text = "version: 1\nservers:\n  files:\n    transport: stdio\n    comand: npx\n";
//! let reading = read(&Document { name: "mcp.yaml", text, profile: Profile::Dominds });
//! assert!(reading.servers.is_empty());
//! let mistakes: Vec<_> = reading.diagnostics.iter().map(|it| (it.line, it.to_string())).collect();
//! assert_eq!(mistakes[0], (3, "MCPConfigError: Invalid mcp.yaml: servers.files.command must be a non-empty string".into()));
//! assert_eq!(mistakes[1], (5, "ValidationError: unknown key 'comand'".into()));
//! assert_eq!(reading.diagnostics[1].help.as_deref(), Some("did you mean `command`?"));
//! println!("{}", render("mcp.yaml", text, &reading.diagnostics, Colour::Never));
//! ```

#![forbid(unsafe_code)]

mod de;
mod diagnostic;
mod dialect;
mod edit;
mod profile;
mod read;
mod render;
mod resolve;
mod syntax;

/// The servers of ACP session requests.
pub mod acp {
    pub use crate::dialect::acp::{
        EnvVariable, HttpHeader, HttpTransport, HttpType, Leniency, McpServerConfig, SseTransport, SseType,
        StdioTransport, Tolerance,
    };
    pub use crate::read::read_acp as read;
}

/// HoloDeck's configuration types.
pub mod holodeck {
    pub use crate::dialect::holodeck::{CommandType, McpToolConfig, ToolType, TransportType};
}

/// Parsers for the properties of the fuzz targets in mcp-testkit. Not part of the public API.
#[doc(hidden)]
pub mod internal {
    pub use crate::resolve::dotenv::parse_editor_env_file;
    pub use crate::syntax::{
        ChangedPointers, Content, Node, ParsedText, Syntax, difference, parse_as, template, to_json,
    };
}

pub use diagnostic::{Applicability, Code, Diagnostic, Fix, Label, TextEdit};
pub use dialect::detect::{detect, detect_profile};
pub use dialect::editor::program::program_files;
pub use dialect::editor::{InputDeclarations, prompts_for_inputs};
pub use dialect::schema::schema;
pub use dialect::write::{
    FieldFallback, ProgramLookup, UnsupportedField, WrittenFile, write_editor_file, write_servers,
};
pub use edit::fix::{FixError, FixedFile, apply_fixes, fix_all};
pub use edit::new_server::{NewServer, NewTransport, UrlTransportKind};
pub use edit::server_json::{PackageKind, PublishedServer, ServerJsonError, parse_server_json};
pub use edit::{EditError, Switch, add_server, remove_server, set_enabled};
pub use profile::Profile;
pub use read::{Document, Reading, ServerEntry, read};
pub use render::{
    CheckOutcome, CheckedFile, Colour, SarifTool, render, render_diff, render_github, render_sarif,
};
pub use resolve::dotenv::parse_env_file;
pub use resolve::{ResolveContext, ResolveError, ResolvedServer, resolve};
pub use syntax::text_to_json;
