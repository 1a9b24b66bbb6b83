//! What the name of an option or a variable says of its value: a setting, which may be shown, or a secret.

/// The last words of names whose values are settings.
const SETTING_WORDS: [&str; 29] = [
    "browser",
    "color",
    "cwd",
    "debug",
    "dir",
    "directory",
    "folder",
    "format",
    "host",
    "hostname",
    "lang",
    "language",
    "level",
    "locale",
    "mode",
    "network",
    "path",
    "platform",
    "port",
    "region",
    "root",
    "timeout",
    "timezone",
    "toolsets",
    "transport",
    "tz",
    "verbosity",
    "version",
    "workspace",
];

/// Parts of the names of secrets.
const SECRET_PARTS: [&str; 6] = ["auth", "credential", "key", "passw", "secret", "token"];

/// Further parts of names whose values may be secrets.
const UNCERTAIN_PARTS: [&str; 19] = [
    "account",
    "bearer",
    "cert",
    "connection",
    "context",
    "cookie",
    "cred",
    "licen",
    "login",
    "mnemonic",
    "passphrase",
    "private",
    "pwd",
    "session",
    "sign",
    "wallet",
    "webhook",
    "apikey",
    "passcode",
];

/// Words of names whose values may be secrets, in the singular.
const UNCERTAIN_WORDS: [&str; 15] = [
    "api", "client", "code", "dsn", "hash", "id", "jwt", "otp", "pat", "pin", "pw", "salt", "seed", "sig",
    "user",
];

/// Whether the last word of a name says that the value is a setting: `--local-timezone`, `LOG_LEVEL`. The name of a
/// secret may end so, too; see [`names_secret`].
pub fn names_setting(name: &str) -> bool {
    let last = name.rsplit(['-', '_', '.']).next().unwrap_or_default().to_ascii_lowercase();
    SETTING_WORDS.contains(&last.as_str())
}

/// Whether a name says that the value is a secret: `--api-token`, `DB_PASSWORD`.
pub fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_PARTS.iter().any(|part| name.contains(part))
}

/// Whether the value for a name may be a secret, judged with care: `USER`, `--client-id`.
pub fn may_name_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_uncertain =
        |word: &str| UNCERTAIN_WORDS.contains(&word.trim_end_matches('s')) || word.ends_with("id");
    names_secret(name)
        || UNCERTAIN_PARTS.iter().any(|part| lower.contains(part))
        || lower.split(['-', '_', '.']).any(is_uncertain)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a name: whether its value is a setting, is a secret, and may be a secret.
    #[track_caller]
    fn check(name: &str, want: (bool, bool, bool)) {
        assert_eq!((names_setting(name), names_secret(name), may_name_secret(name)), want, "{name}");
    }

    // RPT-212
    #[test]
    fn name_tells_a_setting_from_a_secret() {
        for name in ["--local-timezone", "LOG_LEVEL", "--port", "app.format", "TZ"] {
            check(name, (true, false, false));
        }
        for name in ["--api-token", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "x-auth"] {
            check(name, (false, true, true));
        }
        for name in ["USER", "--client-id", "SESSION", "--pins"] {
            check(name, (false, false, true));
        }
        check("--auth-path", (true, true, true));
        check("--name", (false, false, false));
    }
}
