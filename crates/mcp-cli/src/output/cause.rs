//! An error with all that led to it.

use std::error::Error;

/// The error and its causes on one line: no cause repeats what stands before it.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut res = error.to_string();
    let mut cause = error.source();
    while let Some(it) = cause {
        res.push_str(&format!(": {it}"));
        cause = it.source();
    }
    res
}
