//! Reload planning: computes which servers to start, restart, re-expose and stop.
//!
//! Pure: a plan can be printed, refused, or compared.

use ahash::{HashMap, HashSet};
use mcp_host_model::ServerId;
use serde::Serialize;

use crate::reload::settings::{ExposureSettings, RuntimeSettings};

/// A server of a configuration, as the input of a plan: current or desired.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct DesiredServer<'a> {
    /// The id.
    pub id: &'a ServerId,
    /// What its connection depends on.
    pub runtime: RuntimeSettings<'a>,
    /// What its exposure depends on.
    pub exposure: ExposureSettings<'a>,
}

impl<'a> DesiredServer<'a> {
    /// A server with its settings.
    pub fn new(
        id: &'a ServerId,
        runtime: RuntimeSettings<'a>,
        exposure: ExposureSettings<'a>,
    ) -> DesiredServer<'a> {
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
    pub fn compute(old: &[DesiredServer<'_>], new: &[DesiredServer<'_>]) -> ReloadPlan {
        let mut res = ReloadPlan::default();
        let mut desired: HashSet<&ServerId> = HashSet::default();
        let mut current: HashMap<&ServerId, &DesiredServer<'_>> = HashMap::default();
        for it in old {
            current.entry(it.id).or_insert(it);
        }
        for it in new {
            if !desired.insert(it.id) {
                continue;
            }
            let list = match current.get(it.id) {
                None => &mut res.added,
                Some(old) if old.runtime != it.runtime => &mut res.changed,
                Some(old) if old.exposure != it.exposure => &mut res.re_exposed,
                Some(_) => &mut res.unchanged,
            };
            list.push(it.id.clone());
        }
        for it in old {
            if !desired.contains(it.id) && current.remove(it.id).is_some() {
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
    use mcp_host_model::{
        CallRules, Discovery, Endpoint, Exposure, Limits, NamePolicy, Sharing, StdioEndpoint,
    };

    struct Server {
        id: ServerId,
        endpoint: Endpoint,
        limits: Limits,
        exposure: Exposure,
        calls: CallRules,
    }

    impl Server {
        fn desired(&self) -> DesiredServer<'_> {
            let Server { id, endpoint, limits, exposure, calls } = self;
            let runtime = RuntimeSettings::new(endpoint, None, Discovery::default());
            let exposure = ExposureSettings { exposure, limits, sharing: Sharing::Shared, calls };
            DesiredServer::new(id, runtime, exposure)
        }
    }

    /// Parses servers: `a=1.2` is server `a` with command `1` and limit `2`.
    fn servers(text: &str) -> Vec<Server> {
        let parse = |it: &str| {
            let (id, settings) = it.split_once('=').expect("a row has `=`");
            let (command, limit) = settings.split_once('.').expect("a row has `.`");
            let endpoint = Endpoint::Stdio(StdioEndpoint::new(command));
            let mut limits = Limits::default();
            limits.list_items = limit.parse().unwrap();
            let exposure = Exposure::all(NamePolicy::Pass);
            let calls = CallRules::default();
            Server { id: ServerId::parse(id).unwrap(), endpoint, limits, exposure, calls }
        };
        text.split_whitespace().map(parse).collect()
    }

    fn plan(old: &str, new: &str) -> ReloadPlan {
        let (old, new) = (servers(old), servers(new));
        let old: Vec<DesiredServer<'_>> = old.iter().map(Server::desired).collect();
        let new: Vec<DesiredServer<'_>> = new.iter().map(Server::desired).collect();
        ReloadPlan::compute(&old, &new)
    }

    #[track_caller]
    fn check(old: &str, new: &str, want: &str) {
        let plan = plan(old, new);
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
