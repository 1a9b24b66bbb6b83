//! Checks of the tree that run no tests.

pub(crate) mod api;
pub(crate) mod deny;
mod doc_dependencies;
pub(crate) mod layers;
mod library;
pub(crate) mod packages;
pub(crate) mod rules;
pub(crate) mod tidy;
pub(crate) mod tool;
