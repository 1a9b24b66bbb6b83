//! What is told to running servers, not to one call's: levels of log messages, other roots.

use std::sync::Arc;

use mcp_model::ServerId;
use mcp_registry::ServerSnapshot;
use mcp_transport::ServerInfo;
use tokio::task::JoinSet;

use super::Desk;
use crate::config::approval::ServerDefinitions;
use crate::config::approval::about as about_server;
use crate::failure::HostError;
use crate::state::server_info_cache::ServerDetails;
use crate::supervisor::committer::Shared;
use crate::supervisor::dialog::DialogId;
use crate::supervisor::machine::{Instructions, Place, Route};

impl Desk {
    /// What runs now, shared and leased, of one server or of all.
    fn running(&self, server: Option<&ServerId>) -> Vec<(ServerId, Shared)> {
        let snapshot = self.latest();
        let leases = Arc::clone(&self.leases.borrow());
        let shared = snapshot.routes.iter().filter_map(|(id, route)| match &route.place {
            Place::Shared(instance) => Some((id.clone(), Shared::clone(instance))),
            Place::Leased(_) => None,
        });
        let leased = leases.held.iter().map(|((_, id), held)| (id.clone(), Shared::clone(&held.instance)));
        shared.chain(leased).filter(|it| server.is_none_or(|server| it.0 == *server)).collect()
    }

    /// What is known of a server that runs, or is leased.
    pub(crate) fn about(&self, server: &ServerId) -> Option<ServerDetails> {
        let latest = self.latest();
        let Route { server: running, about, instructions, .. } = latest.routes.get(server)?;
        let mut info = self.acquaintances.of(server);
        // A connection that is not committed yet may have said others already.
        let is_known = |it: &ServerInfo| about_server(it).instructions == about.instructions;
        match instructions {
            Instructions::Any => {}
            Instructions::Known if info.as_ref().is_none_or(is_known) => {}
            Instructions::Known | Instructions::Withheld => {
                if let Some(info) = &mut info {
                    info.instructions = None;
                }
            }
        }
        Some(ServerDetails { sharing: running.spec.sharing, info })
    }

    /// What a server that runs, or is leased, offers.
    pub(crate) fn offers(&self, server: &ServerId) -> Option<ServerDefinitions> {
        let latest = self.latest();
        let Route { about, lists, read, .. } = latest.routes.get(server)?;
        let instructions = self.acquaintances.of(server).and_then(|it| it.instructions);
        let seen = ServerSnapshot::of(about.clone(), lists);
        Some(ServerDefinitions {
            observed: seen,
            lists: Arc::clone(lists),
            read_lists: read.clone(),
            instructions,
        })
    }

    /// Asks what runs for log messages from the level on that is wanted now, all beside each other.
    pub(crate) async fn follow_levels(
        &self,
        server: Option<&ServerId>,
    ) -> Vec<(ServerId, Result<(), HostError>)> {
        let mut asked = JoinSet::new();
        for (id, instance) in self.running(server) {
            let levels = Arc::clone(&self.levels);
            asked.spawn(async move { (id, instance.follow_level(&levels).await) });
        }
        asked.join_all().await
    }

    /// Tells what a dialog has leased that its roots are others now.
    pub(crate) fn roots_changed(&self, dialog: &DialogId) {
        let leases = Arc::clone(&self.leases.borrow());
        let own = leases.held.iter().filter(|((it, _), _)| it == dialog);
        own.for_each(|(_, held)| held.instance.session.roots_changed());
    }
}
