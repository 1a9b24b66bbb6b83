//! The mode of the lock file, from the flags `--locked` and `--lock-policy`.

use mcp_host_registry::{DriftPolicy, Enforcement};

use crate::args::{GlobalArgs, LockPolicyArg};

/// The mode of the lock file: whether it applies, and how strictly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockMode {
    /// It is not read.
    Off,
    /// It applies if it exists.
    IfPresent(Enforcement),
    /// It must exist.
    Required(Enforcement),
}

impl LockMode {
    /// The mode that the flags select. Fails with a message if they contradict each other.
    pub(crate) fn from_args(global: &GlobalArgs) -> Result<LockMode, String> {
        let enforcement = match global.lock_policy {
            LockPolicyArg::Off if global.locked => {
                return Err("--locked needs the lock file that --lock-policy off ignores".to_owned());
            }
            LockPolicyArg::Off => return Ok(LockMode::Off),
            LockPolicyArg::Warn => Enforcement::Warn,
            LockPolicyArg::Withhold => Enforcement::Withhold,
        };
        Ok(if global.locked { LockMode::Required(enforcement) } else { LockMode::IfPresent(enforcement) })
    }

    /// The policy of the lock; `None` if it is not read.
    pub(super) fn policy(self) -> Option<DriftPolicy> {
        match self {
            LockMode::Off => None,
            LockMode::IfPresent(it) | LockMode::Required(it) => {
                let mut policy = DriftPolicy::default();
                policy.changed = it;
                policy.added = it;
                Some(policy)
            }
        }
    }
}
