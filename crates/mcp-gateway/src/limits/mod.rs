//! Limits: bounds on clients, rate limits, and a byte budget.

pub(crate) mod bounds;
pub(crate) mod byte_budget;
pub(crate) mod rate_limits;
