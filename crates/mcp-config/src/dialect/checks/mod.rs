//! Rules for single values that more than one dialect has. Each is a plain function from a text to a complaint.
//!
//! They are asked twice: about what stands in the file, and about what its variables turned it into.

mod duration;
mod stdio;
mod url;
mod web;

pub(crate) use duration::{duration_from_secs, looks_like_milliseconds};
pub(crate) use stdio::{argument, encoding, env_name, env_value, is_absolute};
pub(crate) use url::{UrlRule, is_loopback, parse as parse_url};
pub(crate) use web::{HeaderOwner, header_name, header_owner, header_value};

use crate::diagnostic::Code;

/// What is wrong with a value, in words that do not quote it, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckError {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) help: &'static str,
}

impl CheckError {
    fn new(code: Code, message: impl Into<String>, help: &'static str) -> CheckError {
        CheckError { code, message: message.into(), help }
    }
}
