//! What a host is for those who stand between its servers and other clients: results as bytes, what servers say on their own,
//! and what clients want of servers for longer than a call.

use mcp_model::{LogLevel, RawJson, ServerId};
use mcp_transport::{CompletionArgument, CompletionReference};

use super::Host;
use crate::calls::{RawResult, RequestError, RequestOptions, Sight, ToolCall};
use crate::config::approval::ServerDefinitions;
use crate::failure::HostError;
use crate::notifications::stream::NotificationStream;
use crate::notifications::subscriptions::Subscription;
use crate::state::server_info_cache::ServerDetails;
use crate::supervisor::dialog::DialogId;

impl Host {
    /// Calls a tool as [`Host::call`] does, and hands the result on as its server sent it: neither cut nor judged, with
    /// whatever members it has. Arguments that do not fit the tool's schema are refused all the same.
    pub async fn call_raw(&self, call: ToolCall) -> Result<RawResult, RequestError> {
        self.desk.call_raw(call, Sight::Latest).await
    }

    /// Fills a prompt in as [`Host::get_prompt`] does, and hands the result on as its server sent it.
    pub async fn get_prompt_raw(
        &self,
        name: &str,
        arguments: &RawJson,
        asking: RequestOptions,
    ) -> Result<RawResult, RequestError> {
        self.desk.get_prompt_raw(name, arguments, asking, Sight::Latest).await
    }

    /// Reads a resource as [`Host::read_resource`] does, each time anew, and hands the result on as its server sent it.
    pub async fn read_resource_raw(
        &self,
        uri: &str,
        asking: RequestOptions,
    ) -> Result<RawResult, RequestError> {
        self.desk.read_resource_raw(uri, asking, Sight::Latest).await
    }

    /// Says what an argument could be as [`Host::complete`] does, and hands the result on as its server sent it.
    pub async fn complete_raw(
        &self,
        of: &CompletionReference,
        argument: &CompletionArgument,
        asking: RequestOptions,
    ) -> Result<RawResult, RequestError> {
        self.desk.complete_raw(of, argument, asking, Sight::Latest).await
    }

    /// What is known of a server that can be called; `None` of one that cannot.
    pub fn details(&self, server: &ServerId) -> Option<ServerDetails> {
        self.desk.about(server)
    }

    /// What a server that can be called offers now, shown or not; `None` of one that cannot.
    pub fn definitions(&self, server: &ServerId) -> Option<ServerDefinitions> {
        self.desk.offers(server)
    }

    /// What servers say on their own from now on: log messages, resources that have changed, notifications of other kinds.
    /// Who is slow misses the oldest, and is told how many.
    pub fn notifications(&self) -> NotificationStream {
        self.desk.hub.hear()
    }

    /// Wants log messages from this level on of all servers that send any, also of those that are started later. Returns
    /// when those that run have agreed; one that does not is told in the log. Cancel-safe: what was begun may be done in
    /// part.
    pub async fn set_log_level(&self, level: LogLevel) {
        self.desk.levels.want(level);
        for (server, outcome) in self.desk.follow_levels(None).await {
            if let Err(failure) = outcome {
                tracing::warn!(%server, %failure, "the log level was not set");
            }
        }
    }

    /// The same for one server, until it is said of all. Fails where there is no such server, or where it does not agree.
    pub async fn set_server_log_level(&self, server: &ServerId, level: LogLevel) -> Result<(), HostError> {
        self.desk.known(server)?;
        self.desk.levels.want_of(server.clone(), level);
        self.desk.follow_levels(Some(server)).await.into_iter().try_for_each(|it| it.1)
    }

    /// Wants to hear when a resource changes: of the server that `asking` names, else of the one that a read of it would go
    /// to, and for what is leased, of the dialog's own instance. It is heard by [`Host::notifications`] until what is returned is
    /// dropped. Many may want the same, and the server is asked once; an instance that takes the place of one that was
    /// lost is asked as well, and what may have changed meanwhile counts as changed. Resolves when the server has agreed.
    pub async fn subscribe_resource(
        &self,
        uri: &str,
        asking: RequestOptions,
    ) -> Result<Subscription, RequestError> {
        self.desk.subscribe(uri, asking).await
    }

    /// Tells what a dialog has leased that the places in which it may work are others now: to servers of the legacy era
    /// that were told that somebody answers for roots. Those of the modern era ask each time.
    pub fn roots_changed(&self, dialog: &DialogId) {
        self.desk.roots_changed(dialog);
    }
}
