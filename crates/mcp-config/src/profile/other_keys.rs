//! Keys of servers in the files of programs that this crate does not imitate in full.
//!
//! Such a key is not a spelling mistake. It is kept; what is lost without it decides whether that is reported.

/// What happens to a key of another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherKey {
    /// It does not change how the server is started and used.
    Irrelevant,
    /// It means the same as this key.
    SameAs(&'static str),
    /// It is not supported. The text says what to write instead.
    Unsupported(&'static str),
}

const HEADERS: &str = "write the headers as `headers`, next to `url`";
const TOKEN_HEADER: &str = "write `headers: {\"Authorization\": \"Bearer ${NAME}\"}`";

/// Keys of editors and agents, in lower case and without `_` and `-`.
pub(crate) const EDITOR_KEYS: &[(&str, OtherKey)] = &[
    // Warp, Visual Studio and others.
    ("workingdirectory", OtherKey::SameAs("cwd")),
    ("workingdir", OtherKey::SameAs("cwd")),
    ("workdir", OtherKey::SameAs("cwd")),
    ("startonlaunch", OtherKey::Irrelevant),
    ("protocol", OtherKey::SameAs("type")),
    ("servertype", OtherKey::SameAs("type")),
    // Goose and Cherry Studio.
    ("cmd", OtherKey::SameAs("command")),
    ("envs", OtherKey::SameAs("env")),
    ("uri", OtherKey::SameAs("url")),
    ("baseurl", OtherKey::SameAs("url")),
    ("endpoint", OtherKey::SameAs("url")),
    ("isactive", OtherKey::Unsupported("to switch the server off, write `\"disabled\": true`")),
    ("envkeys", OtherKey::Unsupported("write the variables in `env`, such as `\"NAME\": \"${NAME}\"`")),
    // Codex.
    ("httpheaders", OtherKey::SameAs("headers")),
    ("envhttpheaders", OtherKey::Unsupported("write `headers: {\"NAME\": \"${VARIABLE}\"}`")),
    ("bearertokenenvvar", OtherKey::Unsupported(TOKEN_HEADER)),
    ("supportsparalleltoolcalls", OtherKey::Irrelevant),
    ("envvars", OtherKey::Irrelevant),
    ("oauthresource", OtherKey::Irrelevant),
    ("experimentalenvironment", OtherKey::Irrelevant),
    ("bundled", OtherKey::Irrelevant),
    ("servername", OtherKey::Irrelevant),
    ("faviconurl", OtherKey::Irrelevant),
    ("oauthheaders", OtherKey::Irrelevant),
    ("ssereadtimeout", OtherKey::Irrelevant),
    ("defaulttoolsapprovalmode", OtherKey::Irrelevant),
    // The MCP SDK for TypeScript and programs that pass its options on, such as Mastra.
    ("requestinit", OtherKey::Unsupported(HEADERS)),
    ("eventsourceinit", OtherKey::Unsupported(HEADERS)),
    // Continue.
    ("requestoptions", OtherKey::Unsupported(HEADERS)),
    // Claude Code.
    (
        "headershelper",
        OtherKey::Unsupported("its program is not run here; write `headers`, with a variable for the secret"),
    ),
    ("alwaysload", OtherKey::Irrelevant),
    // mcp-use and others.
    ("authtoken", OtherKey::Unsupported(TOKEN_HEADER)),
    ("bearertoken", OtherKey::Unsupported(TOKEN_HEADER)),
    ("apikey", OtherKey::Unsupported(TOKEN_HEADER)),
    // VS Code.
    ("sandboxenabled", OtherKey::Irrelevant),
    // Gemini CLI.
    ("targetaudience", OtherKey::Irrelevant),
    ("targetserviceaccount", OtherKey::Irrelevant),
    ("extensionname", OtherKey::Irrelevant),
    // Roo Code and Cline.
    ("watchpaths", OtherKey::Irrelevant),
    ("remoteconfigured", OtherKey::Irrelevant),
    // LibreChat and AnythingLLM.
    ("inittimeout", OtherKey::Unsupported("write `connectionTimeout`, in milliseconds")),
    ("serverinstructions", OtherKey::Irrelevant),
    ("customuservars", OtherKey::Irrelevant),
    ("requiresoauth", OtherKey::Irrelevant),
    ("chatmenu", OtherKey::Irrelevant),
    ("iconpath", OtherKey::Irrelevant),
    ("startup", OtherKey::Irrelevant),
    ("stderr", OtherKey::Irrelevant),
    ("anythingllm", OtherKey::Irrelevant),
    // Copilot CLI.
    ("isdefaultserver", OtherKey::Irrelevant),
    ("sourcepath", OtherKey::Irrelevant),
    ("filtermapping", OtherKey::Irrelevant),
    ("oauthclientid", OtherKey::Irrelevant),
    ("oauthscopes", OtherKey::Irrelevant),
    ("scopes", OtherKey::Irrelevant),
    // Descriptions, in many programs.
    ("title", OtherKey::Irrelevant),
    ("displayname", OtherKey::Irrelevant),
    ("author", OtherKey::Irrelevant),
    ("category", OtherKey::Irrelevant),
    ("homepage", OtherKey::Irrelevant),
    ("license", OtherKey::Irrelevant),
    ("logourl", OtherKey::Irrelevant),
    ("provider", OtherKey::Irrelevant),
    ("providerurl", OtherKey::Irrelevant),
    ("registryurl", OtherKey::Irrelevant),
    ("repository", OtherKey::Irrelevant),
    ("comment", OtherKey::Irrelevant),
    ("note", OtherKey::Irrelevant),
    ("notes", OtherKey::Irrelevant),
    ("id", OtherKey::Irrelevant),
    ("bundled", OtherKey::Irrelevant),
    ("metadata", OtherKey::Irrelevant),
];

/// The meaning of `key` in `table`.
pub(crate) fn find(key: &str, table: &[(&str, OtherKey)]) -> Option<OtherKey> {
    let folded: String =
        key.chars().filter(|it| !matches!(it, '_' | '-')).flat_map(char::to_lowercase).collect();
    table.iter().find(|it| it.0 == folded).map(|it| it.1)
}
