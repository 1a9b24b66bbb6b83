//! Renders results of the libraries as text: call results, schemas, server states, events, suggested commands.

pub(crate) mod call_result;
pub(crate) mod events;
pub(crate) mod findings;
pub(crate) mod schema_table;
pub(crate) mod status;
pub(crate) mod suggestions;
