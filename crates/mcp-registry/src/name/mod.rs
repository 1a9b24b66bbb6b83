//! Names: what an exposed name looks like and how messages quote names.

pub(crate) mod display;
pub(crate) mod exposed_name;
