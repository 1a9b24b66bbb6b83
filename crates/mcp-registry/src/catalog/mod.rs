//! The catalog: every server's tools, prompts, resources and templates under unique names.

pub(crate) mod active_problem;
pub(crate) mod build;
pub(crate) mod catalog_list;
pub(crate) mod diff;
pub(crate) mod exposed_items;
pub(crate) mod item_list;
pub(crate) mod lookup;
pub(crate) mod name_index;
pub(crate) mod name_owner;
pub(crate) mod server_slice;
pub(crate) mod snapshot;
pub(crate) mod timestamp;
mod tokens;
pub(crate) mod tool_budget;
pub(crate) mod view;
