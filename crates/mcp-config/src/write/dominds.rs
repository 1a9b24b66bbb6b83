//! Dominds' servers.

use mcp_model::{
    Discovery, EnvInherit, Exposure, Filter, NamePolicy, RawJson, Rules, ServerSpec, Sharing, StdioSpec,
    Transform, TransportSpec, UrlSpec,
};
use serde::Deserialize;

use super::values::{self, host_value, own, spelt};
use super::{Data, Report, common};
use crate::dialect::checks::{self, UrlRule};
use crate::dialect::policy::VariableRule;

const RULE: VariableRule = VariableRule::Literal;

pub(super) fn entry(server: &ServerSpec, report: &mut Report<'_>) -> Option<(String, Data)> {
    let ServerSpec {
        id,
        description,
        origin,
        transport,
        limits,
        discovery,
        exposure,
        sharing,
        config,
        metadata,
    } = server;
    let mut res = match transport {
        TransportSpec::Stdio(spec) => {
            let StdioSpec { command, args, env, env_file, inherit, cwd, encoding } = spec;
            let command = match own(command, origin.dialect, RULE) {
                Ok(text) => text,
                Err(why) => return report.left_out("command", why),
            };
            let mut res = vec![
                ("transport".to_owned(), Data::text("stdio")),
                ("command".to_owned(), Data::Text(command)),
            ];
            common::unless_empty(&mut res, "args", Data::List(values::arguments(args, RULE, report)?));
            match cwd.as_ref().map(|it| own(it, origin.dialect, RULE)) {
                Some(Ok(text)) => res.push(("cwd".to_owned(), Data::Text(text))),
                Some(Err(why)) => report.lost("cwd", why),
                None => {}
            }
            let mut env = values::entries("env", env, report, host_value);
            common::config(config.as_ref(), Some(&mut env), Data::Text, report);
            common::unless_empty(&mut res, "env", Data::Map(env));
            if env_file.is_some() {
                report.unsaid("env_file", "a file of variables");
            }
            if encoding != "utf-8" {
                report.unsaid("encoding", "an encoding");
            }
            common::inherit(*inherit, EnvInherit::All, report);
            res
        }
        TransportSpec::Http(spec) => {
            common::config(config.as_ref(), None, Data::Text, report);
            http(spec, report)?
        }
        TransportSpec::Sse(_) | TransportSpec::WebSocket(_) => {
            let why = format!("{} knows no {} transport", report.title(), transport.kind().as_str());
            return report.left_out("transport", why);
        }
    };
    match sharing {
        Sharing::Shared => res.push(("truely-stateless".to_owned(), Data::word(true))),
        Sharing::PerOwner => {}
    }
    if description.is_some() {
        report.unsaid("description", "what a server is for");
    }
    let hidden = hidden(*discovery, exposure, report);
    res.extend(exposed(exposure, hidden, metadata.get("resources")));
    common::naming(exposure, [NamePolicy::Reject, NamePolicy::Slug, NamePolicy::Slug], report);
    common::limits(limits, transport.kind(), &[], report);
    common::metadata(metadata, &["resources"], report);
    Some((id.to_string(), Data::Map(res)))
}

fn http(spec: &UrlSpec, report: &mut Report<'_>) -> Option<Vec<(String, Data)>> {
    let UrlSpec { url, headers, session_id, terminate_on_close, sse_fallback } = spec;
    common::fallback(*sse_fallback, report);
    let text = match spelt(url, RULE) {
        Ok(text) => text,
        Err(why) => return report.left_out("url", why),
    };
    if checks::parse_url(&text, UrlRule::Http).is_err() {
        return report.left_out("url", "it is no http or https URL");
    }
    let mut res =
        vec![("transport".to_owned(), Data::text("streamable_http")), ("url".to_owned(), Data::text(text))];
    let headers = values::entries("headers", headers, report, host_value);
    common::unless_empty(&mut res, "headers", Data::Map(headers));
    match session_id.as_ref().map(|it| spelt(it, RULE)) {
        Some(Ok(text)) => res.push(("sessionId".to_owned(), Data::text(text))),
        Some(Err(why)) => report.lost("session_id", why),
        None => {}
    }
    if !terminate_on_close {
        report.unsaid("terminate_on_close", "a session that is left open");
    }
    Some(res)
}

/// Which of the first two lists are hidden because they are not listed.
fn hidden(discovery: Discovery, exposure: &Exposure, report: &mut Report<'_>) -> [bool; 3] {
    let Discovery { tools, prompts } = discovery;
    let mut hide = |list: &str, listed: bool, rules: &Rules| {
        let free = rules.filter == Filter::default();
        if !listed && free {
            let why = format!("{} has no word for what is not listed", report.title());
            report.instead(
                format!("discovery.{list}"),
                why,
                format!("hid them all, with a blacklist of {list}"),
            );
        } else if !listed {
            report.unsaid(format!("discovery.{list}"), "what is not listed");
        }
        !listed && free
    };
    [hide("tools", tools, &exposure.tools), hide("prompts", prompts, &exposure.prompts), false]
}

/// The three lists, and the transforms that stand at the server.
fn exposed(exposure: &Exposure, hidden: [bool; 3], settings: Option<&RawJson>) -> Vec<(String, Data)> {
    let lists = common::lists(exposure);
    // Those of the resources, which their skills follow too; a list of its own stands in place of it, even an empty one.
    let shared = &exposure.resources.transforms;
    let mut res = Vec::new();
    for ((list, rules), hidden) in lists.into_iter().zip(hidden) {
        let Rules { filter: Filter { whitelist, blacklist }, transforms, naming: _, limit: _ } = rules;
        let mut members = Vec::new();
        common::unless_empty(&mut members, "whitelist", patterns(whitelist));
        common::unless_empty(&mut members, "blacklist", patterns(blacklist));
        if hidden {
            members.push(("blacklist".to_owned(), Data::List(vec![Data::text("*")])));
        }
        if transforms != shared {
            members.push(("transform".to_owned(), self::transforms(transforms)));
        }
        if let ("resources", Some(settings)) = (list, settings) {
            members.extend(settings_of(settings));
        }
        common::unless_empty(&mut res, list, Data::Map(members));
    }
    common::unless_empty(&mut res, "transform", self::transforms(shared));
    res
}

fn patterns(patterns: &[String]) -> Data {
    Data::List(patterns.iter().map(Data::text).collect())
}

fn transforms(transforms: &[Transform]) -> Data {
    let map = |key: &str, value: Data| Data::Map(vec![(key.to_owned(), value)]);
    let one = |it: &Transform| match it {
        Transform::Prefix { remove, add } if remove.is_empty() => map("prefix", Data::text(add)),
        Transform::Prefix { remove, add } => {
            let members =
                vec![("remove".to_owned(), Data::text(remove)), ("add".to_owned(), Data::text(add))];
            map("prefix", Data::Map(members))
        }
        Transform::Suffix(text) => map("suffix", Data::text(text)),
    };
    Data::List(transforms.iter().map(one).collect())
}

/// What the reader keeps of `resources` besides its rules.
fn settings_of(json: &RawJson) -> Vec<(String, Data)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Settings {
        mime_types: Vec<String>,
        max_bytes: Option<i64>,
        skills: Option<Skills>,
    }
    #[derive(Deserialize)]
    struct Skills {
        enabled: bool,
        whitelist: Vec<String>,
        blacklist: Vec<String>,
    }
    let Ok(Settings { mime_types, max_bytes, skills }) = json.read() else { return Vec::new() };
    let mut res = Vec::new();
    common::unless_empty(&mut res, "mimeTypes", patterns(&mime_types));
    if let Some(bytes) = max_bytes {
        res.push(("maxBytes".to_owned(), Data::word(bytes)));
    }
    if let Some(Skills { enabled, whitelist, blacklist }) = skills {
        let mut members = vec![("enabled".to_owned(), Data::word(enabled))];
        common::unless_empty(&mut members, "whitelist", patterns(&whitelist));
        common::unless_empty(&mut members, "blacklist", patterns(&blacklist));
        res.push(("skills".to_owned(), Data::Map(members)));
    }
    res
}
