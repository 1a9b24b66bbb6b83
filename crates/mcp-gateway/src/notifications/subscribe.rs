//! The parameters and messages of `subscriptions/listen`.

use bytes::Bytes;
use mcp_host_model::{Method, RawJson, RpcError, code};
use serde::{Deserialize, Serialize};

use crate::lists::definitions::CatalogList;
use crate::protocol::frame::ClientRequest;
use crate::protocol::json_splice;
use crate::protocol::message_writer::{json_string, write_notification};

/// Maximum number of resources in a subscription.
const MAX_RESOURCES: usize = 256;

/// Maximum number of tasks in a subscription, because each of them is polled.
const MAX_TASKS: usize = 64;

/// The `_meta` key with the id of the subscription.
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// A `subscriptions/listen` request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SubscriptionRequest {
    /// The request's id, which its notifications contain.
    id: RawJson,
    filter: NotificationFilter,
}

/// The notifications that are requested, or that were accepted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NotificationFilter {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tools_list_changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    prompts_list_changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    resources_list_changed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resource_subscriptions: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    task_ids: Vec<String>,
}

impl SubscriptionRequest {
    /// Reads the parameters.
    pub(crate) fn read(request: &ClientRequest) -> Result<SubscriptionRequest, RpcError> {
        #[derive(Deserialize)]
        struct ListenParams {
            #[serde(default)]
            notifications: NotificationFilter,
        }
        let ListenParams { notifications: mut filter } = request.params.read()?;
        filter.task_ids.sort_unstable();
        filter.task_ids.dedup();
        if filter.task_ids.len() > MAX_TASKS {
            let message = format!("`taskIds` may contain at most {MAX_TASKS} ids");
            return Err(RpcError::new(code::INVALID_PARAMS, message));
        }
        if filter.resource_subscriptions.len() > MAX_RESOURCES {
            let message = format!("`resourceSubscriptions` may contain at most {MAX_RESOURCES} URIs");
            return Err(RpcError::new(code::INVALID_PARAMS, message));
        }
        Ok(SubscriptionRequest { id: request.id.clone(), filter })
    }

    /// The URIs of the resources.
    pub(crate) fn resource_uris(&self) -> &[String] {
        &self.filter.resource_subscriptions
    }

    /// The ids of the tasks, each once.
    pub(crate) fn task_ids(&self) -> &[String] {
        &self.filter.task_ids
    }

    /// The request without the resources and tasks that were not accepted.
    pub(crate) fn with_accepted(mut self, uris: Vec<String>, tasks: Vec<String>) -> SubscriptionRequest {
        self.filter.resource_subscriptions = uris;
        self.filter.task_ids = tasks;
        self
    }

    /// Whether changes of a list are requested.
    pub(crate) fn includes(&self, list: CatalogList) -> bool {
        match list {
            CatalogList::Tools => self.filter.tools_list_changed,
            CatalogList::Prompts => self.filter.prompts_list_changed,
            CatalogList::Resources | CatalogList::Templates => self.filter.resources_list_changed,
        }
    }

    /// The first message of the stream, with the notifications that were accepted.
    pub(crate) fn acknowledgement_message(&self) -> Bytes {
        let accepted = serde_json::to_string(&self.filter).expect("flags and strings are JSON");
        let params = format!(r#"{{{},"notifications":{accepted}}}"#, self.meta_member());
        write_notification(Method::SubscriptionsAcknowledged.as_str(), &params)
    }

    /// The notification about a changed list.
    pub(crate) fn list_changed_message(&self, list: CatalogList) -> Bytes {
        write_notification(list.change_notification().as_str(), &format!("{{{}}}", self.meta_member()))
    }

    /// The notification about a changed resource.
    pub(crate) fn resource_updated_message(&self, uri: &str) -> Bytes {
        let params = format!(r#"{{{},"uri":{}}}"#, self.meta_member(), json_string(uri));
        write_notification(Method::ResourceUpdated.as_str(), &params)
    }

    /// The notification about a task, with the state that `tasks/get` returned.
    pub(crate) fn task_changed_message(&self, state: &RawJson) -> Bytes {
        let mut meta = vec![format!("{}:{}", json_string(SUBSCRIPTION_ID), self.id.as_str())];
        let mut members = Vec::new();
        for (key, value) in json_splice::members(state) {
            let own = json_splice::members(&value).into_iter().filter(|(key, _)| key != SUBSCRIPTION_ID);
            match &*key {
                // A member of results only.
                "resultType" => {}
                "_meta" => {
                    meta.extend(own.map(|(key, value)| format!("{}:{}", json_string(&key), value.as_str())));
                }
                _ => members.push(format!("{}:{}", json_string(&key), value.as_str())),
            }
        }
        members.insert(0, format!(r#""_meta":{{{}}}"#, meta.join(",")));
        write_notification(Method::TaskChanged.as_str(), &format!("{{{}}}", members.join(",")))
    }

    /// The result when the gateway ends the stream.
    pub(crate) fn end_result(&self) -> String {
        format!(r#"{{"resultType":"complete",{}}}"#, self.meta_member())
    }

    /// The `_meta` member as JSON text.
    fn meta_member(&self) -> String {
        format!(r#""_meta":{{"{SUBSCRIPTION_ID}":{}}}"#, self.id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(params: &str) -> ClientRequest {
        let json = |text: &str| RawJson::parse(text.to_owned().into()).unwrap();
        let params = crate::protocol::params::MessageParams::parse(json(params)).unwrap();
        ClientRequest::new(json("\"s\""), Method::Listen.into(), params)
    }

    #[test]
    fn only_known_subscriptions_are_acknowledged() {
        let subscription = SubscriptionRequest::read(&request(
            r#"{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["f:x"],"later":1}}"#,
        ))
        .unwrap();
        assert_eq!(
            subscription.acknowledgement_message(),
            concat!(
                r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":"#,
                r#"{"io.modelcontextprotocol/subscriptionId":"s"},"notifications":{"toolsListChanged":true,"#,
                r#""resourceSubscriptions":["f:x"]}}}"#
            )
        );
        assert!(subscription.includes(CatalogList::Tools) && !subscription.includes(CatalogList::Prompts));
        assert!(subscription.resource_updated_message("f:x").ends_with(br#","uri":"f:x"}}"#));
        assert!(SubscriptionRequest::read(&request("{}")).unwrap().resource_uris().is_empty());
        for (count, is_accepted) in [(64, true), (65, false)] {
            let ids: Vec<String> = (0..count).chain(0..count).map(|it| it.to_string()).collect();
            let params = serde_json::json!({"notifications": {"taskIds": ids}}).to_string();
            assert_eq!(SubscriptionRequest::read(&request(&params)).is_ok(), is_accepted, "{count}");
        }
        let many =
            format!(r#"{{"notifications":{{"resourceSubscriptions":[{}"x"]}}}}"#, "\"x\",".repeat(256));
        assert!(SubscriptionRequest::read(&request(&many)).is_err());
    }

    #[test]
    fn notification_of_a_task_names_its_subscription() {
        let subscription = SubscriptionRequest::read(&request("{}")).unwrap();
        let state = r#"{"resultType":"complete","taskId":"a","_meta":{"io.modelcontextprotocol/subscriptionId":7,"x":{}},
            "status":"working"}"#;
        let state = RawJson::parse(state.to_owned().into()).unwrap();
        assert_eq!(
            subscription.task_changed_message(&state),
            concat!(
                r#"{"jsonrpc":"2.0","method":"notifications/tasks","params":{"_meta":"#,
                r#"{"io.modelcontextprotocol/subscriptionId":"s","x":{}},"taskId":"a","status":"working"}}"#
            )
        );
    }
}
