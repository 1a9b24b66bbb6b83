//! The syntax tree of a file, with the span of every key and value.
//!
//! All dialects read this tree. Only `yaml/`, `jsonc/` and `toml.rs` depend on the parsers. Numbers keep all digits and
//! keys their order. An alias shares its target without copying it, but counts towards the size limits.

pub(crate) mod commented_entry;
mod diff;
pub(crate) mod entry_edits;
mod json;
mod jsonc;
mod key_index;
mod key_interner;
pub(crate) mod layout;
mod look_alike;
mod node;
pub(crate) mod output;
mod parse;
mod parsed_text;
mod pointer;
mod scalar;
pub mod template;
#[cfg(feature = "files")]
mod toml;
#[cfg(feature = "files")]
mod yaml;
#[cfg(not(feature = "files"))]
mod yaml_unsupported;

pub use diff::{ChangedPointers, find_difference};
pub use json::{text_to_json, to_json};
pub(crate) use jsonc::looks_like_json;
pub use node::{Content, Node};
pub(crate) use node::{Key, KeyKind, Member};
pub use parse::parse_as;
pub(crate) use parse::{looks_like_toml, parse_any};
pub(crate) use parsed_text::ExtensionSpans;
pub use parsed_text::{ParsedText, Syntax};
pub(crate) use parsed_text::{UnspacedKey, unspaced_key};
pub(crate) use pointer::{
    child_pointer, last_key, parent_pointer, pointer_contains, pointer_segments, push_key,
};
