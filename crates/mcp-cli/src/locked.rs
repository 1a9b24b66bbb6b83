//! The lock beside a configuration: whether it counts, and what it says.
//!
//! One that is there counts, for somebody has put it there to be kept. One that cannot be read starts nothing.

use std::path::Path;

use mcp_host::{Approval, FollowLock, lock_path, read_lock};
use mcp_registry::{DriftPolicy, Enforcement};

use crate::args::{Global, LockPolicyName};
use crate::context::{Context, blocking};
use crate::source::Unreadable;

/// What comes here has no neighbours, and no lock.
const STANDARD_INPUT: &str = "/dev/stdin";

/// Whether a lock counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locking {
    /// It is not looked at.
    Off,
    /// It counts where there is one.
    Found(Enforcement),
    /// There must be one.
    Required(Enforcement),
}

impl Locking {
    /// What the flags say. Fails with a sentence when they contradict each other.
    pub(crate) fn of(global: &Global) -> Result<Locking, String> {
        let enforcement = match global.lock_policy {
            LockPolicyName::Off if global.locked => {
                return Err("--locked wants what --lock-policy off does not look at".to_owned());
            }
            LockPolicyName::Off => return Ok(Locking::Off),
            LockPolicyName::Warn => Enforcement::Warn,
            LockPolicyName::Withhold => Enforcement::Withhold,
        };
        Ok(if global.locked { Locking::Required(enforcement) } else { Locking::Found(enforcement) })
    }

    /// How strictly a lock is kept; `None` where none is looked at.
    fn policy(self) -> Option<DriftPolicy> {
        match self {
            Locking::Off => None,
            Locking::Found(it) | Locking::Required(it) => Some(DriftPolicy { changed: it, added: it }),
        }
    }
}

/// The lock of a configuration file, to be followed beside it.
pub(crate) fn followed(context: &Context, configuration: &Path) -> Option<FollowLock> {
    let policy = context.locking.policy()?;
    if configuration == Path::new(STANDARD_INPUT) {
        return None;
    }
    Some(FollowLock { path: lock_path(configuration), policy })
}

/// What is approved of the servers of a configuration file.
pub(crate) async fn approval(
    context: &Context,
    configuration: &Path,
) -> Result<Option<Approval>, Unreadable> {
    let Some(policy) = context.locking.policy() else { return Ok(None) };
    let path = lock_path(configuration);
    let read = match configuration == Path::new(STANDARD_INPUT) {
        true => Ok(None),
        false => {
            let path = path.clone();
            blocking(move || read_lock(&path)).await
        }
    };
    let unreadable = |message: String, help: &str| {
        Err(Unreadable { path: path.display().to_string(), message, help: Some(help.to_owned()) })
    };
    match (read, context.locking) {
        (Ok(Some((lock, _))), _) => Ok(Some(Approval { lock: lock.into(), policy })),
        (Ok(None), Locking::Required(_)) => {
            let message = format!("there is no {}, and --locked wants one", path.display());
            unreadable(message, "`mcp-host lock` writes it")
        }
        (Ok(None), Locking::Off | Locking::Found(_)) => Ok(None),
        (Err(error), _) => unreadable(error.to_string(), "mend it, or start without it: `--lock-policy off`"),
    }
}
