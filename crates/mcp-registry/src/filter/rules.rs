//! What the rules do to one name. No collision is known here: a candidate name is a function of its server, its
//! original name and the rules alone, so it does not move when another server comes or goes.

mod explain;

use std::borrow::Cow;
use std::cell::LazyCell;

use mcp_model::{NamePolicy, Rules, ServerId, Transform};
use serde::Serialize;

use crate::filter::filter_match::{FilterMatch, match_filter};
use crate::name::display::{quote, truncate};
use crate::name::exposed_name::{ExposedName, is_valid, normalise, pattern_text, qualify, shorten, slug};

pub use explain::{RuleKind, RuleStep};

/// What became of one name, and by which rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// The server that has it.
    pub server: ServerId,
    /// The name the server knows it by.
    pub original: String,
    /// The name it is shown under; `None` where it is not shown.
    pub exposed: Option<ExposedName>,
    /// What was decided.
    pub verdict: Verdict,
    /// The rule that decided, in words.
    pub rule: Cow<'static, str>,
}

/// What can become of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is shown.
    Exposed,
    /// There is a whitelist and no blacklist, and the whitelist does not name it (DM-038).
    NotWhitelisted,
    /// The blacklist names it, and no whitelist brings it back (DM-040).
    Blacklisted,
    /// Providers would refuse the name, before or after the transforms (DM-047, DM-048).
    InvalidName,
    /// The name is taken (DM-032); for a resource, the URI.
    Collision,
    /// The definition is no tool, prompt, resource or template.
    Malformed,
    /// It is not what was approved, and is withheld for that; see [`LockFile`](crate::lock::LockFile).
    NotApproved,
}

impl Verdict {
    /// `exposed`, `not_whitelisted`, `blacklisted`, `invalid_name`, `collision`, `malformed` or
    /// `not_approved`.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Exposed => "exposed",
            Verdict::NotWhitelisted => "not_whitelisted",
            Verdict::Blacklisted => "blacklisted",
            Verdict::InvalidName => "invalid_name",
            Verdict::Collision => "collision",
            Verdict::Malformed => "malformed",
            Verdict::NotApproved => "not_approved",
        }
    }
}

/// Decides on one name of `server`, as if no other name existed; see [`CompiledRules::decide`]. Whoever has several names
/// asks a [`CompiledRules`], which goes through the rules once.
pub fn decide(server: &ServerId, rules: &Rules, original: &str) -> Decision {
    CompiledRules::new(server, rules).decide(original)
}

/// One server's rules, prepared for many names.
#[derive(Debug)]
pub struct CompiledRules<'a> {
    server: &'a ServerId,
    rules: &'a Rules,
    /// Why a name that the whitelist does not name is hidden. It is the same for all of them, and may be long.
    unlisted: LazyCell<String, UnlistedText<'a>>,
}

type UnlistedText<'a> = Box<dyn FnOnce() -> String + 'a>;

impl<'a> CompiledRules<'a> {
    /// Prepares the rules for `server`.
    pub fn new(server: &'a ServerId, rules: &'a Rules) -> CompiledRules<'a> {
        let whitelist = rules.filter.whitelist.as_slice();
        let unlisted = LazyCell::new(Box::new(move || unlisted(whitelist)) as UnlistedText<'a>);
        CompiledRules { server, rules, unlisted }
    }

    pub(crate) fn server(&self) -> &'a ServerId {
        self.server
    }

    /// Decides on one name, as if no other name existed.
    ///
    /// The order: the original name's validity (`Reject` only), the filter, the transforms in the order of their
    /// list, the naming policy with its limit. Never answers [`Verdict::Collision`] or [`Verdict::Malformed`].
    pub fn decide(&self, original: &str) -> Decision {
        let (verdict, exposed, rule) = match self.apply(original) {
            Ok((name, rule)) => (Verdict::Exposed, Some(ExposedName::new(name)), rule),
            Err((verdict, rule)) => (verdict, None, rule),
        };
        Decision { server: self.server.clone(), original: original.to_owned(), exposed, verdict, rule }
    }

    /// Does the filter let a name pass? Nothing else is asked, not even whether the name is valid.
    pub fn allows(&self, original: &str) -> bool {
        match match_filter(&self.rules.filter, original) {
            FilterMatch::Unfiltered | FilterMatch::Unlisted | FilterMatch::Whitelisted(_) => true,
            FilterMatch::WhitelistOverrides { whitelist: _, blacklist: _ } => true,
            FilterMatch::Blacklisted(_) | FilterMatch::NotWhitelisted => false,
        }
    }

    fn apply<'n>(&self, original: &'n str) -> Result<(Cow<'n, str>, Reason), (Verdict, Reason)> {
        let Rules { filter: _, transforms, naming, limit } = self.rules;
        if original.is_empty() {
            return Err((Verdict::InvalidName, "a name must not be empty".into()));
        }
        if *naming == NamePolicy::Reject && !is_valid(*limit, original) {
            return Err((
                Verdict::InvalidName,
                format!("the original name must match {}", pattern_text(*limit)).into(),
            ));
        }
        let why = self.filter_reason(original)?;
        let name = transform(transforms, original);
        let invalid = |why: Reason| Err((Verdict::InvalidName, why));
        // A policy that renames makes a name of whatever the transforms leave, but none of nothing. One that does not has
        // looked at a name that nothing has changed.
        let is_changed = matches!(name, Cow::Owned(_));
        let renamed = match *naming {
            NamePolicy::Reject if is_changed && !is_valid(*limit, &name) => {
                let message = format!(
                    "the name after transforms, {}, must match {}",
                    quote(&name),
                    pattern_text(*limit)
                );
                return invalid(message.into());
            }
            NamePolicy::Pass if name.is_empty() => String::new(),
            NamePolicy::Reject | NamePolicy::Pass => return Ok((name, why)),
            NamePolicy::Normalise { class } => normalise(class, &name),
            NamePolicy::Slug => slug(&name),
            NamePolicy::Qualify { class } => qualify(class, self.server.as_str(), &name),
        };
        match renamed.is_empty() {
            true => invalid("the transforms leave nothing of the name".into()),
            false => Ok((shorten(renamed, limit.bytes()).into(), why)),
        }
    }

    /// Lets a name through the filter, in words, or says what stops it.
    pub(crate) fn filter_reason(&self, original: &str) -> Result<Reason, (Verdict, Reason)> {
        match match_filter(&self.rules.filter, original) {
            FilterMatch::Unfiltered => Ok("no filter".into()),
            FilterMatch::Unlisted => Ok("neither whitelist nor blacklist matches".into()),
            FilterMatch::Whitelisted(pattern) => Ok(format!("whitelist {}", quote(pattern)).into()),
            FilterMatch::WhitelistOverrides { whitelist, blacklist } => {
                let words =
                    format!("whitelist {} overrides blacklist {}", quote(whitelist), quote(blacklist));
                Ok(words.into())
            }
            FilterMatch::Blacklisted(pattern) => {
                Err((Verdict::Blacklisted, format!("blacklist {}", quote(pattern)).into()))
            }
            FilterMatch::NotWhitelisted => Err((Verdict::NotWhitelisted, self.unlisted.clone().into())),
        }
    }
}

/// A rule in words; most are always the same.
type Reason = Cow<'static, str>;

fn unlisted(whitelist: &[String]) -> String {
    let patterns: Vec<String> = whitelist.iter().map(|it| quote(it)).collect();
    format!("no pattern of the whitelist matches: {}", truncate(patterns.join(", "), 200))
}

/// Applies the transforms in the order of their list (DM-042).
pub(crate) fn transform<'n>(transforms: &[Transform], original: &'n str) -> Cow<'n, str> {
    let mut res = Cow::Borrowed(original);
    for it in transforms {
        match it {
            Transform::Prefix { remove, add } => {
                let rest = res.strip_prefix(remove.as_str()).unwrap_or(&res);
                res = [add, rest].concat().into();
            }
            Transform::Suffix(suffix) => res.to_mut().push_str(suffix),
        }
    }
    res
}

#[cfg(test)]
pub(crate) mod tests;
