//! The phrases of attacks, as data.
//!
//! A phrase is a list of words; `a|b` is either word, and `$name` a set of words below. `~3` before a word allows up to
//! three others between, in the same sentence. `^3` allows them also across sentences. Three words begin with `@` and
//! replace a whole chunk of text: `@secret` for the path of a file with secrets, `@tool` for the name of a tool of
//! another server, and `@address` for a URL or an address of a mail.

use super::finding::FindingKind::{self, Exfiltration, Order, OtherTool, Secrecy, SecretAccess};
use super::finding::FindingSeverity::{self, Hard, Soft};

/// A rule: the kind and the severity of the finding, and the phrase that is one.
pub(super) type Rule = (FindingKind, FindingSeverity, &'static str);

/// Sets of words.
pub(super) const SETS: &[(&str, &str)] = &[
    ("$ignore", "ignore|disregard|forget|override|bypass|neglect|discard"),
    (
        "$rules",
        "instruction|instructions|prompt|prompts|guidelines|directive|directives|training|restrictions",
    ),
    ("$using", "using|calling|invoking|running|use|call|invoke|executing"),
    (
        "$read",
        "read|reading|cat|open|load|fetch|retrieve|get|access|view|print|dump|find|locate|check|look|\
         contents|content",
    ),
    (
        "$send",
        "pass|put|provide|include|send|give|append|attach|submit|paste|forward|upload|copy|place|insert|encode|post|\
         transmit|exfiltrate|leak|write|add|supply|report|return|embed|echo|fill|share|email",
    ),
    (
        "$tell",
        "tell|mention|inform|reveal|disclose|report|admit|telling|mentioning|informing|revealing|disclosing",
    ),
    ("$user", "user|users|human|operator|anyone|anybody|person|them"),
    ("$content", "content|contents|it|them|its|value|result|text|everything|full|key|that|data|output"),
    (
        "$slot",
        "parameter|parameters|argument|arguments|field|param|sidenote|header|query|@address|note|notes",
    ),
    ("$must", "must|always|first|never|immediately|need|required|mandatory|instead|have"),
];

/// The rules for values and names.
pub(super) const RULES: &[Rule] = &[
    // Orders that replace other instructions.
    (
        Order,
        Hard,
        "$ignore ~5 previous|prior|above|earlier|preceding|original|your|system|safety|existing|\
         former ~3 $rules",
    ),
    (Order, Hard, "$ignore ~2 all|any|every|these|those ~2 instructions|prompts|directives|guidelines"),
    (Order, Hard, "$ignore ~2 everything|anything|what ~4 said|told|above|before|instructed"),
    (
        Order,
        Hard,
        "your ~2 new|real|actual|true|only ~2 task|instructions|goal|role|purpose|mission|objective \
         ~1 is|are",
    ),
    (Order, Hard, "you are ~1 now ~4 unrestricted|jailbroken|dan|uncensored|administrator|unfiltered"),
    (Order, Hard, "you are ~1 no longer ~6 bound|restricted|limited|rules|assistant|guidelines"),
    (
        Order,
        Hard,
        "new|updated|revised ~1 system ~1 instructions|instruction|prompt|message|directive|policy",
    ),
    (
        Order,
        Hard,
        "these|this|following ~3 instructions|instruction|rules ~4 override|overrides|supersede|\
         supersedes|precedence|replace",
    ),
    (
        Order,
        Hard,
        "takes|take|has|have ~2 precedence|priority ~3 over ~5 system|user|user's|other|previous|all \
         ~3 $rules",
    ),
    // Orders to act without the user, or before everything else.
    (Order, Hard, "always|immediately ~10 without ~2 asking|confirmation|approval|permission|consent"),
    (
        Order,
        Hard,
        "first|before|must|always ^6 run|execute|paste ~4 curl|wget ~12 sh|bash|zsh|python|python3",
    ),
    (Order, Hard, "decode ~10 follow|execute|obey|run|perform ~5 it|instructions|them|that|result|orders"),
    (
        Order,
        Hard,
        "before ~3 $using ~2 any|every|other|all|each|another ~2 tool|tools|function|functions ^16 \
         $read ^10 @secret",
    ),
    (
        Order,
        Hard,
        "before ~3 $using ~2 any|every|other|all|each|another ~2 tool|tools|function|functions ^16 \
         $send ^14 arguments|conversation|message|messages|history|prompt|query ^10 to|into|as",
    ),
    (Order, Soft, "before ~3 $using ~2 any|every|other|all|another ~2 tool|tools|function|functions"),
    (Order, Soft, "must|always ~2 call|use|invoke|run ~3 this ~2 first|before"),
    (Order, Soft, "do not ask ~4 user|confirmation|permission|approval"),
    (
        Order,
        Hard,
        "every|each|any|all|other|another ~3 tool|tools|message|messages|response|responses|request|\
         requests|reply ^14 must|always|first|also|silently ^6 $send ^14 to|into|via ^4 $slot|this",
    ),
    // Concealment.
    (
        Secrecy,
        Hard,
        "do|must|should|shall|please|may|can not ~1 $tell ~6 user|users|human|operator|anyone|anybody|them",
    ),
    (Secrecy, Hard, "don't|dont|never|avoid ~1 $tell ~6 user|users|human|operator|anyone|anybody"),
    (Secrecy, Hard, "without ~1 telling|mentioning|informing|revealing|disclosing ~4 $user"),
    (Secrecy, Hard, "keep ~5 secret|hidden|confidential|invisible ~4 from ~2 user|users|human|operator|them"),
    (Secrecy, Hard, "hide|conceal ~1 this|it|that|these|all ~6 from ~2 user|users|human|operator"),
    (
        Secrecy,
        Hard,
        "user|users|human|operator must|should|may|shall not|never ~1 know|notice|learn|realize|\
         realise|suspect",
    ),
    (
        Secrecy,
        Hard,
        "so that|so ~2 user|human|operator ~1 doesn't|not|never|won't ~1 notice|notices|suspect|\
         realize|see|know|worried|upset",
    ),
    (Secrecy, Hard, "secretly|covertly|surreptitiously|stealthily ~3 $send"),
    (
        Secrecy,
        Hard,
        "silently|quietly ~1 send|forward|upload|copy|bcc|transmit|exfiltrate|append|include|add",
    ),
    (Secrecy, Soft, "without ~1 notifying|alerting|asking|showing ~3 $user"),
    (
        Secrecy,
        Soft,
        "not|never|don't ~1 show|display|explain|notify|alert|warn|expose ~5 user|users|human|operator",
    ),
    // Secrets.
    (SecretAccess, Hard, "$read ^8 @secret ^30 $send ^6 $content"),
    (SecretAccess, Hard, "$send ~7 content|contents|text|copy|bytes ~4 @secret"),
    (
        SecretAccess,
        Hard,
        "content|contents|text|body|bytes ~4 @secret ^25 parameter|argument|field|sidenote|here",
    ),
    (SecretAccess, Hard, "$send ~3 @secret ~8 to|into|in|as ~3 $slot"),
    (
        SecretAccess,
        Hard,
        "$send ~6 all|any|every|user's|found|known ~4 keys|tokens|credentials|passwords|secrets ~8 \
         conversation|context|memory|files|chat|session|computer|machine|environment",
    ),
    (
        SecretAccess,
        Hard,
        "$send ~4 your|all|every|full|whole ~2 environment ~1 variables|variable|secrets ~12 $slot",
    ),
    (SecretAccess, Hard, "output|result|results of env|printenv ^10 $slot"),
    (SecretAccess, Soft, "@secret"),
    // The conversation, the system prompt, and results of other tools.
    (
        Exfiltration,
        Hard,
        "$send|summarize|summarise ~5 full|entire|whole|complete|all|your|this|our|current ~4 \
         conversation|chat|dialog|dialogue|transcript|context|messages ^14 $slot",
    ),
    (
        Exfiltration,
        Hard,
        "full|entire|whole|complete|verbatim ~2 conversation|chat|dialog|transcript|context ~2 \
         history|so|log|window|with|including ^10 must|required|here|always|parameter",
    ),
    (
        Exfiltration,
        Hard,
        "$send|repeat|print|reveal|output|reproduce ~5 your|own ~3 system|initial|hidden|developer \
         ~1 prompt|message|instructions",
    ),
    (
        Exfiltration,
        Hard,
        "system ~0 prompt|message|instructions ~4 you ~2 were|received|have|got|given|follow",
    ),
    (
        Exfiltration,
        Hard,
        "your ~2 system|hidden|initial ~0 prompt|instructions ~6 verbatim|here|word|exactly|required",
    ),
    (
        Exfiltration,
        Hard,
        "send|forward|upload|transmit|exfiltrate|post|report|leak|submit|copy ~8 conversation|prompt|\
         secrets|credentials|passwords|keys|transcript|@secret|tokens|history ~8 to ~4 @address",
    ),
    (
        Exfiltration,
        Hard,
        "must|always|also|silently|instead ~6 bcc|cc|copy|forward|send|redirect|email|mail ~10 @address",
    ),
    (Exfiltration, Hard, "add|include|put|set|use|replace ~3 @address ~5 bcc|cc|recipients|recipient|blind"),
    (
        Exfiltration,
        Hard,
        "list|names|name|schemas|descriptions ~3 all|every|other ~3 tools ~4 you|available|access \
         ^12 parameter|argument|field|here|required",
    ),
    (
        Exfiltration,
        Hard,
        "your ~3 reasoning|thoughts|thinking|thought ~6 verbatim|every|including|hidden|private",
    ),
    (Exfiltration, Soft, "your ~2 system ~0 prompt|instructions|message"),
    (Exfiltration, Soft, "conversation|chat ~0 history|transcript|log"),
    (Exfiltration, Soft, "environment variables ~8 $slot"),
    // Tools of other servers.
    (
        OtherTool,
        Hard,
        "@tool ~4 is|was|are|has ~2 deprecated|disabled|broken|unavailable|removed|insecure|\
         compromised|unsafe|obsolete|replaced|vulnerable",
    ),
    (OtherTool, Hard, "never|don't|not|stop ~2 use|call|invoke|trust|using|calling ~4 @tool"),
    (
        OtherTool,
        Hard,
        "when|whenever|if|before|after|every|each|while ~8 @tool ^18 must|always|first|also|instead|\
         change|redirect|forward|replace|set|bcc|silently ^10 $send|call|use|change|redirect|replace|\
         to|set|bcc|run",
    ),
    (OtherTool, Hard, "use|call|invoke ~4 instead of ~4 @tool ~8 always|must|every|never|any"),
    (OtherTool, Hard, "always|must|instead ~8 instead|place of ~4 @tool"),
    (
        OtherTool,
        Hard,
        "$send|forward ~6 output|result|results|response|arguments ~3 of|from ~3 @tool ~8 to|into|as",
    ),
    (
        OtherTool,
        Hard,
        "behavior|behaviour|effect|rules ~5 @tool ~10 must|change|changed|changes|always|redirect",
    ),
    (OtherTool, Soft, "@tool"),
    (OtherTool, Soft, "other|another ~1 server's|servers"),
];

/// The rules for names of members alone, such as parameters.
pub(super) const NAME_RULES: &[Rule] = &[
    (
        SecretAccess,
        Hard,
        "content|contents|text|data|dump|from|read|reading ~4 ssh|passwd|aws|netrc|kubeconfig|rsa|\
         shadow ~3 id|rsa|key|keys|credentials|file|config|etc|passwd",
    ),
    (SecretAccess, Hard, "content|contents|text|read|reading ~4 etc ~0 passwd|shadow"),
    (SecretAccess, Hard, "content|contents|text|read|reading ~4 ssh|credentials|env ~1 file|key|keys|rsa"),
    (
        Exfiltration,
        Hard,
        "your|full|entire|verbatim|own|assistant|model's ~3 system ~0 prompt|instructions|message",
    ),
    (
        Exfiltration,
        Hard,
        "your|full|entire|whole|complete ~2 conversation|chat|dialog|context ~1 history|log|\
         transcript|so|window|with",
    ),
    (Exfiltration, Hard, "your|full|entire|hidden|private ~2 chain|reasoning|thoughts"),
    (
        Exfiltration,
        Hard,
        "your|all|previous|other ~2 tool|tools ~1 calls|results|outputs|list|descriptions|history",
    ),
    (Exfiltration, Soft, "system ~0 prompt|message"),
    (Exfiltration, Soft, "conversation|chat|tool ~1 history|call|calls|transcript"),
    (Exfiltration, Soft, "chain of thought"),
];

/// Parts of the paths of files with secrets, in lower case with `/`.
pub(super) const SECRET_PATHS: &[&str] = &[
    ".ssh/",
    "~/.ssh",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    "authorized_keys",
    ".aws/",
    "/etc/passwd",
    "/etc/shadow",
    ".netrc",
    ".kube/config",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".docker/config",
    ".gnupg",
    "mcp.json",
    "claude_desktop_config",
    "mcp_config.json",
    ".bash_history",
    ".zsh_history",
    "login data",
    "cookies.sqlite",
    "wallet.dat",
    ".config/gcloud",
    ".env.local",
    ".env.production",
    ".pgpass",
    "/proc/self/environ",
    "logins.json",
    "keychain-db",
    ".codeium/",
    ".config/gh/",
];

/// Names that are the path of a file with secrets as a whole.
pub(super) const SECRET_FILES: &[&str] =
    &[".env", ".ssh", "~/.ssh", ".aws", "~/.aws", "credentials.json", "secrets.json"];

/// Words that address a model, or give an order.
pub(super) const ADDRESS: &str =
    "you|your|assistant|model|ai|llm|agent|claude|gpt|must|always|never|ignore|disregard|chatbot";
