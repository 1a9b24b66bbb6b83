//! What holds for every catalog, whatever servers call themselves and their tools.

mod oracles;

use std::collections::HashSet;
use std::sync::Arc;

use mcp_model::{Exposure, Filter, NameClass, NamePolicy, RawJson, Rules, ServerId, Transform, read_tools};
use mcp_registry::{Builtins, Catalog, Desired, Fingerprint, Lists, Lookup, Plan, ServerEntry, decide};
use proptest::prelude::*;

fn naming() -> impl Strategy<Value = NamePolicy> {
    prop_oneof![
        Just(NamePolicy::Reject),
        Just(NamePolicy::Pass),
        Just(NamePolicy::Qualify { class: NameClass::Strict }),
        Just(NamePolicy::Qualify { class: NameClass::WithDot }),
    ]
}

fn transform() -> impl Strategy<Value = Transform> {
    prop_oneof![
        ("[ab_]{0,2}", "[ab_.]{0,2}").prop_map(|(remove, add)| Transform::Prefix { remove, add }),
        "[ab_é]{0,2}".prop_map(Transform::Suffix),
    ]
}

fn rules(naming: impl Strategy<Value = NamePolicy>) -> impl Strategy<Value = Rules> {
    let patterns = || prop::collection::vec("[ab*]{0,3}", 0..3);
    (patterns(), patterns(), prop::collection::vec(transform(), 0..3), naming).prop_map(
        |(whitelist, blacklist, transforms, naming)| Rules {
            filter: Filter { whitelist, blacklist },
            transforms,
            naming,
        },
    )
}

/// Few letters, so that names meet; now and then one that is long, or odd.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![8 => "[ab_-]{1,3}", 1 => "[ab]{60,70}", 1 => "[a./ é]{1,4}"]
}

fn entry() -> impl Strategy<Value = ServerEntry> {
    ("[abc_ é]{1,2}", rules(naming()), prop::collection::vec(name(), 0..8)).prop_map(|(id, rules, tools)| {
        let tools: Vec<String> =
            tools.iter().map(|it| format!("{{\"name\":{it:?},\"inputSchema\":{{}}}}")).collect();
        let page = format!("{{\"tools\":[{}]}}", tools.join(","));
        let page = RawJson::parse(page.into_bytes().into()).expect("this is JSON");
        let tools = read_tools(&page).expect("this is a list").items;
        ServerEntry {
            id: ServerId::parse(&id).expect("a short printable id"),
            exposure: Exposure { tools: rules, ..Exposure::all(NamePolicy::Pass) },
            lists: Arc::new(Lists { tools, ..Lists::default() }),
        }
    })
}

fn builtins() -> Builtins {
    Builtins { tools: vec!["a".to_owned(), "ab".to_owned()], toolsets: vec!["c".to_owned()] }
}

fn servers() -> impl Strategy<Value = Vec<ServerEntry>> {
    prop::collection::vec(entry(), 0..5)
}

proptest! {
    #[test]
    fn dm_031_names_are_unique_and_no_builtins(servers in servers()) {
        let catalog = Catalog::build(&builtins(), &servers);
        let mut names = HashSet::new();
        for it in catalog.tools() {
            prop_assert!(names.insert(it.name.as_str()), "{} twice", it.name);
            prop_assert!(!builtins().tools.iter().any(|builtin| builtin == it.name.as_str()));
            prop_assert_eq!(catalog.tool(it.name.as_str()), Some(it));
            prop_assert!(matches!(catalog.find(it.name.as_str()), Lookup::Found(found) if found == it));
        }
        let mut ids = HashSet::new();
        prop_assert!(catalog.problems().iter().all(|it| ids.insert(&it.id)), "an id stands twice");
    }

    #[test]
    fn dm_047_names_are_valid_unless_the_rules_pass_them(original in name(), rules in rules(naming()), id in "[a-c é]{1,9}") {
        let decision = decide(&ServerId::parse(&id).expect("printable"), &rules, &original);
        if let Some(name) = decision.exposed {
            let kept = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
            let valid = match rules.naming {
                NamePolicy::Pass => !name.as_str().is_empty(),
                NamePolicy::Reject | NamePolicy::Qualify { class: NameClass::Strict } => {
                    (1..=64).contains(&name.as_str().len()) && name.as_str().chars().all(kept)
                }
                NamePolicy::Qualify { class: NameClass::WithDot } => {
                    name.as_str().len() <= 64 && name.as_str().chars().all(|it| kept(it) || it == '.')
                }
            };
            prop_assert!(valid, "{name:?}");
        }
    }

    #[test]
    fn a_name_does_not_depend_on_who_else_is_there(servers in servers(), without in any::<prop::sample::Index>()) {
        let whole = Catalog::build(&builtins(), &servers);
        for it in whole.tools() {
            let entry = servers.iter().find(|entry| entry.id == it.server).expect("it came from there");
            let alone = decide(&entry.id, &entry.exposure.tools, &it.tool.name);
            prop_assert_eq!(alone.exposed.as_ref(), Some(&it.name));
        }
        if servers.is_empty() {
            return Ok(());
        }
        // Without one server the others keep every name they had; they can only win some.
        let mut fewer = servers.clone();
        let gone = fewer.remove(without.index(servers.len())).id;
        let less = Catalog::build(&builtins(), &fewer);
        for it in whole.tools().iter().filter(|it| it.server != gone) {
            prop_assert_eq!(less.tool(it.name.as_str()).map(|it| &it.name), Some(&it.name));
        }
    }

    #[test]
    fn the_same_content_gives_the_same_catalog(servers in servers()) {
        let (first, second) = (Catalog::build(&builtins(), &servers), Catalog::build(&builtins(), &servers));
        prop_assert_eq!(first.hash(), second.hash());
        prop_assert_eq!(first.tools(), second.tools());
        prop_assert_eq!(first.decisions(), second.decisions());
        prop_assert_eq!(first.problems(), second.problems());
    }

    #[test]
    fn another_content_gives_another_hash(servers in servers(), others in servers()) {
        let (first, second) = (Catalog::build(&builtins(), &servers), Catalog::build(&builtins(), &others));
        prop_assert_eq!(first.hash() == second.hash(), first.tools() == second.tools());
    }

    #[test]
    fn each_tool_is_decided_on_once_in_order(servers in servers()) {
        let catalog = Catalog::build(&builtins(), &servers);
        let listed: Vec<_> =
            servers.iter().flat_map(|it| it.lists.tools.iter().map(|tool| (&it.id, &*tool.name))).collect();
        let decided: Vec<_> = catalog.decisions().iter().map(|it| (&it.server, it.original.as_str())).collect();
        prop_assert_eq!(listed, decided);
        let shown: Vec<_> = catalog.decisions().iter().filter_map(|it| it.exposed.as_ref()).collect();
        prop_assert_eq!(shown, catalog.tools().iter().map(|it| &it.name).collect::<Vec<_>>());
    }

    #[test]
    fn a_plan_names_each_server_once(old in "[a-e]{0,6}", new in "[a-e]{0,6}") {
        let desired = |text: &str| -> Vec<Desired> {
            let server = |(at, id): (usize, char)| {
                let endpoint = mcp_model::Endpoint::Stdio(mcp_model::StdioEndpoint::new(format!("{}", at % 2)));
                let runtime = Fingerprint::of_runtime(&endpoint, None, &mcp_model::Discovery::default());
                Desired { id: ServerId::parse(&id.to_string()).expect("a letter"), runtime, exposure: runtime }
            };
            text.chars().enumerate().map(server).collect()
        };
        let Plan { added, removed, changed, re_exposed, unchanged } = Plan::between(&desired(&old), &desired(&new));
        let mut named: Vec<_> = [added, removed, changed, re_exposed, unchanged].concat();
        named.sort();
        let mut known: Vec<_> = desired(&format!("{old}{new}")).into_iter().map(|it| it.id).collect();
        known.sort();
        known.dedup();
        prop_assert_eq!(named, known);
    }

    #[test]
    fn dm_036_a_pattern_matches_as_the_plain_definition_says(pattern in "[ab*]{0,7}", name in "[ab]{0,7}") {
        fn defined(pattern: &[u8], name: &[u8]) -> bool {
            match pattern {
                [] => name.is_empty(),
                [b'*', rest @ ..] => (0..=name.len()).any(|it| defined(rest, &name[it..])),
                [first, rest @ ..] => name.first() == Some(first) && defined(rest, &name[1..]),
            }
        }
        let filter = Filter { whitelist: vec![pattern.clone()], blacklist: Vec::new() };
        let rules = Rules { filter, transforms: Vec::new(), naming: NamePolicy::Pass };
        let shown = decide(&ServerId::parse("s").expect("an id"), &rules, &name).exposed.is_some();
        prop_assert_eq!(shown, !name.is_empty() && defined(pattern.as_bytes(), name.as_bytes()));
    }
}
