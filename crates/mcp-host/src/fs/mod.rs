//! File operations: atomic writes, checks of folders, and a bounded pool for blocking operations.

pub(crate) mod atomic_write;
pub(crate) mod blocking_pool;
pub(crate) mod folder_ownership;
pub(crate) mod system;
