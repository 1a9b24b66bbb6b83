//! Measurements for docs/performance.md.

pub(crate) mod bench;
pub(crate) mod counts;
pub(crate) mod page;
