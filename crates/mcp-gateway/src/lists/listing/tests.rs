//! Tests of listings: names, scopes, pages and cursors.

use std::sync::Arc;

use mcp_host_model::{Exposure, NameClass, NamePolicy, RawJson, read_resource_templates, read_tools};
use mcp_host_registry::{Builtins, CatalogServer, Selection, ServerLists, ViewFilter};

use super::*;
use crate::access::scope::NameStyle;
use crate::lists::gateway_resources::GatewayResource;

fn json(text: String) -> RawJson {
    RawJson::parse(text.into()).unwrap()
}

/// A server with these tools, each with a definition of at least `bytes` bytes, and these templates.
fn entry(id: &str, tools: &[&str], bytes: usize, templates: &[&str]) -> CatalogServer {
    let filling = "x".repeat(bytes);
    let tools: Vec<String> = tools
        .iter()
        .map(|name| {
            format!(r#"{{ "inputSchema":{{"type":"object"}},"name" : "{name}","description":"{filling}"}}"#)
        })
        .collect();
    let templates: Vec<String> =
        templates.iter().map(|uri| format!(r#"{{"uriTemplate":"{uri}"}}"#)).collect();
    let tools = read_tools(&json(format!(r#"{{"tools":[{}]}}"#, tools.join(",")))).unwrap().into_shared();
    let templates = json(format!(r#"{{"resourceTemplates":[{}]}}"#, templates.join(",")));
    let templates = read_resource_templates(&templates).unwrap().into_shared();
    CatalogServer::new(
        ServerId::parse(id).unwrap(),
        Exposure::all(NamePolicy::Qualify { class: NameClass::Strict }),
        Arc::new({
            let mut lists = ServerLists::default();
            lists.tools = tools;
            lists.templates = templates;
            lists
        }),
    )
}

fn listing(entries: &[CatalogServer], scope: &Scope) -> Listing {
    let catalog = Arc::new(Catalog::build(&Builtins::default(), entries));
    let definitions = Arc::new(Definitions::of(&catalog, scope.names, &[], None));
    let scope = Arc::new(scope.clone());
    let filter = ListFilter { scope: &scope, audience: Audience::Models, budget: ToolBudget::default() };
    Listing::build(definitions, filter, vec![ServerId::parse("own").unwrap()])
}

/// The members of a page of a list, as JSON text.
fn page(listing: &Listing, kind: CatalogList, cursor: Option<&str>) -> Result<String, StaleCursor> {
    let mut page = Vec::new();
    listing.write(kind, cursor, &mut page)?;
    Ok(String::from_utf8(page).unwrap())
}

/// The names of the tools of all pages.
fn names(listing: &Listing) -> String {
    let (mut names, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let page = page(listing, CatalogList::Tools, cursor.as_deref()).unwrap();
        let page: serde_json::Value = serde_json::from_str(&format!("{{{page}}}")).unwrap();
        names.extend(
            page["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()),
        );
        match page["nextCursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return names.join(" "),
        }
    }
}

#[test]
fn empty_list_has_one_page() {
    let scope = Arc::new(Scope::default());
    let definitions = Arc::new(Definitions::of(&Arc::default(), scope.names, GatewayResource::ALL, None));
    let listing = Listing::build(
        Arc::clone(&definitions),
        ListFilter { scope: &scope, audience: Audience::Models, budget: ToolBudget::default() },
        Vec::new(),
    );
    assert_eq!(page(&listing, CatalogList::Tools, None).unwrap(), "\"tools\":[]");
    assert_eq!(page(&listing, CatalogList::Templates, None).unwrap(), "\"resourceTemplates\":[]");
    let resources = page(&listing, CatalogList::Resources, None).unwrap();
    assert!(resources.starts_with(r#""resources":[{"uri":"mcp-host://problems","name":"problems","#));
    assert!(listing.is_empty());
    // A filtered scope shows no resources of the gateway.
    let part = Arc::new(Scope { views: vec![ViewFilter::default()], ..Scope::default() });
    let filter = ListFilter { scope: &part, audience: Audience::Models, budget: ToolBudget::default() };
    let listing = Listing::build(definitions, filter, Vec::new());
    assert_eq!(page(&listing, CatalogList::Resources, None).unwrap(), "\"resources\":[]");
}

#[test]
fn definitions_change_only_the_name() {
    let listing = listing(&[entry("a", &["t"], 1, &[])], &Scope::default());
    let want = r#""tools":[{ "inputSchema":{"type":"object"},"name" : "a__t","description":"x"}]"#;
    assert_eq!(page(&listing, CatalogList::Tools, None).unwrap(), want);
    assert_eq!(listing.find(CatalogList::Tools, "a__t").map(|target| target.server.as_str()), Some("a"));
    assert_eq!(listing.find(CatalogList::Tools, "t"), None);
}

#[track_caller]
fn check(scope: Scope, want: &str) {
    let entries = [entry("a", &["t", "u"], 1, &[]), entry("own", &["t"], 1, &[])];
    assert_eq!(names(&listing(&entries, &scope)), want, "{scope:?}");
}

#[test]
fn a_scope_only_narrows() {
    let tools = |pattern: &str| {
        let tools = Selection::Patterns(vec![pattern.to_owned()]);
        ViewFilter { tools, ..ViewFilter::default() }
    };
    let a = Some(ServerId::parse("a").unwrap());
    check(Scope::default(), "a__t a__u own__t");
    check(Scope { server: a.clone(), ..Scope::default() }, "a__t a__u");
    let only_a = listing(&[entry("a", &["t"], 1, &[])], &Scope { server: a.clone(), ..Scope::default() });
    assert!(!only_a.has_leased() && listing(&[], &Scope::default()).has_leased());
    check(Scope { server: a, names: NameStyle::Original, ..Scope::default() }, "t u");
    check(Scope { views: vec![tools("*__t")], ..Scope::default() }, "a__t own__t");
    check(Scope { views: vec![tools("*__t"), tools("a__*")], ..Scope::default() }, "a__t");
    // Of the granted views one suffices.
    let granted = vec![tools("own__*"), tools("a__*")];
    check(Scope { views: vec![tools("*__t")], granted, ..Scope::default() }, "a__t own__t");
    check(Scope { granted: vec![tools("own__*"), tools("x")], ..Scope::default() }, "own__t");
}

#[test]
fn repeated_uri_names_its_server() {
    let entries = [entry("own", &[], 1, &["f:{x}", "f:{x}"]), entry("a", &["t"], 1, &["f:{x}", "g:{x}"])];
    let find = |scope: &Scope, uri: &str| {
        let listing = listing(&entries, scope);
        let target = listing.find(CatalogList::Templates, uri);
        let count = page(&listing, CatalogList::Templates, None).unwrap().matches("uriTemplate").count();
        (target.map(|target| format!("{} {}", target.server, target.name)).unwrap_or_default(), count)
    };
    let all = Scope::default();
    assert_eq!(find(&all, "f:{x}"), ("own f:{x}".to_owned(), 3));
    assert_eq!(find(&all, "f:{x}#mcp-host-server=a"), ("a f:{x}".to_owned(), 3));
    let a = Some(ServerId::parse("a").unwrap());
    let only = Scope { server: a.clone(), ..Scope::default() };
    assert_eq!(find(&only, "f:{x}#mcp-host-server=a"), ("a f:{x}".to_owned(), 2));
    assert_eq!(find(&only, "f:{x}"), (String::new(), 2));
    let original = Scope { server: a, names: NameStyle::Original, ..Scope::default() };
    assert_eq!(find(&original, "f:{x}"), ("a f:{x}".to_owned(), 2));
}

#[test]
fn cursor_is_valid_only_for_its_list() {
    let entries = [entry("a", &["t", "u", "v"], MAX_PAGE_BYTES / 2, &[])];
    let large = listing(&entries, &Scope::default());
    assert_eq!(names(&large), "a__t a__u a__v");
    let cursor = format!("{}.1", cursor_hash(&large.hash(CatalogList::Tools)));
    assert!(page(&large, CatalogList::Tools, Some(&cursor)).is_ok());
    assert_eq!(page(&large, CatalogList::Tools, Some(&format!("{cursor}0"))), Err(StaleCursor));
    assert_eq!(page(&large, CatalogList::Tools, Some("")), Err(StaleCursor));
    assert_eq!(page(&large, CatalogList::Prompts, Some(&cursor)), Err(StaleCursor));
    let other = listing(&[entry("a", &["t", "u"], MAX_PAGE_BYTES / 2, &[])], &Scope::default());
    assert_eq!(page(&other, CatalogList::Tools, Some(&cursor)), Err(StaleCursor));
}

#[test]
fn uri_belongs_to_the_template_with_the_longest_literal_part() {
    let entries = [entry("a", &[], 1, &["f:{x}", "f:n/{x}"]), entry("b", &[], 1, &["f:n/{y}.md", "g:{z}"])];
    let listing = listing(&entries, &Scope::default());
    let matching = |uri: &str| {
        let target = listing.matching_template(uri, None);
        target.map(|target| format!("{} {}", target.server, target.name)).unwrap_or_default()
    };
    assert_eq!(matching("f:1"), "a f:{x}");
    assert_eq!(matching("f:n/1"), "a f:n/{x}");
    assert_eq!(matching("f:n/1.md"), "b f:n/{y}.md");
    assert_eq!(matching("f:"), "");
    assert_eq!(matching("h:1"), "");
}

#[test]
fn change_of_one_server_keeps_the_definitions_of_the_others() {
    let entries = |own: &str| [entry("a", &["x", "y"], 0, &["t:{a}"]), entry("b", &[own], 0, &[])];
    let entries = [entries("one"), entries("two")];
    let first = Arc::new(Catalog::build(&Builtins::default(), &entries[0]));
    let before = Definitions::of(&first, NameStyle::Exposed, &[], None);
    let [_, changed] = &entries[1];
    let next = first.successor(&[entries[0][0].clone(), changed.clone()], &Default::default());
    let next = Arc::new(next);
    let after = Definitions::of(&next, NameStyle::Exposed, GatewayResource::ALL, Some(&before));
    let text = |definitions: &Definitions, kind| -> Vec<u8> {
        let parts = definitions.list(kind).parts();
        parts.flat_map(|(_, part)| part.text(0..part.entries().len()).to_vec()).collect()
    };
    for kind in CatalogList::ALL {
        let whole = Definitions::of(&next, NameStyle::Exposed, GatewayResource::ALL, None);
        assert_eq!(text(&after, kind), text(&whole, kind), "{kind:?}");
    }
    assert!(Arc::ptr_eq(&first.slices()[0], &next.slices()[0]));
    assert_eq!(after.shared_with(&before), [true, false]);
}

#[test]
fn list_of_whole_servers_equals_a_list_of_selected_items() {
    let names: Vec<String> = (0..50).map(|number| format!("t{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let entries = [entry("a", &names, MAX_PAGE_BYTES / 7, &[]), entry("b", &["u", "v"], 1, &["f:{x}"])];
    let mut selecting = Scope::default();
    selecting.views.push(ViewFilter::default());
    let (whole, selected) = (listing(&entries, &Scope::default()), listing(&entries, &selecting));
    for kind in CatalogList::ALL {
        assert_eq!(whole.hash(kind), selected.hash(kind), "{kind:?}");
        assert_eq!(page(&whole, kind, None), page(&selected, kind, None), "{kind:?}");
    }
    assert_eq!(self::names(&whole), self::names(&selected));
}
