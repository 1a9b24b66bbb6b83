//! Reload planning: computes which servers to start, restart, re-expose and stop.
//!
//! Pure: a plan can be printed, refused, or compared.

use std::collections::HashMap;

use mcp_host_model::ServerId;
use serde::Serialize;

use crate::reload::settings::{ExposureSettings, RuntimeSettings};

/// A server of a configuration, as the input of a plan: current or desired.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DesiredServer {
    /// The id.
    pub id: ServerId,
    /// What its connection depends on.
    pub runtime: RuntimeSettings,
    /// What its exposure depends on.
    pub exposure: ExposureSettings,
}

impl DesiredServer {
    /// A server with its settings.
    pub fn new(id: ServerId, runtime: RuntimeSettings, exposure: ExposureSettings) -> DesiredServer {
        DesiredServer { id, runtime, exposure }
    }
}

/// The changes between two lists of servers. Every id is in exactly one vector, once: remaining servers in the new
/// order, removed ones in the old order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct ReloadPlan {
    /// Servers to start.
    pub added: Vec<ServerId>,
    /// Servers to stop.
    pub removed: Vec<ServerId>,
    /// Servers to restart; the old instances are stopped once the new ones are ready.
    pub changed: Vec<ServerId>,
    /// Running servers whose exposure rules changed.
    pub re_exposed: Vec<ServerId>,
    /// Unchanged servers (DM-110).
    pub unchanged: Vec<ServerId>,
}

impl ReloadPlan {
    /// Compares two lists of servers (DM-095, DM-098 to DM-101). Of two with one id the first counts.
    pub fn compute(old: &[DesiredServer], new: &[DesiredServer]) -> ReloadPlan {
        let mut res = ReloadPlan::default();
        let mut desired: HashMap<&ServerId, &DesiredServer> = HashMap::new();
        let mut current: HashMap<&ServerId, &DesiredServer> = HashMap::new();
        for it in old {
            current.entry(&it.id).or_insert(it);
        }
        for it in new {
            if desired.contains_key(&it.id) {
                continue;
            }
            desired.insert(&it.id, it);
            let list = match current.get(&it.id) {
                None => &mut res.added,
                Some(old) if old.runtime != it.runtime => &mut res.changed,
                Some(old) if old.exposure != it.exposure => &mut res.re_exposed,
                Some(_) => &mut res.unchanged,
            };
            list.push(it.id.clone());
        }
        for it in old {
            if !desired.contains_key(&it.id) && current.remove(&it.id).is_some() {
                res.removed.push(it.id.clone());
            }
        }
        res
    }

    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        let ReloadPlan { added, removed, changed, re_exposed, unchanged: _ } = self;
        [added, removed, changed, re_exposed].iter().all(|it| it.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_host_model::{Discovery, Endpoint, Exposure, Limits, NamePolicy, Sharing, StdioEndpoint};

    /// Parses servers: `a=1.2` is server `a` with command `1` and limit `2`.
    fn servers(text: &str) -> Vec<DesiredServer> {
        let desired = |it: &str| {
            let (id, settings) = it.split_once('=').expect("a row has `=`");
            let (command, limit) = settings.split_once('.').expect("a row has `.`");
            let endpoint = Endpoint::Stdio(StdioEndpoint::new(command));
            let mut limits = Limits::default();
            limits.list_items = limit.parse().unwrap();
            DesiredServer {
                id: ServerId::parse(id).unwrap(),
                runtime: RuntimeSettings::new(endpoint, None, Discovery::default()),
                exposure: ExposureSettings::new(Exposure::all(NamePolicy::Pass), limits, Sharing::Shared),
            }
        };
        text.split_whitespace().map(desired).collect()
    }

    #[track_caller]
    fn check(old: &str, new: &str, want: &str) {
        let plan = ReloadPlan::compute(&servers(old), &servers(new));
        let ReloadPlan { added, removed, changed, re_exposed, unchanged } = &plan;
        let steps = [
            ("start", added),
            ("stop", removed),
            ("restart", changed),
            ("show", re_exposed),
            ("keep", unchanged),
        ];
        let words = steps.iter().flat_map(|(step, ids)| ids.iter().map(move |id| format!("{step} {id}")));
        assert_eq!(words.collect::<Vec<_>>().join(", "), want);
        assert_eq!(plan.is_empty(), want.split(", ").all(|it| it.is_empty() || it.starts_with("keep")));
    }

    #[test]
    fn dm_098_to_dm_101_dm_110_only_what_changed_is_touched() {
        check("", "", "");
        check("", "b=1.1 a=1.1", "start b, start a");
        check("a=1.1 b=1.1", "", "stop a, stop b");
        check("a=1.1 b=1.1 c=1.1", "b=1.1 c=2.1 d=1.1", "start d, stop a, restart c, keep b");
        check("a=1.1", "a=1.2", "show a");
        check("a=1.1", "a=2.2", "restart a");
        check("a=1.1 b=1.1", "b=1.1 a=1.1", "keep b, keep a");
    }

    #[test]
    fn of_two_servers_with_one_id_the_first_counts() {
        check("a=1.1 a=2.1", "a=1.1", "keep a");
        check("a=1.1", "a=1.1 a=2.1", "keep a");
        check("a=1.1 a=1.1", "", "stop a");
    }
}
