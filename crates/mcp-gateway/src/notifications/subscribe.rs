//! The parameters and messages of `subscriptions/listen`.

use mcp_model::{RawJson, RpcError, code};
use serde::Deserialize;

use bytes::Bytes;

use crate::protocol::frame::Request;
use crate::protocol::response;
use crate::session::known_lists::ListChange;

/// Maximum number of resources in a subscription.
const MAX_RESOURCES: usize = 256;

/// A `subscriptions/listen` request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SubscriptionRequest {
    /// The request's id, which its notifications contain.
    id: RawJson,
    tools: bool,
    prompts: bool,
    resources: bool,
    pub(crate) resource_uris: Vec<String>,
}

impl SubscriptionRequest {
    /// Reads the parameters.
    pub(crate) fn read(request: &Request) -> Result<SubscriptionRequest, RpcError> {
        #[derive(Deserialize)]
        struct Params {
            #[serde(default)]
            notifications: Filter,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Filter {
            tools_list_changed: bool,
            prompts_list_changed: bool,
            resources_list_changed: bool,
            resource_subscriptions: Vec<String>,
        }
        let invalid = |what: String| RpcError::new(code::INVALID_PARAMS, what);
        let Params { notifications } = request.params.read()?;
        if notifications.resource_subscriptions.len() > MAX_RESOURCES {
            return Err(invalid(format!("`resourceSubscriptions` may hold {MAX_RESOURCES} URIs")));
        }
        Ok(SubscriptionRequest {
            id: request.id.clone(),
            tools: notifications.tools_list_changed,
            prompts: notifications.prompts_list_changed,
            resources: notifications.resources_list_changed,
            resource_uris: notifications.resource_subscriptions,
        })
    }

    /// Whether changes of a list are requested.
    pub(crate) fn includes(&self, changed: ListChange) -> bool {
        match changed {
            ListChange::Tools => self.tools,
            ListChange::Prompts => self.prompts,
            ListChange::Resources => self.resources,
        }
    }

    /// The first message, with the lists and resources that were accepted.
    pub(crate) fn acknowledgement(&self) -> Bytes {
        let lists = [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ];
        let wanted = lists.into_iter().filter(|(_, wanted)| *wanted);
        let mut agreed: Vec<String> = wanted.map(|(name, _)| format!(r#""{name}":true"#)).collect();
        if !self.resource_uris.is_empty() {
            let uris: Vec<String> = self.resource_uris.iter().map(|it| response::text(it)).collect();
            agreed.push(format!(r#""resourceSubscriptions":[{}]"#, uris.join(",")));
        }
        let params = format!(r#"{{{},"notifications":{{{}}}}}"#, self.meta(), agreed.join(","));
        response::notification("notifications/subscriptions/acknowledged", &params)
    }

    /// The notification about a changed list.
    pub(crate) fn list_changed(&self, changed: ListChange) -> Bytes {
        response::notification(changed.method(), &format!("{{{}}}", self.meta()))
    }

    /// The notification about a changed resource.
    pub(crate) fn resource_updated(&self, uri: &str) -> Bytes {
        let params = format!(r#"{{{},"uri":{}}}"#, self.meta(), response::text(uri));
        response::notification("notifications/resources/updated", &params)
    }

    /// The result when the gateway ends the stream.
    pub(crate) fn end_result(&self) -> String {
        format!(r#"{{"resultType":"complete",{}}}"#, self.meta())
    }

    fn meta(&self) -> String {
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
        let wanted = SubscriptionRequest::read(&request(
            r#"{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["f:x"],"later":1}}"#,
        ))
        .unwrap();
        assert_eq!(
            wanted.acknowledgement(),
            concat!(
                r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":"#,
                r#"{"io.modelcontextprotocol/subscriptionId":"s"},"notifications":{"toolsListChanged":true,"#,
                r#""resourceSubscriptions":["f:x"]}}}"#
            )
        );
        assert!(wanted.includes(ListChange::Tools) && !wanted.includes(ListChange::Prompts));
        assert!(wanted.resource_updated("f:x").ends_with(br#","uri":"f:x"}}"#));
        assert!(SubscriptionRequest::read(&request("{}")).unwrap().resource_uris.is_empty());
        let many =
            format!(r#"{{"notifications":{{"resourceSubscriptions":[{}"x"]}}}}"#, "\"x\",".repeat(256));
        assert!(SubscriptionRequest::read(&request(&many)).is_err());
    }
}
