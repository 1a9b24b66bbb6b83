//! The whole house: the binary with real servers, its end in every way, and what the README promises.

mod death;
mod readme;
mod real;
