//! A whole file into servers and diagnostics.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use mcp_model::{Passthrough, ServerId, ServerSpec, Severity, TransportKind};

use crate::acp::Leniency;
use crate::de::ReadContext;
use crate::diagnostic::value_places::ValuePositions;
use crate::diagnostic::{Code, Diagnostic};
use crate::diagnostic::{LineIndex, RawDiagnostic, quoted};
use crate::dialect::policy::{Policy, Scope};
use crate::dialect::profile::Profile;
use crate::dialect::{dominds, editor};
use crate::edit::fix::SourceTree;
use crate::resolve::ResolveError;
use crate::syntax::{self, contains};
use crate::{acp, holodeck};

/// A text to be read. `Debug` shows its length: it may hold secrets.
#[derive(Clone, Copy)]
pub struct Document<'a> {
    /// Its path, as shown to the user.
    pub name: &'a str,
    /// What is in it.
    pub text: &'a str,
    /// The rules to read it by.
    pub profile: Profile,
}

impl fmt::Debug for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Document { name, text, profile } = self;
        f.debug_struct("Document")
            .field("name", name)
            .field("text_bytes", &text.len())
            .field("profile", profile)
            .finish()
    }
}

/// What became of a document.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The servers that were understood without an error of their own, in the order of the file. Where the file is
    /// `refused`, none of them may be started; they are there so that their variables can be looked at.
    pub servers: Vec<ServerSpec>,
    /// Every server entry that was seen, in the order of the file.
    pub entries: Vec<ServerEntry>,
    /// Everything there is to say, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
    /// Nothing of this file may be started.
    pub refused: bool,
    /// Where the values of the servers stand.
    places: Arc<ValuePositions>,
}

/// A server's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEntry {
    /// Its name, or `tools[2]` where it has none that can be read.
    pub name: String,
    /// How it is reached, where that could be read.
    pub transport: Option<TransportKind>,
    /// It has no error, and the file is not refused.
    pub accepted: bool,
    /// It is switched off (`enabled: false`), or there is nothing in it to start (the settings of an editor's
    /// extension): accepted, and not among the servers.
    pub disabled: bool,
    /// JSON pointer to it.
    pub pointer: String,
    /// The entry itself, where its transport is an extension that this model has no word for (ACP's `acp` and `_custom`):
    /// not accepted, and not wrong. Whoever knows the extension may start it.
    pub extension: Option<Passthrough>,
}

/// A server's entry, as a dialect saw it.
pub(crate) struct ReadEntry {
    pub(crate) name: String,
    pub(crate) pointer: String,
    pub(crate) span: std::ops::Range<usize>,
    pub(crate) transport: Option<TransportKind>,
    pub(crate) disabled: bool,
    pub(crate) spec: Option<ServerSpec>,
    pub(crate) extension: Option<Passthrough>,
}

/// A server's name as an entry has it: itself, or escaped and cut short where it is none.
pub(crate) fn display_name(name: &str) -> String {
    match ServerId::parse(name) {
        Ok(id) => id.as_str().to_owned(),
        Err(_) => quoted(name),
    }
}

/// The most servers of one file.
pub(crate) const MAX_SERVERS: usize = 1_000;

/// Reads a document. Never fails: what is wrong with it is in the diagnostics, all of it.
pub fn read(document: &Document<'_>) -> Reading {
    read_with(document, Leniency::default())
}

/// Reads a document; `leniency` is for those of ACP.
pub(crate) fn read_with(document: &Document<'_>, leniency: Leniency) -> Reading {
    let policy = Policy::for_profile(document.profile);
    let pass = ReadContext::new(policy);
    let syntax::ParsedText { root, dropped: _, diagnostics: problems } =
        syntax::parse_as(document.text, policy.syntax);
    for problem in problems {
        let severity = if problem.code == Code::UnknownTag { policy.unknown_tag } else { problem.severity };
        pass.report(problem.severity(severity));
    }
    let seen = match (&root, document.profile) {
        (None, _) => Vec::new(),
        (Some(root), Profile::HoloDeck | Profile::HoloDeck07) => holodeck::read(root, &pass, document.name),
        (Some(root), Profile::Dominds) => dominds::read(root, &pass, document.name),
        (Some(root), Profile::AcpV1 | Profile::AcpV2) => {
            acp::read_servers(root, &pass, document.name, leniency)
        }
        (Some(root), Profile::McpJson) => editor::read(root, &pass, document.name),
    };
    if let Some(first) = seen.get(MAX_SERVERS) {
        let message = format!("the file has more than {MAX_SERVERS} servers");
        let parent = first.pointer.rsplit_once('/').map_or("", |it| it.0);
        pass.report(
            RawDiagnostic::new(Code::TooLarge, message, parent, first.span.clone()).help("split the file"),
        );
    }
    finish(seen, pass, SourceTree { text: document.text, root: root.as_ref() })
}

fn finish(seen: Vec<ReadEntry>, pass: ReadContext, site: SourceTree<'_>) -> Reading {
    let lines = &LineIndex::new(site.text);
    let policy = pass.policy;
    let servers = seen.iter().take(MAX_SERVERS).filter(|it| it.spec.is_some());
    let places =
        Arc::new(ValuePositions::new(site.text, policy, servers.map(|it| it.pointer.clone()).collect()));
    let problems = pass.into_diagnostics();
    let owners: HashMap<&str, usize> = match problems.is_empty() {
        true => HashMap::new(),
        false => seen.iter().enumerate().rev().map(|(index, it)| (it.pointer.as_str(), index)).collect(),
    };
    // The entry that the pointer leads into, by the pointers above it.
    let owner = |pointer: &str| {
        let mut above = Some(pointer);
        std::iter::from_fn(|| {
            let it = above?;
            above = it.rsplit_once('/').map(|it| it.0);
            Some(it)
        })
        .find_map(|it| owners.get(it).copied())
    };
    let mut refused = false;
    let mut wrong = vec![false; seen.len()];
    let mut diagnostics = Vec::with_capacity(problems.len());
    for problem in problems {
        let owner = owner(&problem.pointer);
        if problem.severity == Severity::Error {
            refused |= policy.scope == Scope::File || owner.is_none() || problem.code.rejects_file();
            if let Some(owner) = owner {
                wrong[owner] = true;
            }
        }
        diagnostics.push(problem.locate(lines, site, owner.map(|it| seen[it].name.clone())));
    }
    diagnostics.sort_by(|a, b| {
        let place = |it: &Diagnostic| (it.span.start, it.severity, it.code, it.span.end);
        place(a)
            .cmp(&place(b))
            .then_with(|| a.pointer.cmp(&b.pointer))
            .then_with(|| a.message.cmp(&b.message))
    });
    let (servers, entries) = (Vec::with_capacity(seen.len()), Vec::with_capacity(seen.len()));
    let mut res = Reading { servers, entries, diagnostics, refused, places };
    for (seen, wrong) in seen.into_iter().zip(wrong) {
        let ReadEntry { name, pointer, span: _, transport, disabled, spec, extension } = seen;
        let accepted = !refused && !wrong && (disabled || spec.is_some());
        res.entries.push(ServerEntry { name, transport, accepted, disabled, pointer, extension });
        res.servers.extend(spec.filter(|_| !wrong));
    }
    res
}

impl Reading {
    /// A resolve error with its place in this document: the value itself or, where that is not in the file, the nearest
    /// thing around it.
    pub fn diagnose(&self, error: &ResolveError) -> Diagnostic {
        let place = self.places.nearest(&error.pointer);
        let server = self.entries.iter().find(|it| contains(&it.pointer, &error.pointer));
        Diagnostic {
            severity: Severity::Error,
            code: error.code,
            kind: error.kind,
            message: error.message.clone(),
            pointer: error.pointer.clone(),
            span: place.span,
            line: place.line,
            column: place.column,
            labels: Vec::new(),
            help: error.help.clone(),
            server: server.map(|it| it.name.clone()),
            fix: None,
        }
    }

    /// Is there an error among the diagnostics?
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|it| it.severity == Severity::Error)
    }
}
