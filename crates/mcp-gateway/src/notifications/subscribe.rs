//! The parameters and messages of `subscriptions/listen`.

use bytes::Bytes;
use mcp_model::{RawJson, RpcError, code};
use serde::{Deserialize, Serialize};

use crate::lists::definitions::ListKind;
use crate::protocol::frame::Request;
use crate::protocol::message_writer::{json_string, notification};

/// Maximum number of resources in a subscription.
const MAX_RESOURCES: usize = 256;

/// A `subscriptions/listen` request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SubscriptionRequest {
    /// The request's id, which its notifications contain.
    id: RawJson,
    filter: NotificationFilter,
}

/// The requested or accepted notifications.
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
}

impl SubscriptionRequest {
    /// Reads the parameters.
    pub(crate) fn read(request: &Request) -> Result<SubscriptionRequest, RpcError> {
        #[derive(Deserialize)]
        struct ListenParams {
            #[serde(default)]
            notifications: NotificationFilter,
        }
        let ListenParams { notifications: filter } = request.params.read()?;
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

    /// The request without the resources that were not accepted.
    pub(crate) fn with_resource_uris(mut self, accepted: Vec<String>) -> SubscriptionRequest {
        self.filter.resource_subscriptions = accepted;
        self
    }

    /// Whether changes of a list are requested.
    pub(crate) fn includes(&self, list: ListKind) -> bool {
        match list {
            ListKind::Tools => self.filter.tools_list_changed,
            ListKind::Prompts => self.filter.prompts_list_changed,
            ListKind::Resources | ListKind::Templates => self.filter.resources_list_changed,
        }
    }

    /// The first message, with the lists and resources that were accepted.
    pub(crate) fn acknowledgement(&self) -> Bytes {
        let accepted = serde_json::to_string(&self.filter).expect("flags and strings are JSON");
        let params = format!(r#"{{{},"notifications":{accepted}}}"#, self.meta_member());
        notification("notifications/subscriptions/acknowledged", &params)
    }

    /// The notification about a changed list.
    pub(crate) fn list_changed(&self, list: ListKind) -> Bytes {
        notification(list.change_notification(), &format!("{{{}}}", self.meta_member()))
    }

    /// The notification about a changed resource.
    pub(crate) fn resource_updated(&self, uri: &str) -> Bytes {
        let params = format!(r#"{{{},"uri":{}}}"#, self.meta_member(), json_string(uri));
        notification("notifications/resources/updated", &params)
    }

    /// The result when the gateway ends the stream.
    pub(crate) fn end_result(&self) -> String {
        format!(r#"{{"resultType":"complete",{}}}"#, self.meta_member())
    }

    /// The `_meta` member as JSON text.
    fn meta_member(&self) -> String {
        format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{}}}"#, self.id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(params: &str) -> Request {
        let json = |text: &str| RawJson::parse(text.to_owned().into()).unwrap();
        let params = crate::protocol::params::Params::of(json(params)).unwrap();
        Request::new(json("\"s\""), "subscriptions/listen".into(), params)
    }

    #[test]
    fn only_known_subscriptions_are_acknowledged() {
        let subscription = SubscriptionRequest::read(&request(
            r#"{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["f:x"],"later":1}}"#,
        ))
        .unwrap();
        assert_eq!(
            subscription.acknowledgement(),
            concat!(
                r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":"#,
                r#"{"io.modelcontextprotocol/subscriptionId":"s"},"notifications":{"toolsListChanged":true,"#,
                r#""resourceSubscriptions":["f:x"]}}}"#
            )
        );
        assert!(subscription.includes(ListKind::Tools) && !subscription.includes(ListKind::Prompts));
        assert!(subscription.resource_updated("f:x").ends_with(br#","uri":"f:x"}}"#));
        assert!(SubscriptionRequest::read(&request("{}")).unwrap().resource_uris().is_empty());
        let many =
            format!(r#"{{"notifications":{{"resourceSubscriptions":[{}"x"]}}}}"#, "\"x\",".repeat(256));
        assert!(SubscriptionRequest::read(&request(&many)).is_err());
    }
}
