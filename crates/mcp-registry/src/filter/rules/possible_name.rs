//! Whether the rules of a server can make an exposed name, before the names of its tools are known.
//!
//! The answer may be wrong only for names that the server does not have.

use std::borrow::Cow;

use mcp_host_model::{ExposureRules, NamePolicy, NameTransform};

use super::CompiledRules;
use crate::name::exposed_name::{HASH_SUFFIX_BYTES, is_valid, normalise, qualify};

impl CompiledRules<'_> {
    /// Returns whether an original name may exist that these rules turn into `exposed`.
    pub fn can_expose(&self, exposed: &str) -> bool {
        let ExposureRules { filter: _, transforms, naming, limit, .. } = self.rules;
        // The last prefix is in front. Suffixes are not compared: a hash may follow or replace them.
        let prefix = transforms.iter().rev().find_map(|transform| match transform {
            NameTransform::Prefix { remove: _, add } => Some(add.as_str()),
            NameTransform::Suffix(_) => None,
        });
        let prefix = prefix.unwrap_or_default();
        let (start, is_shortened) = match *naming {
            NamePolicy::Pass => (Cow::Borrowed(prefix), false),
            NamePolicy::Reject if !is_valid(*limit, exposed) => return false,
            NamePolicy::Reject => (Cow::Borrowed(prefix), false),
            NamePolicy::Normalise { class } => (normalise(class, prefix).into(), true),
            NamePolicy::Qualify { class } => (qualify(class, self.server.as_str(), prefix).into(), true),
            // A run of characters becomes one, so the start of the name says little.
            NamePolicy::Slug => (Cow::Borrowed(""), true),
        };
        // The end of a long name is replaced by a hash. Such a start is ASCII, so it can be cut at any byte.
        let compared = if is_shortened { limit.bytes() - HASH_SUFFIX_BYTES } else { start.len() };
        exposed.as_bytes().starts_with(&start.as_bytes()[..start.len().min(compared)])
    }
}

#[cfg(test)]
mod tests {
    use mcp_host_model::{NameClass, ServerId};

    use super::super::tests::rules;
    use super::*;

    // RPT-170
    #[track_caller]
    fn check(naming: NamePolicy, rules_text: &str, exposed: &str, want: bool) {
        let server = ServerId::parse("my srv").unwrap();
        assert_eq!(CompiledRules::new(&server, &rules(naming, rules_text)).can_expose(exposed), want);
    }

    #[test]
    fn name_is_possible_if_its_start_is() {
        let qualify = NamePolicy::Qualify { class: NameClass::Strict };
        check(qualify, "", "my-srv__read", true);
        check(qualify, "", "my srv__read", false);
        check(qualify, "", "my-sr__read", false);
        check(qualify, "", "read", false);
        check(qualify, "prefix=x.", "my-srv__x-read", true);
        check(qualify, "prefix=x.", "my-srv__read", false);
        let normalise = NamePolicy::Normalise { class: NameClass::Strict };
        check(normalise, "", "read", true);
        check(normalise, "prefix=a_ suffix=_z prefix=b_", "b_a_read_z", true);
        check(normalise, "prefix=a_ prefix=b_", "a_read", false);
        check(NamePolicy::Reject, "replace=a_>b_", "b_read", true);
        check(NamePolicy::Reject, "", "my.read", false);
        check(NamePolicy::Pass, "prefix=工", "工.read", true);
        check(NamePolicy::Slug, "prefix=..", "read", true);
    }

    #[test]
    fn shortened_name_keeps_the_start_of_its_prefix() {
        let (server, tool) = (ServerId::parse(&"s".repeat(70)).unwrap(), "read");
        let rules = rules(NamePolicy::Qualify { class: NameClass::Strict }, "");
        let compiled = CompiledRules::new(&server, &rules);
        let exposed = compiled.decide(tool).exposed.unwrap();
        assert!(compiled.can_expose(exposed.as_str()));
        assert!(!compiled.can_expose("read"));
    }
}
