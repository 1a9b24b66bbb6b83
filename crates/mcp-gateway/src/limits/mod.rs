//! Limits: bounds on clients, a byte budget and counters.

pub(crate) mod bounds;
pub(crate) mod byte_budget;
pub(crate) mod counters;
pub(crate) mod prometheus;
