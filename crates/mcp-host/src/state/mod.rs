//! State that outlives one instance: what is published, known protocol eras, server info, logins.

pub(crate) mod known_eras;
#[cfg(feature = "oauth")]
pub(crate) mod logins;
pub(crate) mod published;
pub(crate) mod server_info_cache;
#[cfg(feature = "oauth")]
pub(crate) mod token_store;
