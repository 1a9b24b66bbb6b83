//! The whole house: the binary with real servers, its end in every way, and what the README promises.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod acp_clients;
mod acp_proxy;
mod acp_samples;
mod acp_schema;
mod asked;
mod crowd;
mod death;
mod editor;
mod escaped;
mod following;
mod foreign;
mod guide;
mod killed;
mod live;
mod login;
mod newcomer;
mod peers;
mod place;
mod planted;
mod readme;
mod real;
mod same;
mod security_page;
mod session;
mod soak;
mod sse;
mod supervised;
mod threats;
mod websocket;
