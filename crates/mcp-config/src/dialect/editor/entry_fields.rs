//! Reads the fields of an entry by the table of keys.

use serde::Deserialize;

use crate::de::{Field, KnownKeys, KnownMembers, Location, NullableField, OrderedMap, ReadContext};
use crate::dialect::call_rules::CallRuleText;
use crate::dialect::editor::conventions::EntryForm;
use crate::dialect::editor::keys::{self, EntryField};
use crate::dialect::editor::wire::{
    CommandValue, ContinueOptions, Environment, Headers, Tools, TransportField,
};
use crate::dialect::lowering::SharingKey;
use crate::dialect::sandbox::SandboxValue;
use crate::syntax::{Content, Node};

/// A field with a list of texts.
type Texts = NullableField<Vec<Field<String>>>;

/// The fields of an entry. A `Vec` has the field under each of its keys.
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
    pub(super) calls: NullableField<Vec<Field<CallRuleText>>>,
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
    pub(super) env: NullableField<Environment>,
    /// The same under the key `environment`.
    pub(super) environment: NullableField<Environment>,
    pub(super) required_variables: Texts,
    pub(super) env_file: NullableField<String>,
    pub(super) cwd: NullableField<String>,
    pub(super) sandbox: NullableField<SandboxValue>,
    pub(super) sandbox_enabled: NullableField<bool>,
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
    pub(super) fn read(node: &Node, at: &Location, form: EntryForm, context: &ReadContext) -> EntryFields {
        let known = KnownKeys {
            names: &keys::NAMES,
            is_own: &|name| keys::has_key(form, name),
            foreign_key: &|name| keys::foreign_key(name, form),
        };
        let members = KnownMembers::new(node, *at, known, &keys::find_row, context);
        let reader = FieldReader { members, context };
        let mut headers = reader.read_all(EntryField::Headers);
        let options: NullableField<ContinueOptions> = reader.read_one(EntryField::ContinueOptions);
        headers.extend(options.into_value().map(|it| it.headers));
        let is_given = |name: &str| {
            node.get(name).is_some_and(|member| !matches!(member.value.resolved_content(), Content::Null))
        };
        EntryFields {
            name: reader.read_one(EntryField::Name),
            description: reader.read_one(EntryField::Description),
            transports: reader.read_all(EntryField::Transport),
            stdio: StdioFields {
                command: reader.read_one(EntryField::Command),
                args: reader.read_one(EntryField::Arguments),
                env: reader.read_one(EntryField::Environment),
                environment: reader.read_one(EntryField::SecondEnvironment),
                required_variables: reader.read_one(EntryField::RequiredVariables),
                env_file: reader.read_one(EntryField::EnvFile),
                cwd: reader.read_one(EntryField::Directory),
                sandbox: reader.read_one(EntryField::Sandbox),
                sandbox_enabled: reader.read_one(EntryField::SandboxEnabled),
            },
            urls: reader.read_slots(EntryField::Url).map(|(key, slot)| EntryUrl { key, slot }).collect(),
            headers: choose_given(headers.into_iter(), context),
            header_variables: reader.read_one(EntryField::HeaderVariables),
            token_variable: reader.read_one(EntryField::TokenVariable),
            durations: Durations {
                timeout: reader.read_one(EntryField::Timeout),
                request_milliseconds: reader.read_one(EntryField::RequestMilliseconds),
                request_seconds: reader.read_one(EntryField::RequestSeconds),
                connect_milliseconds: reader.read_one(EntryField::ConnectMilliseconds),
                start_seconds: reader.read_one(EntryField::StartSeconds),
                start_milliseconds: reader.read_one(EntryField::StartMilliseconds),
            },
            sharing: reader.read_one(EntryField::Sharing),
            calls: reader.read_one(EntryField::Calls),
            disabled: reader.read_one(EntryField::Disabled),
            enabled: reader.read_one(EntryField::Enabled),
            tools: ToolLists {
                included: reader.read_all(EntryField::IncludedTools),
                available: reader.read_one(EntryField::AvailableTools),
                tools: reader.read_one(EntryField::Tools),
                excluded: reader.read_all(EntryField::ExcludedTools),
            },
            is_provided: keys::of_field(EntryField::Provided).any(|it| is_given(it.name)),
        }
    }
}

/// Reads the fields of one entry.
struct FieldReader<'a> {
    members: KnownMembers<'a>,
    context: &'a ReadContext,
}

impl FieldReader<'_> {
    /// Reads a field under each of its keys. The first key is returned even if the entry does not have it, so the
    /// result is not empty.
    fn read_slots<'de, T: Deserialize<'de>>(
        &self,
        field: EntryField,
    ) -> impl Iterator<Item = (&'static str, NullableField<T>)> {
        keys::rows_of(field).enumerate().filter_map(|(position, row)| {
            let slot = self.members.read(row);
            let slot = slot.or_else(|| (position == 0).then(|| self.members.absent(row)))?;
            Some((keys::NAMES[row], slot))
        })
    }

    /// Reads a field under each of its keys, without the keys.
    fn read_all<'de, T: Deserialize<'de>>(&self, field: EntryField) -> Vec<NullableField<T>> {
        self.read_slots(field).map(|(_, slot)| slot).collect()
    }

    /// Reads a field; reports a second key with a value.
    fn read_one<'de, T: Deserialize<'de>>(&self, field: EntryField) -> NullableField<T> {
        choose_given(self.read_slots(field).map(|(_, slot)| slot), self.context)
    }
}

/// Chooses the field that is given; the first if none is. Reports a second one that is given.
fn choose_given<T>(slots: impl Iterator<Item = NullableField<T>>, context: &ReadContext) -> NullableField<T> {
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
    slots.reduce(choose).expect("a field has a key")
}
