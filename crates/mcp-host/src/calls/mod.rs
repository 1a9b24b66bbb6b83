//! Calls and other requests: finding the instance for a name, sending the request, and building the result.

pub(crate) mod admin;
mod call_result;
mod deadline;
pub(crate) mod dialog;
pub(crate) mod leases;
pub(crate) mod pin;
mod pinned_routes;
pub(crate) mod policy;
pub(crate) mod provider_failure;
pub(crate) mod raw_result;
pub(crate) mod request_options;
pub(crate) mod requests;
pub(crate) mod resource_lookup;
mod resource_search;
mod result_format;
mod result_limit;
pub(crate) mod route;
pub(crate) mod router;
mod schema_check;
pub(crate) mod servers;
pub(crate) mod skills;
pub(crate) mod spill;
pub(crate) mod subscribe;
pub(crate) mod supervisor_handle;
pub(crate) mod tool_call;
pub(crate) mod tool_lookup;
pub(crate) mod tool_ref;
