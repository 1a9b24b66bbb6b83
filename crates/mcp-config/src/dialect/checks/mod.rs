//! Checks of single values (URLs, headers, arguments, durations) that several dialects share.
//!
//! Each check runs twice: on the value in the file, and on the value after its variables were replaced.

mod duration;
mod stdio;
mod url;
mod web;

pub(crate) use duration::{duration_from_secs, looks_like_milliseconds};
pub(crate) use stdio::{argument, encoding, env_name, env_value, is_absolute};
pub(crate) use url::{UrlRule, is_loopback, parse as parse_url};
pub(crate) use web::{HeaderOwner, header_name, header_owner, header_value};
