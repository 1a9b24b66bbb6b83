//! Seals the ids of tasks that clients receive.
//!
//! A sealed id contains the server, the server's id of the task, and a keyed hash of both and the client. So no other
//! client can use it, and a gateway with the same key opens it after a restart.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::{fmt, fs, io};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use mcp_host_model::{RawJson, ServerId};
use mcp_host_transport::open_regular_file;
use tempfile::NamedTempFile;

use crate::access::principal::Principal;
use crate::access::secret_id::{HASH_DIGITS, keyed_hash, new_secret_id};
use crate::protocol::json_splice;
use crate::protocol::message_writer::json_string;

/// Maximum size of a server's id of a task in bytes; a longer one would not fit into the header that repeats it.
const MAX_ID_BYTES: usize = 2048;

/// How much of a key file is read. More than a key has, so that a longer file is refused.
const MAX_KEY_FILE_BYTES: u64 = 64;

/// The secret that seals the ids of tasks.
#[derive(Clone)]
pub struct TaskKey([u8; 32]);

impl TaskKey {
    /// A random key.
    ///
    /// # Panics
    ///
    /// If the system provides no randomness.
    pub fn random() -> TaskKey {
        TaskKey(blake3::derive_key("mcp-gateway 2026 ids of tasks", new_secret_id().as_bytes()))
    }

    /// Reads the key in this file. A missing file is created with a random key, readable by its owner only. Blocks.
    pub fn load_or_create(path: &Path) -> io::Result<TaskKey> {
        if !path.exists() {
            let folder = path.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder)?;
            let mut file = NamedTempFile::new_in(folder)?;
            file.write_all(&TaskKey::random().0)?;
            match file.persist_noclobber(path) {
                Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => return Err(error.error),
                // Another gateway may have created it meanwhile.
                Ok(_) | Err(_) => {}
            }
        }
        let mut key = Vec::new();
        open_regular_file(path)?.take(MAX_KEY_FILE_BYTES).read_to_end(&mut key)?;
        let key = key.try_into();
        key.map(TaskKey).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it does not have 32 bytes"))
    }
}

impl fmt::Debug for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskKey(…)")
    }
}

/// The `_meta` key of 2025-11-25 that names the task of a message.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// Maximum depth at which the id of a task is searched: it is in `task`, or in the related task of `_meta`. Bounded,
/// because a server controls the depth of its messages.
const MAX_ID_DEPTH: usize = 3;

/// Seals and opens ids of tasks.
pub(crate) struct TaskIdSealer(TaskKey);

impl TaskIdSealer {
    /// A sealer with this key.
    pub(crate) fn new(key: TaskKey) -> TaskIdSealer {
        TaskIdSealer(key)
    }

    /// Seals a server's id of a task for a client. `None` if the id is too long.
    pub(crate) fn seal(&self, client: &Principal, server: &ServerId, id: &str) -> Option<String> {
        let target = BASE64_URL_SAFE_NO_PAD.encode(format!("{server}\n{id}"));
        (id.len() <= MAX_ID_BYTES).then(|| format!("{}{target}", self.hash(client, &target).to_hex()))
    }

    /// Seals the ids of tasks in a server's message for a client. `None` if an id cannot be sealed.
    pub(crate) fn seal_ids_in(
        &self,
        client: &Principal,
        server: &ServerId,
        message: &RawJson,
    ) -> Option<RawJson> {
        self.seal_down_to(MAX_ID_DEPTH, client, server, message)
    }

    /// Seals the ids of tasks in an object and in its members, at most `depth` levels below it.
    fn seal_down_to(
        &self,
        depth: usize,
        client: &Principal,
        server: &ServerId,
        object: &RawJson,
    ) -> Option<RawJson> {
        let members = json_splice::members(object);
        let mut sealed = Vec::new();
        for (key, value) in &members {
            let new_value = match &**key {
                "taskId" => json_string(&self.seal(client, server, &value.to_text()?)?),
                "task" | "_meta" | RELATED_TASK if depth > 0 && value.is_object() => {
                    self.seal_down_to(depth - 1, client, server, value)?.as_str().to_owned()
                }
                _ => continue,
            };
            sealed.push((value.as_str(), new_value));
        }
        Some(json_splice::replace_slices(object, sealed.into_iter()))
    }

    /// Returns the server and its id of the task. `None` if the id was not sealed for this client.
    pub(crate) fn open(&self, client: &Principal, sealed: &str) -> Option<(ServerId, String)> {
        let (hash, target) = sealed.split_at_checked(HASH_DIGITS)?;
        if blake3::Hash::from_hex(hash).ok()? != self.hash(client, target) {
            return None;
        }
        let target = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(target).ok()?).ok()?;
        let (server, id) = target.split_once('\n')?;
        Some((ServerId::parse(server).ok()?, id.to_owned()))
    }

    fn hash(&self, client: &Principal, target: &str) -> blake3::Hash {
        keyed_hash(&self.0.0, &[&client.to_string(), target])
    }
}

/// Returns the id of the task that a server's message describes.
pub(crate) fn task_id(message: &RawJson) -> Option<String> {
    let member = |object: &RawJson, name: &str| {
        json_splice::members(object).into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
    };
    let task = member(message, "task").filter(RawJson::is_object);
    member(task.as_ref().unwrap_or(message), "taskId")?.to_text().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_id_opens_for_its_client_and_key_only() {
        let (ann, bob) = (Principal::named("ann"), Principal::named("bob"));
        let server = ServerId::parse("a b").unwrap();
        let ids = TaskIdSealer::new(TaskKey([7; 32]));
        for id in ["1", "é\n\"x\"", ""] {
            let sealed = ids.seal(&ann, &server, id).unwrap();
            assert!(sealed.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it)), "{sealed}");
            let opened = Some((server.clone(), id.to_owned()));
            assert_eq!(TaskIdSealer::new(TaskKey([7; 32])).open(&ann, &sealed), opened);
            assert_eq!(ids.open(&bob, &sealed), None);
            assert_eq!(ids.open(&Principal::anonymous(), &sealed), None);
            assert_eq!(TaskIdSealer::new(TaskKey::random()).open(&ann, &sealed), None);
            for changed in [format!("{sealed}A"), sealed[1..].to_owned(), format!("0{}", &sealed[1..])] {
                assert!(changed == sealed || ids.open(&ann, &changed).is_none(), "{changed}");
            }
        }
        assert_eq!(ids.open(&ann, ""), None);
        assert_eq!(ids.open(&ann, &"é".repeat(40)), None);
        assert_eq!(ids.seal(&ann, &server, &"x".repeat(MAX_ID_BYTES + 1)), None);
    }

    #[test]
    fn key_of_a_file_stays_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/key");
        let first = TaskKey::load_or_create(&path).unwrap();
        assert_eq!(TaskKey::load_or_create(&path).unwrap().0, first.0);
        assert_ne!(TaskKey::random().0, first.0);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        fs::write(&path, "short").unwrap();
        assert_eq!(TaskKey::load_or_create(&path).unwrap_err().to_string(), "it does not have 32 bytes");
    }
}
