//! Checks of single values (URLs, headers, arguments, durations) that several dialects share.
//!
//! Each check runs twice: on the value in the file, and on the value after its variables were replaced.

mod duration;
#[cfg(feature = "files")]
mod encoding;
mod headers;
#[cfg(any(test, not(feature = "files")))]
mod plain_url;
mod stdio;
#[cfg(feature = "files")]
mod url;
mod url_rule;

pub(crate) use duration::{duration_from_secs, looks_like_milliseconds};
#[cfg(feature = "files")]
pub(crate) use encoding::check_encoding;
pub(crate) use headers::{HeaderOwner, check_header_name, check_header_value, header_owner};
#[cfg(not(feature = "files"))]
pub(crate) use plain_url::check_http_url;
pub(crate) use stdio::{check_argument, check_env_name, check_env_value, is_absolute};
#[cfg(feature = "files")]
pub(crate) use url::{check_http_url, parse_url};
pub(crate) use url_rule::UrlRule;
