//! Measurements for docs/performance.md.

pub(crate) mod bench;
pub(crate) mod counts;
pub(crate) mod growth;
pub(crate) mod page;
pub(crate) mod server;
