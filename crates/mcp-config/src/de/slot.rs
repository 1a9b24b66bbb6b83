//! The wrapper around each field of a wire struct.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use super::At;

/// A field, its place, and what was found there.
#[derive(Debug)]
pub(crate) struct Slot<T, P> {
    pub(crate) at: At,
    pub(crate) got: Got<T>,
    presence: PhantomData<P>,
}

/// What was found in the place of a field.
#[derive(Debug)]
pub(crate) enum Got<T> {
    /// No such key. Already reported where the field is required.
    Absent,
    /// The key, and nothing behind it; only where the field may be null.
    Null,
    /// Something that could not be read; already reported.
    Bad,
    /// The value.
    Value(T),
}

/// A field that must be there.
pub(crate) type Field<T> = Slot<T, Required>;
/// A field that must be there, whose absence whoever lowers it reports, in words of its own.
pub(crate) type Due<T> = Slot<T, Awaited>;
/// A field that may be missing, but not null.
pub(crate) type Maybe<T> = Slot<T, Optional>;
/// A field that may be missing, or null, which is the same.
pub(crate) type MaybeNull<T> = Slot<T, Nullable>;

impl<T, P> Slot<T, P> {
    /// The value, where there is a good one.
    pub(crate) fn value(&self) -> Option<&T> {
        match &self.got {
            Got::Value(value) => Some(value),
            Got::Absent | Got::Null | Got::Bad => None,
        }
    }

    /// The value, where there is a good one.
    pub(crate) fn take(self) -> Option<T> {
        match self.got {
            Got::Value(value) => Some(value),
            Got::Absent | Got::Null | Got::Bad => None,
        }
    }

    /// The slot of a key that is not there.
    pub(crate) fn absent(at: At) -> Slot<T, P> {
        Slot { at, got: Got::Absent, presence: PhantomData }
    }

    /// Is anything there, good or bad?
    pub(crate) fn is_given(&self) -> bool {
        match self.got {
            Got::Value(_) | Got::Bad => true,
            Got::Absent | Got::Null => false,
        }
    }
}

/// What a slot accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    Required,
    Awaited,
    Optional,
    Nullable,
}

impl Presence {
    fn name(self) -> &'static str {
        match self {
            Presence::Required => "!required",
            Presence::Awaited => "!awaited",
            Presence::Optional => "!optional",
            Presence::Nullable => "!nullable",
        }
    }

    /// The presence that a newtype of this name asks for. It is asked for each field of each server.
    pub(super) fn named(name: &str) -> Option<Presence> {
        match name.as_bytes() {
            [b'!', b'r', ..] => Some(Presence::Required),
            [b'!', b'a', ..] => Some(Presence::Awaited),
            [b'!', b'o', ..] => Some(Presence::Optional),
            [b'!', b'n', ..] => Some(Presence::Nullable),
            _ => None,
        }
    }
}

/// A type that stands for a [`Presence`].
pub(crate) trait Marker {
    #[expect(private_interfaces, reason = "only this folder reads it")]
    const PRESENCE: Presence;
}

macro_rules! marker {
    ($($name:ident)*) => {$(
        #[derive(Debug)]
        pub(crate) enum $name {}
        impl Marker for $name {
            #[expect(private_interfaces, reason = "only this folder reads it")]
            const PRESENCE: Presence = Presence::$name;
        }
    )*};
}
marker!(Required Awaited Optional Nullable);

/// What [`super::access::Slotted`] says was found.
pub(super) const NULL: u8 = 0;
pub(super) const VALUE: u8 = 1;

impl<'de, T: Deserialize<'de>, P: Marker> Deserialize<'de> for Slot<T, P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(P::PRESENCE.name(), SlotVisitor(PhantomData))
    }
}

struct SlotVisitor<T, P>(PhantomData<(T, P)>);

impl<'de, T: Deserialize<'de>, P> Visitor<'de> for SlotVisitor<T, P> {
    type Value = Slot<T, P>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field of a wire struct")
    }

    /// Nothing is there: all there is to say is where it is missing.
    fn visit_u128<E: Error>(self, place: u128) -> Result<Self::Value, E> {
        Ok(Slot::absent(At::of_number(place)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        fn word<'de, A: MapAccess<'de>>(map: &mut A) -> Result<u64, A::Error> {
            map.next_key()?.ok_or_else(|| A::Error::custom("the deserializer is not ours"))
        }
        let (at, found) = At::of_words([word(&mut map)?, word(&mut map)?, word(&mut map)?]);
        let got = match found {
            NULL => Got::Null,
            // Why it could not be read is reported by whoever hands it out.
            _ => map.next_value().map_or(Got::Bad, Got::Value),
        };
        Ok(Slot { at, got, presence: PhantomData })
    }
}

/// Put into the schema of a field that may be missing; [`crate::schema::schema()`] takes it out again, together with the field's
/// name in `required`.
pub(crate) const OPTIONAL_MARK: &str = "x-optional";

impl<T: JsonSchema, P: Marker> JsonSchema for Slot<T, P> {
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
            Presence::Required | Presence::Awaited | Presence::Optional => generator.subschema_for::<T>(),
        };
        match P::PRESENCE {
            Presence::Optional | Presence::Nullable => {
                res.insert(OPTIONAL_MARK.to_owned(), true.into());
            }
            Presence::Required | Presence::Awaited => {}
        }
        res
    }
}
