//! The state of reading one file: its rules and the diagnostics so far.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;

use crate::de::location::LocationTable;
use crate::de::{ForeignKey, KnownKeys, Location, ValueError, suggest};
use crate::diagnostic::{Applicability, CheckError, Code, FixIntent, RawDiagnostic, quoted};
use crate::profile::rules::ProfileRules;
use crate::syntax::{Key, Member, Syntax, UnspacedKey, child_pointer, pointer_contains, unspaced_key};
use mcp_host_model::{InvalidServerId, ServerId, Severity, SpecOrigin};

/// The maximum number of servers of a file, unless set.
pub(crate) const DEFAULT_MAX_SERVERS: usize = 1_000;

/// The rules for a file, and the diagnostics reported so far.
pub(crate) struct ReadContext {
    pub(crate) rules: &'static ProfileRules,
    /// The path of the file, as shown to the user.
    pub(crate) file: String,
    /// The maximum number of servers of the file.
    pub(crate) max_servers: usize,
    /// What is known about a key that is unknown inside of an entry, but may belong to another program.
    pub(crate) foreign_key: fn(&str) -> Option<ForeignKey>,
    diagnostics: RefCell<Vec<RawDiagnostic>>,
    /// The pointers of all errors. With them, a search for errors of one server does not scan all diagnostics.
    /// `None` if the set must be rebuilt.
    errors: RefCell<Option<BTreeSet<String>>>,
    /// The number of words for which a suggestion was searched.
    suggestion_count: Cell<usize>,
    /// All visited locations.
    pub(crate) locations: LocationTable,
}

impl AsRef<LocationTable> for ReadContext {
    fn as_ref(&self) -> &LocationTable {
        &self.locations
    }
}

impl ReadContext {
    /// A context without diagnostics.
    pub(crate) fn new(rules: &'static ProfileRules, file: &str) -> ReadContext {
        ReadContext {
            rules,
            file: file.to_owned(),
            max_servers: DEFAULT_MAX_SERVERS,
            foreign_key: |_| None,
            diagnostics: RefCell::new(Vec::new()),
            errors: RefCell::new(None),
            suggestion_count: Cell::new(0),
            locations: LocationTable::default(),
        }
    }

    /// The maximum number of entries to read: one more than there may be, which shows that there are too many.
    pub(crate) fn entry_count(&self) -> usize {
        self.max_servers.saturating_add(1)
    }

    /// The origin of the server at `at`.
    pub(crate) fn origin(&self, at: &Location, span: Range<usize>) -> SpecOrigin {
        let mut origin = SpecOrigin::new(self.rules.profile, self.file.as_str());
        origin.pointer = at.pointer(self);
        origin.span = span;
        origin
    }

    /// Adds a diagnostic to the result.
    pub(crate) fn report(&self, diagnostic: RawDiagnostic) {
        if let (Severity::Error, Some(errors)) = (diagnostic.severity, self.errors.borrow_mut().as_mut()) {
            errors.insert(diagnostic.pointer.clone());
        }
        self.diagnostics.borrow_mut().push(diagnostic);
    }

    /// A new error about the value at `at`, for [`ReadContext::report`].
    pub(crate) fn new_diagnostic(
        &self,
        code: Code,
        at: &Location,
        message: impl Into<String>,
    ) -> RawDiagnostic {
        RawDiagnostic::new(code, message, at.pointer(self), at.span(self))
    }

    /// Adds an error about the value at `at`.
    pub(crate) fn error(
        &self,
        code: Code,
        at: &Location,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.report(self.new_diagnostic(code, at, message).help(help));
    }

    /// Adds a warning about the value at `at`.
    pub(crate) fn warning(
        &self,
        code: Code,
        at: &Location,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.report(self.new_diagnostic(code, at, message).help(help).warning());
    }

    /// A new error about two keys that exclude each other, for [`ReadContext::report`].
    pub(crate) fn exclusive_keys_diagnostic(
        &self,
        at: &Location,
        other: &Location,
        message: impl Into<String>,
    ) -> RawDiagnostic {
        let diagnostic = self.new_diagnostic(Code::Exclusive, &at.at_key(), message);
        diagnostic.label(other.key_span(self), "the other is here").help("remove one of the two")
    }

    /// Adds the error of a check of the value at `at`. Returns whether the check succeeded.
    pub(crate) fn report_check(&self, at: &Location, checked: Result<(), CheckError>) -> bool {
        if let Err(CheckError { code, message, help }) = checked {
            self.error(code, at, message, help);
            return false;
        }
        true
    }

    /// Parses the name of a server at `at`; reports an invalid one.
    pub(crate) fn parse_id(&self, name: &str, at: &Location, help: &str) -> Option<ServerId> {
        let report = |error: InvalidServerId| self.error(Code::InvalidName, at, error.to_string(), help);
        ServerId::parse(name).map_err(report).ok()
    }

    /// The help "did you mean …?" with the candidate of [`ReadContext::closest`].
    pub(crate) fn did_you_mean<'a>(
        &self,
        word: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Option<String> {
        self.closest(word, candidates).map(|near| format!("did you mean `{near}`?"))
    }

    /// Adds the reason why the value at `at` could not be read.
    pub(crate) fn report_value_error(&self, error: ValueError, at: &Location) {
        if matches!(error, ValueError::Reported) {
            return;
        }
        let pointer = at.pointer(self);
        let message = error.message(self.rules.wording, &pointer);
        let help = error.help(self.rules.wording, &pointer);
        let mut diagnostic = RawDiagnostic::new(error.code(), message, pointer, at.span(self));
        diagnostic.help = help;
        self.report(diagnostic.fix(error.fix()));
    }

    /// Turns the errors that `is_selected` selects into warnings.
    pub(crate) fn downgrade_to_warnings(&self, is_selected: impl Fn(&RawDiagnostic) -> bool) {
        for diagnostic in self.diagnostics.borrow_mut().iter_mut().filter(|it| is_selected(it)) {
            diagnostic.severity = Severity::Warning;
        }
        self.errors.replace(None);
    }

    /// Removes the diagnostics at a location and below it, except those that reject the file.
    pub(crate) fn remove_diagnostics(&self, at: &Location) {
        let mut diagnostics = self.diagnostics.borrow_mut();
        if diagnostics.is_empty() {
            return;
        }
        let pointer = at.pointer(self);
        diagnostics.retain(|it| it.code.rejects_file() || !pointer_contains(&pointer, &it.pointer));
        self.errors.replace(None);
    }

    /// Returns whether an error was reported at a location or below it.
    pub(crate) fn has_error(&self, at: &Location) -> bool {
        let mut errors = self.errors.borrow_mut();
        let errors = errors.get_or_insert_with(|| {
            let diagnostics = self.diagnostics.borrow();
            let errors = diagnostics.iter().filter(|it| it.severity == Severity::Error);
            errors.map(|it| it.pointer.clone()).collect()
        });
        if errors.is_empty() {
            return false;
        }
        let pointer = at.pointer(self);
        let below = format!("{pointer}/");
        // The set is sorted, so all pointers below this one are adjacent.
        errors.contains(&pointer)
            || errors.range(below.clone()..).next().is_some_and(|it| it.starts_with(&below))
    }

    /// All diagnostics.
    pub(crate) fn into_diagnostics(self) -> Vec<RawDiagnostic> {
        self.diagnostics.into_inner()
    }

    /// The candidate that `word` was probably meant to be. Only the first 1000 words of a file get one, to bound the
    /// cost.
    pub(crate) fn closest<'a>(
        &self,
        word: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Option<&'a str> {
        self.suggest(word, candidates).map(|it| it.0)
    }

    /// Like [`ReadContext::closest`], with the certainty of the suggestion.
    pub(crate) fn suggest<'a>(
        &self,
        word: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Option<(&'a str, Applicability)> {
        const MAX_SUGGESTIONS: usize = 1000;
        self.suggestion_count.set(self.suggestion_count.get() + 1);
        if self.suggestion_count.get() > MAX_SUGGESTIONS { None } else { suggest(word, candidates) }
    }

    /// Reports an unknown key in the mapping at `at`.
    pub(super) fn report_unknown_key(
        &self,
        at: &Location,
        key: &Key,
        keys: KnownKeys<'_>,
        members: &[Member],
    ) {
        let known = keys.names;
        let unsupported = self.rules.unsupported_keys;
        if self.rules.private_keys.iter().any(|it| key.text.starts_with(it)) {
            return;
        }
        if let Some(other) = (keys.foreign_key)(&key.text) {
            self.report_foreign_key(at, key, other, members);
            return;
        }
        if let Some(UnspacedKey { key: name, blank: _ }) =
            unspaced_key(&key.text).filter(|_| self.rules.syntax == Syntax::Yaml)
        {
            // What follows the name may be a secret.
            let message = format!("a space is missing after `{}:`", quoted(name));
            let diagnostic =
                RawDiagnostic::new(Code::UnknownKey, message, at.pointer(self), key.span.clone());
            let help = format!("write `{}: …`, with a space", quoted(name));
            self.report(diagnostic.severity(self.rules.unknown_key_severity).help(help));
            return;
        }
        let unused_keys = known.iter().copied().filter(|name| {
            !unsupported.contains(name)
                && (keys.is_own)(name)
                && !members.iter().any(|member| *member.key.text == **name)
        });
        // A suggestion compares with all present keys, so large mappings get none.
        const MAX_MEMBERS: usize = 256;
        let mut suggestion =
            if members.len() > MAX_MEMBERS { None } else { self.suggest(&key.text, unused_keys) };
        let help = if known.contains(&&*key.text) {
            suggestion = None;
            "another version of the dialect has this key; remove it, or choose that profile".to_owned()
        } else if &*key.text == "<<" && self.rules.syntax == Syntax::Yaml {
            suggestion = None;
            "YAML 1.2 has no merge keys; write the keys out, or use an alias for the whole value".to_owned()
        } else {
            match suggestion {
                Some((near, _)) => format!("did you mean `{near}`?"),
                None => "remove it, or check its spelling".to_owned(),
            }
        };
        let pointer = child_pointer(&at.pointer(self), &key.text);
        let message = format!("unknown key '{}'", quoted(&key.text));
        self.report(
            RawDiagnostic::new(Code::UnknownKey, message, pointer, key.span.clone())
                .severity(self.rules.unknown_key_severity)
                .help(help)
                .fix(suggestion.map(|it| FixIntent::RenameKey(it.0.to_owned(), it.1))),
        );
    }

    /// Reports a key of another program, unless ignoring it has no effect.
    fn report_foreign_key(&self, at: &Location, key: &Key, other: ForeignKey, members: &[Member]) {
        let name = quoted(&key.text);
        let pointer = child_pointer(&at.pointer(self), &key.text);
        let report = |help: String, fix| {
            let message = format!("'{name}' is a key of other programs and has no effect here");
            let diagnostic = RawDiagnostic::new(Code::UnknownKey, message, pointer.clone(), key.span.clone());
            self.report(diagnostic.warning().help(help).fix(fix));
        };
        match other {
            ForeignKey::Irrelevant => {}
            // Some files have both keys, for several programs.
            ForeignKey::SameAs(ours) if members.iter().any(|it| &*it.key.text == ours) => {}
            ForeignKey::SameAs(ours) => {
                let fix = FixIntent::RenameKey(ours.to_owned(), Applicability::Suggested);
                report(format!("write `{ours}`"), Some(fix));
            }
            ForeignKey::Unsupported(help) => report(help.to_owned(), None),
        }
    }

    /// Reports a key that is not a string in the map at `at`.
    pub(crate) fn report_bad_key(&self, at: &Location, key: &Key) {
        let message = format!("the key '{}' must be text", quoted(&key.text));
        let pointer = child_pointer(&at.pointer(self), &key.text);
        let diagnostic = RawDiagnostic::new(Code::BadKey, message, pointer, key.span.clone());
        self.report(diagnostic.help("put the key into quotes").fix(FixIntent::Quote));
    }
}
