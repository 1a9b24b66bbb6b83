//! Dialects: detecting, reading and writing each kind of file, and its JSON Schema.

pub(crate) mod acp;
pub(crate) mod checks;
pub(crate) mod detect;
pub(crate) mod dominds;
pub(crate) mod editor;
pub(crate) mod entry;
pub(crate) mod holodeck;
pub(crate) mod lowering;
pub(crate) mod program_text;
pub(crate) mod schema;
pub(crate) mod write;
