//! Entries of `mcpServers` with the verdicts of the official schema and of ours.
//!
//! The rows are all known differences between the schemas of a version, plus common entries.

/// An entry; `takes` or `refuses` for the official schema and for ours; and the reason of a difference.
pub(crate) type Sample<'a> = (&'a str, &'a str, &'a str);

const TYPES_ONLY: &str = "ACP-012, ACP-022 to ACP-025, ACP-040: the official schema looks at types only";
const NULL: &str =
    "ACPX-09: the official types read null as an empty list; their schema says so by a private key alone";
const META: &str =
    "ACPX-09: the official types ignore a `_meta` of another type, as we do; their schema does not";
const UNTAGGED: &str =
    "ACP-006: stdio has no tag in the official schema, so that an unknown type is taken for it";
const OTHER: &str =
    "ACPX-11: a type that does not begin with `_` is the protocol's to define, and no agent supports it yet";
const NAMELESS: &str = "ACP-040: a server without a name cannot be told of";

/// Version 1.
pub(crate) const V1: &[Sample<'_>] = &[
    (r#"{"name":"a","command":"/a","args":[],"env":[]}"#, "takes takes", ""),
    (
        r#"{"type":"stdio","name":"a","command":"/a","args":["x"],"env":[{"name":"K","value":"v"}]}"#,
        "takes takes",
        "",
    ),
    (
        r#"{"type":"http","name":"a","url":"https://a.example","headers":[{"name":"K","value":"v"}]}"#,
        "takes takes",
        "",
    ),
    (r#"{"type":"sse","name":"a","url":"https://a.example","headers":[]}"#, "takes takes", ""),
    (r#"{"type":"acp","name":"a","serverId":"1"}"#, "takes takes", ""),
    (r#"{"name":"a","command":"/a","args":[],"env":[],"_meta":{"k":1},"_own":2}"#, "takes takes", ""),
    (r#"{"name":"a","command":"/a","args":[],"env":[],"_meta":7}"#, "refuses takes", META),
    (r#"{"name":"a","command":"/a","args":[],"env":[],"cwd":"/desk"}"#, "takes takes", ""),
    (r#"{"name":"a","command":"/a","args":[]}"#, "refuses refuses", ""),
    (r#"{"name":"a","command":"/a","env":[]}"#, "refuses refuses", ""),
    (r#"{"type":"http","name":"a","url":"https://a.example"}"#, "refuses refuses", ""),
    (r#"{"name":"a","args":[],"env":[]}"#, "refuses refuses", ""),
    (r#"{"command":"/a","args":[],"env":[]}"#, "refuses refuses", ""),
    (r#"{"name":"a","command":"/a","args":null,"env":[]}"#, "refuses takes", NULL),
    (r#"{"name":"a","command":"/a","args":[],"env":null}"#, "refuses takes", NULL),
    (r#"{"type":"http","name":"a","url":"https://a.example","headers":null}"#, "refuses takes", NULL),
    (r#"{"name":"a","command":"/a","args":[1],"env":[]}"#, "refuses refuses", ""),
    (r#"{"name":"a","command":"/a","args":[],"env":{"K":"v"}}"#, "refuses refuses", ""),
    (r#"{"name":"a","command":"/a","args":[],"env":[{"name":"K"}]}"#, "refuses refuses", ""),
    (r#"{"name":"a","command":"/a","args":[],"env":[{"name":"K","value":1}]}"#, "refuses refuses", ""),
    (r#"{"name":"a","command":"npx","args":[],"env":[]}"#, "takes refuses", TYPES_ONLY),
    (r#"{"name":"a","command":"","args":[],"env":[]}"#, "takes refuses", TYPES_ONLY),
    (r#"{"name":"","command":"/a","args":[],"env":[]}"#, "takes refuses", TYPES_ONLY),
    (r#"{"name":"a","command":"/a","args":[],"env":[{"name":"","value":"v"}]}"#, "takes refuses", TYPES_ONLY),
    (r#"{"type":"http","name":"a","url":"","headers":[]}"#, "takes refuses", TYPES_ONLY),
    (r#"{"type":"http","name":"a","url":"ftp://a.example","headers":[]}"#, "takes refuses", TYPES_ONLY),
    (
        r#"{"type":"sse","name":"a","url":"https://a.example","headers":[{"name":"","value":"v"}]}"#,
        "takes refuses",
        TYPES_ONLY,
    ),
    (r#"{"name":"a","command":"/a","args":[],"env":[],"cwd":"desk"}"#, "takes refuses", TYPES_ONLY),
    (r#"{"type":"websocket","name":"a","command":"/a","args":[],"env":[]}"#, "takes refuses", UNTAGGED),
    (r#"{"type":"http","name":"a","command":"/a","args":[],"env":[]}"#, "takes refuses", UNTAGGED),
    (r#"{"type":null,"name":"a","command":"/a","args":[],"env":[]}"#, "takes refuses", UNTAGGED),
    (r#"{"type":"acp","name":"a","command":"/a","args":[],"env":[]}"#, "takes refuses", UNTAGGED),
    (r#"{"type":"websocket","name":"a","url":"wss://a.example"}"#, "refuses refuses", ""),
    (r#"{"name":"a","url":"https://a.example","headers":[]}"#, "refuses refuses", ""),
    (r#""a""#, "refuses refuses", ""),
];

/// The draft of version 2.
pub(crate) const V2: &[Sample<'_>] = &[
    (r#"{"type":"stdio","name":"a","command":"/a"}"#, "takes takes", ""),
    (
        r#"{"type":"stdio","name":"a","command":"/a","args":["x"],"env":[{"name":"K","value":"v"}]}"#,
        "takes takes",
        "",
    ),
    (r#"{"type":"http","name":"a","url":"https://a.example"}"#, "takes takes", ""),
    (r#"{"type":"acp","name":"a","serverId":"1"}"#, "takes takes", ""),
    (r#"{"type":"_pigeon","name":"a","loft":7}"#, "takes takes", ""),
    (r#"{"name":"a","command":"/a"}"#, "refuses refuses", ""),
    (r#"{"type":"stdio","name":"a"}"#, "refuses refuses", ""),
    (r#"{"type":"acp","name":"a"}"#, "refuses refuses", ""),
    (r#"{"type":"stdio","name":"a","command":"/a","args":null}"#, "refuses takes", NULL),
    (r#"{"type":"http","name":"a","url":"https://a.example","headers":null}"#, "refuses takes", NULL),
    (r#"{"type":"stdio","name":"a","command":"/a","args":"x"}"#, "refuses refuses", ""),
    (r#"{"type":"stdio","name":"a","command":"npx"}"#, "takes refuses", TYPES_ONLY),
    (r#"{"type":"stdio","name":"","command":"/a"}"#, "takes refuses", TYPES_ONLY),
    (r#"{"type":"http","name":"a","url":"ftp://a.example"}"#, "takes refuses", TYPES_ONLY),
    (r#"{"type":"http","name":"a","url":""}"#, "takes refuses", TYPES_ONLY),
    (r#"{"type":"acp","name":"a","serverId":""}"#, "takes refuses", TYPES_ONLY),
    (r#"{"type":"sse","name":"a","url":"https://a.example","headers":[]}"#, "takes refuses", OTHER),
    (r#"{"type":"websocket","name":"a","url":"wss://a.example"}"#, "takes refuses", OTHER),
    (r#"{"type":"_pigeon","loft":7}"#, "takes refuses", NAMELESS),
    (r#"{"type":null,"name":"a","command":"/a"}"#, "refuses refuses", ""),
];
