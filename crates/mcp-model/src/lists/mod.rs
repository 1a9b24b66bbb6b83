//! List results of a server: pages of tools, prompts, resources, resource templates and skills.

pub(crate) mod header_argument;
pub(crate) mod page;
pub(crate) mod prompt;
pub(crate) mod resource;
pub(crate) mod skill;
pub(crate) mod tool;
