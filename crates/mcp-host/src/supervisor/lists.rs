//! One server's lists as they were last read, and what could not be read of them.

use std::sync::Arc;

use mcp_model::InvalidItem;
use mcp_registry::{ListKind, RejectedItem, ServerIdentity, ServerLists};
use mcp_transport::ListChangeCounts;
use tokio::time::Instant;

use crate::failure::HostError;
use crate::failure::excerpt::excerpt;
use crate::supervisor::list_pacing::Pace;

/// What a server offers, as far as it is known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Listed {
    /// The lists.
    pub(crate) lists: Arc<ServerLists>,
    /// Lists that could not be read: what stands in `lists` for them is what was there before.
    pub(crate) notes: Vec<(ListKind, HostError)>,
    /// The server's announcements that these lists already know of.
    pub(crate) seen: ListChangeCounts,
    /// When they may be read again.
    pub(crate) pace: Pace,
    /// What the server says about itself.
    pub(crate) about: ServerIdentity,
}

impl Listed {
    /// The lists of a server that was not read yet.
    pub(crate) fn nothing(seen: ListChangeCounts) -> Listed {
        Listed {
            lists: Arc::default(),
            notes: Vec::new(),
            seen,
            pace: Pace::new(),
            about: ServerIdentity::default(),
        }
    }

    /// The same, after a reading of `kinds` that was over at `now`: what could not be read is tried again.
    pub(crate) fn after(mut self, kinds: &[ListKind], now: Instant) -> Listed {
        if self.notes.is_empty() {
            self.pace = self.pace.recovered();
        } else if self.unread().iter().any(|it| kinds.contains(it)) {
            self.pace = self.pace.failed(now);
        }
        self
    }

    /// The lists that could not be read.
    pub(crate) fn unread(&self) -> Vec<ListKind> {
        self.notes.iter().map(|(kind, _)| *kind).collect()
    }

    /// The same, with one list replaced by what was read of it now.
    pub(crate) fn with(mut self, fresh: Fresh) -> Listed {
        let kind = fresh.kind();
        self.notes.retain(|(it, _)| *it != kind);
        let lists = Arc::make_mut(&mut self.lists);
        let rejected = match fresh {
            Fresh::Failed(kind, failure) => {
                self.notes.push((kind, failure));
                return self;
            }
            Fresh::Tools(listing) => {
                lists.tools = shared(listing.items);
                listing.rejected
            }
            Fresh::Prompts(listing) => {
                lists.prompts = shared(listing.items);
                listing.rejected
            }
            Fresh::Resources(listing, templates) => {
                lists.resources = shared(listing.items);
                lists.templates = shared(templates.items);
                listing.rejected.into_iter().chain(templates.rejected).collect()
            }
        };
        lists.rejected.retain(|it| it.list != kind);
        lists.rejected.extend(rejected.into_iter().map(|InvalidItem { name, reason }| RejectedItem {
            list: kind,
            item: InvalidItem { name, reason: excerpt(reason) },
        }));
        self
    }
}

/// One list as it was read just now.
#[derive(Debug)]
pub(crate) enum Fresh {
    /// The tools.
    Tools(mcp_transport::Listing<mcp_model::Tool>),
    /// The prompts.
    Prompts(mcp_transport::Listing<mcp_model::Prompt>),
    /// The resources and their templates, which one notification announces.
    Resources(
        mcp_transport::Listing<mcp_model::Resource>,
        mcp_transport::Listing<mcp_model::ResourceTemplate>,
    ),
    /// It could not be read.
    Failed(ListKind, HostError),
}

impl Fresh {
    /// How many items it has, and how many bytes they take.
    pub(crate) fn size(&self) -> (usize, usize) {
        fn sum<'a>(items: impl Iterator<Item = &'a mcp_model::RawJson>) -> (usize, usize) {
            items.fold((0, 0), |(count, bytes), it| (count + 1, bytes + it.as_bytes().len()))
        }
        match self {
            Fresh::Tools(listing) => sum(listing.items.iter().map(|it| &it.raw)),
            Fresh::Prompts(listing) => sum(listing.items.iter().map(|it| &it.raw)),
            Fresh::Resources(listing, templates) => {
                let templates = templates.items.iter().map(|it| &it.raw);
                sum(listing.items.iter().map(|it| &it.raw).chain(templates))
            }
            Fresh::Failed(..) => (0, 0),
        }
    }

    fn kind(&self) -> ListKind {
        match self {
            Fresh::Tools(_) => ListKind::Tool,
            Fresh::Prompts(_) => ListKind::Prompt,
            Fresh::Resources(..) => ListKind::Resource,
            Fresh::Failed(kind, _) => *kind,
        }
    }
}

/// Which lists a server has announced anew since `seen`.
pub(crate) fn changed(seen: ListChangeCounts, now: ListChangeCounts) -> Vec<ListKind> {
    let all = [
        (ListKind::Tool, seen.tools != now.tools),
        (ListKind::Prompt, seen.prompts != now.prompts),
        (ListKind::Resource, seen.resources != now.resources),
    ];
    all.into_iter().filter(|(_, changed)| *changed).map(|(kind, _)| kind).collect()
}

/// For generations to share.
fn shared<T>(items: Vec<T>) -> Vec<Arc<T>> {
    items.into_iter().map(Arc::new).collect()
}

#[cfg(test)]
mod tests {
    use mcp_model::{ErrorKind, Freshness, RawJson, read_prompts, read_tools};
    use mcp_transport::Listing;

    use super::*;

    fn tools(names: &str, rejected: &str) -> Fresh {
        let items: Vec<String> = names
            .split_whitespace()
            .map(|it| format!(r#"{{"name":"{it}","inputSchema":{{"type":"object"}}}}"#))
            .collect();
        let page = RawJson::parse(format!(r#"{{"tools":[{}]}}"#, items.join(",")).into()).unwrap();
        let rejected = rejected
            .split_whitespace()
            .map(|it| InvalidItem { name: Some(it.to_owned()), reason: "odd".to_owned() })
            .collect();
        Fresh::Tools(Listing {
            items: read_tools(&page).unwrap().items,
            rejected,
            freshness: Freshness::default(),
        })
    }

    fn prompts(name: &str) -> Fresh {
        let page = RawJson::parse(format!(r#"{{"prompts":[{{"name":"{name}"}}]}}"#).into()).unwrap();
        let rejected = vec![InvalidItem { name: Some("p!".to_owned()), reason: "odd".to_owned() }];
        Fresh::Prompts(Listing {
            items: read_prompts(&page).unwrap().items,
            rejected,
            freshness: Freshness::default(),
        })
    }

    #[track_caller]
    fn check(steps: Vec<Fresh>, want: &str) {
        let listed = steps.into_iter().fold(Listed::nothing(ListChangeCounts::default()), Listed::with);
        let ServerLists { tools, prompts, resources: _, templates: _, rejected } = &*listed.lists;
        let words = tools.iter().map(|it| it.name.to_string());
        let words = words.chain(prompts.iter().map(|it| format!("p:{}", it.name)));
        let words = words.chain(rejected.iter().map(|it| format!("-{}", it.item.name.as_ref().unwrap())));
        let words = words.chain(listed.notes.iter().map(|it| format!("!{}", it.0.as_str())));
        assert_eq!(words.collect::<Vec<_>>().join(" "), want);
    }

    #[test]
    fn hd_115_a_new_list_takes_the_old_ones_place_and_a_failed_one_does_not() {
        let failed = || Fresh::Failed(ListKind::Tool, HostError::new(ErrorKind::Timeout, "late"));
        check(vec![tools("a b", "x"), tools("c", "")], "c");
        check(vec![tools("a", "x"), prompts("p"), tools("b", "y")], "b p:p -p! -y");
        check(vec![tools("a", ""), failed()], "a !tool");
        check(vec![tools("a", ""), failed(), failed(), tools("b", "")], "b");
    }

    #[test]
    fn hd_115_only_what_was_announced_is_read_again() {
        let now = ListChangeCounts { tools: 2, prompts: 0, resources: 1 };
        assert_eq!(changed(ListChangeCounts::default(), now), [ListKind::Tool, ListKind::Resource]);
        assert_eq!(changed(now, now), []);
    }
}
