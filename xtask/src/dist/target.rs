//! The platforms that packages are published for, with the names that each package format has for them.

use std::path::PathBuf;

/// A platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target {
    /// The target triple of rustc.
    pub(super) triple: &'static str,
    /// `os` and `cpu` of its npm package. `None` if another target serves the same machines.
    pub(super) npm: Option<NpmPlatform>,
    /// The platform tags of its Python wheel, sorted.
    pub(super) wheel: Option<&'static str>,
    /// The architecture of its Debian package.
    pub(super) deb: Option<&'static str>,
}

/// The built program of a target.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) target: Target,
    pub(super) path: PathBuf,
}

/// The fields of `package.json` that select a platform package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NpmPlatform {
    pub(super) os: &'static str,
    pub(super) cpu: &'static str,
}

impl NpmPlatform {
    /// The name of the platform package.
    pub(super) fn package(self) -> String {
        format!("mcp-host-cli-{}-{}", self.os, self.cpu)
    }
}

const fn npm(os: &'static str, cpu: &'static str) -> Option<NpmPlatform> {
    Some(NpmPlatform { os, cpu })
}

/// All platforms.
///
/// On Linux the packages contain the static programs, which run with every C library. The archives for glibc are for
/// those who want the resolver and the allocator of their system.
pub(super) const TARGETS: &[Target] = &[
    Target {
        triple: "x86_64-unknown-linux-musl",
        npm: npm("linux", "x64"),
        wheel: Some("manylinux2014_x86_64.manylinux_2_17_x86_64.musllinux_1_1_x86_64"),
        deb: Some("amd64"),
    },
    Target {
        triple: "aarch64-unknown-linux-musl",
        npm: npm("linux", "arm64"),
        wheel: Some("manylinux2014_aarch64.manylinux_2_17_aarch64.musllinux_1_1_aarch64"),
        deb: Some("arm64"),
    },
    Target { triple: "x86_64-unknown-linux-gnu", npm: None, wheel: None, deb: None },
    Target { triple: "aarch64-unknown-linux-gnu", npm: None, wheel: None, deb: None },
    Target { triple: "x86_64-pc-windows-gnu", npm: npm("win32", "x64"), wheel: Some("win_amd64"), deb: None },
    Target {
        triple: "aarch64-apple-darwin",
        npm: npm("darwin", "arm64"),
        wheel: Some("macosx_11_0_arm64"),
        deb: None,
    },
    Target {
        triple: "x86_64-apple-darwin",
        npm: npm("darwin", "x64"),
        wheel: Some("macosx_10_12_x86_64"),
        deb: None,
    },
];

impl Target {
    /// The platform with a triple.
    pub(super) fn find(triple: &str) -> Option<Target> {
        TARGETS.iter().copied().find(|target| target.triple == triple)
    }

    pub(super) fn is_windows(&self) -> bool {
        self.triple.contains("-windows-")
    }

    pub(super) fn is_linux(&self) -> bool {
        self.triple.contains("-linux-")
    }

    /// The file name of the program.
    pub(super) fn program_name(&self) -> &'static str {
        if self.is_windows() { "mcp-host.exe" } else { "mcp-host" }
    }

    /// Whether this machine runs the program.
    pub(super) fn runs_here(&self) -> bool {
        let os = match std::env::consts::OS {
            "macos" => "-apple-",
            "windows" => "-windows-",
            _ => "-linux-",
        };
        self.triple.starts_with(std::env::consts::ARCH) && self.triple.contains(os)
    }

    /// The target as cargo-zigbuild names it: for glibc with the oldest version that the program runs with.
    pub(super) fn zig_triple(&self) -> String {
        if self.triple.ends_with("-gnu") { format!("{}.2.17", self.triple) } else { self.triple.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_target_serves_each_npm_platform() {
        let mut packages: Vec<String> =
            TARGETS.iter().filter_map(|target| target.npm).map(NpmPlatform::package).collect();
        let all = packages.len();
        packages.sort();
        packages.dedup();
        assert_eq!(packages.len(), all);
    }

    #[test]
    fn only_glibc_has_a_version() {
        let zig = |triple| Target::find(triple).expect("it is a target").zig_triple();
        assert_eq!(zig("x86_64-unknown-linux-gnu"), "x86_64-unknown-linux-gnu.2.17");
        assert_eq!(zig("x86_64-unknown-linux-musl"), "x86_64-unknown-linux-musl");
        assert_eq!(Target::find("sparc-sun-solaris"), None);
    }
}
