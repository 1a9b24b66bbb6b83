//! Counters since the start, and their Prometheus text.

pub(crate) mod call_counters;
pub(crate) mod counters;
pub(crate) mod prometheus;
