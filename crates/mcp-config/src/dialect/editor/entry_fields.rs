//! The fields of an entry, read by the table of keys.

use serde::Deserialize;

use crate::de::{Field, KnownMembers, Location, NullableField, OrderedMap, ReadContext};
use crate::dialect::editor::keys::{self, EntryField};
use crate::dialect::editor::wire::{
    CommandValue, ContinueOptions, Environment, Headers, Tools, TransportField,
};
use crate::dialect::lowering::SharingKey;
use crate::syntax::{Content, Node};

/// A list of texts.
type Texts = NullableField<Vec<Field<String>>>;

/// The fields of an entry, in all their spellings.
pub(super) struct EntryFields {
    pub(super) name: NullableField<String>,
    pub(super) description: NullableField<String>,
    pub(super) transports: Vec<NullableField<TransportField>>,
    pub(super) stdio: StdioFields,
    /// The URLs with their keys.
    pub(super) urls: Vec<EntryUrl>,
    pub(super) headers: NullableField<Headers>,
    pub(super) header_variables: NullableField<OrderedMap<String>>,
    pub(super) token_variable: NullableField<String>,
    pub(super) durations: Durations,
    pub(super) sharing: NullableField<SharingKey>,
    pub(super) disabled: NullableField<bool>,
    pub(super) enabled: NullableField<bool>,
    pub(super) tools: ToolLists,
    /// Whether a key says that the program provides the server.
    pub(super) is_provided: bool,
}

/// The fields that describe a program.
pub(super) struct StdioFields {
    pub(super) command: NullableField<CommandValue>,
    pub(super) args: Texts,
    /// Under `env`, and under `environment`.
    pub(super) env: [NullableField<Environment>; 2],
    pub(super) required_variables: Texts,
    pub(super) env_file: NullableField<String>,
    pub(super) cwd: NullableField<String>,
}

/// A URL of an entry and its key.
pub(super) struct EntryUrl {
    pub(super) key: &'static str,
    pub(super) slot: NullableField<String>,
}

/// The durations of an entry.
pub(super) struct Durations {
    pub(super) timeout: NullableField<f64>,
    pub(super) request_milliseconds: NullableField<f64>,
    pub(super) request_seconds: NullableField<f64>,
    pub(super) connect_milliseconds: NullableField<f64>,
    pub(super) start_seconds: NullableField<f64>,
    pub(super) start_milliseconds: NullableField<f64>,
}

/// The lists that select tools.
pub(super) struct ToolLists {
    pub(super) included: Vec<Texts>,
    /// Like `included`, but an empty list exposes all.
    pub(super) available: Texts,
    pub(super) tools: NullableField<Tools>,
    pub(super) excluded: Vec<Texts>,
}

impl EntryFields {
    /// Reads an entry. Reports unknown keys, values of a wrong type, and two spellings of one field.
    pub(super) fn read(node: &Node, at: &Location, context: &ReadContext) -> EntryFields {
        let reader = FieldReader { members: KnownMembers::new(node, *at, &keys::NAMES, context), context };
        let mut headers = reader.all(EntryField::Headers);
        let options: NullableField<ContinueOptions> = reader.one(EntryField::ContinueOptions);
        headers.extend(options.take().map(|it| it.headers));
        let is_given = |name: &str| {
            node.get(name).is_some_and(|member| !matches!(member.value.content(), Content::Null))
        };
        EntryFields {
            name: reader.one(EntryField::Name),
            description: reader.one(EntryField::Description),
            transports: reader.all(EntryField::Transport),
            stdio: StdioFields {
                command: reader.one(EntryField::CommandValue),
                args: reader.one(EntryField::Arguments),
                env: [reader.one(EntryField::Environment), reader.one(EntryField::SecondEnvironment)],
                required_variables: reader.one(EntryField::RequiredVariables),
                env_file: reader.one(EntryField::EnvFile),
                cwd: reader.one(EntryField::Folder),
            },
            urls: reader.slots(EntryField::Url).map(|(key, slot)| EntryUrl { key, slot }).collect(),
            headers: one_of(headers, context),
            header_variables: reader.one(EntryField::HeaderVariables),
            token_variable: reader.one(EntryField::TokenVariable),
            durations: Durations {
                timeout: reader.one(EntryField::Timeout),
                request_milliseconds: reader.one(EntryField::RequestMilliseconds),
                request_seconds: reader.one(EntryField::RequestSeconds),
                connect_milliseconds: reader.one(EntryField::ConnectMilliseconds),
                start_seconds: reader.one(EntryField::StartSeconds),
                start_milliseconds: reader.one(EntryField::StartMilliseconds),
            },
            sharing: reader.one(EntryField::Sharing),
            disabled: reader.one(EntryField::Disabled),
            enabled: reader.one(EntryField::Enabled),
            tools: ToolLists {
                included: reader.all(EntryField::IncludedTools),
                available: reader.one(EntryField::AvailableTools),
                tools: reader.one(EntryField::Tools),
                excluded: reader.all(EntryField::ExcludedTools),
            },
            is_provided: keys::of_field(EntryField::Provided).any(|it| is_given(it.name)),
        }
    }
}

/// Reads the keys of a field.
struct FieldReader<'a> {
    members: KnownMembers<'a>,
    context: &'a ReadContext,
}

impl FieldReader<'_> {
    /// The keys of a field with their values: the first key, and the others that the entry has.
    fn slots<'de, T: Deserialize<'de>>(
        &self,
        field: EntryField,
    ) -> impl Iterator<Item = (&'static str, NullableField<T>)> {
        let rows = keys::KEYS.iter().enumerate().filter(move |(_, key)| key.field == field);
        rows.enumerate().filter_map(|(place, (number, key))| {
            let slot = self.members.read(number);
            Some((key.name, slot.or_else(|| (place == 0).then(|| self.members.absent(number)))?))
        })
    }

    /// The values of a field.
    fn all<'de, T: Deserialize<'de>>(&self, field: EntryField) -> Vec<NullableField<T>> {
        self.slots(field).map(|(_, slot)| slot).collect()
    }

    /// The value of a field. A second one is reported.
    fn one<'de, T: Deserialize<'de>>(&self, field: EntryField) -> NullableField<T> {
        one_of(self.all(field), self.context)
    }
}

/// Of the spellings of a field, the one that is given; the first if none is.
fn one_of<T>(slots: Vec<NullableField<T>>, context: &ReadContext) -> NullableField<T> {
    let choose = |first: NullableField<T>, second: NullableField<T>| {
        if !second.is_given() {
            return first;
        }
        if first.is_given() {
            let message = "the same field is given twice; only one is allowed";
            context.report(context.exclusive_keys_diagnostic(&second.at, &first.at, message));
            return first;
        }
        second
    };
    slots.into_iter().reduce(choose).expect("a field has a key")
}
