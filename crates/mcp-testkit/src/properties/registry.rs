//! Properties of mcp-registry.

use std::sync::Arc;

use mcp_host_model::{
    Exposure, ExposureFilter, ExposureRules, NameClass, NameLimit, NamePolicy, NameTransform, RawJson,
    ServerId, read_tools,
};
use mcp_host_registry::internal::{escape_name, is_valid, shorten};
use mcp_host_registry::pattern::first_match;
use mcp_host_registry::{
    Builtins, Catalog, CatalogServer, CompiledRules, Drift, DriftPolicy, ExposureVerdict, JsonDigest,
    ListKind, LockFile, Provider, ServerLists, ServerSnapshot, ValidationOutcome, ValidatorCache, decide,
    project,
};
use serde_json::Value;
use serde_json::value::RawValue;

/// Input: a `tools/list` result and arguments. Exposes the list under every policy, adapts it to every provider, and
/// validates the arguments.
pub fn tools(bytes: &[u8]) {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<&RawValue>();
    let Some(Ok(list)) = values.next() else { return };
    let arguments = values.next().and_then(Result::ok).map_or_else(RawJson::empty_object, RawJson::copy_of);
    let Ok(page) = read_tools(&RawJson::copy_of(list)) else { return };
    if page.items.len() > 32 {
        return;
    }
    for tool in &page.items {
        assert!(tool.input_schema.is_object() && !tool.name.is_empty());
    }
    let lists = Arc::new(ServerLists::of_tools(page.into_shared()));
    let class = NameClass::Strict;
    for naming in [NamePolicy::Qualify { class }, NamePolicy::Reject, NamePolicy::Slug, NamePolicy::Pass] {
        let id = ServerId::parse("fuzzed").expect("an id");
        let entry = CatalogServer::new(id, Exposure::all(naming), Arc::clone(&lists));
        let catalog = Catalog::build(&Builtins::default(), std::slice::from_ref(&entry));
        assert_eq!(catalog.decisions(ListKind::Tool).count(), lists.tools.len());
        assert_eq!(catalog.hash(), Catalog::build(&Builtins::default(), &[entry]).hash());
        let tools = catalog.tools();
        assert!(tools.iter().zip(tools.iter().skip(1)).all(|(tool, next)| tool.name != next.name));
        for problem in catalog.problems() {
            assert!(!problem.message.contains(char::is_control), "{:?}", problem.message);
        }
        for provider in [Provider::Passthrough, Provider::OpenAiStrict, Provider::Gemini, Provider::Anthropic]
        {
            let projection = project(catalog.tools(), provider);
            assert_eq!(projection.tools.len() + projection.problems.len(), catalog.tools().len());
            for tool in &projection.tools {
                if let Some(schema) = &tool.schema {
                    assert!(schema.is_object());
                    assert_eq!(RawJson::parse(schema.clone().into_bytes()).ok().as_ref(), Some(schema));
                }
            }
            for problem in &projection.problems {
                assert!(!problem.message.contains(char::is_control), "{:?}", problem.message);
            }
        }
    }
    let validators = ValidatorCache::new();
    for tool in &lists.tools {
        let first = validators.check_arguments(&tool.input_schema, &arguments);
        assert_eq!(
            validators.check_arguments(&tool.input_schema, &arguments),
            first,
            "the cached validator has another result"
        );
        match first {
            Ok(ValidationOutcome::Valid) => {}
            Ok(ValidationOutcome::Unvalidated(reason)) => assert!(!reason.is_empty() && reason.len() < 1024),
            Err(invalid) => {
                assert!((1..=ValidatorCache::MAX_ERRORS).contains(&invalid.errors.len()));
                assert!(
                    !tool.input_schema.as_str().trim_matches(['{', '}', ' ', '\n']).is_empty(),
                    "{{}} accepts anything"
                );
            }
        }
        if let Some(schema) = &tool.output_schema {
            assert!(validators.check_result(schema, None).is_err());
            let _ = validators.check_result(schema, Some(&arguments));
        }
    }
}

/// Input: patterns, one per line, an empty line, and names. Checks the matcher against a reference implementation.
pub fn patterns(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let (patterns, names) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut patterns: Vec<String> = patterns.lines().take(40).map(str::to_owned).collect();
    patterns.retain(|pattern| pattern.len() < 200);
    for name in names.lines().take(8).filter(|name| name.len() < 200) {
        let want = patterns.iter().find(|pattern| reference_match(pattern.as_bytes(), name.as_bytes()));
        assert_eq!(first_match(&patterns, name), want.map(String::as_str), "{patterns:?} {name:?}");
    }
}

/// A reference implementation of pattern matching, by dynamic programming.
fn reference_match(pattern: &[u8], name: &[u8]) -> bool {
    let mut row = vec![false; name.len() + 1];
    row[0] = true;
    for it in pattern {
        let mut next = vec![false; name.len() + 1];
        for at in 0..=name.len() {
            next[at] = match it {
                b'*' => row[at] || (at > 0 && next[at - 1]),
                _ => at > 0 && row[at - 1] && name[at - 1] == *it,
            };
        }
        row = next;
    }
    row[name.len()]
}

/// Input: a server's id, a prefix, a suffix, a pattern and names, one per line. Checks that exposed names follow the
/// rules.
pub fn names(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let mut lines = text.lines();
    let Ok(server) = ServerId::parse(lines.next().unwrap_or_default()) else { return };
    let mut next_line = || lines.next().unwrap_or_default().to_owned();
    let (prefix, suffix, pattern) = (next_line(), next_line(), next_line());
    let (remove, add) = prefix.split_once('>').unwrap_or(("", &prefix));
    let transforms = vec![
        NameTransform::Prefix { remove: remove.to_owned(), add: add.to_owned() },
        NameTransform::Suffix(suffix),
    ];
    let filter = ExposureFilter { whitelist: Vec::new(), blacklist: vec![pattern.clone()] };
    let names: Vec<&str> = lines.take(8).collect();
    let (strict, dot) = (NameClass::Strict, NameClass::WithDot);
    let policies = [
        NamePolicy::Reject,
        NamePolicy::Normalise { class: strict },
        NamePolicy::Qualify { class: strict },
        NamePolicy::Qualify { class: dot },
        NamePolicy::Slug,
        NamePolicy::Pass,
    ];
    for naming in policies {
        for limit in [NameLimit::Common, NameLimit::Gemini, NameLimit::Anthropic] {
            let mut rules = ExposureRules::new(naming);
            (rules.filter, rules.transforms, rules.limit) = (filter.clone(), transforms.clone(), limit);
            let decider = CompiledRules::new(&server, &rules);
            for name in &names {
                let decision = decider.decide(name);
                assert_eq!(decision, decide(&server, &rules, name), "a single decision differs");
                assert_eq!(decision.exposed.is_some(), decision.verdict == ExposureVerdict::Exposed);
                assert!(!decision.rule.is_empty());
                let Some(exposed) = decision.exposed else { continue };
                let kept =
                    exposed.as_str().chars().all(|it| it.is_ascii_alphanumeric() || "_-.".contains(it));
                match naming {
                    NamePolicy::Pass => assert!(!exposed.as_str().is_empty()),
                    NamePolicy::Qualify { class: NameClass::WithDot } => {
                        assert!(kept && exposed.as_str().len() <= limit.bytes());
                    }
                    NamePolicy::Reject
                    | NamePolicy::Normalise { .. }
                    | NamePolicy::Qualify { .. }
                    | NamePolicy::Slug => {
                        assert!(is_valid(limit, exposed.as_str()), "{exposed:?}");
                    }
                }
                assert!(
                    !reference_match(pattern.as_bytes(), name.as_bytes()),
                    "a blacklisted name is exposed"
                );
            }
        }
    }
    for name in names {
        let label = escape_name(name);
        assert!(label.len() <= 128 && !label.contains(char::is_control), "{label:?}");
        assert!(shorten(name.to_owned(), 64).len() <= 64);
    }
}

/// Input: the text of a lock file. Checks that it round-trips and has no drift from itself.
pub fn lock(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let lock = match LockFile::parse(text) {
        Ok(lock) => lock,
        Err(error) => {
            let message = error.to_string();
            assert!(message.len() < 400 && !message.contains(char::is_control), "{message:?}");
            return;
        }
    };
    assert_eq!(LockFile::parse(&lock.to_text()).as_ref(), Ok(&lock));
    let all = [ListKind::Tool, ListKind::Prompt, ListKind::Resource];
    for approved in lock.servers.values() {
        assert!(Drift::compute(Some(approved), approved, &all, DriftPolicy::default()).is_empty());
        let lost = Drift::compute(Some(approved), &ServerSnapshot::default(), &all, DriftPolicy::default());
        assert_eq!(lost.items().len(), approved.items.values().map(|it| it.len()).sum::<usize>());
    }
}

/// Input: two JSON values. Checks that their hashes are equal exactly if the values are.
pub fn digest(bytes: &[u8]) {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<&RawValue>();
    let (Some(Ok(first)), Some(Ok(second))) = (values.next(), values.next()) else { return };
    let (first, second) = (RawJson::copy_of(first), RawJson::copy_of(second));
    let (Ok(left), Ok(right)) = (first.read::<Value>(), second.read::<Value>()) else { return };
    let same = JsonDigest::of(&first) == JsonDigest::of(&second);
    assert_eq!(JsonDigest::parse(&JsonDigest::of(&first).to_string()), Some(JsonDigest::of(&first)));
    // Equal hashes imply equal values. The reverse fails for numbers written differently and for duplicate keys.
    assert!(!same || left == right, "{first:?} {second:?}");
    let written = RawJson::from_value(&left).expect("the value has string keys");
    let again =
        RawJson::parse(serde_json::to_string_pretty(&left).expect("it is JSON").into()).expect("it is JSON");
    // A serializer writes one text per value, apart from white space.
    assert_eq!(JsonDigest::of(&written), JsonDigest::of(&again), "{written:?}");
}
