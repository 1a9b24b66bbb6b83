//! Helpers of the fuzz targets.
//!
//! The properties of each target are in the crates' `fuzzing.rs`.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), expect(dead_code, reason = "the crates' tests take it in by its path"))]

mod feed;
mod pieces;
