//! Tests: which settings count as a change.

use std::time::Duration;

use mcp_host_model::{
    CallEffect, CallRule, EnvInheritance, NameClass, NameLimit, NamePolicy, NameTransform, Sandbox,
    SandboxPreset, SseFallback, StdioEndpoint, UrlEndpoint,
};

use super::*;

/// Owned settings, which are compared as [`RuntimeSettings`].
#[derive(Debug)]
struct Runtime(Endpoint, Option<Secret>, Discovery);

impl PartialEq for Runtime {
    fn eq(&self, other: &Runtime) -> bool {
        self.settings() == other.settings()
    }
}

impl Runtime {
    fn settings(&self) -> RuntimeSettings<'_> {
        RuntimeSettings::new(&self.0, self.1.as_ref(), self.2)
    }
}

/// Owned settings, which are compared as [`ExposureSettings`].
struct Exposed(Exposure, Limits, Sharing, CallRules);

impl PartialEq for Exposed {
    fn eq(&self, other: &Exposed) -> bool {
        self.settings() == other.settings()
    }
}

impl Exposed {
    fn settings(&self) -> ExposureSettings<'_> {
        ExposureSettings { exposure: &self.0, limits: &self.1, sharing: self.2, calls: &self.3 }
    }
}

fn stdio(change: impl FnOnce(&mut StdioEndpoint)) -> Runtime {
    let mut endpoint = StdioEndpoint::new("npx");
    endpoint.args = vec!["-y".into(), "server".into()];
    endpoint.env = vec![("A".into(), "1".into()), ("B".into(), "2".into())];
    change(&mut endpoint);
    Runtime(Endpoint::Stdio(endpoint), None, Discovery::default())
}

fn http(change: impl FnOnce(&mut UrlEndpoint)) -> Runtime {
    let mut endpoint = UrlEndpoint::new("https://example.com/mcp".parse().expect("a URL"));
    endpoint.headers = vec![("X-A".into(), "1".into()), ("X-B".into(), "2".into())];
    change(&mut endpoint);
    Runtime(Endpoint::Http(endpoint), None, Discovery::default())
}

#[track_caller]
fn check<T: PartialEq>(all: &[T]) {
    for (at, it) in all.iter().enumerate() {
        assert!(!all[..at].contains(it), "number {at} equals an earlier one");
    }
}

#[test]
fn dm_098_each_setting_of_a_process_causes_a_restart() {
    check(&[
        stdio(|_| {}),
        stdio(|it| it.command = "uvx".into()),
        stdio(|it| it.args = vec!["-yserver".into()]),
        stdio(|it| it.args.reverse()),
        stdio(|it| it.env[0].1 = "2".into()),
        stdio(|it| it.env[0].0 = "C".into()),
        stdio(|it| it.env.truncate(1)),
        stdio(|it| it.inherit = EnvInheritance::None),
        stdio(|it| it.inherit = EnvInheritance::All),
        stdio(|it| it.cwd = Some("/".into())),
        stdio(|it| it.cwd = Some(String::new().into())),
        stdio(|it| it.encoding = "latin1".into()),
        stdio(|it| it.sandbox = Some(Sandbox::new(SandboxPreset::Project))),
        stdio(|it| it.sandbox = Some(Sandbox::new(SandboxPreset::Network))),
        http(|_| {}),
        http(|it| it.url = "https://example.com/mcp2".parse().expect("a URL")),
        http(|it| it.headers[0].1 = "2".into()),
        http(|it| it.headers.clear()),
        http(|it| it.session_id = Some("s".into())),
        http(|it| it.session_id = Some("".into())),
        http(|it| it.terminate_on_close = false),
        http(|it| it.sse_fallback = SseFallback::Allowed),
    ]);
}

#[test]
fn change_of_transport_config_or_discovery_causes_a_restart() {
    let endpoint = || UrlEndpoint::new("https://example.com/mcp".parse().expect("a URL"));
    let of = |config: Option<&str>, tools, prompts| {
        let config = config.map(Secret::from);
        let mut discovery = Discovery::default();
        (discovery.tools, discovery.prompts) = (tools, prompts);
        Runtime(Endpoint::Http(endpoint()), config, discovery)
    };
    check(&[
        of(None, true, true),
        of(Some(""), true, true),
        of(Some("{}"), true, true),
        of(None, false, true),
        of(None, true, false),
        Runtime(Endpoint::Sse(endpoint()), None, Discovery::default()),
        Runtime(Endpoint::WebSocket(endpoint()), None, Discovery::default()),
    ]);
}

#[test]
fn dm_098_order_of_variables_and_headers_is_ignored() {
    assert_eq!(stdio(|_| {}), stdio(|it| it.env.reverse()));
    assert_eq!(stdio(|_| {}), stdio(|it| it.env.insert(0, ("A".into(), "overridden".into()))));
    assert_eq!(http(|_| {}), http(|it| it.headers.reverse()));
    assert_eq!(http(|_| {}), http(|it| it.headers[0].0 = "x-a".into()));
}

#[test]
fn change_of_a_rule_or_limit_changes_the_exposure_settings() {
    let exposure = || Exposure::all(NamePolicy::Reject);
    let of = |change: &dyn Fn(&mut Exposure, &mut Limits)| {
        let (mut exposure, mut limits) = (exposure(), Limits::default());
        change(&mut exposure, &mut limits);
        Exposed(exposure, limits, Sharing::Shared, CallRules::default())
    };
    let prefix = |remove: &str, add: &str| NameTransform::Prefix { remove: remove.into(), add: add.into() };
    let mut calls = CallRules::default();
    calls.stated.push(CallRule::new(CallEffect::Deny));
    check(&[
        of(&|_, _| {}),
        of(&|it, _| it.tools.filter.whitelist = vec!["a".into()]),
        of(&|it, _| it.tools.filter.blacklist = vec!["a".into()]),
        of(&|it, _| it.prompts.filter.blacklist = vec!["a".into()]),
        of(&|it, _| it.resources.filter.blacklist = vec!["a".into()]),
        of(&|it, _| it.tools.transforms = vec![prefix("", "a")]),
        of(&|it, _| it.tools.transforms = vec![prefix("a", "")]),
        of(&|it, _| it.tools.transforms = vec![NameTransform::Suffix("a".into())]),
        of(&|it, _| it.tools.naming = NamePolicy::Pass),
        of(&|it, _| it.tools.naming = NamePolicy::Qualify { class: NameClass::Strict }),
        of(&|it, _| it.tools.naming = NamePolicy::Qualify { class: NameClass::WithDot }),
        of(&|it, _| it.tools.naming = NamePolicy::Normalise { class: NameClass::Strict }),
        of(&|it, _| it.tools.naming = NamePolicy::Normalise { class: NameClass::WithDot }),
        of(&|it, _| it.tools.limit = NameLimit::Gemini),
        of(&|it, _| it.tools.limit = NameLimit::Anthropic),
        of(&|_, it| it.request = Duration::from_millis(1)),
        of(&|_, it| it.idle = Some(Duration::from_secs(1))),
        of(&|_, it| it.connect = Duration::from_secs(1)),
        of(&|_, it| it.startup = Duration::from_secs(1)),
        of(&|_, it| it.sse_read = Duration::from_secs(1)),
        of(&|_, it| it.message_bytes = 1),
        of(&|_, it| it.result_bytes = 1),
        of(&|_, it| it.list_items = 1),
        of(&|_, it| it.list_pages = 1),
        Exposed(exposure(), Limits::default(), Sharing::PerOwner, CallRules::default()),
        Exposed(exposure(), Limits::default(), Sharing::Shared, calls),
    ]);
}

#[test]
fn secrets_are_not_printed() {
    let settings = stdio(|it| it.args = vec!["hunter2".into()]);
    assert!(!format!("{:?}", settings.settings()).contains("hunter2"));
}
