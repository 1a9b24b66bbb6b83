//! Keys of servers in the files of programs that this crate does not imitate in full.
//!
//! Such a key is not a spelling mistake. It is kept; what is lost without it decides whether that is reported.

/// What happens to a key of another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForeignKey {
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
pub(crate) const EDITOR_KEYS: &[(&str, ForeignKey)] = &[
    // Warp, Visual Studio and others.
    ("workingdirectory", ForeignKey::SameAs("cwd")),
    ("workingdir", ForeignKey::SameAs("cwd")),
    ("workdir", ForeignKey::SameAs("cwd")),
    ("startonlaunch", ForeignKey::Irrelevant),
    ("protocol", ForeignKey::SameAs("type")),
    ("servertype", ForeignKey::SameAs("type")),
    // Goose and Cherry Studio.
    ("cmd", ForeignKey::SameAs("command")),
    ("envs", ForeignKey::SameAs("env")),
    ("uri", ForeignKey::SameAs("url")),
    ("baseurl", ForeignKey::SameAs("url")),
    ("endpoint", ForeignKey::SameAs("url")),
    ("isactive", ForeignKey::Unsupported("to switch the server off, write `\"disabled\": true`")),
    ("envkeys", ForeignKey::Unsupported("write the variables in `env`, such as `\"NAME\": \"${NAME}\"`")),
    // Codex.
    ("httpheaders", ForeignKey::SameAs("headers")),
    ("envhttpheaders", ForeignKey::Unsupported("write `headers: {\"NAME\": \"${VARIABLE}\"}`")),
    ("bearertokenenvvar", ForeignKey::Unsupported(TOKEN_HEADER)),
    ("supportsparalleltoolcalls", ForeignKey::Irrelevant),
    ("envvars", ForeignKey::Irrelevant),
    ("oauthresource", ForeignKey::Irrelevant),
    ("experimentalenvironment", ForeignKey::Irrelevant),
    ("bundled", ForeignKey::Irrelevant),
    ("servername", ForeignKey::Irrelevant),
    ("faviconurl", ForeignKey::Irrelevant),
    ("oauthheaders", ForeignKey::Irrelevant),
    ("ssereadtimeout", ForeignKey::Irrelevant),
    ("defaulttoolsapprovalmode", ForeignKey::Irrelevant),
    // The MCP SDK for TypeScript and programs that pass its options on, such as Mastra.
    ("requestinit", ForeignKey::Unsupported(HEADERS)),
    ("eventsourceinit", ForeignKey::Unsupported(HEADERS)),
    // Continue.
    ("requestoptions", ForeignKey::Unsupported(HEADERS)),
    // Claude Code.
    (
        "headershelper",
        ForeignKey::Unsupported(
            "its program is not run here; write `headers`, with a variable for the secret",
        ),
    ),
    ("alwaysload", ForeignKey::Irrelevant),
    // mcp-use and others.
    ("authtoken", ForeignKey::Unsupported(TOKEN_HEADER)),
    ("bearertoken", ForeignKey::Unsupported(TOKEN_HEADER)),
    ("apikey", ForeignKey::Unsupported(TOKEN_HEADER)),
    // VS Code.
    ("sandboxenabled", ForeignKey::Irrelevant),
    // Gemini CLI.
    ("targetaudience", ForeignKey::Irrelevant),
    ("targetserviceaccount", ForeignKey::Irrelevant),
    ("extensionname", ForeignKey::Irrelevant),
    // Roo Code and Cline.
    ("watchpaths", ForeignKey::Irrelevant),
    ("remoteconfigured", ForeignKey::Irrelevant),
    // LibreChat and AnythingLLM.
    ("inittimeout", ForeignKey::Unsupported("write `connectionTimeout`, in milliseconds")),
    ("serverinstructions", ForeignKey::Irrelevant),
    ("customuservars", ForeignKey::Irrelevant),
    ("requiresoauth", ForeignKey::Irrelevant),
    ("chatmenu", ForeignKey::Irrelevant),
    ("iconpath", ForeignKey::Irrelevant),
    ("startup", ForeignKey::Irrelevant),
    ("stderr", ForeignKey::Irrelevant),
    ("anythingllm", ForeignKey::Irrelevant),
    // Copilot CLI.
    ("isdefaultserver", ForeignKey::Irrelevant),
    ("sourcepath", ForeignKey::Irrelevant),
    ("filtermapping", ForeignKey::Irrelevant),
    ("oauthclientid", ForeignKey::Irrelevant),
    ("oauthscopes", ForeignKey::Irrelevant),
    ("scopes", ForeignKey::Irrelevant),
    // Descriptions, in many programs.
    ("title", ForeignKey::Irrelevant),
    ("displayname", ForeignKey::Irrelevant),
    ("author", ForeignKey::Irrelevant),
    ("category", ForeignKey::Irrelevant),
    ("homepage", ForeignKey::Irrelevant),
    ("license", ForeignKey::Irrelevant),
    ("logourl", ForeignKey::Irrelevant),
    ("provider", ForeignKey::Irrelevant),
    ("providerurl", ForeignKey::Irrelevant),
    ("registryurl", ForeignKey::Irrelevant),
    ("repository", ForeignKey::Irrelevant),
    ("comment", ForeignKey::Irrelevant),
    ("note", ForeignKey::Irrelevant),
    ("notes", ForeignKey::Irrelevant),
    ("id", ForeignKey::Irrelevant),
    ("bundled", ForeignKey::Irrelevant),
    ("metadata", ForeignKey::Irrelevant),
];

/// The meaning of `key` in `table`.
pub(crate) fn find(key: &str, table: &[(&str, ForeignKey)]) -> Option<ForeignKey> {
    let folded: String =
        key.chars().filter(|it| !matches!(it, '_' | '-')).flat_map(char::to_lowercase).collect();
    table.iter().find(|it| it.0 == folded).map(|it| it.1)
}
