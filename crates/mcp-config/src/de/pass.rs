//! One pass over a file: its rules, and what it has found.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use mcp_model::Severity;

use super::place::Ways;
use super::{At, Fault, meant};
use crate::diagnostic::Code;
use crate::diagnostic::{Problem, quoted};
use crate::dialect::checks::Complaint;
use crate::dialect::policy::Policy;
use crate::edit::fix::{Applicability, Repair};
use crate::syntax::{Key, Member, Syntax, child, contains};

/// The rules that a file is read by, and the problems found so far.
pub(crate) struct Pass {
    pub(crate) policy: &'static Policy,
    problems: RefCell<Vec<Problem>>,
    /// Where the errors among them are, so that each server of a file full of mistakes is not held against all of them.
    /// `None` where that has to be gathered anew.
    errors: RefCell<Option<BTreeSet<String>>>,
    /// How often what was probably meant was looked for.
    guesses: Cell<usize>,
    /// The steps to the places that were looked at.
    pub(super) ways: Ways,
}

impl Pass {
    /// A pass that has found nothing yet.
    pub(crate) fn new(policy: &'static Policy) -> Pass {
        Pass {
            policy,
            problems: RefCell::new(Vec::new()),
            errors: RefCell::new(None),
            guesses: Cell::new(0),
            ways: Ways::default(),
        }
    }

    /// Writes a problem down.
    pub(crate) fn report(&self, problem: Problem) {
        if let (Severity::Error, Some(errors)) = (problem.severity, self.errors.borrow_mut().as_mut()) {
            errors.insert(problem.pointer.clone());
        }
        self.problems.borrow_mut().push(problem);
    }

    /// Writes down an error about the value at `at`.
    pub(crate) fn error(&self, code: Code, at: &At, message: impl Into<String>, help: impl Into<String>) {
        self.report(Problem::new(code, message, at.pointer(self), at.span()).help(help));
    }

    /// Writes down a warning about the value at `at`.
    pub(crate) fn warning(&self, code: Code, at: &At, message: impl Into<String>, help: impl Into<String>) {
        self.report(Problem::new(code, message, at.pointer(self), at.span()).help(help).warning());
    }

    /// Writes down what is wrong with the value at `at`.
    pub(crate) fn complain(&self, at: &At, complaint: Complaint) {
        self.error(complaint.code, at, complaint.message, complaint.help);
    }

    /// Writes down why the value at `at` could not be read.
    pub(crate) fn fault(&self, fault: Fault, at: &At) {
        let pointer = at.pointer(self);
        let message = fault.message(self.policy.wording, &pointer);
        let help = fault.help(self.policy.wording, &pointer);
        let problem = Problem::new(fault.code(), message, pointer, at.span());
        self.report(problem.help(help).repair(fault.repair()));
    }

    /// Makes errors so far into warnings, where `which` says so.
    pub(crate) fn soften(&self, which: impl Fn(&Problem) -> bool) {
        for problem in self.problems.borrow_mut().iter_mut().filter(|it| which(it)) {
            problem.severity = Severity::Warning;
        }
        self.errors.replace(None);
    }

    /// Forgets what was found at a place and below, but for what spoils the file.
    pub(crate) fn forgive(&self, at: &At) {
        let mut problems = self.problems.borrow_mut();
        if problems.is_empty() {
            return;
        }
        let pointer = at.pointer(self);
        problems.retain(|it| it.code.spoils_file() || !contains(&pointer, &it.pointer));
        self.errors.replace(None);
    }

    /// Has an error been found at a place or below?
    pub(crate) fn has_error(&self, at: &At) -> bool {
        let mut errors = self.errors.borrow_mut();
        let errors = errors.get_or_insert_with(|| {
            let problems = self.problems.borrow();
            let errors = problems.iter().filter(|it| it.severity == Severity::Error);
            errors.map(|it| it.pointer.clone()).collect()
        });
        if errors.is_empty() {
            return false;
        }
        let pointer = at.pointer(self);
        let below = format!("{pointer}/");
        // Whatever is below stands together, for all of it begins alike.
        errors.contains(&pointer)
            || errors.range(below.clone()..).next().is_some_and(|it| it.starts_with(&below))
    }

    /// Everything that was found.
    pub(crate) fn into_problems(self) -> Vec<Problem> {
        self.problems.into_inner()
    }

    /// What was probably meant by `word`. Guessing takes time: after the first thousand words of a file nobody is helped.
    pub(crate) fn nearest<'a>(
        &self,
        word: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Option<&'a str> {
        self.meant(word, candidates).map(|it| it.0)
    }

    /// The same, and how sure it is.
    pub(crate) fn meant<'a>(
        &self,
        word: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Option<(&'a str, Applicability)> {
        const MOST: usize = 1000;
        self.guesses.set(self.guesses.get() + 1);
        if self.guesses.get() > MOST { None } else { meant(word, candidates) }
    }

    /// Writes down that a key is none of those that may stand in the mapping at `at`.
    pub(super) fn unknown_key(&self, at: &At, key: &Key, known: &[&'static str], there: &[Member]) {
        let withheld = self.policy.withheld;
        if self.policy.private_keys.iter().any(|it| key.text.starts_with(it)) {
            return;
        }
        let free = known
            .iter()
            .copied()
            .filter(|it| !withheld.contains(it) && !there.iter().any(|member| *member.key.text == **it));
        // Each guess looks at what is there already, so nobody is helped in a crowd.
        const CROWD: usize = 256;
        let mut meant = if there.len() > CROWD { None } else { self.meant(&key.text, free) };
        let help = if known.contains(&&*key.text) {
            meant = None;
            "another version of the dialect knows this key; remove it, or choose that profile".to_owned()
        } else if &*key.text == "<<" && self.policy.syntax == Syntax::Yaml {
            meant = None;
            "there are no merge keys in YAML 1.2; write the keys out, or use an alias for the whole value"
                .to_owned()
        } else {
            match meant {
                Some((near, _)) => format!("did you mean `{near}`?"),
                None => "remove it, or check its spelling".to_owned(),
            }
        };
        let pointer = child(&at.pointer(self), &key.text);
        let message = format!("unknown key '{}'", quoted(&key.text));
        self.report(
            Problem::new(Code::UnknownKey, message, pointer, key.span.clone())
                .severity(self.policy.unknown_key)
                .help(help)
                .repair(meant.map(|it| Repair::Key(it.0.to_owned(), it.1))),
        );
    }

    /// Writes down that a key of the map of names at `at` is no text.
    pub(super) fn bad_key(&self, at: &At, key: &Key) {
        let message = format!("the key '{}' must be text", quoted(&key.text));
        let pointer = child(&at.pointer(self), &key.text);
        self.report(
            Problem::new(Code::BadKey, message, pointer, key.span.clone())
                .help("put the key into quotes")
                .repair(Repair::Quote),
        );
    }
}
