//! What the fuzz targets share: how they are fed where there is no fuzzer, and a connection that comes in pieces.
//!
//! What must hold of any input stands beside the readers, in each crate's `fuzzing.rs`.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), expect(dead_code, reason = "the crates' tests take it in by its path"))]

mod feed;
mod pieces;
