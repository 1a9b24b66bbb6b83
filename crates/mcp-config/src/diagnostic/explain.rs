//! The explanation of each code: its meaning, an example, and what to do.

use crate::diagnostic::Code;

impl Code {
    /// The meaning of the code, with an example, as Markdown.
    pub fn explain(self) -> &'static str {
        match self {
            Code::Syntax => {
                "The file is not well-formed YAML, JSON or TOML, so nothing of it was read. Common causes: an open \
                 quote or bracket, a missing comma, a line that is indented with a tab, an alias without an \
                 anchor.\n\n```yaml\nservers:\n\ta:   # a tab\n```\n\nYAML is indented with spaces only. In \
                 a file, JSON may have comments and trailing commas; in a request it is strict. The \
                 position is where parsing stopped. The cause is often on the line before. Further mistakes are \
                 reported in the same run while the parser can continue reliably."
            }
            Code::DuplicateKey => {
                "A mapping has the same key twice. Many parsers silently use the last one; here it is always an \
                 error, and both positions are shown.\n\n```yaml\ncommand: npx\ncommand: uvx\n```\n\nRemove one of \
                 them."
            }
            Code::TooLarge => {
                "The file exceeds a limit: 1 MiB, 64 levels of nesting, 100,000 values, or 1,000 servers. Aliases \
                 count with their target, in values and in depth. An agent of the profile `holodeck-0.7` has at most \
                 50 tools.\n\n```yaml\na: &a [x, x]\nb: &b [*a, *a]   # and so on: each line doubles \
                 it\n```\n\nSplit the file."
            }
            Code::ManyDocuments => {
                "The file has more than one YAML document. None is read, because it is ambiguous which one \
                 counts.\n\n```yaml\nversion: 1\n---\nversion: 1\n```\n\nKeep one document and remove the `---`."
            }
            Code::UnknownTag => {
                "A value has a YAML tag that is not supported. Only the tags of YAML's core schema are: `!!str`, \
                 `!!int`, `!!float`, `!!bool`, `!!null`, `!!map` and `!!seq`.\n\n```yaml\ntools: \
                 !!python/object:os.system {}\n```\n\nRemove the tag."
            }
            Code::BadKey => {
                "A key of a mapping is not a string. A list or mapping is never a key; a number or `true` must be \
                 quoted where names are expected.\n\n```yaml\nenv:\n  8080: x      # write \"8080\": x\n```"
            }
            Code::WrongType => {
                "A value has the wrong type, such as a number instead of a string, or a string instead of a list. \
                 YAML 1.2 reads `yes`, `no`, `on` and `off` as strings, and unquoted digits as a \
                 number.\n\n```yaml\nenv:\n  PORT: 8080   # write \"8080\"\nargs: -y       # write \
                 [\"-y\"]\nload_tools: no # write false\n```"
            }
            Code::MissingKey => {
                "A required key is missing.\n\n```yaml\ntools:\n  - type: mcp     # no `name`\n    server: \
                 \"@scope/server\"\n    command: npx\n```\n\nAdd the key. A missing `description` is only a warning, \
                 except in the profile `holodeck-0.7`."
            }
            Code::EmptyValue => {
                "A required value is empty.\n\n```yaml\nservers:\n  a:\n    transport: stdio\n    command: \
                 \"\"\n```\n\nGive it a value, or remove the key if it is optional."
            }
            Code::UnknownKey => {
                "A key is not known here and has no effect. The help suggests the key that was probably \
                 meant.\n\n```yaml\ntruly-stateless: true   # it is spelled truely-stateless\n```\n\nThis is an \
                 error in an `agent.yaml` and a warning in a `.minds/mcp.yaml`. In the files of editors, a key of \
                 another program is reported if something is lost without it."
            }
            Code::UnknownWord => {
                "A value is not one of the allowed words. Case matters.\n\n```yaml\ntransport: STDIO   # write \
                 stdio\n```\n\nHoloDeck has the transports `stdio`, `sse`, `websocket` and `http`; Dominds `stdio` \
                 and `streamable_http`; ACP `stdio`, `http` and, in version 1, `sse`; editors several spellings of \
                 these."
            }
            Code::OutOfRange => {
                "A number is too small or too large. Durations are in seconds, finite, and greater than zero; \
                 `request_timeout` is a whole number.\n\n```yaml\nrequest_timeout: 0\n```"
            }
            Code::Exclusive => {
                "Two keys have the same meaning or exclude each other, so it is ambiguous which one \
                 counts.\n\n```yaml\nenvFile: .env\nenv_file: other.env\n```\n\nKeep one of them."
            }
            Code::InvalidName => {
                "A server's name is invalid. It has 1 to 256 bytes and no control characters; in the profile \
                 `holodeck-0.7` only ASCII letters, digits and `_`.\n\n```yaml\ntools:\n  - name: \"\"\n    type: \
                 mcp\n```"
            }
            Code::DuplicateName => {
                "Two tools of an agent, or two servers of a file or session, have the same name. Names are unique \
                 across all tools of an agent, whatever their type, because a call refers to a tool by name \
                 only.\n\n```yaml\ntools:\n  - {name: search, type: function}\n  - {name: search, type: mcp, \
                 command: npx}\n```\n\nRename one of them."
            }
            Code::InvalidCommand => {
                "The command is not allowed. HoloDeck starts only certain programs, so that a configuration cannot \
                 run arbitrary ones. `command` is one word in lower case; arguments belong into \
                 `args`.\n\n```yaml\ncommand: bash            # not allowed\ncommand: npx -y server   # write \
                 command: npx, args: [\"-y\", \"server\"]\n```"
            }
            Code::MissingCommand => {
                "A server with transport `stdio` has no command.\n\n```yaml\nservers:\n  a:\n    transport: stdio   \
                 # and no command\n```\n\nAdd `command`. If the server has a URL, change `transport`."
            }
            Code::MissingUrl => {
                "A server with a URL transport has no URL.\n\n```yaml\ntransport: http\n# url: \
                 https://example.com/mcp\n```\n\nAdd `url`. If the server is a program, the transport is `stdio`."
            }
            Code::UrlScheme => {
                "The scheme of the URL does not fit the transport. HoloDeck's `sse` and `http` require https; http \
                 is allowed only for this machine (`localhost`, `127.0.0.0/8`, `[::1]`, compared with the parsed \
                 host). `websocket` requires wss or ws.\n\n```yaml\nurl: http://localhost.example.com/   # not this \
                 machine\n```"
            }
            Code::InvalidUrl => {
                "The URL is invalid: it has no host, an invalid port, or whitespace.\n\n```yaml\nurl: \
                 https:///mcp\n```\n\nWrite scheme, host and path: `https://example.com/mcp`."
            }
            Code::ForeignField => {
                "The item has both a command and a URL, so its transport is ambiguous.\n\n```yaml\ntransport: \
                 stdio\ncommand: npx\nurl: https://example.com/mcp\n```\n\nRemove the field that does not belong to \
                 the transport, or change `transport`."
            }
            Code::NoEffect => {
                "The field belongs to another transport and is ignored.\n\n```yaml\ntransport: websocket\nurl: \
                 wss://example.com/\nheaders: {A: b}   # a websocket has no headers\n```\n\nRemove it."
            }
            Code::VariableNotAllowed => {
                "A field without variables contains `${`. Variables in `name`, `type`, `transport` and `command` are \
                 never replaced, so that the environment cannot choose what is run.\n\n```yaml\ncommand: \
                 ${RUNNER}\n```\n\nWrite the value itself."
            }
            Code::UnknownEncoding => {
                "The encoding is not a label of the WHATWG encoding standard, or cannot be used on a pipe \
                 (UTF-16).\n\n```yaml\nencoding: latin-1   # write latin1\n```\n\nNearly every server uses utf-8, \
                 which needs no `encoding`."
            }
            Code::InvalidHeader => {
                "The name or value of a header is invalid. A name has ASCII letters, digits and a few signs; a value \
                 is one line. Anything else would break the request or add headers to it.\n\n```yaml\nheaders:\n  \
                 \"Bad Header\": x\n```\n\n`Host`, `Content-Length` and `Transfer-Encoding` are set by the \
                 connection and are refused in the files of editors and in sessions."
            }
            Code::InvalidEnvironment => {
                "The operating system does not accept an environment variable or an argument. The name of a variable \
                 is not empty and has no `=`; names, values and arguments have no NUL character.\n\n```yaml\nenv:\n  \
                 \"A=B\": x\n```"
            }
            Code::EmptyServer => {
                "`server` is empty. It names the package or service of the item.\n\n```yaml\nserver: \
                 \"\"\n```\n\nWrite the name of the package, such as `@modelcontextprotocol/server-memory`."
            }
            Code::Legacy => {
                "The item has neither `transport` nor `command`, as in old versions. The command is derived from \
                 `server`, because that is an npm package. This form is deprecated.\n\n```yaml\nserver: \
                 \"@modelcontextprotocol/server-memory\"\n# write as well:\ncommand: npx\nargs: [\"-y\", \
                 \"@modelcontextprotocol/server-memory\"]\n```"
            }
            Code::SuspiciousUnit => {
                "A duration in seconds looks like milliseconds. In an `mcp.json`, some programs read `timeout` as \
                 seconds and others as milliseconds: here, values from 1000 on are milliseconds, and ambiguous \
                 values get this warning.\n\n```yaml\nrequest_timeout: 30000   # more than eight hours; write 30 for \
                 30 seconds\n```"
            }
            Code::PlainWebSocket => {
                "A `ws://` URL to another machine is not encrypted. Others on the network can read the traffic, \
                 including tokens.\n\n```yaml\ntransport: websocket\nurl: ws://example.com/mcp   # better wss://\n```"
            }
            Code::UnsupportedVersion => {
                "`version` of a `.minds/mcp.yaml` is not the number 1. It is missing, a string, or another number, \
                 so the rest of the file is not read.\n\n```yaml\nversion: 1\nservers: {}\n```"
            }
            Code::InvalidTransform => {
                "An entry of `transform` does not have exactly one of `prefix` and `suffix`. With both, their order \
                 would be ambiguous.\n\n```yaml\ntransform:\n  - prefix: a_\n    suffix: _b      # write a second \
                 entry: - suffix: _b\n```"
            }
            Code::EmptySession => {
                "An empty `sessionId` is ignored: the session begins with `initialize`, as \
                 usual.\n\n```yaml\nsessionId: ''\n```\n\nRemove the key."
            }
            Code::MissingVariable => {
                "A value refers to an environment variable that is not set. An empty variable counts as \
                 set.\n\n```yaml\nheaders:\n  Authorization: \"Bearer ${API_TOKEN}\"\n```\n\nSet it before the \
                 start: `export API_TOKEN=…`. Variables of an `envFile` are only for the server and are not used \
                 here."
            }
            Code::UnreadableEnvFile => {
                "The file that `envFile` names cannot be read. A relative path starts at the folder of the \
                 configuration file.\n\n```yaml\nenvFile: .env   # next to agent.yaml\n```"
            }
            Code::NoServers => {
                "The file is well-formed, but has no MCP servers in a known position. Known keys are `mcpServers` \
                 (Claude, Cursor, Windsurf, Cline, Gemini and most others), `servers` and `mcp.servers` (VS Code), \
                 `context_servers` (Zed) and `mcp` (opencode). An ACP session has them in a list \
                 `mcpServers`.\n\n```json\n{ \"mcpServers\": { \"files\": { \"command\": \"npx\", \"args\": [\"-y\", \
                 \"some-server\"] } } }\n```\n\nSome files named `mcp.json` belong to other programs."
            }
            Code::NothingToStart => {
                "The entry has neither a command nor a URL, only the settings of an editor's extension, which \
                 provides the server itself. There is nothing to start here.\n\n```json\n{ \"context_servers\": { \
                 \"pdf\": { \"settings\": { \"page_format\": \"A4\" } } } }\n```\n\nTo run the server outside of the \
                 editor, add its `command` and `args`."
            }
            Code::CommandLine => {
                "`command` is a whole command line. It must be the name or path of one program. A command line is \
                 not split, because spaces may be part of a name.\n\n```json\n{ \"command\": \"npx -y some-server\" \
                 }\n```\n\nWrite `\"command\": \"npx\"` and `\"args\": [\"-y\", \"some-server\"]`. A path with \
                 spaces is accepted, with a warning if an option seems to follow. An argument such as `\"-y \
                 some-server\"` gets a warning: the program gets it as one word."
            }
            Code::MissingInput => {
                "An input (`${input:…}`) has no value, and there is no prompt for it here. The value is taken from \
                 an environment variable, `MCP_INPUT_` and the input's id in capitals, or from the input's \
                 `default`.\n\n```json\n{ \"inputs\": [{ \"id\": \"api-key\", \"type\": \"promptString\" }],\n  \
                 \"servers\": { \"a\": { \"command\": \"x\", \"env\": { \"KEY\": \"${input:api-key}\" } } } \
                 }\n```\n\nSet `MCP_INPUT_API_KEY` before the start. The warning means that `inputs` does not \
                 declare the id."
            }
            Code::UnknownReference => {
                "The text contains a reference that is not supported and is not replaced. Supported are `${NAME}`, \
                 `${NAME:-text}`, `${env:NAME}`, `${input:id}`, `${workspaceFolder}`, `${workspaceFolderBasename}`, \
                 `${userHome}`, `${extensionPath}` and `${/}`; Gemini CLI's files also have `$NAME`. A `${NAME` \
                 without `}` and a `${ NAME }` with spaces are not references either. In a `.minds/mcp.yaml` and in \
                 the files of some programs, `${NAME}` itself is literal text.\n\n```json\n{ \"args\": \
                 [\"${command:pickFolder}\"] }\n```\n\nWrite the value itself, or an environment variable."
            }
            Code::RepeatedName => {
                "A list of variables or headers has the same name twice. The last value of a variable counts; every \
                 value of a header is sent.\n\n```json\n{ \"env\": [{ \"name\": \"A\", \"value\": \"1\" }, { \
                 \"name\": \"A\", \"value\": \"2\" }] }\n```\n\nRemove one of them."
            }
            Code::RelativePath => {
                "A path must be absolute. ACP requires it for the command of a server and the folder of a session, \
                 because a relative path depends on the process that resolves it.\n\n```json\n{ \"name\": \"files\", \
                 \"command\": \"npx\", \"args\": [], \"env\": [] }\n```\n\nWrite the absolute path, such as \
                 `/usr/local/bin/npx`. An agent may choose to look commands up; then this is a warning."
            }
            Code::SurroundingBlank => {
                "The value begins or ends with whitespace. Nothing removes it: the system looks for a program whose \
                 name contains the whitespace.\n\n```json\n{ \"command\": \"npx \" }\n```\n\nRemove the whitespace."
            }
            Code::DisabledServer => {
                "A server is disabled in a way that its entry does not show, or in a way that the program of the file \
                 ignores. Gemini CLI and Qwen Code start no server whose name is in the list `mcp.excluded` of their \
                 settings, or missing in a list `mcp.allowed`. Some programs have no key that disables a server: they \
                 start a server with `disabled` all the same, and only mcp-host obeys the key.\n\n```json\n{ \
                 \"mcp\": { \"excluded\": [\"files\"] }, \"mcpServers\": { \"files\": { \"command\": \
                 \"npx\" } } }\n```\n\n`mcp-host disable` and `mcp-host enable` write what the program obeys, or \
                 name its own way."
            }
            Code::Extension => {
                "The transport of the entry is an extension: its type begins with `_`, or it is the ACP connection \
                 itself (`acp`). The entry is kept for callers that support it; no server is started for \
                 it.\n\n```json\n{ \"type\": \"_pigeon\", \"name\": \"loft\" }\n```"
            }
        }
    }
}
