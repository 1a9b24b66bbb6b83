//! Configuration: loading, watching and saving files, and the desired set of servers.

pub(crate) mod approval;
pub(crate) mod desired;
pub(crate) mod load;
pub(crate) mod watch;
