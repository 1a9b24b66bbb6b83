//! A whole file into servers and diagnostics.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use mcp_model::{Passthrough, ServerId, ServerSpec, Severity, TransportKind};

use crate::acp::Leniency;
use crate::de::{At, Pass};
use crate::diagnostic::{Lines, Problem, quoted};
use crate::fix::Site;
use crate::policy::{Policy, Scope};
use crate::tree::{self, Node, contains};
use crate::{Code, Diagnostic, Profile, ResolveError, acp, dominds, holodeck, mcp_json};

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
    pub entries: Vec<Entry>,
    /// Everything there is to say, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
    /// Nothing of this file may be started.
    pub refused: bool,
    /// Where the values of the servers stand, by their pointers.
    places: BTreeMap<String, Place>,
}

/// A server's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
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
pub(crate) struct Seen {
    pub(crate) name: String,
    pub(crate) pointer: String,
    pub(crate) span: std::ops::Range<usize>,
    pub(crate) transport: Option<TransportKind>,
    pub(crate) disabled: bool,
    pub(crate) spec: Option<ServerSpec>,
    pub(crate) extension: Option<Passthrough>,
}

/// A server's name as an entry has it: itself, or escaped and cut short where it is none.
pub(crate) fn shown(name: &str) -> String {
    match ServerId::parse(name) {
        Ok(id) => id.as_str().to_owned(),
        Err(_) => quoted(name),
    }
}

#[derive(Debug, Clone)]
struct Place {
    span: std::ops::Range<usize>,
    line: usize,
    column: usize,
}

/// The most servers of one file.
pub(crate) const MAX_SERVERS: usize = 1_000;

/// Reads a document. Never fails: what is wrong with it is in the diagnostics, all of it.
pub fn read(document: &Document<'_>) -> Reading {
    read_by(document, Leniency::default())
}

/// Reads a document; `leniency` is for those of ACP.
pub(crate) fn read_by(document: &Document<'_>, leniency: Leniency) -> Reading {
    let policy = Policy::of(document.profile);
    let pass = Pass::new(policy);
    let lines = Lines::new(document.text);
    let tree::Parsed { root, dropped: _, problems } = tree::parse_as(document.text, policy.syntax);
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
        (Some(root), Profile::McpJson) => mcp_json::read(root, &pass, document.name),
    };
    if let Some(first) = seen.get(MAX_SERVERS) {
        let message = format!("the file has more than {MAX_SERVERS} servers");
        let parent = first.pointer.rsplit_once('/').map_or("", |it| it.0);
        pass.report(Problem::new(Code::TooLarge, message, parent, first.span.clone()).help("split the file"));
    }
    let places = root.as_ref().map(|it| places(it, &seen, &lines)).unwrap_or_default();
    finish(seen, pass, places, Site { text: document.text, root: root.as_ref() })
}

fn finish(seen: Vec<Seen>, pass: Pass, places: BTreeMap<String, Place>, site: Site<'_>) -> Reading {
    let lines = &Lines::new(site.text);
    let scope = pass.policy.scope;
    let owners: HashMap<&str, usize> =
        seen.iter().enumerate().rev().map(|(index, it)| (it.pointer.as_str(), index)).collect();
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
    let mut diagnostics = Vec::new();
    for problem in pass.into_problems() {
        let owner = owner(&problem.pointer);
        if problem.severity == Severity::Error {
            refused |= scope == Scope::File || owner.is_none() || problem.code.spoils_file();
            if let Some(owner) = owner {
                wrong[owner] = true;
            }
        }
        diagnostics.push(problem.place(lines, site, owner.map(|it| seen[it].name.clone())));
    }
    diagnostics.sort_by(|a, b| {
        let place = |it: &Diagnostic| (it.span.start, it.severity, it.code, it.span.end);
        place(a)
            .cmp(&place(b))
            .then_with(|| a.pointer.cmp(&b.pointer))
            .then_with(|| a.message.cmp(&b.message))
    });
    let mut res = Reading { servers: Vec::new(), entries: Vec::new(), diagnostics, refused, places };
    for (seen, wrong) in seen.into_iter().zip(wrong) {
        let Seen { name, pointer, span: _, transport, disabled, spec, extension } = seen;
        let accepted = !refused && !wrong && (disabled || spec.is_some());
        res.entries.push(Entry { name, transport, accepted, disabled, pointer, extension });
        res.servers.extend(spec.filter(|_| !wrong));
    }
    res
}

/// Where each value of each server stands.
fn places(root: &Node, seen: &[Seen], lines: &Lines<'_>) -> BTreeMap<String, Place> {
    fn collect(node: &Node, at: &At, lines: &Lines<'_>, out: &mut BTreeMap<String, Place>) {
        let span = lines.clamp(if node.items().is_some() || node.members().is_some() {
            at.key.clone()
        } else {
            at.span.clone()
        });
        let (line, column) = lines.position(span.start);
        out.insert(at.pointer.clone(), Place { span, line, column });
        for (index, item) in node.items().into_iter().flatten().enumerate() {
            collect(item, &at.item(index, item), lines, out);
        }
        for member in node.members().into_iter().flatten() {
            collect(&member.value, &at.member(member), lines, out);
        }
    }
    let mut res = BTreeMap::new();
    for seen in seen.iter().take(MAX_SERVERS).filter(|it| it.spec.is_some()) {
        if let Some((node, at)) = find(root, &seen.pointer) {
            collect(node, &at, lines, &mut res);
        }
    }
    res
}

fn find<'a>(root: &'a Node, pointer: &str) -> Option<(&'a Node, At)> {
    let mut node = root;
    let mut at = At::root(root);
    for segment in tree::segments(pointer) {
        if let Some(member) = node.get(&segment) {
            at = at.member(member);
            node = &member.value;
        } else {
            let index = segment.parse().ok()?;
            let item = node.items()?.get(index)?;
            at = at.item(index, item);
            node = item;
        }
    }
    Some((node, at))
}

impl Reading {
    /// A resolve error with its place in this document: the value itself or, where that is not in the file, the nearest
    /// thing around it.
    pub fn place(&self, error: &ResolveError) -> Diagnostic {
        let mut pointer = error.pointer.as_str();
        let place = loop {
            match (self.places.get(pointer), pointer.rsplit_once('/')) {
                (Some(place), _) => break place.clone(),
                (None, Some((parent, _))) => pointer = parent,
                (None, None) => break Place { span: 0..0, line: 1, column: 1 },
            }
        };
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
