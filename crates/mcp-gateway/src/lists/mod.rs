//! Lists: the definitions of a generation, divided into pages and cached by scope.

pub(crate) mod cache;
pub(crate) mod definitions;
pub(crate) mod exposed_uri;
pub(crate) mod gateway_resources;
pub(crate) mod listing;
pub(crate) mod resolution;
