//! The serde `Deserializer` of a node.

use serde::de::{Deserialize, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use crate::de::{Expected, Location, NodeDeserializer, ReadContext, ValueError, access, field, lax, opaque};
use crate::syntax::{Content, Node};

impl ReadContext {
    /// Reads a serde struct of the file format, or reports why the value cannot be read.
    pub(crate) fn read<'de, T: Deserialize<'de>>(&self, node: &Node, at: &Location) -> Option<T> {
        let deserializer = NodeDeserializer { context: self, node: Some(node), at: *at };
        T::deserialize(deserializer).map_err(|error| self.report_value_error(error, at)).ok()
    }
}

/// Defines the methods for integer types. The literal describes the accepted values in an error.
macro_rules! integers {
    ($($method:ident $visit:ident: $words:literal;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
            let value = self.integer()?.try_into();
            visitor.$visit(value.map_err(|_| ValueError::OutsideType($words.into()))?)
        }
    )*};
}

impl<'de> Deserializer<'de> for NodeDeserializer<'_> {
    type Error = ValueError;

    /// Only called for types that serde structs of this crate do not use.
    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ValueError> {
        Err(ValueError::UnsupportedType)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        let value = match self.resolved_content() {
            Content::Bool(value) => Some(*value),
            _ => self.read_lax(lax::boolean),
        };
        visitor.visit_bool(value.ok_or_else(|| self.wrong_type(Expected::Boolean))?)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        let value = self.integer()?;
        visitor.visit_i64(value.try_into().map_err(|_| match value {
            ..0 => ValueError::OutsideType("a whole number of at least -9,223,372,036,854,775,808".into()),
            0.. => ValueError::OutOfRange,
        })?)
    }

    integers! {
        deserialize_i8 visit_i8: "a whole number from -128 to 127";
        deserialize_i16 visit_i16: "a whole number from -32,768 to 32,767";
        deserialize_i32 visit_i32: "a whole number from -2,147,483,648 to 2,147,483,647";
        deserialize_u8 visit_u8: "a whole number from 0 to 255";
        deserialize_u16 visit_u16: "a whole number from 0 to 65,535";
        deserialize_u32 visit_u32: "a whole number from 0 to 4,294,967,295";
        deserialize_u64 visit_u64: "a whole number from 0 to 18,446,744,073,709,551,615";
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_f64(self.number()?)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        let value = self.number()?;
        let single = value as f32;
        if single.is_infinite() && value.is_finite() {
            return Err(ValueError::OutsideType("a number from -3.4e38 to 3.4e38".into()));
        }
        visitor.visit_f32(single)
    }

    /// A missing value and null are `None`.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.resolved_content() {
            Content::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        let Content::Text(text) = self.resolved_content() else {
            return Err(self.wrong_type(Expected::Text));
        };
        visitor.visit_str(text)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        let Content::Sequence(items) = self.resolved_content() else {
            return Err(self.wrong_type(Expected::List));
        };
        visitor.visit_seq(access::ListAccess::new(self.context, self.at, items))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        let Content::Mapping(members) = self.resolved_content() else { return Err(self.not_a_mapping()) };
        visitor.visit_map(access::NameMapAccess::new(self.context, self.at, members))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        let Content::Mapping(members) = self.resolved_content() else { return Err(self.not_a_mapping()) };
        visitor.visit_map(access::StructAccess::new(self.context, self.at, members, fields))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        if let Some(presence) = field::Presence::from_name(name) {
            return match self.node {
                Some(node)
                    if presence == field::Presence::Nullable
                        && matches!(node.resolved_content(), Content::Null) =>
                {
                    visitor.visit_u64(self.at.number())
                }
                Some(_) => visitor.visit_map(access::FieldAccess(self)),
                None => {
                    if presence == field::Presence::Required {
                        self.context.report_value_error(ValueError::Missing, &self.at);
                    }
                    visitor.visit_u64(self.at.number())
                }
            };
        }
        if name == opaque::RAW_OBJECT {
            let mapping = self.node.filter(|it| it.members().is_some());
            let Some(node) = mapping else { return Err(self.wrong_type(Expected::Mapping)) };
            let Some(text) = crate::syntax::to_json(node) else {
                return Err(self.wrong_type(Expected::Description("valid as JSON, without infinity and NaN")));
            };
            return visitor.visit_str(&text);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_unit()
    }

    /// An enum whose name begins with [`SHAPE_PREFIX`] is selected by the node's shape, any other by its text.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        let Some(words) = name.strip_prefix(SHAPE_PREFIX) else {
            return match self.resolved_content() {
                Content::Text(text) => visitor.visit_enum(text.as_str().into_deserializer()),
                content => {
                    // The key of a variant with content. The visitor refuses such a variant: its type is not supported.
                    let members = if let Content::Mapping(members) = content { &members[..] } else { &[] };
                    let key = members.iter().find(|it| variants.contains(&&*it.key.text));
                    key.map(|it| visitor.visit_enum((*it.key.text).into_deserializer())).transpose()?;
                    Err(self.wrong_type(Expected::OneOf(variants)))
                }
            };
        };
        let shape = match self.resolved_content() {
            Content::Text(_) => "text",
            Content::Mapping(_) => "mapping",
            Content::Sequence(_) => "list",
            Content::Integer(_) | Content::Float(_) => "number",
            Content::Bool(_) => "boolean",
            Content::Null => "null",
            Content::Large(_) | Content::Shared(_) | Content::Broken => "",
        };
        if !variants.contains(&shape) {
            return Err(self.wrong_type(Expected::Description(words)));
        }
        visitor.visit_enum(access::ShapeAccess { deserializer: self, shape })
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
    }
}

/// Prefix of the serde name of an enum that is selected by shape. Its variants are named `text`, `mapping`, `list`,
/// `number`, `boolean` or `null`. The rest of the name describes the expected value in messages.
///
/// Serde needs literals, so these enums repeat the prefix.
pub(crate) const SHAPE_PREFIX: &str = "shape: ";
