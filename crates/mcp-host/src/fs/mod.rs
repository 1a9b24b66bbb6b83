//! File operations: atomic writes, checks of folders, private files, and a bounded pool for blocking operations.

pub(crate) mod atomic_write;
pub(crate) mod blocking_pool;
pub(crate) mod folder_ownership;
pub(crate) mod private_json;
pub(crate) mod system;
