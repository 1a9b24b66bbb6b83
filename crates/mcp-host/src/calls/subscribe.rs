//! Wanting to hear when a resource changes: of the instance that a read of it would go to.

use mcp_model::ErrorKind;
use tokio::time::Instant;

use super::deadline::Due;
use super::resource_lookup::{Found, Wish, look};
use super::result_format::Trouble;
use super::{Desk, Nowhere, Seat, Sight, TRIES, enter};
use crate::calls::{RequestError, RequestOptions};
use crate::failure::HostError;
use crate::notifications::subscriptions::{Post, Subscription};
use crate::supervisor::connector::{about, call_failure};
use crate::supervisor::dialog::DialogId;
use crate::supervisor::machine::Place;

impl Desk {
    /// Subscribes to a resource. Resolves when its server has agreed.
    pub(crate) async fn subscribe(
        &self,
        uri: &str,
        asking: RequestOptions,
    ) -> Result<Subscription, RequestError> {
        let nowhere = |failure: HostError| Trouble::from(failure).of(None);
        let dialog = asking.dialog.as_ref();
        if let Some(failure) = dialog.and_then(|it| self.stopped(it)) {
            return Err(nowhere(failure));
        }
        let due = Due::begin(Instant::now(), asking.deadline);
        for _ in 0..TRIES {
            let found = look(&self.latest(), Wish::Resource(uri), asking.server.as_ref());
            let Found { server, place, name } = found.map_err(nowhere)?;
            let id = &server.spec.id;
            let of_it = |failure: HostError| Trouble::from(failure).of(Some(id.clone()));
            let seat = Seat { server: id, place: &place, dialog };
            let instance = match due.within(self.instance(seat, Sight::Latest)).await {
                None => return Err(of_it(due.missed(&server))),
                Some(Ok(instance)) => instance,
                Some(Err(Nowhere::Refused(failure))) => return Err(of_it(failure)),
                Some(Err(Nowhere::Retired)) => continue,
            };
            let Some(guard) = enter(&instance, Sight::Latest) else { continue };
            let own = match place {
                Place::Shared(_) => None,
                Place::Leased(_) => Some(dialog.cloned().unwrap_or_else(DialogId::none)),
            };
            // Wanted before it is asked for: an instance that takes this one's place meanwhile is asked, too.
            let post = Post { server: id.clone(), dialog: own };
            let Some(wanted) = self.subscriptions.want(post, &name) else {
                let what = "too many resources are subscribed to already";
                return Err(of_it(about(&server, ErrorKind::Connection, what)));
            };
            let limit = due.rest(server.spec.limits.request);
            let agreed = tokio::time::timeout(limit, instance.subscribe(&name)).await;
            drop(guard);
            return match agreed {
                Ok(Ok(())) => Ok(wanted),
                Ok(Err(error)) => {
                    Err(Trouble::new(call_failure(&server, &error), &error).of(Some(id.clone())))
                }
                Err(_) => {
                    let what = format!("no answer within {} s", limit.as_secs_f64());
                    Err(of_it(about(&server, ErrorKind::Timeout, what)))
                }
            };
        }
        let message =
            format!("{} is not available: its server is being replaced", Wish::Resource(uri).words());
        Err(nowhere(HostError::new(ErrorKind::Connection, message)))
    }
}
