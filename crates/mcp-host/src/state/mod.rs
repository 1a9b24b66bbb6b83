//! State that outlives an instance: snapshots and events, approvals and answers, known eras, server info, packages,
//! secrets, logins, and their folder.

pub(crate) mod approved_servers;
pub(crate) mod call_answers;
pub(crate) mod dialog_id;
pub(crate) mod event;
#[cfg(all(feature = "keyring", feature = "oauth"))]
pub(crate) mod keyring_token_store;
pub(crate) mod known_eras;
#[cfg(feature = "oauth")]
pub(crate) mod logins;
pub(crate) mod packages;
pub(crate) mod program_output;
pub(crate) mod published;
pub(crate) mod secrets;
pub(crate) mod server_info_cache;
pub(crate) mod start_identity;
pub(crate) mod state_folder;
pub(crate) mod subject_tokens;
#[cfg(feature = "oauth")]
pub(crate) mod token_store;
