//! Tools of a `tools/list` result.
//!
//! A tool keeps its definition as bytes, and its JSON fields are slices of these, so ten thousand tools need little
//! more memory than their JSON.

use std::borrow::Cow;

use bytestring::ByteString;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::raw::RawJson;
use crate::lists::page::{ItemDefinition, ListItem, Page, read_list};

/// The name of the extension for apps: user interfaces that a server offers as resources.
pub const APPS_EXTENSION: &str = "io.modelcontextprotocol/ui";

/// One tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tool {
    /// The server's name for it.
    pub name: Box<str>,
    /// The description, a JSON string.
    pub description: Option<RawJson>,
    /// The JSON Schema of the arguments: an object. If the server states none, it is that of any object.
    pub input_schema: RawJson,
    /// The JSON Schema of the structured result.
    pub output_schema: Option<RawJson>,
    /// The annotations about its effects.
    pub hints: ToolHints,
    /// Whether a call may be a task of 2025-11-25.
    pub task_support: TaskSupport,
    /// The complete definition.
    pub raw: RawJson,
}

impl Tool {
    /// Returns the decoded description, empty if there is none.
    pub fn description_text(&self) -> Cow<'_, str> {
        self.description.as_ref().and_then(RawJson::to_text).unwrap_or_default()
    }

    /// Returns whether models may see the tool. A tool whose `_meta.ui.visibility` does not contain `model` is for apps
    /// (the user interfaces of a server) only.
    pub fn is_for_models(&self) -> bool {
        #[derive(Deserialize)]
        struct UiJson {
            visibility: Vec<String>,
        }
        // Fast path: most definitions do not contain `visibility`, not even with `\u` escapes.
        let text = self.raw.as_bytes();
        if ["visibility", "\\u"].iter().all(|part| memchr::memmem::find(text, part.as_bytes()).is_none()) {
            return true;
        }
        // A definition without the member, or with another form of it, is for models.
        let Ok(WithMeta { meta: WithUi { ui: UiJson { visibility } } }) = self.raw.read() else {
            return true;
        };
        visibility.iter().any(|audience| audience == "model")
    }

    /// Returns the URI of the tool's app: `_meta.ui.resourceUri`, or its deprecated form `_meta["ui/resourceUri"]`.
    pub fn app_uri(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct UiJson {
            #[serde(rename = "resourceUri")]
            uri: String,
        }
        #[derive(Deserialize)]
        struct DeprecatedMetaJson {
            #[serde(rename = "ui/resourceUri")]
            uri: String,
        }
        match self.raw.read() {
            Ok(WithMeta { meta: WithUi { ui: UiJson { uri } } }) => Some(uri),
            Err(_) => self.raw.read().ok().map(|WithMeta { meta: DeprecatedMetaJson { uri } }| uri),
        }
    }
}

/// A definition with `_meta` of the type `T`.
#[derive(Deserialize)]
struct WithMeta<T> {
    #[serde(rename = "_meta")]
    meta: T,
}

/// The `_meta` of a tool with an app; `T` is the type of its `ui`.
#[derive(Deserialize)]
struct WithUi<T> {
    ui: T,
}

/// The annotations of a tool about its effects. They are claims of the server: a host shows them, and uses them only to
/// decide whether a call whose response was lost may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ToolHints {
    /// `readOnlyHint`.
    pub read_only: Option<bool>,
    /// `destructiveHint`.
    pub destructive: Option<bool>,
    /// `idempotentHint`.
    pub idempotent: Option<bool>,
    /// `openWorldHint`.
    pub open_world: Option<bool>,
}

impl ToolHints {
    /// Returns whether a call whose response was lost may be repeated.
    pub fn is_repeatable(self) -> bool {
        self.read_only == Some(true) || self.idempotent == Some(true)
    }
}

/// `execution.taskSupport` of 2025-11-25: whether a call may or must request a task. Counts only if the server has the
/// capability `tasks.requests.tools.call`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TaskSupport {
    /// A call must not request a task.
    #[default]
    Forbidden,
    /// A call may request a task.
    Optional,
    /// A call must request a task.
    Required,
}

/// Reads the result of `tools/list`. Fails if it is not a list. The result is at the start of `result`, which need
/// not be validated; what follows it is ignored.
pub fn read_tools<B: AsRef<[u8]> + ?Sized>(result: &B) -> Result<Page<Tool>, serde_json::Error> {
    read_list::<ToolJson<'_>>(result.as_ref(), "tools")
}

#[derive(Deserialize)]
struct ToolJson<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    description: Option<&'a RawValue>,
    #[serde(borrow, rename = "inputSchema")]
    input_schema: Option<&'a RawValue>,
    #[serde(borrow, rename = "outputSchema")]
    output_schema: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    execution: Option<&'a RawValue>,
}

impl<'a> ListItem<'a> for ToolJson<'a> {
    type Output = Tool;
    const LABEL: &'static str = "a tool";

    fn read(self, definition: ItemDefinition<'a>) -> Result<Tool, String> {
        let is_object = |json: &&RawValue| json.get().starts_with('{');
        let input_schema = match self.input_schema {
            Some(schema) if is_object(&schema) => definition.slice(schema),
            // Programs without such a schema write nothing, null, an empty list, or the schema that is `true`.
            None => any_arguments(),
            Some(schema) if matches!(schema.get(), "null" | "[]" | "true") => any_arguments(),
            Some(_) => return Err("its `inputSchema` is no object".to_owned()),
        };
        if self.name.is_empty() {
            return Err("its name is empty".to_owned());
        }
        Ok(Tool {
            name: self.name.as_ref().into(),
            description: definition.string_slice(self.description),
            input_schema,
            output_schema: self.output_schema.filter(is_object).map(|schema| definition.slice(schema)),
            hints: self.annotations.map(read_hints).unwrap_or_default(),
            task_support: self.execution.map(read_task_support).unwrap_or_default(),
            raw: definition.raw,
        })
    }
}

/// The schema of a tool that states none: any arguments.
fn any_arguments() -> RawJson {
    RawJson::from_valid(ByteString::from_static(r#"{"type":"object"}"#))
}

/// Reads `annotations`. An annotation of the wrong type counts as missing.
fn read_hints(annotations: &RawValue) -> ToolHints {
    let members: std::collections::BTreeMap<Cow<'_, str>, &RawValue> =
        serde_json::from_str(annotations.get()).unwrap_or_default();
    let flag = |key: &str| members.get(key).and_then(|value| serde_json::from_str(value.get()).ok());
    ToolHints {
        read_only: flag("readOnlyHint"),
        destructive: flag("destructiveHint"),
        idempotent: flag("idempotentHint"),
        open_world: flag("openWorldHint"),
    }
}

/// Reads `execution`. A value of the wrong form counts as missing.
fn read_task_support(execution: &RawValue) -> TaskSupport {
    #[derive(Deserialize)]
    struct ExecutionJson {
        #[serde(default, rename = "taskSupport")]
        task_support: TaskSupport,
    }
    serde_json::from_str::<ExecutionJson>(execution.get()).map(|json| json.task_support).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[track_caller]
    fn check(tools: &str, want: &str) {
        let json = format!("{{\"tools\":{tools},\"nextCursor\":\"\"}}");
        let page = read_tools(&RawJson::parse(Bytes::from(json)).unwrap()).unwrap();
        assert!(page.next_cursor.is_some_and(|cursor| cursor.is_empty()), "an empty cursor is a cursor");
        let items = page.items.iter().map(|it| format!("{}({})", it.name, it.description_text()));
        let rejected =
            page.rejected.iter().map(|it| format!("!{}: {}", it.name.as_deref().unwrap_or("?"), it.reason));
        assert_eq!(items.chain(rejected).collect::<Vec<_>>().join("; "), want);
    }

    #[test]
    fn hd_sc8_one_malformed_tool_leaves_the_others() {
        check(
            r#"[{"name":"a","inputSchema":{}},{"name":"b","inputSchema":7},{"name":"c","description":"x\ty","inputSchema":{"type":"object"}}]"#,
            "a(); c(x\ty); !b: its `inputSchema` is no object",
        );
        check(r#"[{"name":"a","inputSchema":"x"}]"#, "!a: its `inputSchema` is no object");
        check(r#"[{"name":"","inputSchema":{}}]"#, "!: its name is empty");
        check(r#"[{"name":"a","inputSchema":{},"description":7,"annotations":[]}]"#, "a()");
        check("[]", "");
    }

    // RPT-010
    #[test]
    fn tool_without_an_input_schema_accepts_any_arguments() {
        for schema in ["", r#","inputSchema":null"#, r#","inputSchema":[]"#, r#","inputSchema":true"#] {
            let page = read_tools(&format!(r#"{{"tools":[{{"name":"a"{schema}}}]}}"#)).unwrap();
            assert_eq!(page.items[0].input_schema.as_str(), r#"{"type":"object"}"#, "{schema}");
        }
    }

    #[test]
    fn rejects_results_without_a_list() {
        check("[],\"prompts\":{},\"x\":[]", "");
        for text in ["{}", "[]", r#"{"tools":{}}"#, "null"] {
            assert!(read_tools(&RawJson::parse(Bytes::from(text)).unwrap()).is_err(), "{text}");
        }
    }

    #[test]
    fn invalid_hint_leaves_the_others() {
        let json = r#"{"tools":[{"name":"a","inputSchema":{},"annotations":{"readOnlyHint":true,"idempotentHint":"yes"}}]}"#;
        let page = read_tools(&RawJson::parse(Bytes::from(json)).unwrap()).unwrap();
        let hints = page.items[0].hints;
        assert_eq!((hints.read_only, hints.idempotent), (Some(true), None));
        assert!(hints.is_repeatable());
    }

    #[test]
    fn app_uri_is_read_from_both_forms() {
        let app = |meta: &str| {
            let json = format!(r#"{{"tools":[{{"name":"a","inputSchema":{{}},"_meta":{meta}}}]}}"#);
            read_tools(&RawJson::parse(Bytes::from(json)).unwrap()).unwrap().items[0].app_uri()
        };
        let found = Some("ui://a/b".to_owned());
        assert_eq!(app(r#"{"ui":{"resourceUri":"ui:\/\/a/b","visibility":7},"x":1}"#), found);
        assert_eq!(app(r#"{"ui/resourceUri":"ui://a/b","ui":{"visibility":["app"]}}"#), found);
        for none in ["{}", "7", "null", r#"{"ui":{"resourceUri":7}}"#, r#"{"ui":"ui://a/b"}"#] {
            assert_eq!(app(none), None, "{none}");
        }
    }

    #[test]
    fn task_support_is_forbidden_unless_stated() {
        let support = |execution: &str| {
            let json = format!(r#"{{"tools":[{{"name":"a","inputSchema":{{}},"execution":{execution}}}]}}"#);
            read_tools(&RawJson::parse(Bytes::from(json)).unwrap()).unwrap().items[0].task_support
        };
        assert_eq!(support(r#"{"taskSupport":"required"}"#), TaskSupport::Required);
        assert_eq!(support(r#"{"x":1,"taskSupport":"optional"}"#), TaskSupport::Optional);
        for forbidden in [r#"{"taskSupport":"forbidden"}"#, r#"{"taskSupport":7}"#, "{}", "null", "[]"] {
            assert_eq!(support(forbidden), TaskSupport::Forbidden, "{forbidden}");
        }
    }

    #[test]
    fn tool_does_not_keep_its_page_alive() {
        let padding = " ".repeat(1 << 20);
        let json = format!("{{{padding}\"tools\":[{{\"name\":\"a\",\"inputSchema\":{{}}}}]}}");
        let result = RawJson::parse(Bytes::from(json)).unwrap();
        let tool = read_tools(&result).unwrap().items.remove(0);
        let page = result.as_bytes().as_ptr_range();
        assert!(!page.contains(&tool.raw.as_bytes().as_ptr()));
        assert_eq!(tool.input_schema.as_bytes().as_ptr(), tool.raw.as_bytes()[26..].as_ptr());
    }
}
