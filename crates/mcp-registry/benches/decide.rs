//! What names cost: deciding on them, finding one, putting a catalog together.

use std::sync::Arc;

use divan::Bencher;
use mcp_model::{Exposure, Filter, NameClass, NamePolicy, RawJson, Rules, ServerId, Transform, read_tools};
use mcp_registry::{Builtins, Catalog, Lists, ServerEntry, Validators, decide};

const NAMES: usize = 10_000;

fn main() {
    divan::main();
}

fn names() -> Vec<String> {
    (0..NAMES).map(|it| format!("area{}_resource{}_action{it}", it % 7, it % 113)).collect()
}

/// A hundred patterns of which few match, so most names meet them all.
fn rules(naming: NamePolicy) -> Rules {
    let pattern = |it: usize| format!("area{}*_resource{it}_*{it}", it % 9);
    Rules {
        filter: Filter {
            whitelist: (0..50).map(pattern).collect(),
            blacklist: (50..100).map(pattern).collect(),
        },
        transforms: vec![Transform::Suffix("_x".to_owned())],
        naming,
    }
}

fn servers(count: usize) -> Vec<ServerEntry> {
    let names = names();
    let naming = NamePolicy::Qualify { class: NameClass::Strict };
    let server = |(at, names): (usize, &[String])| {
        let schema = r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}"#;
        let tool = |it: &String| {
            format!("{{\"name\":\"{it}\",\"description\":\"Does {it}.\",\"inputSchema\":{schema}}}")
        };
        let page = format!("{{\"tools\":[{}]}}", names.iter().map(tool).collect::<Vec<_>>().join(","));
        let page = RawJson::parse(page.into_bytes().into()).expect("this is JSON");
        ServerEntry {
            id: ServerId::parse(&format!("server{at}")).expect("a short id"),
            exposure: Exposure::all(naming),
            lists: Arc::new(Lists {
                tools: read_tools(&page).expect("this is a list").items,
                ..Lists::default()
            }),
        }
    };
    names.chunks(NAMES / count).enumerate().map(server).collect()
}

#[divan::bench]
fn decide_on_10_000_names_with_100_patterns(bencher: Bencher<'_, '_>) {
    let (names, rules) = (names(), rules(NamePolicy::Reject));
    let server = ServerId::parse("server").expect("an id");
    bencher.bench_local(|| names.iter().filter(|it| decide(&server, &rules, it).exposed.is_some()).count());
}

#[divan::bench(args = [1, 100])]
fn build_a_catalog_of_10_000_tools(bencher: Bencher<'_, '_>, count: usize) {
    let servers = servers(count);
    bencher.bench_local(|| Catalog::build(&Builtins::default(), &servers));
}

#[divan::bench(args = ["server50__area2_resource28_action5000", "area2_resource28_action5000", "area2_resource28_aktion5000"])]
fn find_one_of_10_000(bencher: Bencher<'_, '_>, name: &str) {
    let catalog = Catalog::build(&Builtins::default(), &servers(100));
    bencher.bench_local(|| divan::black_box(catalog.find(divan::black_box(name))));
}

#[divan::bench]
fn check_arguments(bencher: Bencher<'_, '_>) {
    let validators = Validators::new();
    let schema = &servers(100)[0].lists.tools[0].input_schema;
    let arguments = RawJson::parse(br#"{"path":"/tmp/a"}"#.as_slice().into()).expect("this is JSON");
    bencher.bench_local(|| validators.check(schema, divan::black_box(&arguments)).is_ok());
}
