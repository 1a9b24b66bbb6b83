//! Benchmarks of names: decisions, lookups and building a catalog, by number of tools.
//!
//! A `HashMap` lookup of the same names and a `RegexSet` of the same patterns are measured for comparison.

use std::collections::HashMap;
use std::sync::Arc;

use divan::{AllocProfiler, Bencher, black_box};
use mcp_host_model::{
    CallRules, Discovery, Endpoint, Exposure, ExposureFilter, ExposureRules, Limits, NameClass, NamePolicy,
    NameTransform, RawJson, ServerId, Sharing, StdioEndpoint, read_tools,
};
use mcp_host_registry::{
    Builtins, Catalog, CatalogServer, CompiledRules, DesiredServer, ExposureSettings, ReloadPlan,
    RuntimeSettings, ServerLists, ValidatorCache, decide,
};
use regex::RegexSet;

const NAMES: usize = 10_000;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// The numbers of tools.
const COUNTS: [usize; 4] = [100, 1_000, 10_000, 100_000];

fn names(count: usize) -> Vec<String> {
    (0..count).map(|it| format!("area{}_resource{}_action{it}", it % 7, it % 113)).collect()
}

/// Rules with a hundred patterns, few of which match, so that most names are compared with all of them.
fn rules(naming: NamePolicy) -> ExposureRules {
    let pattern = |it: usize| format!("area{}*_resource{it}_*{it}", it % 9);
    let mut rules = ExposureRules::new(naming);
    rules.filter = ExposureFilter {
        whitelist: (0..50).map(pattern).collect(),
        blacklist: (50..100).map(pattern).collect(),
    };
    rules.transforms = vec![NameTransform::Suffix("_x".to_owned())];
    rules
}

/// Rules whose patterns begin and end with `*`, so that no name is rejected by its first or last character.
fn inner_rules() -> ExposureRules {
    let pattern = |it: usize| format!("*resource{it}_*{it}*");
    with_blacklist((0..100).map(pattern).collect())
}

fn with_blacklist(blacklist: Vec<String>) -> ExposureRules {
    let mut rules = ExposureRules::new(NamePolicy::Reject);
    rules.filter.blacklist = blacklist;
    rules
}

fn servers(tools: usize, count: usize) -> Vec<CatalogServer> {
    let names = names(tools);
    let naming = NamePolicy::Qualify { class: NameClass::Strict };
    let server = |(at, names): (usize, &[String])| {
        let schema = r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}"#;
        let tool = |it: &String| {
            format!("{{\"name\":\"{it}\",\"description\":\"Does {it}.\",\"inputSchema\":{schema}}}")
        };
        let page = format!("{{\"tools\":[{}]}}", names.iter().map(tool).collect::<Vec<_>>().join(","));
        let page = RawJson::parse(page.into_bytes().into()).expect("this is JSON");
        CatalogServer::new(
            ServerId::parse(&format!("server{at}")).expect("a short id"),
            Exposure::all(naming),
            Arc::new(ServerLists::of_tools(read_tools(&page).expect("this is a list").into_shared())),
        )
    };
    names.chunks(tools / count).enumerate().map(server).collect()
}

#[divan::bench]
fn match_10_000_names_with_100_patterns(bencher: Bencher<'_, '_>) {
    admit(bencher, &rules(NamePolicy::Reject));
}

#[divan::bench]
fn match_10_000_names_with_100_inner_patterns(bencher: Bencher<'_, '_>) {
    admit(bencher, &inner_rules());
}

/// The same patterns as a `RegexSet`.
#[divan::bench(args = ["anchored", "inner"])]
fn match_10_000_names_with_a_regex_set(bencher: Bencher<'_, '_>, which: &str) {
    let ExposureFilter { whitelist, blacklist } = match which {
        "anchored" => rules(NamePolicy::Reject).filter,
        _ => inner_rules().filter,
    };
    let expression = |it: &String| format!("^{}$", regex::escape(it).replace(r"\*", "(?s:.)*"));
    let expressions: Vec<String> = whitelist.iter().chain(&blacklist).map(expression).collect();
    let names = names(NAMES);
    let set = RegexSet::new(&expressions).expect("these are regular expressions");
    let count = || names.iter().filter(|it| set.matches(it).iter().next().is_some()).count();
    // Both must have the same result.
    let rules = with_blacklist([whitelist, blacklist].concat());
    let server = ServerId::parse("server").expect("an id");
    let decider = CompiledRules::new(&server, &rules);
    assert_eq!(count(), names.iter().filter(|it| !decider.allows(it)).count());
    bencher.bench_local(count);
}

/// Prepares rules by number of patterns. Most filters have few.
#[divan::bench(args = [1, 5, 100, 1_000])]
fn prepare_patterns(bencher: Bencher<'_, '_>, count: usize) {
    let blacklist = (0..count).map(|it| format!("*resource{it}_*{it}*")).collect();
    let rules = with_blacklist(blacklist);
    let server = ServerId::parse("server").expect("an id");
    bencher.bench_local(|| CompiledRules::new(&server, &rules).allows("x"));
}

fn admit(bencher: Bencher<'_, '_>, rules: &ExposureRules) {
    let (names, server) = (names(NAMES), ServerId::parse("server").expect("an id"));
    bencher.bench_local(|| {
        let decider = CompiledRules::new(&server, rules);
        names.iter().filter(|it| decider.allows(it)).count()
    });
}

#[divan::bench(args = COUNTS)]
fn decide_on_names_with_100_patterns(bencher: Bencher<'_, '_>, count: usize) {
    let (names, rules) = (names(count), rules(NamePolicy::Reject));
    let server = ServerId::parse("server").expect("an id");
    bencher.bench_local(|| {
        let decider = CompiledRules::new(&server, &rules);
        names.iter().map(|it| decider.decide(it)).collect::<Vec<_>>()
    });
}

#[divan::bench]
fn decide_on_10_000_names_one_by_one(bencher: Bencher<'_, '_>) {
    let (names, rules) = (names(NAMES), rules(NamePolicy::Reject));
    let server = ServerId::parse("server").expect("an id");
    bencher.bench_local(|| names.iter().filter(|it| decide(&server, &rules, it).exposed.is_some()).count());
}

#[divan::bench(args = COUNTS)]
fn build_a_catalog_that_grows(bencher: Bencher<'_, '_>, count: usize) {
    let servers = servers(count, 10);
    bencher.bench_local(|| Catalog::build(&Builtins::default(), &servers));
}

#[divan::bench(args = COUNTS, sample_size = 1_000)]
fn find_by_exposed_name(bencher: Bencher<'_, '_>, count: usize) {
    let catalog = Catalog::build(&Builtins::default(), &servers(count, 10));
    let name = catalog.tools()[count / 2].name.as_str().to_owned();
    bencher.bench_local(|| black_box(catalog.tool(black_box(&name))));
}

#[divan::bench(args = COUNTS, sample_size = 1_000)]
fn find_in_a_plain_hash_map(bencher: Bencher<'_, '_>, count: usize) {
    let catalog = Catalog::build(&Builtins::default(), &servers(count, 10));
    let map: HashMap<String, usize> =
        catalog.tools().iter().enumerate().map(|(at, it)| (it.name.to_string(), at)).collect();
    let name = catalog.tools().get(count / 2).expect("a tool").name.as_str();
    bencher.bench_local(|| black_box(map.get(black_box(name))));
}

#[divan::bench(args = [1, 100])]
fn build_a_catalog_of_10_000_tools(bencher: Bencher<'_, '_>, count: usize) {
    let servers = servers(NAMES, count);
    bencher.bench_local(|| Catalog::build(&Builtins::default(), &servers));
}

#[divan::bench(args = ["server50__area2_resource28_action5000", "area2_resource28_action5000",
    "area2_resource28_aktion5000"], sample_size = 10)]
fn find_one_of_10_000(bencher: Bencher<'_, '_>, name: &str) {
    let catalog = Catalog::build(&Builtins::default(), &servers(NAMES, 100));
    bencher.bench_local(|| black_box(catalog.find(black_box(name))));
}

#[divan::bench]
fn check_arguments(bencher: Bencher<'_, '_>) {
    let validators = ValidatorCache::new();
    let schema = &servers(NAMES, 100)[0].lists.tools[0].input_schema;
    let arguments = RawJson::parse(br#"{"path":"/tmp/a"}"#.as_slice().into()).expect("this is JSON");
    bencher.bench_local(|| validators.check_arguments(schema, black_box(&arguments)).is_ok());
}

/// Plans a reload that changes one server, by number of servers.
#[divan::bench(args = [1, 20, 200, 1_000])]
fn plan_a_change_of_one(bencher: Bencher<'_, '_>, count: usize) {
    let limits = Limits::default();
    let endpoint = Endpoint::Stdio(StdioEndpoint::new("npx"));
    let (exposure, other) = (Exposure::all(NamePolicy::Reject), Exposure::all(NamePolicy::Pass));
    let id = |at: usize| ServerId::parse(&format!("server{at}")).expect("a short id");
    let ids: Vec<ServerId> = (0..count).map(id).collect();
    let calls = CallRules::default();
    let settings =
        |exposure| ExposureSettings { exposure, limits: &limits, sharing: Sharing::Shared, calls: &calls };
    let runtime = RuntimeSettings::new(&endpoint, None, Discovery::default());
    let old: Vec<_> = ids.iter().map(|id| DesiredServer::new(id, runtime, settings(&exposure))).collect();
    let mut new = old.clone();
    new[count / 2].exposure = settings(&other);
    bencher.bench_local(|| ReloadPlan::compute(black_box(&old), black_box(&new)));
}
