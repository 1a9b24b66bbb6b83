//! The methods of MCP, of all protocol versions and of the extensions for tasks and skills.
//!
//! Other files do not write a method as text. A message whose method is not listed here is forwarded under its name.

use std::fmt;

use serde::Deserialize;
use strum::{Display, EnumIter, EnumString, IntoStaticStr};

/// A method of MCP: a request or a notification. The variants have the names of the protocol's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, Display, EnumString, EnumIter)]
#[expect(clippy::exhaustive_enums, reason = "mcp-gateway handles each method, so that none is forgotten")]
pub enum Method {
    // The most frequent ones first: parsing compares in this order.
    /// `tools/call`
    #[strum(serialize = "tools/call")]
    CallTool,
    /// `tools/list`
    #[strum(serialize = "tools/list")]
    ListTools,
    /// `notifications/progress`
    #[strum(serialize = "notifications/progress")]
    Progress,
    /// `prompts/list`
    #[strum(serialize = "prompts/list")]
    ListPrompts,
    /// `prompts/get`
    #[strum(serialize = "prompts/get")]
    GetPrompt,
    /// `resources/list`
    #[strum(serialize = "resources/list")]
    ListResources,
    /// `resources/templates/list`
    #[strum(serialize = "resources/templates/list")]
    ListResourceTemplates,
    /// `resources/read`
    #[strum(serialize = "resources/read")]
    ReadResource,
    /// `resources/directory/read`, of the extension for skills
    #[strum(serialize = "resources/directory/read")]
    ReadDirectory,
    /// `resources/subscribe`
    #[strum(serialize = "resources/subscribe")]
    Subscribe,
    /// `resources/unsubscribe`
    #[strum(serialize = "resources/unsubscribe")]
    Unsubscribe,
    /// `completion/complete`
    #[strum(serialize = "completion/complete")]
    Complete,
    /// `skills/list`
    #[strum(serialize = "skills/list")]
    ListSkills,
    /// `skills/get`
    #[strum(serialize = "skills/get")]
    GetSkill,
    /// `tasks/list`
    #[strum(serialize = "tasks/list")]
    ListTasks,
    /// `tasks/get`
    #[strum(serialize = "tasks/get")]
    GetTask,
    /// `tasks/result`
    #[strum(serialize = "tasks/result")]
    GetTaskResult,
    /// `tasks/update`
    #[strum(serialize = "tasks/update")]
    UpdateTask,
    /// `tasks/cancel`
    #[strum(serialize = "tasks/cancel")]
    CancelTask,
    /// `subscriptions/listen`
    #[strum(serialize = "subscriptions/listen")]
    Listen,
    /// `logging/setLevel`
    #[strum(serialize = "logging/setLevel")]
    SetLevel,
    /// `ping`, which both sides may send
    #[strum(serialize = "ping")]
    Ping,
    /// `initialize`
    #[strum(serialize = "initialize")]
    Initialize,
    /// `server/discover`
    #[strum(serialize = "server/discover")]
    Discover,
    /// `sampling/createMessage`
    #[strum(serialize = "sampling/createMessage")]
    CreateMessage,
    /// `elicitation/create`
    #[strum(serialize = "elicitation/create")]
    Elicit,
    /// `roots/list`
    #[strum(serialize = "roots/list")]
    ListRoots,
    /// `notifications/initialized`
    #[strum(serialize = "notifications/initialized")]
    Initialized,
    /// `notifications/cancelled`
    #[strum(serialize = "notifications/cancelled")]
    Cancelled,
    /// `notifications/message`
    #[strum(serialize = "notifications/message")]
    LogMessage,
    /// `notifications/tools/list_changed`
    #[strum(serialize = "notifications/tools/list_changed")]
    ToolListChanged,
    /// `notifications/prompts/list_changed`
    #[strum(serialize = "notifications/prompts/list_changed")]
    PromptListChanged,
    /// `notifications/resources/list_changed`
    #[strum(serialize = "notifications/resources/list_changed")]
    ResourceListChanged,
    /// `notifications/resources/updated`
    #[strum(serialize = "notifications/resources/updated")]
    ResourceUpdated,
    /// `notifications/roots/list_changed`
    #[strum(serialize = "notifications/roots/list_changed")]
    RootsListChanged,
    /// `notifications/subscriptions/acknowledged`
    #[strum(serialize = "notifications/subscriptions/acknowledged")]
    SubscriptionsAcknowledged,
    /// `notifications/tasks`, of the extension of 2026-07-28
    #[strum(serialize = "notifications/tasks")]
    TaskChanged,
    /// `notifications/tasks/status`, of 2025-11-25
    #[strum(serialize = "notifications/tasks/status")]
    TaskStatus,
    /// `notifications/elicitation/complete`
    #[strum(serialize = "notifications/elicitation/complete")]
    ElicitationComplete,
}

impl Method {
    /// The requests of a server to its client, except `ping`.
    pub const SERVER_REQUESTS: [Method; 3] = [Method::CreateMessage, Method::Elicit, Method::ListRoots];

    /// Returns the method with this name in the protocol. Does not allocate.
    pub fn parse(name: &str) -> Option<Method> {
        name.parse().ok()
    }

    /// Returns the name in the protocol.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns whether the request begins the conversation with a server.
    pub fn is_handshake(self) -> bool {
        matches!(self, Method::Initialize | Method::Discover)
    }

    /// Returns whether the request has no side effects, so that it may be repeated.
    pub fn is_read_only(self) -> bool {
        matches!(
            self,
            Method::Ping
                | Method::Discover
                | Method::ListTools
                | Method::ListPrompts
                | Method::GetPrompt
                | Method::ListResources
                | Method::ListResourceTemplates
                | Method::ReadResource
                | Method::Complete
                | Method::ListSkills
                | Method::GetSkill
                | Method::ReadDirectory
                | Method::GetTask
                | Method::GetTaskResult
        )
    }

    /// Returns whether a host forwards the request to one of its servers. A host responds to the other requests itself.
    pub fn is_forwarded(self) -> bool {
        matches!(
            self,
            Method::CallTool
                | Method::GetPrompt
                | Method::ReadResource
                | Method::Subscribe
                | Method::Unsubscribe
                | Method::Complete
                | Method::ListSkills
                | Method::GetSkill
                | Method::ReadDirectory
                | Method::ListTasks
                | Method::GetTask
                | Method::GetTaskResult
                | Method::UpdateTask
                | Method::CancelTask
        )
    }

    /// Returns whether a server may request input before it returns the result.
    pub fn can_require_input(self) -> bool {
        matches!(self, Method::CallTool | Method::GetPrompt | Method::ReadResource)
    }

    /// Returns whether a result that a host forwards has `ttlMs` and `cacheScope` in the modern era. The results of
    /// `server/discover` and of other lists have them too, but a host makes these itself.
    pub fn has_cacheable_result(self) -> bool {
        matches!(self, Method::ReadResource | Method::ListSkills | Method::GetSkill | Method::ReadDirectory)
    }

    /// Returns the name of the parameter whose value the HTTP header `Mcp-Name` repeats.
    pub fn name_header_param(self) -> Option<&'static str> {
        match self {
            Method::CallTool | Method::GetPrompt => Some("name"),
            Method::ReadResource => Some("uri"),
            Method::GetTask | Method::UpdateTask | Method::CancelTask => Some("taskId"),
            _ => None,
        }
    }
}

/// The method of a message: one of MCP, or any other, which is kept as text.
///
/// Invariant: `Other` is no name of a [`Method`]. Create it with [`MethodName::from`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(from = "String")]
#[expect(clippy::exhaustive_enums, reason = "a method is one of MCP or not")]
pub enum MethodName {
    /// A method of MCP.
    Known(Method),
    /// The name of another method.
    Other(Box<str>),
}

impl MethodName {
    /// Returns the name in messages.
    pub fn as_str(&self) -> &str {
        match self {
            MethodName::Known(method) => method.as_str(),
            MethodName::Other(name) => name,
        }
    }

    /// Returns the method if it is one of MCP.
    pub fn as_known(&self) -> Option<Method> {
        match self {
            MethodName::Known(method) => Some(*method),
            MethodName::Other(_) => None,
        }
    }

    /// Returns whether the method is a notification: its name begins with `notifications/`.
    pub fn is_notification(&self) -> bool {
        self.as_str().starts_with("notifications/")
    }

    /// Returns whether the method is a request for a list: its name ends with `/list`.
    pub fn is_list(&self) -> bool {
        self.as_str().ends_with("/list")
    }
}

impl From<Method> for MethodName {
    fn from(method: Method) -> MethodName {
        MethodName::Known(method)
    }
}

impl From<&str> for MethodName {
    fn from(name: &str) -> MethodName {
        Method::parse(name).map_or_else(|| MethodName::Other(name.into()), MethodName::Known)
    }
}

impl From<String> for MethodName {
    fn from(name: String) -> MethodName {
        Method::parse(&name).map_or_else(|| MethodName::Other(name.into()), MethodName::Known)
    }
}

impl PartialEq<Method> for MethodName {
    fn eq(&self, other: &Method) -> bool {
        self.as_known() == Some(*other)
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator;

    use super::*;

    #[test]
    fn all_names_are_parsed() {
        for method in Method::iter() {
            assert_eq!(Method::parse(method.as_str()), Some(method));
            assert_eq!(MethodName::from(method.as_str()), MethodName::from(method));
        }
        for other in ["", "tools", "tools/call ", "Tools/call", "notifications/x"] {
            assert_eq!(Method::parse(other), None);
            assert_eq!(MethodName::from(other).as_str(), other);
        }
    }

    #[test]
    fn predicates_of_requests_are_false_for_notifications() {
        for method in Method::iter().filter(|it| MethodName::from(*it).is_notification()) {
            let is_request = method.is_read_only() || method.is_forwarded() || method.can_require_input();
            assert!(!is_request && method.name_header_param().is_none(), "{method}");
        }
    }
}
