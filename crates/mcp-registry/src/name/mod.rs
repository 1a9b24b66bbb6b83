//! Names: what an exposed name looks like and how messages quote names.

pub(crate) mod exposed;
pub(crate) mod quote;
pub(crate) mod rules;
