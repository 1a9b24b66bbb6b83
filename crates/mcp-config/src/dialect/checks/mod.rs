//! Checks of single values (URLs, headers, arguments, durations) that several dialects share.
//!
//! Each check runs twice: on the value in the file, and on the value after its variables were replaced.

mod duration;
mod headers;
mod stdio;
mod url;

pub(crate) use duration::{duration_from_secs, looks_like_milliseconds};
pub(crate) use headers::{HeaderOwner, check_header_name, check_header_value, header_owner};
pub(crate) use stdio::{check_argument, check_encoding, check_env_name, check_env_value, is_absolute};
pub(crate) use url::{UrlRule, is_loopback, parse as parse_url};
