//! JSON that is forwarded as bytes, and a cursor that reads JSON text in one pass.

pub(crate) mod base64_text;
pub(crate) mod cursor;
pub(crate) mod depth;
pub(crate) mod raw;
pub(crate) mod unescape;
