//! Rules for calls: whether a call of a tool is allowed, asked about or denied. mcp-registry applies them.

use std::fmt;
use std::str::FromStr;

/// The maximum number of patterns in one list of a rule.
const MAX_PATTERNS: usize = 64;

/// The maximum size of a rule, in bytes.
const MAX_RULE_BYTES: usize = 4096;

/// The effect of a rule on the calls that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "a host decides on each, so that none is forgotten")]
pub enum CallEffect {
    /// The call is sent.
    Allow,
    /// The user is asked first.
    Ask,
    /// The call is refused.
    Deny,
}

impl CallEffect {
    /// Returns `allow`, `ask` or `deny`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What a tool does, by its annotations. They count only if a lock file approves the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
#[expect(
    clippy::exhaustive_enums,
    reason = "a tool reads only, or changes something, or may destroy something"
)]
pub enum ToolAction {
    /// It changes nothing (`readOnlyHint`).
    Reads,
    /// It changes something and destroys nothing (`destructiveHint: false`).
    Writes,
    /// Anything else, also each tool that is not approved.
    Destructive,
}

/// One rule for calls. A list that is empty matches everything. In a pattern, `*` matches any characters.
///
/// It is written as `EFFECT [servers=a,b*] [tools=…] [hints=reads,writes,destructive] [users=…]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CallRule {
    /// The effect.
    pub effect: CallEffect,
    /// Patterns of servers.
    pub servers: Vec<String>,
    /// Patterns of the servers' own names of tools.
    pub tools: Vec<String>,
    /// What the tool does.
    pub hints: Vec<ToolAction>,
    /// Patterns of users. A call without a user is matched by an empty list only.
    pub users: Vec<String>,
}

/// The rules for the calls of one server, in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct CallRules {
    /// The rules of the entry (`calls`).
    pub stated: Vec<CallRule>,
    /// Rules that follow from the approval keys of the file's program, after the others.
    pub of_program: Vec<CallRule>,
}

impl CallRules {
    /// Returns all rules, in order.
    pub fn iter(&self) -> impl Iterator<Item = &CallRule> {
        self.stated.iter().chain(&self.of_program)
    }

    /// Returns whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.stated.is_empty() && self.of_program.is_empty()
    }
}

/// The error for a text that is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidCallRule(&'static str);

impl CallRule {
    /// Creates a rule that matches every call.
    pub fn new(effect: CallEffect) -> CallRule {
        CallRule { effect, servers: Vec::new(), tools: Vec::new(), hints: Vec::new(), users: Vec::new() }
    }

    /// Creates a rule for tools with this name.
    pub fn of_tool(effect: CallEffect, tool: impl Into<String>) -> CallRule {
        CallRule { tools: vec![tool.into()], ..CallRule::new(effect) }
    }
}

impl FromStr for CallRule {
    type Err = InvalidCallRule;

    fn from_str(text: &str) -> Result<CallRule, InvalidCallRule> {
        if text.len() > MAX_RULE_BYTES {
            return Err(InvalidCallRule("the rule is too long"));
        }
        let mut words = text.split_whitespace();
        let effect = words.next().and_then(|it| it.parse().ok());
        let effect = effect.ok_or(InvalidCallRule("a rule begins with `allow`, `ask` or `deny`"))?;
        let mut rule = CallRule::new(effect);
        let mut seen = Vec::new();
        for word in words {
            let Some((key, values)) = word.split_once('=') else {
                return Err(InvalidCallRule(
                    "only KEY=VALUE may follow the effect, with a KEY of servers, tools, hints, users",
                ));
            };
            if seen.contains(&key) {
                return Err(InvalidCallRule("a key is given twice; separate its values by commas"));
            }
            seen.push(key);
            let values: Vec<&str> = values.split(',').filter(|it| !it.is_empty()).collect();
            // An empty list would match everything, which is not what an empty value looks like.
            if values.is_empty() || values.len() > MAX_PATTERNS {
                return Err(InvalidCallRule("a key has from 1 to 64 values, separated by commas"));
            }
            let patterns = || values.iter().map(|it| (*it).to_owned()).collect();
            match key {
                "servers" => rule.servers = patterns(),
                "tools" => rule.tools = patterns(),
                "users" => rule.users = patterns(),
                "hints" => {
                    let hints = values.iter().map(|it| it.parse()).collect::<Result<_, _>>();
                    let error = InvalidCallRule("`hints` may be `reads`, `writes` and `destructive`");
                    rule.hints = hints.map_err(|_: strum::ParseError| error)?;
                }
                _ => return Err(InvalidCallRule("the keys of a rule are servers, tools, hints, users")),
            }
        }
        Ok(rule)
    }
}

impl fmt::Display for CallRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallRule { effect, servers, tools, hints, users } = self;
        f.write_str(effect.as_str())?;
        let hints: Vec<String> = hints.iter().map(|it| <&str>::from(*it).to_owned()).collect();
        for (key, values) in [("servers", servers), ("tools", tools), ("hints", &hints), ("users", users)] {
            if !values.is_empty() {
                write!(f, " {key}={}", values.join(","))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let got = text.parse::<CallRule>().map_or_else(|error| error.to_string(), |rule| rule.to_string());
        assert_eq!(got, want);
    }

    #[test]
    fn rule_is_printed_as_it_is_written() {
        for text in [
            "allow",
            "ask tools=write_*,delete_*",
            "deny servers=fs tools=* hints=writes,destructive users=ci",
        ] {
            check(text, text);
        }
        check("  ask   users=a,,b  tools=x ", "ask tools=x users=a,b");
    }

    #[test]
    fn misspelt_rule_is_refused() {
        check("", "a rule begins with `allow`, `ask` or `deny`");
        check("Allow", "a rule begins with `allow`, `ask` or `deny`");
        check("deny x", "only KEY=VALUE may follow the effect, with a KEY of servers, tools, hints, users");
        check("deny tool=x", "the keys of a rule are servers, tools, hints, users");
        check("deny tools=", "a key has from 1 to 64 values, separated by commas");
        check("deny tools=x tools=y", "a key is given twice; separate its values by commas");
        check("ask hints=safe", "`hints` may be `reads`, `writes` and `destructive`");
        check(&format!("ask tools={}", "a".repeat(5000)), "the rule is too long");
    }
}
