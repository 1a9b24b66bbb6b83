//! A serde `Deserializer` over the syntax tree that reports all mistakes in one pass.
//!
//! A serde struct of the file format derives `Deserialize` and wraps each field in a [`WireField`](field::WireField).
//! The deserializer recognises the wrapper by its newtype name and passes it the location. If a value cannot be read,
//! it reports the error and gives the field the state `Invalid` instead of failing. Serde's own messages are not used:
//! they quote values, which may be secrets.

mod access;
mod context;
mod deserializer;
mod field;
mod foreign_key;
mod known_members;
mod lax;
mod location;
mod node_deserializer;
mod opaque;
mod ordered_map;
mod suggest;
mod value_error;

pub(crate) use context::{DEFAULT_MAX_SERVERS, ReadContext};
pub(crate) use field::{DeferredField, Field, FieldState, NullableField, OPTIONAL_MARK, OptionalField};
pub(crate) use foreign_key::{ForeignKey, KnownKeys};
pub(crate) use known_members::KnownMembers;
pub(crate) use location::Location;
pub(crate) use node_deserializer::NodeDeserializer;
pub(crate) use opaque::{Ignored, RawObject};
pub(crate) use ordered_map::OrderedMap;
pub(crate) use suggest::{closest, closest_variable, suggest};
pub(crate) use value_error::{Expected, ValueError, dominds_path};
