//! Dialects: detecting, reading and writing each kind of file, and its JSON Schema.

pub(crate) mod acp;
pub(crate) mod call_rules;
pub(crate) mod checks;
#[cfg(feature = "files")]
pub(crate) mod detect;
#[cfg(feature = "files")]
pub(crate) mod dominds;
#[cfg(feature = "files")]
pub(crate) mod editor;
pub(crate) mod entry;
#[cfg(feature = "files")]
pub(crate) mod holodeck;
pub(crate) mod lowering;
pub(crate) mod program_text;
#[cfg(feature = "files")]
pub(crate) mod sandbox;
#[cfg(feature = "files")]
pub(crate) mod schema;
#[cfg(not(feature = "files"))]
pub(crate) mod unsupported;
#[cfg(feature = "files")]
pub(crate) mod wire_schema;
#[cfg(feature = "files")]
pub(crate) mod write;
