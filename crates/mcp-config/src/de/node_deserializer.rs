//! The deserializer of one node, and how it reads scalars.

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
    pub(super) fn resolved_content(&self) -> &'a Content {
        self.node.map_or(&Content::Null, Node::resolved_content)
    }

    /// Reads the content by a lax conversion. `None` if the profile has no lax conversions.
    pub(super) fn read_lax<T>(&self, read: fn(&Content) -> Option<T>) -> Option<T> {
        match self.context.rules.scalar_rule {
            ScalarRule::Exact => None,
            ScalarRule::Lax => read(self.resolved_content()),
        }
    }

    /// The error for a value that is not a mapping.
    pub(super) fn not_a_mapping(&self) -> ValueError {
        match self.resolved_content() {
            Content::Text(text) if self.context.rules.syntax == Syntax::Yaml => unspaced_key(text)
                .map_or_else(
                    || self.wrong_type(Expected::Mapping),
                    |UnspacedKey { key: _, blank }| ValueError::MissingSpace { blank },
                ),
            _ => self.wrong_type(Expected::Mapping),
        }
    }

    /// Reads a whole number. One that is larger than 128 bits is clamped.
    pub(super) fn integer(&self) -> Result<i128, ValueError> {
        // Up to 2^53, an integral float is an exact integer.
        const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;
        let value = match self.resolved_content() {
            Content::Integer(value) => Some(i128::from(*value)),
            Content::Float(value) if value.fract() == 0.0 && value.abs() <= MAX_EXACT_FLOAT => {
                Some(*value as i128)
            }
            Content::Large(text) => {
                Some(text.parse().unwrap_or(if text.starts_with('-') { i128::MIN } else { i128::MAX }))
            }
            _ => self.read_lax(lax::integer).map(i128::from),
        };
        value.ok_or_else(|| self.wrong_type(Expected::Integer))
    }

    /// Reads a number.
    pub(super) fn number(&self) -> Result<f64, ValueError> {
        let value = match self.resolved_content() {
            Content::Integer(value) => Some(*value as f64),
            Content::Float(value) => Some(*value),
            Content::Large(text) => match text.parse() {
                Ok(value) if f64::is_finite(value) => Some(value),
                _ if text.starts_with('-') => {
                    return Err(ValueError::OutsideType("a number of at least -1.7e308".into()));
                }
                _ => return Err(ValueError::OutOfRange),
            },
            _ => self.read_lax(lax::number),
        };
        value.ok_or_else(|| self.wrong_type(Expected::Number))
    }

    /// The error for a value of another type.
    pub(super) fn wrong_type(&self, expected: Expected) -> ValueError {
        ValueError::WrongType { expected, found: self.node.map_or("nothing", Node::kind) }
    }
}
