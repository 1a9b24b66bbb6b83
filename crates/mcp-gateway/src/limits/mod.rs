//! Limits: bounds on clients, rate limits, a byte budget, and turns of clients.

pub(crate) mod bounds;
pub(crate) mod byte_budget;
pub(crate) mod rate_limits;
pub(crate) mod turns;
