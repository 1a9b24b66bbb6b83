//! Properties that hold for any input, checked by the fuzz targets and, on their seeds, by `tests/fuzz_seeds.rs`.
//!
//! Each function takes the input and panics if a property does not hold.

pub mod config;
pub mod gateway;
pub mod host;
pub mod recording;
pub mod registry;
pub mod schema;
pub mod transport;
