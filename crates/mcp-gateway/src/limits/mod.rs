//! Limits: bounds on clients, rate limits, a byte budget, and a fair queue.

pub(crate) mod bounds;
pub(crate) mod byte_budget;
pub(crate) mod fair_queue;
pub(crate) mod rate_limits;
