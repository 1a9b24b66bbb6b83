//! The lists of one server as they were last read, and the reads that failed.

use std::sync::Arc;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{InvalidItem, Prompt, RawJson, Resource, ResourceTemplate, Tool};
use mcp_host_registry::{
    ListKind, RejectedItem, ServerIdentity, ServerLists, input_schema_defect, output_schema_defect,
};
use mcp_host_transport::{ListChangeCounts, ListDefect, ListResult};
use tokio::time::Instant;

use crate::error::HostError;
use crate::error::excerpt::excerpt;
use crate::supervisor::list_pacing::ListPacing;
use crate::supervisor::tool_problem::ToolProblem;

/// The maximum number of tools with checked schemas, so that the check does not delay the start of a large server.
const MAX_CHECKED_TOOLS: usize = 2_000;

/// An invalid schema of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SchemaDefect {
    /// The server's name of the tool.
    pub(crate) tool: Box<str>,
    /// The problem of the invalid schema: that of the arguments or that of the result.
    pub(crate) problem: ToolProblem,
    /// What is wrong with the schema.
    pub(crate) reason: String,
}

/// Finds the invalid schemas of tools. A call would find them too, but a user should know earlier.
fn find_schema_defects(tools: &[Tool]) -> Vec<SchemaDefect> {
    let mut defects = Vec::new();
    for tool in tools.iter().take(MAX_CHECKED_TOOLS) {
        let input = (ToolProblem::ArgumentsUnchecked, input_schema_defect(&tool.input_schema));
        let output =
            (ToolProblem::ResultsUnchecked, tool.output_schema.as_ref().and_then(output_schema_defect));
        for (problem, reason) in [input, output] {
            let defect = |reason| SchemaDefect { tool: (*tool.name).into(), problem, reason };
            defects.extend(reason.map(defect));
        }
    }
    defects
}

/// The known lists of a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ListSnapshot {
    /// The lists.
    pub(crate) lists: Arc<ServerLists>,
    /// Invalid schemas of tools.
    pub(crate) schema_defects: Vec<SchemaDefect>,
    /// Lists that could not be read; `lists` has their previous content.
    pub(crate) failures: Vec<(ListKind, HostError)>,
    /// Lists of which only a part could be read. `lists` has the larger one of this part and the previous list.
    pub(crate) incomplete: Vec<(ListKind, ListDefect)>,
    /// The announced changes that these lists include.
    pub(crate) seen: ListChangeCounts,
    /// The times at which they may be read again.
    pub(crate) pacing: ListPacing,
    /// Whether the server declares no capability at all, so that no list was requested.
    pub(crate) declares_nothing: bool,
    /// The identity that the server reports.
    pub(crate) identity: ServerIdentity,
}

impl ListSnapshot {
    /// Creates the snapshot before the first read.
    pub(crate) fn empty(seen: ListChangeCounts) -> ListSnapshot {
        ListSnapshot {
            lists: Arc::default(),
            schema_defects: Vec::new(),
            failures: Vec::new(),
            incomplete: Vec::new(),
            seen,
            pacing: ListPacing::new(),
            declares_nothing: false,
            identity: ServerIdentity::default(),
        }
    }

    /// Returns the snapshot with the retry schedule after a read of `kinds` that ended at `now`.
    pub(crate) fn finish_read(mut self, kinds: &[ListKind], now: Instant) -> ListSnapshot {
        let retried = self.lists_to_retry();
        if retried.is_empty() {
            self.pacing = self.pacing.record_success();
        } else if retried.iter().any(|it| kinds.contains(it)) {
            self.pacing = self.pacing.record_failure(now);
        }
        self
    }

    /// Returns the lists that could not be read, or only in part, and that another read may complete.
    pub(crate) fn lists_to_retry(&self) -> Vec<ListKind> {
        let failed = self.failures.iter().map(|(kind, _)| *kind);
        let partial =
            self.incomplete.iter().filter(|(_, defect)| defect.is_transient()).map(|(kind, _)| *kind);
        failed.chain(partial).collect()
    }

    /// Returns the lists that were not read completely.
    pub(crate) fn incomplete_lists(&self) -> Vec<ListKind> {
        let failed = self.failures.iter().map(|(kind, _)| *kind);
        failed.chain(self.incomplete.iter().map(|(kind, _)| *kind)).collect()
    }

    /// Returns whether the lists or what is wrong with them differ.
    pub(crate) fn differs_from(&self, other: &ListSnapshot) -> bool {
        self.lists != other.lists || self.failures != other.failures || self.incomplete != other.incomplete
    }

    /// Returns what is wrong with the lists, for users.
    pub(crate) fn list_problems(&self, server: &str) -> Vec<String> {
        let failed = self
            .failures
            .iter()
            .map(|(kind, failure)| format!("its {} could not be listed: {failure}", plural_name(*kind)));
        let incomplete = self.incomplete.iter().map(|(kind, defect)| {
            let (list, defect) = (plural_name(*kind), excerpt(defect.to_string()));
            format!("server '{server}': its list of {list} is incomplete: {defect}")
        });
        let undeclared = self.declares_nothing.then(|| {
            format!(
                "server '{server}': it declares no capabilities in its handshake, so its tools, prompts and resources \
                 are not requested and none are shown; a server that has them must declare them"
            )
        });
        failed.chain(incomplete).chain(undeclared).collect()
    }

    /// Returns the number of items of a list.
    fn count(&self, kind: ListKind) -> usize {
        match kind {
            ListKind::Tool => self.lists.tools.len(),
            ListKind::Prompt => self.lists.prompts.len(),
            ListKind::Resource => self.lists.resources.len() + self.lists.templates.len(),
        }
    }

    /// Returns the snapshot with one list replaced. A failed read keeps the previous list, and so does one that failed
    /// after fewer items.
    pub(crate) fn with_update(mut self, update: ListUpdate) -> ListSnapshot {
        let kind = update.kind();
        self.failures.retain(|(it, _)| *it != kind);
        self.incomplete.retain(|(it, _)| *it != kind);
        if let Some(defect) = update.defect() {
            let is_smaller = update.size().is_ok_and(|(count, _)| count < self.count(kind));
            let keeps_previous = defect.is_transient() && is_smaller;
            self.incomplete.push((kind, defect.clone()));
            if keeps_previous {
                return self;
            }
        }
        let lists = Arc::make_mut(&mut self.lists);
        let rejected = match update {
            ListUpdate::Failed(kind, failure) => {
                self.failures.push((kind, failure));
                return self;
            }
            ListUpdate::Tools(result) => {
                self.schema_defects = find_schema_defects(&result.items);
                lists.tools = result.items.into_iter().map(Arc::new).collect();
                result.rejected
            }
            ListUpdate::Prompts(result) => {
                lists.prompts = result.items.into_iter().map(Arc::new).collect();
                result.rejected
            }
            ListUpdate::Resources(result, templates) => {
                lists.resources = result.items.into_iter().map(Arc::new).collect();
                lists.templates = templates.items.into_iter().map(Arc::new).collect();
                result.rejected.into_iter().chain(templates.rejected).collect()
            }
        };
        lists.rejected.retain(|it| it.list != kind);
        lists.rejected.extend(rejected.into_iter().map(|InvalidItem { name, position, reason, .. }| {
            RejectedItem::new(kind, InvalidItem::new(name, position, excerpt(reason)))
        }));
        self
    }
}

/// The outcome of reading one list.
#[derive(Debug)]
pub(crate) enum ListUpdate {
    /// Tools.
    Tools(ListResult<Tool>),
    /// Prompts.
    Prompts(ListResult<Prompt>),
    /// Resources and templates, which share one notification.
    Resources(ListResult<Resource>, ListResult<ResourceTemplate>),
    /// It could not be read.
    Failed(ListKind, HostError),
}

impl ListUpdate {
    /// Returns the number of its items and their size in bytes, or the error.
    pub(crate) fn size(&self) -> Result<(usize, usize), &HostError> {
        fn sum<'a>(items: impl Iterator<Item = &'a RawJson>) -> (usize, usize) {
            items.fold((0, 0), |(count, bytes), it| (count + 1, bytes + it.as_bytes().len()))
        }
        let items = match self {
            ListUpdate::Tools(result) => sum(result.items.iter().map(|it| &it.raw)),
            ListUpdate::Prompts(result) => sum(result.items.iter().map(|it| &it.raw)),
            ListUpdate::Resources(result, templates) => {
                let templates = templates.items.iter().map(|it| &it.raw);
                sum(result.items.iter().map(|it| &it.raw).chain(templates))
            }
            ListUpdate::Failed(_, error) => return Err(error),
        };
        Ok(items)
    }

    /// Returns why items may be missing.
    fn defect(&self) -> Option<&ListDefect> {
        match self {
            ListUpdate::Tools(listing) => listing.defect.as_ref(),
            ListUpdate::Prompts(listing) => listing.defect.as_ref(),
            ListUpdate::Resources(listing, templates) => {
                listing.defect.as_ref().or(templates.defect.as_ref())
            }
            ListUpdate::Failed(..) => None,
        }
    }

    /// Returns the list that was read.
    pub(crate) fn kind(&self) -> ListKind {
        match self {
            ListUpdate::Tools(_) => ListKind::Tool,
            ListUpdate::Prompts(_) => ListKind::Prompt,
            ListUpdate::Resources(..) => ListKind::Resource,
            ListUpdate::Failed(kind, _) => *kind,
        }
    }
}

/// Returns the lists that were announced as changed since `seen`.
pub(crate) fn changed_lists(seen: ListChangeCounts, now: ListChangeCounts) -> Vec<ListKind> {
    let all = [
        (ListKind::Tool, seen.tools != now.tools),
        (ListKind::Prompt, seen.prompts != now.prompts),
        (ListKind::Resource, seen.resources != now.resources),
    ];
    all.into_iter().filter(|(_, changed)| *changed).map(|(kind, _)| kind).collect()
}

/// Returns the lists that are read from a server (HD-029, HD-030).
pub(crate) fn enabled_lists(server: &ResolvedServer) -> Vec<ListKind> {
    let discovery = server.spec.discovery;
    let all = [
        (ListKind::Tool, discovery.tools),
        (ListKind::Prompt, discovery.prompts),
        (ListKind::Resource, true),
    ];
    all.into_iter().filter(|(_, is_enabled)| *is_enabled).map(|(kind, _)| kind).collect()
}

/// Returns the plural name of a list kind.
pub(crate) fn plural_name(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Tool => "tools",
        ListKind::Prompt => "prompts",
        ListKind::Resource => "resources",
    }
}

#[cfg(test)]
mod tests {
    use mcp_host_model::{ErrorKind, RawJson, read_prompts, read_tools};

    use super::*;

    fn tools(names: &str, rejected: &str) -> ListUpdate {
        let items: Vec<String> = names
            .split_whitespace()
            .map(|it| format!(r#"{{"name":"{it}","inputSchema":{{"type":"object"}}}}"#))
            .collect();
        let page = RawJson::parse(format!(r#"{{"tools":[{}]}}"#, items.join(",")).into()).unwrap();
        let rejected = rejected
            .split_whitespace()
            .map(|it| InvalidItem::new(Some(it.to_owned()), None, "odd"))
            .collect();
        ListUpdate::Tools({
            let mut result = ListResult::new(read_tools(&page).unwrap().items);
            result.rejected = rejected;
            result
        })
    }

    fn prompts(name: &str) -> ListUpdate {
        let page = RawJson::parse(format!(r#"{{"prompts":[{{"name":"{name}"}}]}}"#).into()).unwrap();
        let rejected = vec![InvalidItem::new(Some("p!".to_owned()), None, "odd")];
        ListUpdate::Prompts({
            let mut result = ListResult::new(read_prompts(&page).unwrap().items);
            result.rejected = rejected;
            result
        })
    }

    #[track_caller]
    fn check(steps: Vec<ListUpdate>, want: &str) {
        let listing = steps
            .into_iter()
            .fold(ListSnapshot::empty(ListChangeCounts::default()), ListSnapshot::with_update);
        let ServerLists { tools, prompts, resources: _, templates: _, rejected, .. } = &*listing.lists;
        let words = tools.iter().map(|it| it.name.to_string());
        let words = words.chain(prompts.iter().map(|it| format!("p:{}", it.name)));
        let words = words.chain(rejected.iter().map(|it| format!("-{}", it.item.name.as_ref().unwrap())));
        let words = words.chain(listing.failures.iter().map(|it| format!("!{}", it.0.as_str())));
        let words = words.chain(listing.incomplete.iter().map(|it| format!("~{}", it.0.as_str())));
        assert_eq!(words.collect::<Vec<_>>().join(" "), want);
    }

    #[test]
    fn hd_115_new_list_replaces_old_one_unless_it_failed() {
        let failed = || ListUpdate::Failed(ListKind::Tool, HostError::new(ErrorKind::Timeout, "late"));
        check(vec![tools("a b", "x"), tools("c", "")], "c");
        check(vec![tools("a", "x"), prompts("p"), tools("b", "y")], "b p:p -p! -y");
        check(vec![tools("a", ""), failed()], "a !tool");
        check(vec![tools("a", ""), failed(), failed(), tools("b", "")], "b");
    }

    fn partial_tools(names: &str, defect: ListDefect) -> ListUpdate {
        let ListUpdate::Tools(mut listing) = tools(names, "") else { unreachable!() };
        listing.defect = Some(defect);
        ListUpdate::Tools(listing)
    }

    // RPT-023
    #[test]
    fn partial_list_is_used_unless_the_previous_one_has_more() {
        let failed = || ListDefect::PageFailed { page: 2, reason: "late".to_owned() };
        let part = |names| partial_tools(names, failed());
        check(vec![part("a")], "a ~tool");
        check(vec![part("a"), tools("a b", "")], "a b");
        check(vec![tools("a b", ""), part("c")], "a b ~tool");
        check(vec![part("a"), part("a b")], "a b ~tool");
        check(vec![tools("a b", ""), partial_tools("c", ListDefect::RepeatedCursor)], "c ~tool");
        let snapshot = |update| ListSnapshot::empty(ListChangeCounts::default()).with_update(update);
        assert_eq!(snapshot(part("a")).lists_to_retry(), [ListKind::Tool]);
        assert_eq!(snapshot(partial_tools("a", ListDefect::RepeatedCursor)).lists_to_retry(), []);
    }

    #[test]
    fn invalid_schemas_are_found_when_the_list_is_read() {
        let page = r##"{"tools":[
            {"name":"a","inputSchema":{"type":"objekt"},"outputSchema":{"$ref":"#/none"}},
            {"name":"b","inputSchema":{"type":"object"}},{"name":"c","inputSchema":{"type":"string"}}]}"##;
        let page = RawJson::parse(page.into()).unwrap();
        let tools = |items| ListUpdate::Tools(ListResult::new(items));
        let listing = ListSnapshot::empty(ListChangeCounts::default())
            .with_update(tools(read_tools(&page).unwrap().items));
        let defects: Vec<String> = listing
            .schema_defects
            .iter()
            .map(|it| format!("{} {:?} {}", it.tool, it.problem, it.reason))
            .collect();
        let unusable = "its schema cannot be used";
        assert_eq!(
            defects,
            [
                format!("a ArgumentsUnchecked {unusable}: /type is `objekt`, which is no type"),
                format!("a ResultsUnchecked {unusable}: /$ref is `#/none`, which does not exist"),
                format!("c ArgumentsUnchecked {unusable}: its type must be `object` and is `string`"),
            ]
        );
        assert_eq!(listing.with_update(tools(Vec::new())).schema_defects, []);
    }

    #[test]
    fn hd_115_only_announced_lists_are_read_again() {
        let mut now = ListChangeCounts::default();
        now.tools = 2;
        now.prompts = 0;
        now.resources = 1;
        assert_eq!(changed_lists(ListChangeCounts::default(), now), [ListKind::Tool, ListKind::Resource]);
        assert_eq!(changed_lists(now, now), []);
    }
}
