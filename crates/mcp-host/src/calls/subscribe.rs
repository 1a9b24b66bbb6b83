//! Resource subscriptions, on the instance that a read would use.

use mcp_host_model::{ErrorKind, ServerId};
use tokio::time::Instant;

use super::deadline::CallDeadline;
use super::resource_lookup::{LookupItem, find_item};
use super::route::{MAX_ATTEMPTS, RouteError, being_replaced};
use super::{CallRouter, CatalogVersion, RequestError, RequestOptions};
use crate::notifications::subscriptions::Subscription;
use crate::supervisor::server_error::server_error;

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
        let server = self.subscription_server(uri, &options).await?;
        for _ in 0..MAX_ATTEMPTS {
            let routing_table = self.routing(version);
            let (route, name) = find_item(&routing_table, item, server.as_ref())?;
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

    /// The server of a subscription. Servers accept subscriptions to resources that they do not have, so a resource
    /// that the catalog does not know is searched by reading it.
    async fn subscription_server(
        &self,
        uri: &str,
        options: &RequestOptions,
    ) -> Result<Option<ServerId>, RequestError> {
        let is_known = || find_item(&self.latest(), LookupItem::Resource(uri), None).is_ok();
        if options.server.is_some() || (options.servers.is_none() && is_known()) {
            return Ok(options.server.clone());
        }
        let read = self.read_resource_raw(uri, options.clone(), CatalogVersion::Latest).await?;
        Ok(Some(read.server))
    }
}
