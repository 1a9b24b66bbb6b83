//! Reads a whole file: servers and diagnostics.

pub(crate) mod fix_plan;
mod misspelling;
mod positions;

use std::collections::HashMap;
use std::sync::Arc;

#[cfg(feature = "files")]
use mcp_host_model::Dialect;
use mcp_host_model::{Passthrough, Profile, ServerSpec, Severity, TransportKind};

use crate::de::{DEFAULT_MAX_SERVERS, ReadContext};
use crate::diagnostic::{Code, Diagnostic, LineIndex, RawDiagnostic};
use crate::dialect::acp::{self, Leniency, SessionMembers};
use crate::dialect::entry::ReadEntry;
#[cfg(feature = "files")]
use crate::dialect::{detect, dominds, editor, holodeck};
#[cfg(not(feature = "files"))]
use crate::dialect::{unsupported as dominds, unsupported as holodeck, unsupported::editor};
use crate::profile::rules::{ErrorScope, ProfileRules};
#[cfg(feature = "files")]
use crate::resolve::context::ResolveError;
use crate::syntax::{self, ExtensionSpans, Node, ParsedText, Syntax, pointer_contains};
use fix_plan::SourceTree;
use positions::ValuePositions;

/// A text to read. `Debug` prints its length only, because it may contain secrets.
#[derive(Clone, Copy, derive_more::Debug)]
#[non_exhaustive]
pub struct Document<'a> {
    /// The path of the file, as messages show it.
    pub name: &'a str,
    /// The content.
    #[debug("{} bytes", text.len())]
    pub text: &'a str,
    /// The rules for reading it.
    pub profile: Profile,
    /// The maximum number of its servers. A file with more is refused.
    pub max_servers: usize,
}

impl<'a> Document<'a> {
    /// The maximum number of servers of a document, unless set.
    pub const DEFAULT_MAX_SERVERS: usize = DEFAULT_MAX_SERVERS;

    /// A text with its path and the rules for reading it.
    pub fn new(name: &'a str, text: &'a str, profile: Profile) -> Document<'a> {
        Document { name, text, profile, max_servers: Document::DEFAULT_MAX_SERVERS }
    }

    /// The same document with another text.
    pub fn with_text(self, text: &'a str) -> Document<'a> {
        Document { text, ..self }
    }
}

/// The result of reading a document.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The servers without an error of their own, in file order. If the file is `refused`, none of them may be started;
    /// they are included so that a caller can inspect their variables.
    pub servers: Vec<ServerSpec>,
    /// Every server entry, in file order.
    pub entries: Vec<ServerEntry>,
    /// All diagnostics, in file order.
    pub diagnostics: Vec<Diagnostic>,
    /// No server of this file may be started.
    pub refused: bool,
    /// The positions of the servers' values.
    positions: Arc<ValuePositions>,
}

/// A server entry of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerEntry {
    /// The name, or a label such as `tools[2]` if it has no readable name.
    pub name: String,
    /// The transport, if it could be read.
    pub transport: Option<TransportKind>,
    /// The entry has no error, and the file is not refused.
    pub accepted: bool,
    /// The entry is disabled (`enabled: false`), or has nothing to start (the settings of an editor's extension). It is
    /// accepted, but not among the servers.
    pub disabled: bool,
    /// JSON pointer to the entry.
    pub pointer: String,
    /// The entry itself, if its transport is an extension that the model cannot express (ACP's `acp` and `_custom`).
    /// Such an entry is neither accepted nor wrong; a caller that knows the extension may start it.
    pub extension: Option<Passthrough>,
}

/// Reads a document. Never fails: every mistake is in the diagnostics.
pub fn read(document: &Document<'_>) -> Reading {
    let (syntax, parsed) = parse(document);
    read_parsed(document, syntax, parsed, |root, extensions, context| {
        read_entries(root, extensions, document.profile, context)
    })
}

/// The result of reading a session request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionReading {
    /// Its servers, and the diagnostics of the whole request.
    pub reading: Reading,
    /// Its other members.
    pub members: SessionMembers,
}

/// Reads a session request by one of ACP's profiles and accepts, with a warning, what `leniency` permits (ACP-022,
/// ACPX-09). [`read`](crate::read()) does the same without leniency, and returns the servers only.
pub fn read_session(document: &Document<'_>, leniency: Leniency) -> SessionReading {
    let mut members = SessionMembers::default();
    let (syntax, parsed) = parse(document);
    let reading = read_parsed(document, syntax, parsed, |root, _, context| {
        let session = acp::read_session(root, context, leniency);
        members = session.members;
        session.entries
    });
    SessionReading { reading, members }
}

/// A reading with the profile that was detected.
#[cfg(feature = "files")]
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DetectedReading {
    /// The detected profile.
    pub profile: Profile,
    /// The result of reading by this profile.
    pub reading: Reading,
}

/// Reads a document of this dialect by the profile that its content follows: [`Profile::HoloDeck07`] for a
/// HoloDeck file in the shape of version 0.7, else the dialect's default.
///
/// A file has the shape of 0.7 if no tool has the key `server`, which 0.7 refuses and the contract requires (HD-007),
/// and none has `envFile`, which 0.7 does not know.
#[cfg(feature = "files")]
pub fn read_detecting(dialect: Dialect, name: &str, text: &str, max_servers: usize) -> DetectedReading {
    // All profiles of a dialect have one syntax.
    let document = Document { max_servers, ..Document::new(name, text, Profile::default_for(dialect)) };
    let (syntax, parsed) = parse(&document);
    let profile = detect::detect_profile(dialect, parsed.root.as_ref());
    let document = Document { profile, ..document };
    let reading = read_parsed(&document, syntax, parsed, |root, extensions, context| {
        read_entries(root, extensions, profile, context)
    });
    DetectedReading { profile, reading }
}

/// Parses a document in the syntax of its profile.
fn parse(document: &Document<'_>) -> (Syntax, ParsedText) {
    let syntax = ProfileRules::for_profile(document.profile).syntax_of(document.name, document.text);
    (syntax, syntax::parse_as(document.text, syntax))
}

/// Reads the entries of a document.
fn read_entries(
    root: &Node,
    extensions: &ExtensionSpans,
    profile: Profile,
    context: &ReadContext,
) -> Vec<ReadEntry> {
    match profile {
        Profile::HoloDeck | Profile::HoloDeck07 => holodeck::read(root, context),
        Profile::Dominds => dominds::read(root, context),
        Profile::AcpV1 | Profile::AcpV2 => acp::read_session(root, context, Leniency::default()).entries,
        Profile::McpJson => editor::read(root, extensions, context),
    }
}

/// What to do about a file with too many servers.
const TOO_MANY_SERVERS_HELP: &str = "split the file, or raise the limit (`mcp-host --max-servers`)";

/// Reads a document that was parsed; `read_entries` reads its dialect.
fn read_parsed(
    document: &Document<'_>,
    syntax: Syntax,
    parsed: ParsedText,
    read_entries: impl FnOnce(&Node, &ExtensionSpans, &ReadContext) -> Vec<ReadEntry>,
) -> Reading {
    let rules = ProfileRules::for_profile(document.profile);
    let mut context = ReadContext::new(rules, document.name);
    context.max_servers = document.max_servers;
    if document.profile == Profile::McpJson {
        context.foreign_key = editor::foreign_key;
    }
    let ParsedText { root, dropped: _, diagnostics, extensions } = parsed;
    for diagnostic in diagnostics {
        let is_unknown_tag = diagnostic.code == Code::UnknownTag;
        let severity = if is_unknown_tag { rules.unknown_tag_severity } else { diagnostic.severity };
        context.report(diagnostic.severity(severity));
    }
    let entries = root.as_ref().map(|root| read_entries(root, &extensions, &context)).unwrap_or_default();
    if let Some(first) = entries.get(document.max_servers) {
        let message = format!("the file has more than {} servers", document.max_servers);
        let parent = syntax::parent_pointer(&first.pointer).unwrap_or_default();
        let span = first.span.clone();
        context.report(RawDiagnostic::new(Code::TooLarge, message, parent, span).help(TOO_MANY_SERVERS_HELP));
    }
    build_reading(entries, context, SourceTree { text: document.text, syntax, root: root.as_ref() })
}

/// Locates the diagnostics, plans their fixes, and decides which servers are accepted.
fn build_reading(read: Vec<ReadEntry>, context: ReadContext, source: SourceTree<'_>) -> Reading {
    let lines = &LineIndex::new(source.text);
    let rules = context.rules;
    let has_servers = read.iter().any(|entry| entry.spec.is_some());
    let positioned = if has_servers { source.text } else { "" };
    let positions = Arc::new(ValuePositions::new(positioned, source.syntax, rules));
    let mut raw = context.into_diagnostics();
    misspelling::explain_missing_keys(&mut raw);
    let owners: HashMap<&str, usize> = if raw.is_empty() {
        HashMap::new()
    } else {
        read.iter().enumerate().rev().map(|(index, entry)| (entry.pointer.as_str(), index)).collect()
    };
    // The entry that contains the pointer.
    let find_owner = |pointer: &str| {
        let mut ancestors = std::iter::successors(Some(pointer), |it| syntax::parent_pointer(it));
        ancestors.find_map(|it| owners.get(it).copied())
    };
    let mut refused = false;
    let mut has_error = vec![false; read.len()];
    let mut diagnostics = Vec::with_capacity(raw.len());
    for diagnostic in raw {
        let owner = find_owner(&diagnostic.pointer);
        if diagnostic.severity == Severity::Error {
            refused |=
                rules.error_scope == ErrorScope::File || owner.is_none() || diagnostic.code.rejects_file();
            if let Some(owner) = owner {
                has_error[owner] = true;
            }
        }
        let fix = source.plan_fix(&diagnostic);
        diagnostics.push(diagnostic.locate(lines, owner.map(|index| read[index].name.clone()), fix));
    }
    sort_diagnostics(&mut diagnostics);
    let (servers, entries) = (Vec::with_capacity(read.len()), Vec::with_capacity(read.len()));
    let mut res = Reading { servers, entries, diagnostics, refused, positions };
    for (entry, has_error) in read.into_iter().zip(has_error) {
        let ReadEntry { name, pointer, span: _, transport, disabled, spec, extension } = entry;
        let accepted = !refused && !has_error && (disabled || spec.is_some());
        res.entries.push(ServerEntry { name, transport, accepted, disabled, pointer, extension });
        res.servers.extend(spec.filter(|_| !has_error));
    }
    res
}

/// Sorts diagnostics by their positions.
pub(crate) fn sort_diagnostics(diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by(|a, b| {
        let key = |it: &Diagnostic| (it.span.start, it.severity, it.code, it.span.end);
        key(a).cmp(&key(b)).then_with(|| a.pointer.cmp(&b.pointer)).then_with(|| a.message.cmp(&b.message))
    });
}

impl Reading {
    /// The diagnostic for a resolve error: at the value or, if the value is not in the file, at the nearest value that
    /// contains it.
    #[cfg(feature = "files")]
    pub fn diagnose(&self, error: &ResolveError) -> Diagnostic {
        let position = self.positions.nearest(&error.pointer, &self.servers);
        let server = self.entries.iter().find(|entry| pointer_contains(&entry.pointer, &error.pointer));
        Diagnostic {
            severity: Severity::Error,
            code: error.code,
            kind: error.kind,
            message: error.message.clone(),
            pointer: error.pointer.clone(),
            span: position.span,
            line: position.line,
            column: position.column,
            labels: Vec::new(),
            help: error.help.clone(),
            server: server.map(|entry| entry.name.clone()),
            fix: None,
        }
    }

    /// Returns whether a diagnostic is an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|it| it.severity == Severity::Error)
    }
}
