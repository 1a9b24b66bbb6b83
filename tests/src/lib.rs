//! The table of the fault matrix, and the programs of the library pages as doc tests.

#![forbid(unsafe_code)]

pub mod faults;
#[cfg(doctest)]
mod library;
