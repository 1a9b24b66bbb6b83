//! Properties of the fixes in editors' files, over all programs and all keys.

use mcp_host_model::Profile;

use crate::dialect::editor::conventions::{EntryForm, Program};
use crate::dialect::editor::keys::{self, EntryField, KEYS};
use crate::dialect::editor::program::server_keys;
use crate::dialect::editor::programs::{DEV_CONTAINER_SERVERS, PROGRAMS};
use crate::{Code, Diagnostic, Document, apply_fixes, read};

/// A path of a file of a program.
fn path_of(program: &Program) -> String {
    let file = program.files.first().or_else(|| program.path_ends().next()).unwrap();
    format!("x/{file}")
}

/// The fields of a server in the form of a program, as JSON members or lines of TOML.
fn members(program: &Program, extra: Option<(&str, &str)>) -> Vec<(String, String)> {
    let own: &[(&str, &str)] = match program.entry_form {
        EntryForm::Common | EntryForm::Codex => &[("command", "\"x\"")],
        EntryForm::Continue => &[("name", "\"a\""), ("command", "\"x\"")],
        EntryForm::Opencode => &[("type", "\"local\""), ("command", "[\"x\"]")],
        EntryForm::Goose => &[("type", "\"stdio\""), ("cmd", "\"x\""), ("name", "\"a\"")],
    };
    own.iter().copied().chain(extra).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// The text of a file of a program with a server under each key.
fn file_text(program: &Program, servers_keys: &[&str], extra: Option<(&str, &str)>) -> String {
    let members = members(program, extra);
    if path_of(program).ends_with(".toml") {
        let lines: String = members.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        return servers_keys
            .iter()
            .enumerate()
            .map(|(index, key)| format!("[{}.a{index}]\n{lines}", toml_key(key)))
            .collect();
    }
    let members: Vec<_> = members.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
    let server = format!("{{{}}}", members.join(", "));
    let servers = |index: usize| match program.entry_form {
        EntryForm::Continue => format!("[{server}]"),
        EntryForm::Common | EntryForm::Opencode | EntryForm::Codex | EntryForm::Goose => {
            format!("{{\"a{index}\": {server}}}")
        }
    };
    let all: Vec<_> = servers_keys
        .iter()
        .enumerate()
        .map(|(index, key)| match *key {
            DEV_CONTAINER => {
                let nested = format!("{{\"vscode\": {{\"mcp\": {{\"servers\": {}}}}}}}", servers(index));
                format!("\"customizations\": {nested}")
            }
            key => format!("\"{key}\": {}", servers(index)),
        })
        .collect();
    format!("{{{}}}\n", all.join(", "))
}

const DEV_CONTAINER: &str = "customizations.vscode.mcp.servers";

fn toml_key(key: &str) -> String {
    if key.contains('.') { format!("\"{key}\"") } else { key.to_owned() }
}

/// Texts that users write for a key.
fn misspellings(name: &str) -> Vec<String> {
    let last = name.len() - 1;
    let mut snake = String::new();
    for it in name.chars() {
        if it.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(it.to_ascii_lowercase());
    }
    let mut capital = String::new();
    let mut is_start = false;
    for it in name.chars() {
        match it {
            '_' | '-' => is_start = true,
            _ if is_start => {
                capital.push(it.to_ascii_uppercase());
                is_start = false;
            }
            _ => capital.push(it),
        }
    }
    let mut swapped: Vec<char> = name.chars().collect();
    swapped.swap(1, 2);
    let without_unit = name.strip_suffix("_sec").or(name.strip_suffix("_ms")).unwrap_or(name);
    let mut res = vec![
        name[..last].to_owned(),
        format!("{name}s"),
        format!("{name}_ms"),
        format!("{name}Seconds"),
        format!("{}{name}", &name[..1]),
        name.to_uppercase(),
        name.replace('_', "-"),
        name.replace('_', ""),
        snake,
        capital,
        swapped.into_iter().collect(),
        without_unit.to_owned(),
    ];
    res.retain(|it| it.len() > 1 && it != name);
    res
}

/// Applies each fix of a text on its own, and returns the new keys with the new diagnostics.
fn apply_each(path: &str, text: &str) -> Vec<(Diagnostic, String, String, Vec<Diagnostic>)> {
    let document = Document::new(path, text, Profile::McpJson);
    let fixable = read(&document).diagnostics.into_iter().filter(|it| it.fix.is_some());
    let apply = |diagnostic: Diagnostic| {
        let fixed = apply_fixes(&document, [&diagnostic])
            .unwrap_or_else(|error| panic!("{path}: {text}: {diagnostic}: {error}"));
        let key = diagnostic.fix.as_ref().unwrap().changed[1].first().cloned().unwrap_or_default();
        let again = read(&document.with_text(&fixed)).diagnostics;
        (diagnostic, key, fixed, again)
    };
    fixable.map(apply).collect()
}

fn is_about_keys(code: Code) -> bool {
    matches!(code, Code::UnknownKey | Code::NoServers)
}

/// RPT-216
#[test]
fn rpt_216_fix_of_a_key_names_a_key_of_the_program() {
    let mut count = 0;
    // The keys depend on the form of an entry only.
    let mut forms = Vec::new();
    for program in PROGRAMS {
        if forms.contains(&program.entry_form) {
            continue;
        }
        forms.push(program.entry_form);
        let path = path_of(program);
        for key in KEYS.iter().flat_map(|it| misspellings(it.name).into_iter().map(move |word| (it, word))) {
            let (key, word) = key;
            if keys::find(&word).is_some() {
                continue;
            }
            let value = match key.field {
                EntryField::Arguments | EntryField::IncludedTools => "[\"a\"]",
                EntryField::Environment | EntryField::Headers => "{}",
                EntryField::StartSeconds | EntryField::RequestSeconds => "30",
                _ => "30000",
            };
            let text = file_text(program, &[program.key], Some((&word, value)));
            for (diagnostic, pointer, fixed, again) in apply_each(&path, &text) {
                if !is_about_keys(diagnostic.code) {
                    continue;
                }
                let new = crate::syntax::last_key(&pointer);
                assert!(keys::has_key(program.entry_form, &new), "{path}: {word} became {new}");
                let about_new: Vec<_> =
                    again.iter().filter(|it| it.pointer == pointer && is_about_keys(it.code)).collect();
                assert!(about_new.is_empty(), "{path}: {fixed}: {about_new:?}");
                let unit = |it: &str| (it.ends_with("_ms"), it.ends_with("Seconds") || it.ends_with("_sec"));
                let (before, after) = (unit(&word), unit(&new));
                assert!(
                    before == (false, false) || before == after || new.contains("imeout"),
                    "{word} {new}"
                );
                count += 1;
            }
        }
    }
    assert!(count > 400, "{count}");
}

/// RPT-216
#[test]
fn rpt_216_fix_of_a_key_of_servers_names_the_one_of_the_program() {
    let mut count = 0;
    let mut keys_seen = Vec::new();
    for program in PROGRAMS.iter().filter(|it| !it.is_unknown()) {
        let path = path_of(program);
        let others = server_keys().filter(|it| *it != program.key);
        if keys_seen.contains(&(program.key, program.entry_form)) {
            continue;
        }
        keys_seen.push((program.key, program.entry_form));
        let words = server_keys().flat_map(misspellings).chain(others.map(str::to_owned));
        for word in words.filter(|it| it != program.key) {
            for all in [vec![&*word], vec![&*word, program.key], vec![program.key, &*word]] {
                let text = file_text(program, &all, None);
                for (diagnostic, pointer, fixed, again) in apply_each(&path, &text) {
                    // Servers under the key of another program have its keys.
                    if crate::syntax::parent_pointer(&pointer) != Some("") {
                        continue;
                    }
                    let new = crate::syntax::last_key(&pointer);
                    assert_eq!(new, program.key, "{path}: {text}: {diagnostic}");
                    let left: Vec<_> = again.iter().filter(|it| is_about_keys(it.code)).collect();
                    assert!(left.is_empty(), "{path}: {fixed}: {left:?}");
                    count += 1;
                }
            }
        }
    }
    assert!(count > 40, "{count}");
}

/// RPT-217
#[test]
fn rpt_217_servers_beside_the_right_key_are_reported() {
    let mut count = 0;
    for program in PROGRAMS.iter().filter(|it| !it.is_unknown()) {
        let path = path_of(program);
        for key in server_keys().filter(|it| *it != program.key && !program.other_keys.contains(it)) {
            // Settings have the keys of extensions.
            let is_extension = key.contains('.') || key == "extensions";
            // Lists, and entries in Goose's form, are recognised under their own keys only.
            let is_own_form = matches!(program.entry_form, EntryForm::Goose | EntryForm::Continue);
            let is_setting = is_own_form && ["mcp", "mcp_servers"].contains(&key);
            if is_extension || is_setting {
                continue;
            }
            let text = file_text(program, &[program.key, key], None);
            let found = read(&Document::new(&path, &text, Profile::McpJson)).diagnostics;
            let pointer = crate::syntax::child_pointer("", key);
            let reported = found.iter().find(|it| it.pointer == pointer && is_about_keys(it.code));
            let Some(reported) = reported else { panic!("{path}: {text}: {found:?}") };
            assert!(reported.fix.is_none(), "{path}: {text}");
            count += 1;
        }
        // An empty map loses nothing, and lists of names are no servers.
        if path.ends_with(".json") && program.key != DEV_CONTAINER_SERVERS && program.key != "mcp" {
            let text = file_text(program, &[program.key], None);
            let text = text.trim_end().strip_suffix('}').unwrap().to_owned();
            let text = format!("{text}, \"context_servers\": {{}}, \"mcp\": {{\"excluded\": []}}}}");
            let found = read(&Document::new(&path, &text, Profile::McpJson)).diagnostics;
            let found: Vec<_> = found.iter().filter(|it| is_about_keys(it.code)).collect();
            assert!(found.is_empty(), "{path}: {text}: {found:?}");
        }
    }
    assert!(count > 50, "{count}");
}
