//! Reads what a user wrote about MCP servers.
//!
//! A text goes in, in one of the dialects ([`Profile`]); out come the servers that were understood and everything that
//! is wrong with the text, with line, column, and what to do ([`Reading`]). Then [`resolve()`] puts in what the
//! environment holds and gives an endpoint to connect to. All of it is pure: no file, no environment, no clock. Secrets
//! are never printed: not by a diagnostic, not by [`render()`], not by `Debug`.
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

pub mod acp;
mod de;
mod diagnostic;
mod dialect;
mod edit;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
pub mod holodeck;
mod read;
mod redact;
mod render;
mod resolve;
mod schema;
mod syntax;
mod write;

pub use diagnostic::{Code, Diagnostic, Label};
pub use dialect::detect::detect;
pub use dialect::profile::Profile;
pub use edit::fix::{Applicability, Fix, FixError, FixedFile, apply_fixes, fix_all};
pub use edit::{
    EditError, NewServer, NewTransport, PackageKind, PublishedServer, ServerJsonError, Switch, TextEdit,
    UrlTransportKind, add_server, parse_server_json, remove_server, set_enabled,
};
pub use read::{Document, Reading, ServerEntry, read};
pub use render::{
    CheckOutcome, CheckedFile, Colour, SarifTool, render, render_diff, render_github, render_sarif,
};
pub use resolve::dotenv::parse_env_file;
pub use resolve::{ResolveContext, ResolveError, ResolvedServer, resolve};
pub use schema::{schema, text_to_json};
pub use write::{
    FieldFallback, InputDeclarations, ProgramLookup, UnsupportedField, WrittenFile, prompts_for_inputs,
    write_editor_file, write_servers,
};
