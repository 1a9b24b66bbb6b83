//! Commands that show, test and approve what the servers offer.

pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod list;
pub(crate) mod lock;
pub(crate) mod login;
pub(crate) mod read;
pub(crate) mod skills;
pub(crate) mod trust;
pub(crate) mod watch;
