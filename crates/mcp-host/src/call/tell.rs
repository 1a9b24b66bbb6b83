//! What is told to running servers, not to one call's: levels of log messages, other roots.

use mcp_model::ServerId;
use tokio::task::JoinSet;

use super::Desk;
use crate::committer::Shared;
use crate::machine::Place;
use crate::{AboutServer, DialogId, Failure};

impl Desk {
    /// What runs now, shared and leased, of one server or of all.
    fn running(&self, server: Option<&ServerId>) -> Vec<(ServerId, Shared)> {
        let snapshot = self.latest();
        let leases = std::sync::Arc::clone(&self.leases.borrow());
        let shared = snapshot.routes.iter().filter_map(|(id, route)| match &route.place {
            Place::Shared(instance) => Some((id.clone(), Shared::clone(instance))),
            Place::Leased(_) => None,
        });
        let leased = leases.held.iter().map(|((_, id), held)| (id.clone(), Shared::clone(&held.instance)));
        shared.chain(leased).filter(|it| server.is_none_or(|server| it.0 == *server)).collect()
    }

    /// What is known of a server that runs, or is leased.
    pub(crate) fn about(&self, server: &ServerId) -> Option<AboutServer> {
        let sharing = self.latest().routes.get(server)?.server.spec.sharing;
        Some(AboutServer { sharing, info: self.acquaintances.of(server) })
    }

    /// Asks what runs for log messages from the level on that is wanted now, all beside each other.
    pub(crate) async fn follow_levels(
        &self,
        server: Option<&ServerId>,
    ) -> Vec<(ServerId, Result<(), Failure>)> {
        let mut asked = JoinSet::new();
        for (id, instance) in self.running(server) {
            let levels = std::sync::Arc::clone(&self.levels);
            asked.spawn(async move { (id, instance.follow_level(&levels).await) });
        }
        asked.join_all().await
    }

    /// Tells what a dialog has leased that its roots are others now.
    pub(crate) fn roots_changed(&self, dialog: &DialogId) {
        let leases = std::sync::Arc::clone(&self.leases.borrow());
        let own = leases.held.iter().filter(|((it, _), _)| it == dialog);
        own.for_each(|(_, held)| held.instance.session.roots_changed());
    }
}
