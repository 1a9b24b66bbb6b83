//! The state of one client: its session, dialogs, running requests and pending input.

pub(crate) mod client_channel;
pub(crate) mod client_dialog;
pub(crate) mod client_session;
pub(crate) mod dialog_table;
pub(crate) mod event_log;
pub(crate) mod features;
pub(crate) mod known_lists;
pub(crate) mod known_tasks;
pub(crate) mod outbound_queue;
pub(crate) mod pending_input;
pub(crate) mod request_client;
pub(crate) mod request_handlers;
pub(crate) mod resource_origins;
pub(crate) mod resource_subscriptions;
pub(crate) mod running_requests;
pub(crate) mod server_requests;
pub(crate) mod session_table;
pub(crate) mod supported_requests;
pub(crate) mod usage;
