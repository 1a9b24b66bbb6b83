//! The wrapper type for each field of a serde struct.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use crate::de::Location;

/// A field with its location and state.
#[derive(Debug)]
pub(crate) struct WireField<T, P> {
    pub(crate) at: Location,
    pub(crate) state: FieldState<T>,
    presence: PhantomData<P>,
}

/// The state of a field in the file.
#[derive(Debug)]
pub(crate) enum FieldState<T> {
    /// The key is missing. If the field is required, this is already reported.
    Absent,
    /// The key is present without a value. Only for fields that may be null.
    Null,
    /// The value could not be read; already reported.
    Invalid,
    /// The value.
    Value(T),
}

/// A required field.
pub(crate) type Field<T> = WireField<T, Required>;
/// A required field whose absence the lowering code reports, with a message of its own.
pub(crate) type DeferredField<T> = WireField<T, Deferred>;
/// A field that may be missing, but not null.
pub(crate) type OptionalField<T> = WireField<T, Optional>;
/// A field that may be missing or null, with the same meaning.
pub(crate) type NullableField<T> = WireField<T, Nullable>;

impl<T, P> WireField<T, P> {
    /// The value, if it is valid.
    pub(crate) fn value(&self) -> Option<&T> {
        match &self.state {
            FieldState::Value(value) => Some(value),
            FieldState::Absent | FieldState::Null | FieldState::Invalid => None,
        }
    }

    /// Converts the field into its value, if that is valid.
    pub(crate) fn into_value(self) -> Option<T> {
        match self.state {
            FieldState::Value(value) => Some(value),
            FieldState::Absent | FieldState::Null | FieldState::Invalid => None,
        }
    }

    /// The location of a field that has a value, valid or not.
    pub(crate) fn given_at(&self) -> Option<&Location> {
        self.is_given().then_some(&self.at)
    }

    /// The value, if it is valid. Calls `report_missing` if the field is missing or null.
    pub(crate) fn value_or_report(&self, report_missing: impl FnOnce()) -> Option<&T> {
        if let FieldState::Absent | FieldState::Null = self.state {
            report_missing();
        }
        self.value()
    }

    /// A missing field.
    pub(crate) fn absent(at: Location) -> WireField<T, P> {
        WireField { at, state: FieldState::Absent, presence: PhantomData }
    }

    /// Returns whether the field has a value, valid or not.
    pub(crate) fn is_given(&self) -> bool {
        match self.state {
            FieldState::Value(_) | FieldState::Invalid => true,
            FieldState::Absent | FieldState::Null => false,
        }
    }
}

/// Whether a field may be missing or null: one value for each of [`Field`], [`DeferredField`], [`OptionalField`] and
/// [`NullableField`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    Required,
    Deferred,
    Optional,
    Nullable,
}

impl Presence {
    /// The newtype name that passes the presence through serde to the deserializer.
    fn name(self) -> &'static str {
        match self {
            Presence::Required => "!required",
            Presence::Deferred => "!deferred",
            Presence::Optional => "!optional",
            Presence::Nullable => "!nullable",
        }
    }

    /// The presence that a newtype name encodes. It is called for each field of each server, so it compares only
    /// one byte.
    pub(super) fn from_name(name: &str) -> Option<Presence> {
        match name.as_bytes() {
            [b'!', b'r', ..] => Some(Presence::Required),
            [b'!', b'd', ..] => Some(Presence::Deferred),
            [b'!', b'o', ..] => Some(Presence::Optional),
            [b'!', b'n', ..] => Some(Presence::Nullable),
            _ => None,
        }
    }
}

/// A type-level [`Presence`].
pub(crate) trait PresenceMarker {
    #[expect(private_interfaces, reason = "only this folder reads it")]
    const PRESENCE: Presence;
}

/// Defines an empty type for each variant of [`Presence`].
macro_rules! markers {
    ($($name:ident)*) => {$(
        #[derive(Debug)]
        pub(crate) enum $name {}
        impl PresenceMarker for $name {
            #[expect(private_interfaces, reason = "only this folder reads it")]
            const PRESENCE: Presence = Presence::$name;
        }
    )*};
}
markers!(Required Deferred Optional Nullable);

impl<'de, T: Deserialize<'de>, P: PresenceMarker> Deserialize<'de> for WireField<T, P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(P::PRESENCE.name(), WireFieldVisitor(PhantomData))
    }
}

struct WireFieldVisitor<T, P>(PhantomData<(T, P)>);

impl<'de, T: Deserialize<'de>, P> Visitor<'de> for WireFieldVisitor<T, P> {
    type Value = WireField<T, P>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field of a serde struct")
    }

    /// A missing value or a null, at the location with this number.
    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        let at = Location::from_number(number);
        let state = if at.is_missing_field() { FieldState::Absent } else { FieldState::Null };
        Ok(WireField { state, ..WireField::absent(at) })
    }

    /// Reads a map with one member: its key is the number of the location, and its value that of the field.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let number = map.next_key()?.ok_or_else(|| A::Error::custom("the deserializer is not ours"))?;
        // The deserializer has already reported why a value is invalid.
        let state = map.next_value().map_or(FieldState::Invalid, FieldState::Value);
        Ok(WireField { state, ..WireField::absent(Location::from_number(number)) })
    }
}

/// Marks an optional field in the generated schema. [`crate::dialect::schema::schema()`] removes it, and the field's
/// name from `required`.
pub(crate) const OPTIONAL_MARK: &str = "x-optional";

impl<T: JsonSchema, P: PresenceMarker> JsonSchema for WireField<T, P> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("{}({})", P::PRESENCE.name(), T::schema_id()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut res = match P::PRESENCE {
            Presence::Nullable => <Option<T>>::json_schema(generator),
            Presence::Required | Presence::Deferred | Presence::Optional => generator.subschema_for::<T>(),
        };
        match P::PRESENCE {
            Presence::Optional | Presence::Nullable => {
                res.insert(OPTIONAL_MARK.to_owned(), true.into());
            }
            Presence::Required | Presence::Deferred => {}
        }
        res
    }
}
