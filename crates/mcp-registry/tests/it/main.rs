//! Properties of every catalog, for any names of servers and items.

mod example;
mod findings;
mod generations;
mod oracles;

use std::collections::HashSet;
use std::sync::Arc;

use mcp_host_model::{
    Exposure, ExposureFilter, ExposureRules, NameClass, NameLimit, NamePolicy, NameTransform, RawJson,
    ServerId, read_prompts, read_resources, read_tools,
};
use mcp_host_registry::{Builtins, Catalog, CatalogServer, ListKind, ServerLists, ToolLookup, decide};
use proptest::prelude::*;

fn naming() -> impl Strategy<Value = NamePolicy> {
    prop_oneof![
        Just(NamePolicy::Reject),
        Just(NamePolicy::Pass),
        Just(NamePolicy::Slug),
        Just(NamePolicy::Qualify { class: NameClass::Strict }),
        Just(NamePolicy::Qualify { class: NameClass::WithDot }),
        Just(NamePolicy::Normalise { class: NameClass::Strict }),
        Just(NamePolicy::Normalise { class: NameClass::WithDot }),
    ]
}

fn limit() -> impl Strategy<Value = NameLimit> {
    prop_oneof![Just(NameLimit::Common), Just(NameLimit::Gemini), Just(NameLimit::Anthropic)]
}

fn transform() -> impl Strategy<Value = NameTransform> {
    prop_oneof![
        ("[ab_]{0,2}", "[ab_.]{0,2}").prop_map(|(remove, add)| NameTransform::Prefix { remove, add }),
        "[ab_é]{0,2}".prop_map(NameTransform::Suffix),
    ]
}

fn rules(naming: impl Strategy<Value = NamePolicy>) -> impl Strategy<Value = ExposureRules> {
    let patterns = || prop::collection::vec("[ab*]{0,3}", 0..3);
    (patterns(), patterns(), prop::collection::vec(transform(), 0..3), naming, limit()).prop_map(
        |(whitelist, blacklist, transforms, naming, limit)| {
            let mut rules = ExposureRules::new(naming);
            rules.filter = ExposureFilter { whitelist, blacklist };
            (rules.transforms, rules.limit) = (transforms, limit);
            rules
        },
    )
}

/// Names of few letters, so that they collide. Some are long or unusual.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![8 => "[ab_-]{1,3}", 1 => "[ab]{60,130}", 1 => "[a./ é]{1,4}"]
}

/// A server with tools and prompts, and with resources that have the names of the prompts.
fn entry() -> impl Strategy<Value = CatalogServer> {
    let names = || prop::collection::vec(name(), 0..8);
    ("[abc_ é]{1,2}", rules(naming()), names(), rules(naming()), names()).prop_map(
        |(id, rules, tools, other_rules, others)| {
            let mut exposure = Exposure::all(NamePolicy::Pass);
            (exposure.tools, exposure.prompts, exposure.resources) =
                (rules, other_rules.clone(), other_rules);
            let id = ServerId::parse(&id).expect("a short printable id");
            CatalogServer::new(id, exposure, Arc::new(lists(&tools, &others)))
        },
    )
}

fn lists(tools: &[String], others: &[String]) -> ServerLists {
    let page = |key: &str, items: Vec<String>| {
        let page = format!("{{\"{key}\":[{}]}}", items.join(","));
        RawJson::parse(page.into_bytes().into()).expect("this is JSON")
    };
    let tools = tools.iter().map(|it| format!("{{\"name\":{it:?},\"inputSchema\":{{}}}}")).collect();
    let prompts = others.iter().map(|it| format!("{{\"name\":{it:?}}}")).collect();
    let resource = |(at, it): (usize, &String)| format!("{{\"uri\":\"f:{}\",\"name\":{it:?}}}", at % 6);
    let resources = others.iter().enumerate().map(resource).collect();
    let mut lists = ServerLists::default();
    lists.tools = read_tools(&page("tools", tools)).expect("this is a list").into_shared();
    lists.prompts = read_prompts(&page("prompts", prompts)).expect("this is a list").into_shared();
    lists.resources = read_resources(&page("resources", resources)).expect("this is a list").into_shared();
    lists
}

fn builtins() -> Builtins {
    let mut builtins = Builtins::default();
    builtins.tools = vec!["a".to_owned(), "ab".to_owned()];
    builtins.toolsets = vec!["c".to_owned()];
    builtins
}

fn servers() -> impl Strategy<Value = Vec<CatalogServer>> {
    prop::collection::vec(entry(), 0..5)
}

/// The items that all servers list, including servers without a toolset.
struct Listed {
    tools: Vec<(ServerId, String)>,
    prompts: Vec<(ServerId, String)>,
    resources: Vec<(ServerId, String)>,
}

impl Listed {
    fn of(servers: &[CatalogServer]) -> Listed {
        let mut res = Listed { tools: Vec::new(), prompts: Vec::new(), resources: Vec::new() };
        for CatalogServer { id, lists, .. } in servers {
            let owned = |name: &str| (id.clone(), name.to_owned());
            res.tools.extend(lists.tools.iter().map(|item| owned(&item.name)));
            res.prompts.extend(lists.prompts.iter().map(|item| owned(&item.name)));
            res.resources.extend(lists.resources.iter().map(|item| owned(&item.name)));
        }
        res
    }
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
            prop_assert!(matches!(catalog.find(it.name.as_str()), ToolLookup::Found(found) if found == it));
        }
        let mut prompts = HashSet::new();
        prop_assert!(catalog.prompts().iter().all(|item| prompts.insert(item.name.as_str())),
            "a prompt's name stands twice");
        let mut uris = HashSet::new();
        prop_assert!(catalog.resources().iter().all(|it| uris.insert((&it.server, &it.resource.uri))),
            "a URI stands twice");
        let mut ids = HashSet::new();
        prop_assert!(catalog.problems().iter().all(|server| ids.insert(&server.id)), "an id stands twice");
    }

    #[test]
    fn dm_047_names_are_valid_unless_the_rules_pass_them(original in name(), rules in rules(naming()),
        id in "[a-c é]{1,9}") {
        let decision = decide(&ServerId::parse(&id).expect("printable"), &rules, &original);
        if let Some(name) = decision.exposed {
            let kept = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
            let within = (1..=rules.limit.bytes()).contains(&name.as_str().len());
            let valid = match rules.naming {
                NamePolicy::Pass => !name.as_str().is_empty(),
                NamePolicy::Reject
                | NamePolicy::Slug
                | NamePolicy::Normalise { class: NameClass::Strict }
                | NamePolicy::Qualify { class: NameClass::Strict } => within && name.as_str().chars().all(kept),
                NamePolicy::Normalise { class: NameClass::WithDot }
                | NamePolicy::Qualify { class: NameClass::WithDot } => {
                    within && name.as_str().chars().all(|it| kept(it) || it == '.')
                }
            };
            prop_assert!(valid, "{name:?}");
        }
    }

    #[test]
    fn name_does_not_depend_on_other_servers(servers in servers(), without in any::<prop::sample::Index>()) {
        let whole = Catalog::build(&builtins(), &servers);
        for it in whole.tools() {
            let entry = servers.iter().find(|entry| entry.id == it.server).expect("it came from there");
            let alone = Catalog::build(&builtins(), std::slice::from_ref(entry));
            prop_assert_eq!(alone.tool(it.name.as_str()).map(|item| &item.tool), Some(&it.tool));
            let name_of = |tool: &str| decide(&entry.id, &entry.exposure.tools, tool).exposed;
            let decided = name_of(&it.tool.name);
            // Only a name that another tool of the server takes is changed.
            let is_shared = entry
                .lists
                .tools
                .iter()
                .any(|other| other.name != it.tool.name && name_of(&other.name) == decided);
            if !is_shared {
                prop_assert_eq!(decided.as_ref(), Some(&it.name));
            }
        }
        if servers.is_empty() {
            return Ok(());
        }
        // Without one server, the others keep all their names and can only gain some.
        let mut fewer = servers.clone();
        let gone = fewer.remove(without.index(servers.len())).id;
        let less = Catalog::build(&builtins(), &fewer);
        for it in whole.tools().iter().filter(|it| it.server != gone) {
            prop_assert_eq!(less.tool(it.name.as_str()).map(|item| &item.name), Some(&it.name));
        }
    }

    #[test]
    fn another_content_gives_another_hash(servers in servers(), others in servers()) {
        let (first, second) = (Catalog::build(&builtins(), &servers), Catalog::build(&builtins(), &others));
        let same = first.tools() == second.tools() && first.prompts() == second.prompts();
        let same = same && first.toolsets() == second.toolsets();
        prop_assert_eq!(first.hash() == second.hash(), same && first.resources() == second.resources());
    }

    #[test]
    fn each_item_is_decided_on_once_in_order(servers in servers()) {
        let catalog = Catalog::build(&builtins(), &servers);
        let Listed { tools, prompts, resources } = Listed::of(&servers);
        for (list, listed) in [(ListKind::Tool, tools), (ListKind::Prompt, prompts), (ListKind::Resource, resources)] {
            let decided: Vec<_> =
                catalog.decisions(list).map(|it| (it.server.clone(), it.original.clone())).collect();
            prop_assert_eq!(listed, decided);
        }
        let shown = |list| catalog.decisions(list).filter_map(|it| it.exposed.as_ref()).collect::<Vec<_>>();
        prop_assert_eq!(shown(ListKind::Tool), catalog.tools().iter().map(|item| &item.name).collect::<Vec<_>>());
        prop_assert_eq!(shown(ListKind::Prompt), catalog.prompts().iter().map(|item| &item.name).collect::<Vec<_>>());
        prop_assert_eq!(shown(ListKind::Resource),
            catalog.resources().iter().map(|item| &item.name).collect::<Vec<_>>());
    }

    #[test]
    fn dm_036_patterns_match_like_the_reference_implementation(pattern in "[ab*]{0,7}", name in "[ab]{0,7}") {
        fn defined(pattern: &[u8], name: &[u8]) -> bool {
            match pattern {
                [] => name.is_empty(),
                [b'*', rest @ ..] => (0..=name.len()).any(|it| defined(rest, &name[it..])),
                [first, rest @ ..] => name.first() == Some(first) && defined(rest, &name[1..]),
            }
        }
        let mut rules = ExposureRules::new(NamePolicy::Pass);
        rules.filter.whitelist.push(pattern.clone());
        let shown = decide(&ServerId::parse("s").expect("an id"), &rules, &name).exposed.is_some();
        prop_assert_eq!(shown, !name.is_empty() && defined(pattern.as_bytes(), name.as_bytes()));
    }
}
