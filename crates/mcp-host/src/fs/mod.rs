//! File operations: atomic writes and a bounded pool for blocking operations.

pub(crate) mod atomic_write;
pub(crate) mod blocking_pool;
