//! What a client of the era without sessions wants to hear, and how he is told.

use mcp_model::{RawJson, RpcError, code};
use serde::Deserialize;

use bytes::Bytes;

use crate::protocol::frame::Request;
use crate::protocol::response;
use crate::session::known_lists::Changed;

/// How many resources one stream may be about.
const MOST_RESOURCES: usize = 256;

/// What one `subscriptions/listen` asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    /// The request's id, by which its client knows what is told.
    id: RawJson,
    tools: bool,
    prompts: bool,
    resources: bool,
    /// URIs of resources.
    pub(crate) updates: Vec<String>,
}

impl Wanted {
    /// Reads the parameters.
    pub(crate) fn read(request: &Request) -> Result<Wanted, RpcError> {
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
        if notifications.resource_subscriptions.len() > MOST_RESOURCES {
            return Err(invalid(format!("`resourceSubscriptions` may hold {MOST_RESOURCES} URIs")));
        }
        Ok(Wanted {
            id: request.id.clone(),
            tools: notifications.tools_list_changed,
            prompts: notifications.prompts_list_changed,
            resources: notifications.resources_list_changed,
            updates: notifications.resource_subscriptions,
        })
    }

    /// Is this one of what is wanted?
    pub(crate) fn hears(&self, changed: Changed) -> bool {
        match changed {
            Changed::Tools => self.tools,
            Changed::Prompts => self.prompts,
            Changed::Resources => self.resources,
        }
    }

    /// The first message: what will be told.
    pub(crate) fn acknowledged(&self) -> Bytes {
        let lists = [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ];
        let wanted = lists.into_iter().filter(|(_, wanted)| *wanted);
        let mut agreed: Vec<String> = wanted.map(|(name, _)| format!(r#""{name}":true"#)).collect();
        if !self.updates.is_empty() {
            let uris: Vec<String> = self.updates.iter().map(|it| response::text(it)).collect();
            agreed.push(format!(r#""resourceSubscriptions":[{}]"#, uris.join(",")));
        }
        let params = format!(r#"{{{},"notifications":{{{}}}}}"#, self.meta(), agreed.join(","));
        response::notification("notifications/subscriptions/acknowledged", &params)
    }

    /// A list has changed.
    pub(crate) fn changed(&self, changed: Changed) -> Bytes {
        response::notification(changed.method(), &format!("{{{}}}", self.meta()))
    }

    /// A resource has changed.
    pub(crate) fn updated(&self, uri: &str) -> Bytes {
        let params = format!(r#"{{{},"uri":{}}}"#, self.meta(), response::text(uri));
        response::notification("notifications/resources/updated", &params)
    }

    /// The result, when the gateway ends the stream.
    pub(crate) fn ended(&self) -> String {
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
    fn what_is_asked_for_is_acknowledged_and_nothing_else() {
        let wanted = Wanted::read(&request(
            r#"{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["f:x"],"later":1}}"#,
        ))
        .unwrap();
        assert_eq!(
            wanted.acknowledged(),
            concat!(
                r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":"#,
                r#"{"io.modelcontextprotocol/subscriptionId":"s"},"notifications":{"toolsListChanged":true,"#,
                r#""resourceSubscriptions":["f:x"]}}}"#
            )
        );
        assert!(wanted.hears(Changed::Tools) && !wanted.hears(Changed::Prompts));
        assert!(wanted.updated("f:x").ends_with(br#","uri":"f:x"}}"#));
        assert!(Wanted::read(&request("{}")).unwrap().updates.is_empty());
        let many =
            format!(r#"{{"notifications":{{"resourceSubscriptions":[{}"x"]}}}}"#, "\"x\",".repeat(256));
        assert!(Wanted::read(&request(&many)).is_err());
    }
}
