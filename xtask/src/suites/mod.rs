//! Test suites: all tests, conformance, the fault matrix, the long tests and the fuzz targets.

pub(crate) mod conformance;
pub(crate) mod faults;
pub(crate) mod fresh;
pub(crate) mod fuzz;
pub(crate) mod gateway_clients;
pub(crate) mod macos;
pub(crate) mod soak;
pub(crate) mod test_run;
pub(crate) mod windows;
