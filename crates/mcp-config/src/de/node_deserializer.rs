//! A node of the tree that is deserialized, as the scalars that it can be read as.

use crate::de::{Expected, Location, ReadContext, ValueError, lax};
use crate::profile::rules::ScalarRule;
use crate::syntax::{Content, Node, Syntax, UnspacedKey, unspaced_key};

/// Deserializes one node of the tree.
#[derive(Clone, Copy)]
pub(crate) struct NodeDeserializer<'a> {
    pub(crate) context: &'a ReadContext,
    /// The value; `None` if it is missing.
    pub(crate) node: Option<&'a Node>,
    pub(crate) at: Location,
}

impl<'a> NodeDeserializer<'a> {
    pub(super) fn content(&self) -> &'a Content {
        self.node.map_or(&Content::Null, Node::content)
    }

    /// Applies a lax conversion, if the profile has them.
    pub(super) fn lax<T>(&self, read: fn(&Content) -> Option<T>) -> Option<T> {
        match self.context.policy.scalars {
            ScalarRule::Exact => None,
            ScalarRule::Lax => read(self.content()),
        }
    }

    /// The error for a value that is not a mapping.
    pub(super) fn no_mapping(&self) -> ValueError {
        match self.content() {
            Content::Text(text) if self.context.policy.syntax == Syntax::Yaml => unspaced_key(text)
                .map_or_else(
                    || self.wrong(Expected::Mapping),
                    |UnspacedKey { key: _, blank }| ValueError::MissingSpace { blank },
                ),
            _ => self.wrong(Expected::Mapping),
        }
    }

    /// A whole number; one that is larger than 128 bits is cut to them.
    pub(super) fn integer(&self) -> Result<i128, ValueError> {
        // Up to 2^53, an integral float is an exact integer.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let value = match self.content() {
            Content::Integer(value) => Some(i128::from(*value)),
            Content::Float(value) if value.fract() == 0.0 && value.abs() <= EXACT => Some(*value as i128),
            Content::Large(text) => {
                Some(text.parse().unwrap_or(if text.starts_with('-') { i128::MIN } else { i128::MAX }))
            }
            _ => self.lax(lax::integer).map(i128::from),
        };
        value.ok_or_else(|| self.wrong(Expected::Integer))
    }

    pub(super) fn number(&self) -> Result<f64, ValueError> {
        let value = match self.content() {
            Content::Integer(value) => Some(*value as f64),
            Content::Float(value) => Some(*value),
            Content::Large(text) => match text.parse() {
                Ok(value) if f64::is_finite(value) => Some(value),
                _ if text.starts_with('-') => {
                    return Err(ValueError::OutsideType("a number of at least -1.7e308".into()));
                }
                _ => return Err(ValueError::OutOfRange),
            },
            _ => self.lax(lax::number),
        };
        value.ok_or_else(|| self.wrong(Expected::Number))
    }

    pub(super) fn wrong(&self, expected: Expected) -> ValueError {
        ValueError::WrongType { expected, found: self.node.map_or("nothing", Node::kind) }
    }
}
