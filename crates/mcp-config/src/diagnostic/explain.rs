//! The explanation of each code: its meaning, an example, and what to do.

use crate::diagnostic::Code;

impl Code {
    /// The meaning of the code, with an example, as Markdown.
    pub fn explain(self) -> &'static str {
        match self {
            Code::Syntax => {
                "The file is no well-formed YAML or JSON, so nothing of it could be read: a quote or bracket is not \
                 closed, a comma is missing, a line is indented with a tab, an alias names no anchor.\n\n```yaml\n\
                 servers:\n\ta:   # a tab\n```\n\nYAML is indented with spaces only. An `mcp.json` may hold comments and \
                 a comma before a closing bracket; the request of an ACP session is strict JSON. The place given is \
                 where reading stopped; the cause is often on the line before."
            }
            Code::DuplicateKey => {
                "One mapping holds the same key twice. Many readers silently keep the last one; here it is always an \
                 error, and both places are shown.\n\n```yaml\ncommand: npx\ncommand: uvx\n```\n\nRemove one of them."
            }
            Code::TooLarge => {
                "The file is larger than 1 MiB, nested deeper than 64 levels, has more than 100,000 values (aliases \
                 count as what they stand for, in depth too), or more than 1,000 servers; or an agent of the profile \
                 `holodeck-0.7` has more than 50 tools. Beyond HoloDeck's own bound, such a file is a mistake or an \
                 attack.\n\n```yaml\n\
                 a: &a [x, x]\nb: &b [*a, *a]   # and so on: it doubles with every line\n```\n\nSplit the file."
            }
            Code::ManyDocuments => {
                "The file holds more than one YAML document. Which one is meant cannot be told, so none is read.\n\n\
                 ```yaml\nversion: 1\n---\nversion: 1\n```\n\nKeep one document; remove the `---` between them."
            }
            Code::UnknownTag => {
                "A value carries a YAML tag that has no meaning in a configuration. Only the tags of YAML's core \
                 schema (`!!str`, `!!int`, `!!float`, `!!bool`, `!!null`, `!!map`, `!!seq`) are understood.\n\n```yaml\n\
                 tools: !!python/object:os.system {}\n```\n\nRemove the tag."
            }
            Code::BadKey => {
                "A key of a mapping must be text. A list or a mapping never is; a number or `true` must be quoted where \
                 names are meant.\n\n```yaml\nenv:\n  8080: x      # write \"8080\": x\n```"
            }
            Code::WrongType => {
                "A value has the wrong type: a number where text is meant, text where a list is meant. YAML 1.2 reads \
                 `yes`, `no`, `on` and `off` as text, and unquoted digits as a number.\n\n```yaml\nenv:\n  PORT: 8080   \
                 # write \"8080\"\nargs: -y       # write [\"-y\"]\nload_tools: no # write false\n```"
            }
            Code::MissingKey => {
                "A key that must be there is missing.\n\n```yaml\ntools:\n  - type: mcp     # no `name`\n    server: \
                 \"@scope/server\"\n    command: npx\n```\n\nAdd the key. `description` is only missed, with a warning, \
                 unless the profile is `holodeck-0.7`."
            }
            Code::EmptyValue => {
                "A value that must say something is empty.\n\n```yaml\nservers:\n  a:\n    transport: stdio\n    \
                 command: \"\"\n```\n\nGive it a value, or remove the key where it is optional."
            }
            Code::UnknownKey => {
                "A key is not one of those that may stand there, and so would have no effect. The help names the key \
                 that was probably meant.\n\n```yaml\ntruly-stateless: true   # it is spelled truely-stateless\n```\n\n\
                 In an `agent.yaml` this is an error, in a `.minds/mcp.yaml` a warning."
            }
            Code::UnknownWord => {
                "Only certain words may stand here, written exactly so.\n\n```yaml\ntransport: STDIO   # write stdio\n```\
                 \n\nHoloDeck knows the transports `stdio`, `sse`, `websocket` and `http`; Dominds `stdio` and \
                 `streamable_http`; ACP `stdio`, `http` and, in version 1, `sse`; editors several spellings of these."
            }
            Code::OutOfRange => {
                "A number is too small or too large. Every duration is in seconds, finite, and greater than zero; \
                 `request_timeout` is a whole number of seconds.\n\n```yaml\nrequest_timeout: 0\n```"
            }
            Code::Exclusive => {
                "Two keys say the same thing, or exclude each other, and which one is meant cannot be told.\n\n```yaml\n\
                 envFile: .env\nenv_file: other.env\n```\n\nKeep one of them."
            }
            Code::InvalidName => {
                "A server's name has 1 to 256 bytes and no control characters; in the profile `holodeck-0.7` it is made \
                 of ASCII letters, digits and `_`.\n\n```yaml\ntools:\n  - name: \"\"\n    type: mcp\n```"
            }
            Code::DuplicateName => {
                "Two tools of an agent, or two servers of a file or session, have the same name. Names are unique \
                 across all tools of an agent, whatever their type, because a call says only the name.\n\n```yaml\ntools:\n  - {name: search, type: function}\n\
                 \x20 - {name: search, type: mcp, command: npx}\n```\n\nRename one of them."
            }
            Code::InvalidCommand => {
                "HoloDeck starts only certain programs, so that a configuration cannot run whatever it likes. The \
                 command is one bare word, in lower case; everything else belongs into `args`.\n\n```yaml\ncommand: \
                 bash            # not allowed\ncommand: npx -y server   # write command: npx, args: [\"-y\", \"server\"]\
                 \n```"
            }
            Code::MissingCommand => {
                "A server with transport `stdio` is a program to start, and the file does not say which.\n\n```yaml\n\
                 servers:\n  a:\n    transport: stdio   # and no command\n```\n\nAdd `command`. If the server is reached by \
                 a URL, set `transport` instead."
            }
            Code::MissingUrl => {
                "A server with this transport is reached at a URL, and the file gives none.\n\n```yaml\ntransport: http\n\
                 # url: https://example.com/mcp\n```\n\nAdd `url`. If the server is a program to start, the transport is \
                 `stdio`."
            }
            Code::UrlScheme => {
                "The URL's scheme does not fit the transport. HoloDeck's `sse` and `http` need https, and take http only \
                 for this machine (`localhost`, `127.0.0.0/8`, `[::1]`, judged by the parsed host); `websocket` needs wss \
                 or ws.\n\n```yaml\nurl: http://localhost.example.com/   # not this machine\n```"
            }
            Code::InvalidUrl => {
                "The text is no URL: there is no host, the port is no port, or it holds a blank.\n\n```yaml\nurl: \
                 https:///mcp\n```\n\nWrite scheme, host and path: `https://example.com/mcp`."
            }
            Code::ForeignField => {
                "The item says two things at once: a program to start and a URL to connect to. Which one is meant \
                 cannot be told.\n\n```yaml\ntransport: stdio\ncommand: npx\nurl: https://example.com/mcp\n```\n\nRemove \
                 the one that does not belong to the transport, or change `transport`."
            }
            Code::NoEffect => {
                "The field belongs to another transport and is ignored.\n\n```yaml\ntransport: websocket\nurl: \
                 wss://example.com/\nheaders: {A: b}   # a websocket sends none\n```\n\nRemove it."
            }
            Code::VariableNotAllowed => {
                "`${` stands in a field whose value must be known when the file is read: `name`, `type`, `transport` and \
                 `command` are never replaced, so that the environment cannot choose what is run.\n\n```yaml\ncommand: \
                 ${RUNNER}\n```\n\nWrite the value itself."
            }
            Code::UnknownEncoding => {
                "The encoding has no such label in the WHATWG encoding standard, or it is one that cannot be used on a \
                 pipe (UTF-16).\n\n```yaml\nencoding: latin-1   # write latin1\n```\n\nNearly every server speaks utf-8, \
                 which needs no `encoding` at all."
            }
            Code::InvalidHeader => {
                "A header's name is one word of ASCII letters, digits and a few signs; its value is one line. Anything \
                 else would break the request, or let a value add headers of its own.\n\n```yaml\nheaders:\n  \"Bad \
                 Header\": x\n```\n\n`Host`, `Content-Length` and `Transfer-Encoding` belong to the connection and are \
                 refused in the files of editors and in sessions."
            }
            Code::InvalidEnvironment => {
                "The name of an environment variable is not empty and holds no `=`; names, values and arguments hold no \
                 NUL character. The operating system cannot take anything else.\n\n```yaml\nenv:\n  \"A=B\": x\n```"
            }
            Code::EmptyServer => {
                "`server` names the package or service an item is about, and it is empty.\n\n```yaml\nserver: \"\"\n```\n\n\
                 Write the package's name, such as `@modelcontextprotocol/server-memory`."
            }
            Code::Legacy => {
                "The item has neither `transport` nor `command`, as in old versions; the command is guessed from \
                 `server`, because that is an npm package. This will not always be so.\n\n```yaml\nserver: \
                 \"@modelcontextprotocol/server-memory\"\n# write as well:\ncommand: npx\nargs: [\"-y\", \
                 \"@modelcontextprotocol/server-memory\"]\n```"
            }
            Code::SuspiciousUnit => {
                "Durations are in seconds. The number is so large that it was probably meant in milliseconds. In an \
                 `mcp.json` the same `timeout` is seconds to some programs and milliseconds to others: from 1000 on it is \
                 taken for milliseconds, and where that is in doubt, it is said.\n\n```yaml\n\
                 request_timeout: 30000   # more than eight hours; 30 seconds are 30\n```"
            }
            Code::PlainWebSocket => {
                "A `ws://` URL to another machine sends everything, tokens included, for anybody on the way to \
                 read.\n\n```yaml\ntransport: websocket\nurl: ws://example.com/mcp   # better wss://\n```"
            }
            Code::UnsupportedVersion => {
                "A `.minds/mcp.yaml` begins with `version: 1`, the number 1. It is missing, written as text, or another \
                 number, so the rest of the file cannot be relied on.\n\n```yaml\nversion: 1\nservers: {}\n```"
            }
            Code::InvalidTransform => {
                "An entry of `transform` is exactly one of `prefix` and `suffix`. With both in one entry the order would \
                 be unclear.\n\n```yaml\ntransform:\n  - prefix: a_\n    suffix: _b      # write a second entry: - suffix: \
                 _b\n```"
            }
            Code::EmptySession => {
                "An empty `sessionId` is read as none: the session begins with `initialize`, as usual.\n\n```yaml\n\
                 sessionId: ''\n```\n\nRemove the key."
            }
            Code::MissingVariable => {
                "A value refers to a variable of the environment that is not set. A variable that is set to nothing is \
                 fine.\n\n```yaml\nheaders:\n  Authorization: \"Bearer ${API_TOKEN}\"\n```\n\nSet it before the start: \
                 `export API_TOKEN=…`. Variables from an `envFile` are for the server only and are not looked at here."
            }
            Code::UnreadableEnvFile => {
                "The file that `envFile` names cannot be read. A relative path is taken from the folder of the \
                 configuration file.\n\n```yaml\nenvFile: .env   # beside agent.yaml\n```"
            }
            Code::NoServers => {
                "The file is well-formed, but there are no MCP servers where one would look for them. Servers stand \
                 under `mcpServers` (Claude, Cursor, Windsurf, Cline, Gemini and most others), `servers` or \
                 `mcp.servers` (VS Code), `context_servers` (Zed), `mcp` (opencode); those of an ACP session in a list \
                 `mcpServers`.\n\n```json\n{ \"mcpServers\": { \"files\": { \"command\": \"npx\", \"args\": [\"-y\", \
                 \"some-server\"] } } }\n```\n\nSome files that are called `mcp.json` belong to other programs."
            }
            Code::NothingToStart => {
                "The entry has neither a command nor a URL, only the settings of an editor's extension, which brings \
                 the server itself. There is nothing to start here.\n\n```json\n{ \"context_servers\": { \"pdf\": { \
                 \"settings\": { \"page_format\": \"A4\" } } } }\n```\n\nTo run the server outside the editor, write \
                 its `command` and `args`."
            }
            Code::CommandLine => {
                "`command` is the name or the path of one program. A line with arguments is not taken apart: whoever \
                 does that must guess where blanks belong to a name.\n\n```json\n{ \"command\": \"npx -y some-server\" \
                 }\n```\n\nWrite `\"command\": \"npx\"` and `\"args\": [\"-y\", \"some-server\"]`. A path with blanks in it \
                 is fine, and only gets a warning where what follows looks like an argument."
            }
            Code::MissingInput => {
                "A value is to be asked for (`${input:…}`), and there is nobody to ask. The answer is taken from a \
                 variable of the environment, `MCP_INPUT_` and the input's id in capitals, or from the input's \
                 `default`.\n\n```json\n{ \"inputs\": [{ \"id\": \"api-key\", \"type\": \"promptString\" }],\n  \
                 \"servers\": { \"a\": { \"command\": \"x\", \"env\": { \"KEY\": \"${input:api-key}\" } } } }\n```\n\nSet \
                 `MCP_INPUT_API_KEY` before the start. The warning is for an id that `inputs` does not declare."
            }
            Code::UnknownReference => {
                "The text holds something that looks like a variable and is none that is known here, so it stays as \
                 it is. Known are `${NAME}`, `${NAME:-text}`, `${env:NAME}`, `${input:id}`, `${workspaceFolder}`, \
                 `${workspaceFolderBasename}`, `${userHome}` and `${/}`; Gemini CLI's files also have `$NAME`.\n\n\
                 ```json\n{ \"args\": [\"${extensionPath}/server.js\"] }\n```\n\nWrite the value itself, or a variable \
                 of the environment."
            }
            Code::RepeatedName => {
                "A list of variables or headers has the same name twice. Of variables the last one counts; of headers \
                 each is sent.\n\n```json\n{ \"env\": [{ \"name\": \"A\", \"value\": \"1\" }, { \"name\": \"A\", \"value\": \
                 \"2\" }] }\n```\n\nRemove one of them."
            }
            Code::RelativePath => {
                "ACP wants absolute paths: for the command of a server, and for the folder of a session. What a name \
                 is found to be depends on who looks it up.\n\n```json\n{ \"name\": \"files\", \"command\": \"npx\", \
                 \"args\": [], \"env\": [] }\n```\n\nWrite the whole path, such as `/usr/local/bin/npx`. An agent may \
                 choose to look commands up; then this is a warning."
            }
            Code::Extension => {
                "The entry's transport is an extension: one whose type begins with `_`, or the ACP connection itself \
                 (`acp`). It is kept for whoever knows it, and no server is started for it here.\n\n```json\n{ \
                 \"type\": \"_pigeon\", \"name\": \"loft\" }\n```"
            }
        }
    }
}
