//! Decides by a server's rules whether a name is exposed, and under which name.

mod explain;
mod possible_name;

use std::borrow::Cow;
use std::cell::LazyCell;

use mcp_host_model::{ExposureRules, NamePolicy, NameTransform, ServerId};
use serde::Serialize;

use crate::filter::filter_match::{FilterMatch, match_filter};
use crate::name::display::{quote, truncate};
use crate::name::exposed_name::{
    ExposedName, is_valid, normalise, pattern_text, qualify, shorten, slug, with_hash_of,
};

pub use explain::{RuleKind, RuleStep};

/// The decision on one name, with the deciding rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Decision {
    /// The server.
    pub server: ServerId,
    /// The original name.
    pub original: String,
    /// The exposed name; `None` if hidden.
    pub exposed: Option<ExposedName>,
    /// The verdict.
    pub verdict: ExposureVerdict,
    /// The deciding rule, as text.
    pub rule: Cow<'static, str>,
}

/// The verdict of a decision: exposed, or the reason for hiding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum ExposureVerdict {
    /// Exposed.
    Exposed,
    /// There is a whitelist without a blacklist, and it does not match (DM-038).
    NotWhitelisted,
    /// The blacklist matches, and the whitelist does not (DM-040).
    Blacklisted,
    /// The name is invalid for providers, before or after the transforms (DM-047, DM-048).
    InvalidName,
    /// The name is already used by the host or by an earlier server (DM-032).
    Collision,
    /// The name is already used by an item of the same server; for a resource, the URI.
    #[serde(rename = "collision")]
    #[strum(serialize = "collision")]
    OwnCollision,
    /// The definition is malformed.
    Malformed,
    /// The item differs from the approved one and is withheld; see [`LockFile`](crate::lock::LockFile).
    NotApproved,
}

/// The deciding rule for the items of a server that was never approved.
pub(crate) const NEVER_APPROVED: &str = "nothing of its server was ever approved";

impl ExposureVerdict {
    /// `exposed`, `not_whitelisted`, `blacklisted`, `invalid_name`, `collision`, `malformed` or
    /// `not_approved`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Decides on one name, without regard to collisions; see [`CompiledRules::decide`]. For several names,
/// [`CompiledRules`] is faster.
pub fn decide(server: &ServerId, rules: &ExposureRules, original: &str) -> Decision {
    CompiledRules::new(server, rules).decide(original)
}

/// One server's rules, prepared for several names.
#[derive(Debug)]
pub struct CompiledRules<'a> {
    server: &'a ServerId,
    rules: &'a ExposureRules,
    /// The reason for names that the whitelist does not match: the same text for all of them.
    not_whitelisted: LazyCell<String, DeferredText<'a>>,
}

/// A text that is built when it is needed.
type DeferredText<'a> = Box<dyn FnOnce() -> String + 'a>;

impl<'a> CompiledRules<'a> {
    /// Prepares the rules of `server`.
    pub fn new(server: &'a ServerId, rules: &'a ExposureRules) -> CompiledRules<'a> {
        let whitelist = rules.filter.whitelist.as_slice();
        let text = move || not_whitelisted_text(whitelist);
        let not_whitelisted = LazyCell::new(Box::new(text) as DeferredText<'a>);
        CompiledRules { server, rules, not_whitelisted }
    }

    /// The server of the rules.
    pub(crate) fn server(&self) -> &'a ServerId {
        self.server
    }

    /// Decides on one name, without regard to collisions.
    ///
    /// The order: the validity of the original name (`Reject` only), the filter, the transforms in order, the naming
    /// policy with its limit. Never returns a collision or [`ExposureVerdict::Malformed`].
    pub fn decide(&self, original: &str) -> Decision {
        let (verdict, exposed, rule) = match self.apply(original) {
            Ok((name, rule)) => (ExposureVerdict::Exposed, Some(ExposedName::new(name)), rule),
            Err((verdict, rule)) => (verdict, None, rule),
        };
        Decision { server: self.server.clone(), original: original.to_owned(), exposed, verdict, rule }
    }

    /// Returns another name for an item whose exposed name is taken by its own server: it ends with the hash of the
    /// original name. `None` if the naming policy changes no names.
    pub(crate) fn distinguish(&self, decision: &Decision) -> Option<ExposedName> {
        let name = decision.exposed.as_ref()?;
        match self.rules.naming {
            NamePolicy::Reject | NamePolicy::Pass => None,
            NamePolicy::Normalise { .. } | NamePolicy::Slug | NamePolicy::Qualify { .. } => {
                let distinct = with_hash_of(name.as_str(), &decision.original, self.rules.limit.bytes());
                Some(ExposedName::new(distinct))
            }
        }
    }

    /// Returns whether the filter allows a name. Nothing else is checked, not even whether the name is valid.
    pub fn allows(&self, original: &str) -> bool {
        match match_filter(&self.rules.filter, original) {
            FilterMatch::Unfiltered | FilterMatch::Unlisted | FilterMatch::Whitelisted(_) => true,
            FilterMatch::WhitelistOverrides { whitelist: _, blacklist: _ } => true,
            FilterMatch::Blacklisted(_) | FilterMatch::NotWhitelisted => false,
        }
    }

    /// Returns the exposed name with the deciding rule, or the verdict that hides the name with the deciding rule.
    fn apply<'n>(&self, original: &'n str) -> Result<(Cow<'n, str>, Reason), (ExposureVerdict, Reason)> {
        let ExposureRules { filter: _, transforms: _, naming, limit, .. } = self.rules;
        if original.is_empty() {
            return Err((ExposureVerdict::InvalidName, "a name must not be empty".into()));
        }
        if *naming == NamePolicy::Reject && !is_valid(*limit, original) {
            return Err((
                ExposureVerdict::InvalidName,
                format!("the original name must match {}", pattern_text(*limit)).into(),
            ));
        }
        let why = self.filter_reason(original)?;
        let name = self.transform(original);
        let invalid = |why: Reason| Err((ExposureVerdict::InvalidName, why));
        // A renaming policy makes a valid name of any text that is not empty. The other policies check the name
        // again only if the transforms changed it.
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
        if renamed.is_empty() {
            return invalid("the transforms leave nothing of the name".into());
        }
        Ok((shorten(renamed, limit.bytes()).into(), why))
    }

    /// Applies the transforms to a name.
    pub(crate) fn transform<'n>(&self, original: &'n str) -> Cow<'n, str> {
        apply_transforms(&self.rules.transforms, original)
    }

    /// Returns the reason for which the filter allows the name, or the verdict and the reason for which it does not.
    pub(crate) fn filter_reason(&self, original: &str) -> Result<Reason, (ExposureVerdict, Reason)> {
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
                Err((ExposureVerdict::Blacklisted, format!("blacklist {}", quote(pattern)).into()))
            }
            FilterMatch::NotWhitelisted => {
                Err((ExposureVerdict::NotWhitelisted, self.not_whitelisted.clone().into()))
            }
        }
    }
}

/// The text of a deciding rule. Most are constants.
type Reason = Cow<'static, str>;

/// The reason for a name that the whitelist does not match.
fn not_whitelisted_text(whitelist: &[String]) -> String {
    let patterns: Vec<String> = whitelist.iter().map(|it| quote(it)).collect();
    format!("no pattern of the whitelist matches: {}", truncate(patterns.join(", "), 200))
}

/// Applies the transforms in order (DM-042).
fn apply_transforms<'n>(transforms: &[NameTransform], original: &'n str) -> Cow<'n, str> {
    let mut res = Cow::Borrowed(original);
    for it in transforms {
        match it {
            NameTransform::Prefix { remove, add } => {
                let rest = res.strip_prefix(remove.as_str()).unwrap_or(&res);
                res = [add, rest].concat().into();
            }
            NameTransform::Suffix(suffix) => res.to_mut().push_str(suffix),
        }
    }
    res
}

#[cfg(test)]
pub(crate) mod tests;
