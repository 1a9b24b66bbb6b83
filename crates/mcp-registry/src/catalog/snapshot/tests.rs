//! Tests of catalogs. A row describes each server in one line.

use std::sync::Arc;

use mcp_host_model::{
    Exposure, InvalidItem, NameClass, NamePolicy, RawJson, Severity, read_prompts, read_resource_templates,
    read_resources, read_tools,
};

use super::*;
use crate::catalog::name_owner::NameOwner;
use crate::catalog::server_slice::decide_all;
use crate::filter::rules::ExposureVerdict;
use crate::filter::rules::tests::rules;
use crate::lists::{ListKind, RejectedItem, ServerLists};

fn json(text: String) -> RawJson {
    RawJson::parse(text.into_bytes().into()).unwrap()
}

fn list(kind: &str, items: impl Iterator<Item = String>) -> RawJson {
    json(format!("{{\"{kind}\":[{}]}}", items.collect::<Vec<_>>().join(",")))
}

fn lists(tools: &str) -> ServerLists {
    let tool = |it: &str| format!("{{\"name\":{it:?},\"inputSchema\":{{\"type\":\"object\"}}}}");
    let page = read_tools(&list("tools", tools.split_whitespace().map(tool))).unwrap();
    ServerLists { tools: page.into_shared(), ..ServerLists::default() }
}

/// A server with these tools. `settings` are rules in the notation of `filter::rules::tests`.
fn server(naming: NamePolicy, id: &str, tools: &str, settings: &str) -> CatalogServer {
    let tools_rules = rules(naming, settings);
    let mut exposure = Exposure::all(naming);
    exposure.tools = tools_rules;
    CatalogServer { id: ServerId::parse(id).unwrap(), exposure, lists: Arc::new(lists(tools)) }
}

/// Servers under Dominds' rules, such as `a: x y |white=x; b: z`.
pub(crate) fn dominds(text: &str) -> Vec<CatalogServer> {
    text.split(';')
        .map(|it| {
            let (id, rest) = it.trim().split_once(':').expect("a server has `:`");
            let (tools, settings) = rest.split_once('|').unwrap_or((rest, ""));
            server(NamePolicy::Reject, id, tools, settings)
        })
        .collect()
}

fn builtins() -> Builtins {
    Builtins { tools: vec!["read_file".to_owned()], toolsets: vec!["os".to_owned()] }
}

/// Checks the exposed tools, as `<name>@<server>`, and the ids of the problems.
#[track_caller]
fn check(servers: &str, want: &str, problems: &[&str]) {
    let catalog = Catalog::build(&builtins(), &dominds(servers));
    let tools = catalog.tools().iter().map(|it| format!("{}@{}", it.name, it.server));
    assert_eq!(tools.collect::<Vec<_>>().join(" "), want);
    assert_eq!(catalog.problems().iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), problems);
}

#[test]
fn dm_049_example_of_the_paper_gives_its_catalog() {
    check(
        "playwright: browser_click browser_snapshot x_unsafe |white=browser_*,page_* black=*_unsafe prefix=playwright_",
        "playwright_browser_click@playwright playwright_browser_snapshot@playwright",
        &["mcp/server/playwright/tool_blacklisted/x_unsafe"],
    );
}

#[test]
fn dm_032_dm_051_first_item_keeps_a_colliding_name() {
    check("a: open dup; b: dup y", "open@a dup@a y@b", &["mcp/server/b/tool_collision/dup"]);
    check("b: dup y; a: open dup", "dup@b y@b open@a", &["mcp/server/a/tool_collision/dup"]);
    check("a: open dup |prefix=a_; b: dup y", "a_open@a a_dup@a dup@b y@b", &[]);
    check("a: read_file z", "z@a", &["mcp/server/a/tool_collision/read_file"]);
    check("a: x old_x |replace=old_>", "x@a", &["mcp/server/a/tool_collision/old_x"]);
    check("a: x x x", "x@a", &["mcp/server/a/tool_collision/x"]);
}

#[test]
fn dm_033_toolset_with_a_used_name_is_hidden() {
    check("os: q; a: x", "x@a", &["mcp/server/os/server_error"]);
    check("a: x; a: y", "x@a", &["mcp/server/a/server_error"]);
    // The names of the hidden server can be used by others.
    check("os: q; a: q", "q@a", &["mcp/server/os/server_error"]);
}

#[test]
fn dm_123_hidden_item_has_a_problem_with_the_reason() {
    let servers = dominds("a: open x.y |black=nothing; b: open shut no |white=*o*; c: z |black=*");
    let catalog = Catalog::build(&builtins(), &servers);
    let messages: Vec<String> =
        catalog.problems().iter().map(|it| format!("{} {}: {}", it.severity, it.kind, it.message)).collect();
    assert_eq!(
        messages,
        [
            "warning mcp_tool_invalid_name: tool `x.y` of server `a` has a name that providers refuse: the original \
            name must match ^[a-zA-Z0-9_-]{1,64}$",
            "warning mcp_tool_collision: tool `open` of server `b` is skipped: the name `open` is taken by tool \
            `open` of server `a`",
            "info mcp_tool_not_whitelisted: tool `shut` of server `b` is filtered out: no pattern of the whitelist \
            matches: `*o*`",
            "info mcp_tool_blacklisted: tool `z` of server `c` is filtered out: blacklist `*`",
        ]
    );
}

#[test]
fn problem_messages_have_the_expected_text() {
    let catalog = Catalog::build(&builtins(), &dominds("a: read_file; os: x"));
    assert_eq!(
        serde_json::to_string(catalog.problems()).unwrap(),
        concat!(
            r#"[{"id":"mcp/server/a/tool_collision/read_file","kind":"mcp_tool_collision","severity":"warning","server":"a","tool":"read_file","#,
            r#""message":"tool `read_file` of server `a` is skipped: the name `read_file` belongs to a tool of the host itself"},"#,
            r#"{"id":"mcp/server/os/server_error","kind":"mcp_server_error","severity":"error","server":"os","tool":null,"#,
            r#""message":"Toolset name collision: os (the host itself has a toolset of this name); its tools are not shown"}]"#,
        )
    );
}

#[test]
fn problems_of_prompts_and_resources_have_the_same_form() {
    let server = ServerId::parse("s").unwrap();
    let problems = [
        Problem::workspace_config_error("bad YAML"),
        Problem::server_error(&server, Severity::Info, "is away"),
        Problem::tool_unvalidated(&server, "t", "its schema cannot be used"),
    ];
    let texts: Vec<String> =
        problems.iter().map(|it| format!("{} {} {}: {}", it.id, it.kind, it.severity, it.message)).collect();
    assert_eq!(
        texts,
        [
            "mcp/workspace_config_error mcp_workspace_config_error error: bad YAML",
            "mcp/server/s/server_error mcp_server_error info: is away",
            "mcp/server/s/tool_unvalidated/t mcp_tool_unvalidated warning: arguments of tool `t` of server `s` are \
            passed on unchecked: its schema cannot be used",
        ]
    );
}

#[test]
fn malformed_item_is_a_problem_and_the_others_stay() {
    let rejected = |list, name: Option<&str>, position: usize| RejectedItem {
        list,
        item: InvalidItem::new(name.map(str::to_owned), Some(position), "it has no `inputSchema`"),
    };
    let rejected = vec![
        rejected(ListKind::Tool, Some("bad"), 1),
        rejected(ListKind::Tool, None, 3),
        rejected(ListKind::Prompt, None, 5),
    ];
    let mut entry = server(NamePolicy::Reject, "a", "good", "");
    entry.lists = Arc::new(ServerLists { rejected, ..lists("good") });
    let catalog = Catalog::build(&builtins(), &[entry]);
    let ids: Vec<&str> = catalog.problems().iter().map(|it| it.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "mcp/server/a/tool_malformed/bad",
            "mcp/server/a/tool_malformed/#3",
            "mcp/server/a/prompt_malformed/#5"
        ]
    );
    let verdicts: Vec<_> =
        catalog.decisions(ListKind::Tool).map(|it| (it.original.as_str(), it.verdict.as_str())).collect();
    assert_eq!(verdicts, [("good", "exposed"), ("bad", "malformed"), ("#3", "malformed")]);
}

#[test]
fn hd_114_hd_136_equal_servers_under_two_names_are_both_exposed() {
    let naming = NamePolicy::Qualify { class: NameClass::Strict };
    let servers = [server(naming, "one", "read.file", ""), server(naming, "two", "read.file", "")];
    let catalog = Catalog::build(&Builtins::default(), &servers);
    let names: Vec<&str> = catalog.tools().iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["one__read-file", "two__read-file"]);
    assert!(catalog.tool("one__read-file").is_some() && catalog.tool("read.file").is_none());
}

/// Checks two servers with names that a policy makes equal. `want` has the exposed names, `problems` the messages
/// about the others.
#[track_caller]
fn check_met(class: NameClass, naming: fn(NameClass) -> NamePolicy, want: &str, problems: &[&str]) {
    let servers = [server(naming(class), "s", "a.b a-b a/b", ""), server(naming(class), "s.t", "a-b", "")];
    let catalog = Catalog::build(&Builtins::default(), &servers);
    let names: Vec<&str> = catalog.tools().iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names.join(" "), want);
    let messages: Vec<&str> = catalog.problems().iter().map(|it| it.message.as_str()).collect();
    assert_eq!(messages, problems);
}

// RPT-070
#[test]
fn sk_02_x_01_x_03_equal_normalised_names_of_one_server_stay_distinct() {
    let qualify = |class| NamePolicy::Qualify { class };
    let (dash, slash) = (hash("a-b"), hash("a/b"));
    let want = format!("s__a-b s__a-b-{dash} s__a-b-{slash} s-t__a-b");
    check_met(NameClass::Strict, qualify, &want, &[]);
    check_met(NameClass::WithDot, qualify, &format!("s__a.b s__a-b s__a-b-{slash} s.t__a-b"), &[]);
    // Without the server as a prefix, the names of different servers collide.
    let normalise = |class| NamePolicy::Normalise { class };
    check_met(
        NameClass::Strict,
        normalise,
        &format!("a-b a-b-{dash} a-b-{slash}"),
        &["tool `a-b` of server `s.t` is skipped: the name `a-b` is taken by tool `a.b` of server `s`"],
    );
    check_met(
        NameClass::WithDot,
        normalise,
        &format!("a.b a-b a-b-{slash}"),
        &["tool `a-b` of server `s.t` is skipped: the name `a-b` is taken by tool `a-b` of server `s`"],
    );
}

fn hash(original: &str) -> String {
    blake3::hash(original.as_bytes()).to_hex()[..8].to_owned()
}

// RPT-070
#[test]
fn only_different_names_of_one_server_are_made_distinct() {
    let long = "x".repeat(70);
    let policy = NamePolicy::Normalise { class: NameClass::Strict };
    let originals = format!("é 工 é {long}1 {long}1");
    let catalog = Catalog::build(&Builtins::default(), &[server(policy, "s", &originals, "")]);
    let names: Vec<&str> = catalog.tools().iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names[..2], ["-".to_owned(), format!("--{}", hash("工"))]);
    assert_eq!((names.len(), names[2].len()), (3, 64));
    let verdicts: Vec<ExposureVerdict> =
        catalog.decisions(ListKind::Tool).filter(|it| it.exposed.is_none()).map(|it| it.verdict).collect();
    assert_eq!(verdicts, [ExposureVerdict::OwnCollision; 2]);
    assert_eq!(ExposureVerdict::OwnCollision.as_str(), "collision");
}

#[test]
fn dm_030_dm_055_each_server_is_a_toolset() {
    let catalog = Catalog::build(&builtins(), &dominds("web: open; db: ; 7: x"));
    let toolsets: Vec<&str> = catalog.toolsets().iter().map(ServerId::as_str).collect();
    assert_eq!(toolsets, ["web", "db", "7"], "as in the file, ids that look like numbers, too (DMX-17)");
    assert_eq!(catalog.builtin_toolsets(), ["os"]);
    assert_eq!(catalog.tool("open").map(|it| it.server.as_str()), Some("web"));
}

#[test]
fn dm_055_dm_097_each_name_has_one_owner() {
    let catalog = Catalog::build(&builtins(), &dominds("a: x read_file; b: x z"));
    let server = |id: &str| ServerId::parse(id).unwrap();
    assert_eq!(catalog.owner(ListKind::Tool, "read_file"), Some(NameOwner::Host));
    assert_eq!(catalog.owner(ListKind::Tool, "x"), Some(NameOwner::Server(&server("a"))));
    assert_eq!(catalog.owner(ListKind::Tool, "y"), None);
    assert_eq!(catalog.toolset_owner("os"), Some(NameOwner::Host));
    assert_eq!(catalog.toolset_owner("b"), Some(NameOwner::Server(&server("b"))));
    // A released name is free for the next server (DM-109).
    let next = catalog.successor(&dominds("a: y; b: x z"), &BTreeMap::new());
    assert_eq!(next.owner(ListKind::Tool, "x"), Some(NameOwner::Server(&server("b"))));
    let last = next.successor(&dominds("a: y"), &BTreeMap::new());
    assert_eq!((last.toolset_owner("b"), last.owner(ListKind::Tool, "z")), (None, None));
}

#[test]
fn dm_035_filtered_items_are_nowhere_in_the_catalog() {
    let catalog = Catalog::build(&builtins(), &dominds("a: open shut |black=shut; b: shut"));
    assert!(catalog.tools().iter().all(|it| &*it.tool.name != "shut" || it.server.as_str() == "b"));
    // A filtered tool reserves no name: the tool of another server has it.
    assert_eq!(catalog.tool("shut").map(|it| it.server.as_str()), Some("b"));
    assert_eq!(
        catalog.owner(ListKind::Tool, "shut"),
        Some(NameOwner::Server(&ServerId::parse("b").unwrap()))
    );
    let view = crate::catalog::view::ViewFilter::default();
    assert_eq!(catalog.view(&view).tools.len(), 2);
}

/// Checks the decisions on names without a connection: `<name>` or `!<verdict>` for each.
#[track_caller]
fn check_explained(list: ListKind, settings: &str, originals: &str, want: &str) {
    let originals: Vec<&str> = originals.split(',').collect();
    let server = ServerId::parse("s").unwrap();
    let decisions = decide_all(&builtins(), list, &server, &rules(NamePolicy::Reject, settings), &originals);
    let names = decisions.iter().map(|it| match &it.exposed {
        Some(name) => name.to_string(),
        None => format!("!{}", it.verdict.as_str()),
    });
    assert_eq!(names.collect::<Vec<_>>().join(","), want);
    let asked: Vec<&str> = decisions.iter().map(|it| it.original.as_str()).collect();
    assert_eq!(asked, originals);
}

#[test]
fn names_of_every_list_are_explained_without_a_connection() {
    let names = "read_file,open,old_open,x.y,hidden";
    let settings = "black=hidden replace=old_>";
    check_explained(ListKind::Tool, settings, names, "!collision,open,!collision,!invalid_name,!blacklisted");
    // The names of the host's tools are free for prompts.
    check_explained(
        ListKind::Prompt,
        settings,
        names,
        "read_file,open,!collision,!invalid_name,!blacklisted",
    );
    // Two resources may have the same label, and a label may be any text.
    check_explained(ListKind::Resource, settings, names, "read_file,open,open,x.y,!blacklisted");
}

#[test]
fn sk_03_a_tool_may_have_any_name() {
    check(
        "a: connect close call_tool tools new self",
        "connect@a close@a call_tool@a tools@a new@a self@a",
        &[],
    );
}

#[test]
fn dmx_07_dmx_10_each_list_has_rules_of_its_own() {
    let mut exposure = Exposure::all(NamePolicy::Reject);
    exposure.prompts = rules(NamePolicy::Slug, "black=no* suffix=_p");
    exposure.resources = rules(NamePolicy::Reject, "white=*.md prefix=r-");
    let entry = CatalogServer {
        id: ServerId::parse("a").unwrap(),
        exposure,
        lists: Arc::new(full("ask.me tell", "ask.me nothing", &[("f:1", "ask me.md"), ("f:2", "x.tmp")])),
    };
    let catalog = Catalog::build(&Builtins::default(), &[entry]);
    let shown = |list| -> Vec<String> {
        let each = catalog.decisions(list);
        each.map(|it| it.exposed.as_ref().map_or(it.verdict.as_str().to_owned(), |it| it.to_string()))
            .collect()
    };
    assert_eq!(shown(ListKind::Tool), ["invalid_name", "tell"]);
    assert_eq!(shown(ListKind::Prompt), ["ask_me_p", "blacklisted"]);
    // Each resource has a template with the same name. A label need not be a valid function name.
    let resources = ["r-ask me.md", "not_whitelisted"];
    assert_eq!(shown(ListKind::Resource), [resources, resources].concat());
    assert_eq!(catalog.templates()[0].template.uri_template.as_ref(), "f:1");
    assert_eq!(
        serde_json::to_string(&catalog.templates()).unwrap(),
        r#"[{"name":"r-ask me.md","server":"a","original_name":"ask me.md","uri_template":"f:1","description":null}]"#
    );
}

#[test]
fn x_19_hidden_server_is_hidden_in_every_list() {
    let mut entry = server(NamePolicy::Reject, "os", "", "");
    entry.lists = Arc::new(full("t", "p", &[("f:1", "r")]));
    let catalog = Catalog::build(&builtins(), &[entry]);
    assert!(catalog.tools().is_empty() && catalog.prompts().is_empty() && catalog.resources().is_empty());
    let verdicts = |list| catalog.decisions(list).map(|it| it.verdict).collect::<Vec<_>>();
    assert_eq!(verdicts(ListKind::Tool), [ExposureVerdict::Collision]);
    assert_eq!(verdicts(ListKind::Prompt), [ExposureVerdict::Collision]);
    assert_eq!(verdicts(ListKind::Resource), [ExposureVerdict::Collision; 2]);
    assert_eq!(catalog.problems().len(), 1, "one problem says it all");
}

#[track_caller]
fn check_find(name: &str, want: &str) {
    let naming = NamePolicy::Qualify { class: NameClass::Strict };
    let servers = [server(naming, "a", "open search", ""), server(naming, "b", "open shut b__open", "")];
    let catalog = Catalog::build(&Builtins::default(), &servers);
    let shown = |it: &ExposedTool| it.name.to_string();
    let got = match catalog.find(name) {
        ToolLookup::Found(it) => shown(it),
        ToolLookup::Ambiguous(all) => all.into_iter().map(shown).collect::<Vec<_>>().join(" or "),
        ToolLookup::Missing { nearest } => format!("? {}", nearest.map_or_else(String::new, shown)),
    };
    assert_eq!(got, want, "{name}");
}

#[test]
fn tool_is_found_by_exposed_name_or_unambiguous_original_name() {
    check_find("a__open", "a__open");
    check_find("search", "a__search");
    check_find("open", "a__open or b__open");
    // An exposed name takes precedence over the original name of another tool.
    check_find("b__open", "b__open");
    check_find("shutt", "? b__shut");
    check_find("a__serach", "? a__search");
    check_find("nothing like it", "? ");
    check_find("", "? ");
    check_find(&"x".repeat(100_000), "? ");
}

/// Lists with these items. `resources` are pairs of URI and name; each also becomes a template.
pub(crate) fn full(tools: &str, prompts: &str, resources: &[(&str, &str)]) -> ServerLists {
    let prompt = |it: &str| format!("{{\"name\":{it:?},\"description\":\"d\"}}");
    let resource = |(uri, name): &(&str, &str)| format!("{{\"uri\":{uri:?},\"name\":{name:?}}}");
    let template = |(uri, name): &(&str, &str)| format!("{{\"uriTemplate\":{uri:?},\"name\":{name:?}}}");
    ServerLists {
        prompts: read_prompts(&list("prompts", prompts.split_whitespace().map(prompt)))
            .unwrap()
            .into_shared(),
        resources: read_resources(&list("resources", resources.iter().map(resource))).unwrap().into_shared(),
        templates: read_resource_templates(&list("resourceTemplates", resources.iter().map(template)))
            .unwrap()
            .into_shared(),
        ..lists(tools)
    }
}

#[test]
fn prompt_names_are_separate_and_resources_are_unique_by_uri() {
    let mut exposure = Exposure::all(NamePolicy::Reject);
    exposure.prompts = rules(NamePolicy::Reject, "black=hidden");
    exposure.resources = rules(NamePolicy::Reject, "black=*.tmp prefix=the-");
    let entry = |id: &str| CatalogServer {
        id: ServerId::parse(id).unwrap(),
        exposure: exposure.clone(),
        lists: Arc::new(full(
            "open",
            "open hidden",
            &[("f:a", "a.md"), ("f:b", "a.md"), ("f:a", "again"), ("f:t", "x.tmp")],
        )),
    };
    let catalog = Catalog::build(&Builtins::default(), &[entry("a"), entry("b")]);
    assert_eq!(
        serde_json::to_string(&catalog.prompts()).unwrap(),
        r#"[{"name":"open","server":"a","original_name":"open","description":"d","arguments":[]}]"#
    );
    assert_eq!(catalog.prompt("open").map(|it| it.server.as_str()), Some("a"));
    assert_eq!(catalog.resources().len(), 4, "two for each server");
    assert_eq!(
        serde_json::to_string(&catalog.resources()[1]).unwrap(),
        r#"{"name":"the-a.md","server":"a","original_name":"a.md","uri":"f:b","description":null}"#
    );
    let ids: Vec<&str> = catalog
        .problems()
        .iter()
        .filter(|it| it.tool.as_deref() != Some("open"))
        .map(|it| it.id.as_str())
        .collect();
    assert_eq!(
        ids,
        [
            "mcp/server/a/prompt_blacklisted/hidden",
            "mcp/server/a/resource_collision/again",
            "mcp/server/a/resource_blacklisted/x.tmp",
            "mcp/server/b/prompt_blacklisted/hidden",
            "mcp/server/b/resource_collision/again",
            "mcp/server/b/resource_blacklisted/x.tmp",
        ]
    );
}

#[test]
fn dm_034_dm_061_tool_is_serialized_with_its_schema_byte_for_byte() {
    let page = json(r#"{"tools":[{"name":"t","description":"x\ty","inputSchema":{"type":"object", "b":1,"a":2}},{"name":"u","inputSchema":{}}]}"#.to_owned());
    let lists = ServerLists { tools: read_tools(&page).unwrap().into_shared(), ..ServerLists::default() };
    let entry = CatalogServer { lists: Arc::new(lists), ..server(NamePolicy::Reject, "s", "", "prefix=p_") };
    assert_eq!(
        serde_json::to_string(&Catalog::build(&Builtins::default(), &[entry]).tools()).unwrap(),
        concat!(
            r#"[{"name":"p_t","server":"s","original_name":"t","description":"x\ty","input_schema":{"type":"object", "b":1,"a":2}},"#,
            r#"{"name":"p_u","server":"s","original_name":"u","description":null,"input_schema":{}}]"#,
        )
    );
}

#[track_caller]
fn check_hash(left: &str, right: &str, same: bool) {
    let hash = |it: &str| Catalog::build(&builtins(), &dominds(it)).hash();
    assert_eq!(hash(left) == hash(right), same, "{left} and {right}");
}

#[test]
fn hash_depends_on_the_exposed_content_only() {
    check_hash("a: x y", "a: x y", true);
    check_hash("a: x y", "a: x y hidden |black=hidden", true);
    check_hash("a: x y", "a: y x", false);
    check_hash("a: x y", "b: x y", false);
    check_hash("a: x y", "a: x", false);
    check_hash("a: x", "a: x |prefix=p", false);
    check_hash("a: x; b: y", "b: y; a: x", false);
    check_hash("a: x", "a: x; b: ", false);
    assert_eq!(Catalog::empty().hash(), Catalog::default().hash());
    assert_eq!(Catalog::empty().hash().to_string().len(), 64);
}

#[test]
fn lookup_finds_one_tool_by_each_of_its_names() {
    let (before, changed) = (dominds("a: x; b: y; c: z"), dominds("a: x; b: y2 w; c: z"));
    let before = Catalog::build(&Builtins::default(), &before);
    let after = before.successor(&changed, &BTreeMap::new());
    for catalog in [&before, &after] {
        assert!(matches!(catalog.find("x"), ToolLookup::Found(tool) if tool.server.as_str() == "a"));
    }
    let position = |catalog: &Catalog, name: &str| {
        catalog.tool_position(name).map(|at| catalog.tools()[at].name.to_string())
    };
    assert_eq!(position(&after, "y2").as_deref(), Some("y2"));
    assert_eq!((position(&after, "y"), position(&before, "y2")), (None, None));
    assert_eq!(after.tools().iter().len(), after.tools().iter().count());
}
