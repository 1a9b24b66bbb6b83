//! Resource subscriptions, on the instance that a read would use.

use mcp_model::ErrorKind;
use tokio::time::Instant;

use super::deadline::{CallDeadline, timeout_error};
use super::resource_lookup::{FoundItem, LookupItem, find_item};
use super::{CallRouter, CatalogVersion, Destination, MAX_ATTEMPTS, RouteError, enter_gate};
use crate::calls::{RequestError, RequestOptions};
use crate::error::HostError;
use crate::notifications::subscriptions::{InstanceKey, Subscription};
use crate::state::dialog_id::DialogId;
use crate::supervisor::connector::{call_error, server_error};
use crate::supervisor::machine::RouteTarget;

impl CallRouter {
    /// Subscribes to a resource and waits for the server's response.
    pub(crate) async fn subscribe(
        &self,
        uri: &str,
        options: RequestOptions,
    ) -> Result<Subscription, RequestError> {
        let unrouted = |failure: HostError| RequestError::from(failure);
        let dialog = options.dialog.as_ref();
        if let Some(failure) = dialog.and_then(|it| self.stop_reason(it)) {
            return Err(unrouted(failure));
        }
        let deadline = CallDeadline::begin(Instant::now(), options.deadline);
        for _ in 0..MAX_ATTEMPTS {
            let found = find_item(&self.latest(), LookupItem::Resource(uri), options.server.as_ref());
            let FoundItem { server, target, name } = found.map_err(unrouted)?;
            let id = &server.spec.id;
            let on_server = |failure: HostError| RequestError::from(failure).on(id);
            let destination = Destination { server: id, target: &target, dialog };
            let instance =
                match deadline.wait(self.resolve_instance(destination, CatalogVersion::Latest)).await {
                    None => return Err(on_server(deadline.exceeded(&server))),
                    Some(Ok(instance)) => instance,
                    Some(Err(RouteError::Refused(failure))) => return Err(on_server(failure)),
                    Some(Err(RouteError::Retired)) => continue,
                };
            let Some(guard) = enter_gate(&instance, CatalogVersion::Latest) else { continue };
            let own = match target {
                RouteTarget::Shared(_) => None,
                RouteTarget::Leased(_) => Some(dialog.cloned().unwrap_or_else(DialogId::anonymous)),
            };
            // Added before the request, so that a successor of the instance subscribes as well.
            let key = InstanceKey { server: id.clone(), dialog: own };
            let Some(wanted) = self.subscriptions.add(key, &name) else {
                let what = "too many resources are subscribed to already";
                return Err(on_server(server_error(&server, ErrorKind::Connection, what)));
            };
            let limit = deadline.remaining(server.spec.limits.request);
            let agreed = tokio::time::timeout(limit, instance.subscribe(&name)).await;
            drop(guard);
            return match agreed {
                Ok(Ok(())) => Ok(wanted),
                Ok(Err(error)) => Err(RequestError::new(call_error(&server, &error), &error).on(id)),
                Err(_) => Err(on_server(timeout_error(&server, limit))),
            };
        }
        let message =
            format!("{} is not available: its server is being replaced", LookupItem::Resource(uri).label());
        Err(unrouted(HostError::new(ErrorKind::Connection, message)))
    }
}
