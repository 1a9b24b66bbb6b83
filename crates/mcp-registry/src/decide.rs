//! What the rules do to one name. No collision is known here: a candidate name is a function of its server, its
//! original name and the rules alone, so it does not move when another server comes or goes.

use mcp_model::{NamePolicy, Rules, ServerId, Transform};
use serde::Serialize;

use crate::filter::{Ruling, rule};
use crate::name::{ExposedName, RULE, is_valid, qualify};
use crate::quote::{cut, quote};

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
    pub rule: String,
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
    /// The name is taken (DM-032).
    Collision,
    /// The definition is no tool, prompt or resource.
    Malformed,
}

impl Verdict {
    /// `exposed`, `not_whitelisted`, `blacklisted`, `invalid_name`, `collision` or `malformed`.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Exposed => "exposed",
            Verdict::NotWhitelisted => "not_whitelisted",
            Verdict::Blacklisted => "blacklisted",
            Verdict::InvalidName => "invalid_name",
            Verdict::Collision => "collision",
            Verdict::Malformed => "malformed",
        }
    }
}

/// Decides on one name of `server`, as if no other name existed.
///
/// The order: the original name's validity (`Reject` only), the filter, the transforms in the order of their list,
/// the naming policy. Never answers [`Verdict::Collision`] or [`Verdict::Malformed`].
pub fn decide(server: &ServerId, rules: &Rules, original: &str) -> Decision {
    let (verdict, exposed, rule) = match candidate(server, rules, original) {
        Ok((name, rule)) => (Verdict::Exposed, Some(ExposedName::new(name)), rule),
        Err((verdict, rule)) => (verdict, None, rule),
    };
    Decision { server: server.clone(), original: original.to_owned(), exposed, verdict, rule }
}

fn candidate(
    server: &ServerId,
    rules: &Rules,
    original: &str,
) -> Result<(String, String), (Verdict, String)> {
    if original.is_empty() {
        return Err((Verdict::InvalidName, "a name must not be empty".to_owned()));
    }
    if rules.naming == NamePolicy::Reject && !is_valid(original) {
        return Err((Verdict::InvalidName, format!("the original name must match {RULE}")));
    }
    let why = passes(rules, original)?;
    let name = transform(&rules.transforms, original);
    match rules.naming {
        NamePolicy::Reject if !is_valid(&name) => {
            let shown = quote(&name);
            Err((Verdict::InvalidName, format!("the name after transforms, {shown}, must match {RULE}")))
        }
        NamePolicy::Pass if name.is_empty() => {
            Err((Verdict::InvalidName, "the transforms leave nothing of the name".to_owned()))
        }
        NamePolicy::Reject | NamePolicy::Pass => Ok((name, why)),
        NamePolicy::Qualify { class } => Ok((qualify(class, server.as_str(), &name), why)),
    }
}

/// Lets a name through the filter, in words, or says what stops it.
pub(crate) fn passes(rules: &Rules, original: &str) -> Result<String, (Verdict, String)> {
    match rule(&rules.filter, original) {
        Ruling::Unfiltered => Ok("no filter".to_owned()),
        Ruling::Unmentioned => Ok("neither whitelist nor blacklist matches".to_owned()),
        Ruling::Whitelisted(pattern) => Ok(format!("whitelist {}", quote(pattern))),
        Ruling::Rescued { whitelist, blacklist } => {
            Ok(format!("whitelist {} overrides blacklist {}", quote(whitelist), quote(blacklist)))
        }
        Ruling::Blacklisted(pattern) => Err((Verdict::Blacklisted, format!("blacklist {}", quote(pattern)))),
        Ruling::NotWhitelisted => {
            let patterns: Vec<String> = rules.filter.whitelist.iter().map(|it| quote(it)).collect();
            let patterns = cut(patterns.join(", "), 200);
            Err((Verdict::NotWhitelisted, format!("no pattern of the whitelist matches: {patterns}")))
        }
    }
}

/// Applies the transforms in the order of their list (DM-042).
pub(crate) fn transform(transforms: &[Transform], original: &str) -> String {
    let mut res = original.to_owned();
    for it in transforms {
        match it {
            Transform::Prefix { remove, add } => {
                let rest = res.strip_prefix(remove.as_str()).unwrap_or(&res);
                res = format!("{add}{rest}");
            }
            Transform::Suffix(suffix) => res.push_str(suffix),
        }
    }
    res
}

#[cfg(test)]
pub(crate) mod tests;
