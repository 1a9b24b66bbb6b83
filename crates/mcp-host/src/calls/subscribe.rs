//! Resource subscriptions. They use the instance that a read of the resource would use.

use mcp_host_model::{ErrorKind, ServerId};
use tokio::time::Instant;

use crate::calls::deadline::CallDeadline;
use crate::calls::raw_result::RequestFailure;
use crate::calls::request_options::RequestOptions;
use crate::calls::requests::RequestRouter;
use crate::calls::resource_lookup::{LookupItem, find_item};
use crate::calls::route::{CatalogVersion, InstanceRequest};
use crate::notifications::subscriptions::Subscription;
use crate::supervisor::server_error::server_error;

/// Subscribes to a resource and waits for the server's response.
pub(crate) async fn subscribe(
    router: &RequestRouter,
    uri: &str,
    options: RequestOptions,
) -> Result<Subscription, RequestFailure> {
    let item = LookupItem::Resource(uri);
    let instances = &router.instances;
    let deadline = CallDeadline::new(Instant::now(), options.deadline);
    let scope = instances.new_scope(options.dialog.as_ref(), CatalogVersion::Latest, deadline)?;
    let server = find_subscription_server(router, uri, &options).await?;
    let request = instances.begin_item(scope, item, server.as_ref()).await?;
    let InstanceRequest { guard, server, item: uri } = request;
    let (instance, id) = (&guard.instance, &server.spec.id);
    // Added before the request, so that a successor of the instance subscribes as well.
    let Some(subscription) = instances.supervisor.shared.subscriptions.add(instance.key(), &uri) else {
        let message = "too many resources are subscribed to already";
        return Err(
            RequestFailure::from(server_error(&server, ErrorKind::Connection, message)).with_server(id)
        );
    };
    let outcome = deadline.apply(&server, instance.subscribe(&uri)).await;
    outcome.map(|()| subscription).map_err(|it| it.with_server(id))
}

/// Finds the server of a subscription. Servers accept subscriptions to resources that they do not have, so a resource
/// that is not in the catalog is searched by reading it.
async fn find_subscription_server(
    router: &RequestRouter,
    uri: &str,
    options: &RequestOptions,
) -> Result<Option<ServerId>, RequestFailure> {
    let latest = || router.instances.supervisor.latest_routing_table();
    let is_known = || find_item(&latest(), LookupItem::Resource(uri), None).is_ok();
    if options.server.is_some() || (options.servers.is_none() && is_known()) {
        return Ok(options.server.clone());
    }
    let read = router.read_resource_raw(uri, options.clone()).await?;
    Ok(Some(read.server))
}
