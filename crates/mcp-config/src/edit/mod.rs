//! Changes to a file that its author would have made by hand: comments, order, quotes and line ends stay.
//!
//! Each change is a few edits of bytes. The new text is read again and compared with the old one, value by value: what
//! was not to change has not changed, or the change is refused. So a text may be written as oddly as it likes.

mod entries;
pub(crate) mod fix;
mod layout;
mod new;
mod published;

use mcp_model::{Dialect, ServerSpec};

use crate::diagnostic::{Code, Diagnostic};
use crate::dialect::policy::Policy;
use crate::dialect::profile::Profile;
pub use crate::edit::fix::Edit;
use crate::edit::fix::splice;
use crate::read::{Document, Entry as Seen, Reading, read};
use crate::syntax::{self, Content, Member, Node, Syntax, Touched, child, difference, last, parent};
use crate::write;
use crate::write::{Data, Done, Editor, Inputs, Loss, Report};
pub(crate) use entries::{Entry, Place, insert, remove};
pub(crate) use layout::Layout;
pub use new::{NewReach, NewServer, UrlKind};
pub use published::{Package, PublishedError, PublishedServer, published};

/// Why a file was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// A mistake keeps the file from being understood as a whole.
    #[error("line {line} keeps the file from being changed: {message}")]
    Broken {
        /// The line of the mistake, from 1.
        line: usize,
        /// The mistake.
        message: String,
    },
    /// No server has this name.
    #[error("there is no server '{name}'")]
    NoSuchServer {
        /// The name.
        name: String,
        /// Those that there are.
        names: Vec<String>,
    },
    /// A server has this name already.
    #[error("there is a server '{name}' already")]
    Exists {
        /// The name.
        name: String,
    },
    /// More than one server has this name.
    #[error("more than one server is named '{name}'")]
    Ambiguous {
        /// The name.
        name: String,
    },
    /// The dialect has no word for a server that is switched off.
    #[error("a server of {} cannot be switched off, only removed", .0.as_str())]
    NoSwitch(Dialect),
    /// The servers of a session are no file.
    #[error("the servers of an ACP session are those of one request, and no file to be added to")]
    NoFile,
    /// The dialect cannot say this server.
    #[error("the server cannot be written there: {field}: {why}")]
    Unsaid {
        /// What of it.
        field: String,
        /// Why not.
        why: String,
    },
    /// The server would be wrong there.
    #[error("the file would be wrong: {message}")]
    Wrong {
        /// The mistake.
        message: String,
    },
    /// The file is written in a way that is not understood well enough to be changed.
    #[error("the file is written in a way that cannot be changed safely: {why}")]
    Odd {
        /// What is odd.
        why: String,
    },
}

/// A file with one more server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    /// The new text.
    pub text: String,
    /// What of the server the dialect cannot say.
    pub losses: Vec<Loss>,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// The server is to be started.
    On,
    /// It is not.
    Off,
}

/// The file with one more server, behind those it has.
pub fn add(document: &Document<'_>, server: &ServerSpec) -> Result<Added, EditError> {
    let name = server.id.as_str();
    let file = File::open(document)?;
    if file.reading.entries.iter().any(|it| it.name == name) {
        return Err(EditError::Exists { name: name.to_owned() });
    }
    let at = list_of(&file, document)?;
    let mut losses = Vec::new();
    let (profile, server_name) = (document.profile, name.to_owned());
    let mut report = Report { profile, program: &|_| None, server: server_name, losses: &mut losses };
    let written = write::entry(server, &mut report);
    // Words for people may be missing; a value that the server needs may not.
    let needed = |it: &&Loss| {
        it.done == Done::ServerLeftOut || it.field.starts_with("env.") || it.field.starts_with("headers.")
    };
    let unsaid = losses.iter().find(needed);
    let Some((name, mut data)) = written.filter(|_| unsaid.is_none()) else {
        let (field, why) = unsaid.map(|it| (it.field.clone(), it.why.clone())).unwrap_or_default();
        return Err(EditError::Unsaid { field, why });
    };
    let mut asked = Vec::new();
    if document.profile == Profile::McpJson {
        let (profile, server) = (document.profile, name.clone());
        let mut report = Report { profile, program: &|_| None, server, losses: &mut losses };
        asked = Editor::of(document.name).spell(&mut data, &mut report);
    }
    let listed = is_list(&file, &at, document);
    if let (true, Profile::McpJson, Data::Map(members)) = (listed, profile, &mut data) {
        // Servers of a list have no keys to be called by.
        members.insert(0, ("name".to_owned(), Data::text(&name)));
    }
    let entry = if listed { Entry::Item(&data) } else { Entry::Member(&name, &data) };
    let (edits, touched) = match file.member(&at) {
        None => file.new_list(&at, entry, document)?,
        Some(list) => file.list_with(&at, list, entry)?,
    };
    let mut text = file.settle(&edits, &touched)?;
    for id in asked {
        text = declared(&Document { text: &text, ..*document }, &id)?;
    }
    let again = read(&Document { text: &text, ..*document });
    let old: Vec<_> = errors(&file.reading).map(|it| (it.code, &it.pointer)).collect();
    if let Some(error) = errors(&again).find(|it| !old.contains(&(it.code, &it.pointer))) {
        return Err(EditError::Wrong { message: error.to_string() });
    }
    if !again.entries.iter().any(|it| it.name == name) {
        return Err(odd("the new server is not found in it"));
    }
    Ok(Added { text, losses })
}

/// The file with an input declared, where it is not (DIA-08). Only what stands beside the servers of VS Code's own file is
/// looked at: elsewhere a reference that is not declared is warned of.
fn declared(document: &Document<'_>, id: &str) -> Result<String, EditError> {
    const AT: &str = "/inputs";
    let file = File::open(document)?;
    let there = [AT, "/mcp/inputs"].into_iter().filter_map(|it| file.root.at(it)?.items()).flatten();
    if file.root.at("/mcp").is_some() || there.filter_map(|it| it.get("id")?.value.text()).any(|it| it == id)
    {
        return Ok(document.text.to_owned());
    }
    let question = Inputs::default().declaration(id);
    let (edits, touched) = match file.member(AT) {
        None => file.new_list(AT, Entry::Item(&question), document)?,
        Some(list) => file.list_with(AT, list, Entry::Item(&question))?,
    };
    file.settle(&edits, &touched)
}

/// The file without a server, and without the comments directly above it and inside it.
pub fn take(document: &Document<'_>, name: &str) -> Result<String, EditError> {
    let file = File::open(document)?;
    let pointer = file.server(name)?.pointer.clone();
    let above = parent(&pointer).and_then(|it| Some((it, file.root.at(it)?)));
    let Some((above, list)) = above else { return Err(odd("the server is nowhere")) };
    let key = last(&pointer);
    let index = match list.members() {
        Some(members) => members.iter().position(|it| *it.key.text == *key),
        None => key.parse().ok(),
    };
    let index = index.ok_or_else(|| odd("the server is nowhere"))?;
    let count = list.members().map_or(0, <[_]>::len) + list.items().map_or(0, <[_]>::len);
    let edits = if count > 1 {
        remove(file.layout, list, index)
            .ok_or_else(|| odd("the entry shares its lines with something else"))?
    } else {
        file.emptied(above, list)?
    };
    file.settle(&edits, &Touched { old: vec![pointer], new: Vec::new() })
}

/// The file with a server switched on or off. The same text where it is so already.
pub fn switch(document: &Document<'_>, name: &str, switch: Switch) -> Result<String, EditError> {
    let file = File::open(document)?;
    let seen = file.server(name)?;
    let pointer = &seen.pointer;
    let node = file.root.at(pointer).ok_or_else(|| odd("the server is nowhere"))?;
    let Some((key, [on, off])) = switch_of(node, document.profile) else {
        return Err(EditError::NoSwitch(document.profile.dialect()));
    };
    let word = match switch {
        Switch::On => on,
        Switch::Off => off,
    };
    if seen.disabled == (switch == Switch::Off) {
        return Ok(document.text.to_owned());
    }
    let place = child(pointer, key);
    let (edit, touched) = match node.get(key) {
        Some(member) if matches!(member.value.content, Content::Bool(_)) => {
            let edit = Edit { span: member.value.span.clone(), text: word.to_owned() };
            (Some(vec![edit]), Touched { old: vec![place.clone()], new: vec![place] })
        }
        Some(_) => (None, Touched::default()),
        None => {
            let data = Data::word(word);
            let edit = insert(file.layout, node, Place::First, Entry::Member(key, &data));
            (edit, Touched { old: Vec::new(), new: vec![place] })
        }
    };
    let edit = edit.ok_or_else(|| odd("the server's entry cannot take another key"))?;
    let text = file.settle(&edit, &touched)?;
    let again = read(&Document { text: &text, ..*document });
    let settled = again.entries.iter().any(|it| it.name == name && it.disabled == (switch == Switch::Off));
    if settled { Ok(text) } else { Err(odd("the server is not switched by it")) }
}

fn odd(why: &str) -> EditError {
    EditError::Odd { why: why.to_owned() }
}

fn errors(reading: &Reading) -> impl Iterator<Item = &Diagnostic> {
    reading.diagnostics.iter().filter(|it| it.severity == mcp_model::Severity::Error)
}

/// Where the servers of a file stand: the pointer to their list.
fn list_of(file: &File<'_>, document: &Document<'_>) -> Result<String, EditError> {
    // Where one stands, another can.
    let beside = file.reading.entries.last().and_then(|it| parent(&it.pointer));
    let there =
        |places: &[&str]| places.iter().find(|it| file.root.at(it).is_some()).map(|it| (*it).to_owned());
    match document.profile {
        Profile::HoloDeck | Profile::HoloDeck07 => Ok("/tools".to_owned()),
        Profile::Dominds => Ok("/servers".to_owned()),
        Profile::AcpV1 | Profile::AcpV2 => Err(EditError::NoFile),
        Profile::McpJson => {
            let places = ["/mcpServers", "/servers", "/mcp/servers", "/context_servers"];
            let usual = format!("/{}", Editor::of(document.name).key);
            let beside = beside.filter(|it| !it.is_empty()).map(str::to_owned);
            Ok(beside.or_else(|| there(&places)).unwrap_or(usual))
        }
    }
}

/// Is the servers' list one of items, or a map of names?
fn is_list(file: &File<'_>, at: &str, document: &Document<'_>) -> bool {
    match document.profile {
        Profile::HoloDeck | Profile::HoloDeck07 | Profile::AcpV1 | Profile::AcpV2 => true,
        Profile::Dominds => false,
        Profile::McpJson => file.root.at(at).is_some_and(|it| it.items().is_some()),
    }
}

/// The key that switches the server at `node`, and its words for on and off (DMX-02, DIA-07).
fn switch_of(node: &Node, profile: Profile) -> Option<(&'static str, [&'static str; 2])> {
    let enabled = Some(("enabled", ["true", "false"]));
    match profile {
        Profile::HoloDeck | Profile::HoloDeck07 | Profile::AcpV1 | Profile::AcpV2 => None,
        Profile::Dominds => enabled,
        Profile::McpJson if node.get("enabled").is_some() => enabled,
        Profile::McpJson => Some(("disabled", ["false", "true"])),
    }
}

/// A file that can be understood as a whole.
struct File<'a> {
    layout: Layout<'a>,
    syntax: Syntax,
    root: Node,
    reading: Reading,
}

impl<'a> File<'a> {
    fn open(document: &Document<'a>) -> Result<File<'a>, EditError> {
        let reading = read(document);
        let syntax = Policy::of(document.profile).syntax;
        let syntax::Parsed { root, dropped: _, problems } = syntax::parse_as(document.text, syntax);
        let spoils = |it: &Diagnostic| {
            let unversioned = it.code == Code::UnsupportedVersion && document.text.trim().is_empty();
            it.code.spoils_file() && !unversioned
        };
        let mistake = errors(&reading).find(|it| spoils(it)).or_else(|| {
            let first = problems.first()?;
            reading.diagnostics.iter().find(|it| it.code == first.code)
        });
        match (root, mistake) {
            (Some(root), None) => Ok(File { layout: Layout::new(document.text), syntax, root, reading }),
            (_, Some(mistake)) => Err(EditError::Broken { line: mistake.line, message: mistake.to_string() }),
            (None, None) => Err(odd("it cannot be read")),
        }
    }

    fn server(&self, name: &str) -> Result<&Seen, EditError> {
        let entries = &self.reading.entries;
        let mut found = entries.iter().filter(|it| it.name == name);
        match (found.next(), found.next()) {
            (Some(entry), None) => Ok(entry),
            (Some(_), Some(_)) => Err(EditError::Ambiguous { name: name.to_owned() }),
            (None, _) => {
                let names = entries.iter().map(|it| it.name.clone()).collect();
                Err(EditError::NoSuchServer { name: name.to_owned(), names })
            }
        }
    }

    /// The text with these edits, if they change nothing but what is touched.
    fn settle(&self, edits: &[Edit], touched: &Touched) -> Result<String, EditError> {
        let text = splice(self.layout.text(), edits).ok_or_else(|| odd("the edits overlap"))?;
        let syntax::Parsed { root, dropped: _, problems } = syntax::parse_as(&text, self.syntax);
        let (Some(root), true) = (root, problems.is_empty()) else {
            return Err(odd("something else in it depends on the entry, by an anchor perhaps"));
        };
        match difference(&self.root, &root, touched) {
            None => Ok(text),
            Some(pointer) => Err(odd(&format!("the value at '{pointer}' would change too"))),
        }
    }

    /// The member that a pointer leads to.
    fn member(&self, pointer: &str) -> Option<&Member> {
        self.root.at(parent(pointer)?)?.get(&last(pointer))
    }

    /// Edits that put an entry into the list at `member`, to which `at` is the pointer, and what they change.
    fn list_with(
        &self,
        at: &str,
        member: &Member,
        entry: Entry<'_>,
    ) -> Result<(Vec<Edit>, Touched), EditError> {
        let Member { key, value } = member;
        let at = at.to_owned();
        let count = value.items().map_or(0, <[_]>::len) + value.members().map_or(0, <[_]>::len);
        let new = match entry {
            Entry::Member(name, _) => child(&at, name),
            Entry::Item(_) => child(&at, &count.to_string()),
        };
        // From nothing to a list: only the whole of it can be compared.
        let from_nothing = matches!(value.content(), Content::Null);
        let old = if from_nothing { vec![at.clone()] } else { Vec::new() };
        let touched = Touched { old, new: vec![if from_nothing { at } else { new }] };
        if matches!(value.content, Content::Shared(_)) {
            return Err(odd("the list of servers is shared, by an anchor or an alias"));
        }
        if count > 0 {
            let edit = insert(self.layout, value, Place::Last, entry);
            return Ok((edit.ok_or_else(|| odd("its list of servers cannot be continued"))?, touched));
        }
        let empty = matches!(value.content, Content::Null | Content::Sequence(_) | Content::Mapping(_));
        if !empty {
            return Err(odd("what stands in the place of the servers is none"));
        }
        if entries::is_flow(self.layout, &self.root) {
            let edit = entries::filled(self.layout, key.span.start, value, entry);
            return Ok((vec![edit.ok_or_else(|| odd("its list of servers cannot be continued"))?], touched));
        }
        let column = self.layout.column(key.span.start).ok_or_else(|| odd("its lines begin oddly"))?;
        let at_line =
            self.layout.next(self.layout.last_line(&(key.span.start..value.span.end.max(key.span.end))));
        let mut edits = vec![entries::lines(self.layout, at_line, column + 2, false, entry)];
        if !value.span.is_empty() {
            // `[]` or `null` goes, and the blanks before it.
            let before = &self.layout.text()[..value.span.start];
            let start = before.trim_end_matches(' ').len();
            edits.insert(0, Edit { span: start..value.span.end, text: String::new() });
        }
        Ok((edits, touched))
    }

    /// Edits that give the file a list with one entry, and what they change.
    fn new_list(
        &self,
        at: &str,
        entry: Entry<'_>,
        document: &Document<'_>,
    ) -> Result<(Vec<Edit>, Touched), EditError> {
        let key = last(at);
        let key = key.as_str();
        if parent(at) != Some("") {
            return Err(odd("its list of servers is nowhere"));
        }
        let list = match entry {
            Entry::Item(data) => Data::List(vec![data.clone()]),
            Entry::Member(name, data) => Data::Map(vec![(name.to_owned(), data.clone())]),
        };
        let text = self.layout.text();
        if self.root.members().is_some_and(|it| !it.is_empty()) {
            let edit = insert(self.layout, &self.root, Place::Last, Entry::Member(key, &list));
            let touched = Touched { old: Vec::new(), new: vec![child("", key)] };
            return Ok((edit.ok_or_else(|| odd("it cannot be continued"))?, touched));
        }
        let end = self.layout.line_end();
        let root = || vec![String::new()];
        let whole = Touched { old: root(), new: root() };
        if self.syntax != Syntax::Yaml {
            let data = Data::Map(vec![(key.to_owned(), list)]);
            let empty =
                self.root.members().is_some() || text.trim_start_matches('\u{feff}').trim().is_empty();
            let mut new = data.pretty().join(end);
            if !text[self.root.span.end..].contains('\n') && self.root.members().is_none() {
                new.push_str(end);
            }
            let edit = Edit { span: self.root.span.clone(), text: new };
            return if empty { Ok((vec![edit], whole)) } else { Err(odd("it is no object")) };
        }
        // Nothing but comments, perhaps.
        if !matches!(self.root.content, Content::Null) || !self.root.span.is_empty() {
            return Err(odd("it is no mapping"));
        }
        let mut lines = Vec::new();
        if document.profile == Profile::Dominds {
            lines.push("version: 1".to_owned());
        }
        lines.extend(write::member(key, &list));
        let mut new: String = lines.into_iter().map(|it| it + end).collect();
        if !(text.is_empty() || text.ends_with(['\n', '\u{feff}'])) {
            new.insert_str(0, end);
        }
        Ok((vec![Edit { span: text.len()..text.len(), text: new }], whole))
    }

    /// Edits that take the only entry out of a list.
    fn emptied(&self, pointer: &str, list: &Node) -> Result<Vec<Edit>, EditError> {
        let empty = if list.items().is_some() { "[]" } else { "{}" };
        if entries::is_flow(self.layout, list) {
            let edit = entries::remove_only(self.layout, list, empty);
            return Ok(vec![edit.ok_or_else(|| odd("the entry shares its lines with something else"))?]);
        }
        let member = parent(pointer).and_then(|it| self.root.at(it)?.get(&last(pointer)));
        let key = &member.ok_or_else(|| odd("its list of servers has no key"))?.key;
        let colon = self.layout.text()[key.span.end..].find(':').map(|it| key.span.end + it + 1);
        let lines = entries::extent(self.layout, list, 0);
        match (colon, lines) {
            (Some(colon), Some(lines)) if colon <= lines.start => Ok(vec![
                Edit { span: colon..colon, text: format!(" {empty}") },
                Edit { span: lines, text: String::new() },
            ]),
            _ => Err(odd("the entry shares its lines with something else")),
        }
    }
}
