//! Resource subscriptions, on the instance that a read would use.

use mcp_model::ErrorKind;
use tokio::time::Instant;

use super::deadline::CallDeadline;
use super::resource_lookup::{LookupItem, find_item};
use super::route::{MAX_ATTEMPTS, RouteError, being_replaced};
use super::{CallRouter, CatalogVersion, RequestError, RequestOptions};
use crate::notifications::subscriptions::Subscription;
use crate::supervisor::connector::server_error;

impl CallRouter {
    /// Subscribes to a resource and waits for the server's response.
    pub(crate) async fn subscribe(
        &self,
        uri: &str,
        options: RequestOptions,
    ) -> Result<Subscription, RequestError> {
        let (item, version) = (LookupItem::Resource(uri), CatalogVersion::Latest);
        let deadline = CallDeadline::new(Instant::now(), options.deadline);
        let scope = self.scope(options.dialog.as_ref(), version, deadline)?;
        for _ in 0..MAX_ATTEMPTS {
            let routing_table = self.routing(version);
            let (route, name) = find_item(&routing_table, item, options.server.as_ref())?;
            let (server, id) = (&route.server, &route.server.spec.id);
            let request = match self.begin_request(route, || item.label(), scope).await {
                Ok(request) => request,
                Err(RouteError::Retired) => continue,
                Err(RouteError::Refused(failure)) => return Err(RequestError::from(failure).on(id)),
            };
            // Added before the request, so that a successor of the instance subscribes as well.
            let Some(subscription) = self.shared.subscriptions.add(request.instance.key(), &name) else {
                let what = "too many resources are subscribed to already";
                return Err(RequestError::from(server_error(server, ErrorKind::Connection, what)).on(id));
            };
            let outcome = deadline.limit(server, request.instance.subscribe(&name)).await;
            return outcome.map(|()| subscription).map_err(|it| it.on(id));
        }
        Err(being_replaced(&item.label()).into())
    }
}
