//! Commands that read and change configurations and secrets, and start no server.

pub(crate) mod acp_check;
pub(crate) mod check;
pub(crate) mod connect;
pub(crate) mod convert;
pub(crate) mod edit;
pub(crate) mod import;
mod move_secrets;
mod new_file;
mod pin_packages;
pub(crate) mod schema;
pub(crate) mod secret;
mod server_copy;
pub(crate) mod views;
