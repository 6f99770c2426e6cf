//! The production crates, and the suites for each: the cheap ones first.

/// A crate whose tests are tried.
pub struct Crate {
    /// Its folder, such as `crates/mingle-lang`.
    pub folder: &'static str,
    pub suites: &'static [Suite],
    /// The servers that the suites need.
    pub servers: &'static [&'static str],
}

/// The paths of code for tests only: generators of random programs, planted faults, stores
/// under test. This code is not itself tested for mistakes.
pub const FOR_TESTS: [&str; 5] = [
    "crates/mingle-lang/src/generate/",
    "crates/mingle-runtime/src/planted.rs",
    "crates/mingle-geo/src/flaw.rs",
    "crates/mingle-store/src/conformance/",
    "crates/mingle-store/src/test_world.rs",
];

/// A suite: the folder of its package, the target (`lib` or the name of a binary or an integration test), the
/// arguments.
pub type Suite = (&'static str, &'static str, &'static [&'static str]);

/// Seeds that find most planted faults: see `crates/mingle-sim/tests/it/simulation.rs`.
const SEEDS: Suite = ("crates/mingle-sim", "mingle-sim", &["--seeds", "60", "--jobs", "2"]);
const GEO_SEEDS: Suite =
    ("crates/mingle-sim", "mingle-sim", &["geo", "--seeds", "100", "--jobs", "2"]);

/// Cassandra takes long to start, and only its adapter's suites need it.
const USUAL: &[&str] = &["postgres", "redis"];

/// All production crates.
pub const CRATES: [Crate; 17] = [
    alone(
        "crates/mingle-model",
        &[("crates/mingle-model", "lib", &[]), ("crates/mingle-lang", "lib", &[])],
    ),
    alone(
        "crates/mingle-lang",
        &[
            ("crates/mingle-lang", "lib", &[]),
            ("crates/mingle-lang", "it", &[]),
            ("crates/mingle-runtime", "lib", &[]),
            ("crates/mingle-runtime", "it", &[]),
        ],
    ),
    alone(
        "crates/mingle-checker",
        &[("crates/mingle-checker", "lib", &[]), ("crates/mingle-checker", "it", &[])],
    ),
    alone(
        "crates/mingle-geo",
        &[("crates/mingle-geo", "lib", &[]), ("crates/mingle-geo", "it", &[]), GEO_SEEDS],
    ),
    alone(
        "crates/mingle-store",
        &[
            ("crates/mingle-store", "lib", &[]),
            ("stores/replay", "it", &[]),
            ("stores/embedded", "it", &[]),
            SEEDS,
        ],
    ),
    with_servers(
        "crates/mingle-runtime",
        USUAL,
        &[
            ("crates/mingle-runtime", "lib", &[]),
            ("crates/mingle-runtime", "it", &[]),
            ("stores/replay", "it", &[]),
            SEEDS,
            ("crates/mingle", "it", &[]),
        ],
    ),
    with_servers(
        "crates/mingle",
        USUAL,
        &[("crates/mingle", "lib", &[]), ("crates/mingle", "it", &[])],
    ),
    alone(
        "crates/mingle-gen",
        &[("crates/mingle-gen", "lib", &[]), ("crates/mingle-gen", "clients", &[])],
    ),
    alone("crates/mingle-macros", &[("crates/mingle-macros", "lib", &[])]),
    alone("crates/mingle-lsp", &[("crates/mingle-lsp", "lib", &[])]),
    with_servers(
        "crates/mingle-server",
        USUAL,
        &[("crates/mingle-server", "lib", &[]), ("crates/mingle-server", "it", &[])],
    ),
    with_servers(
        "crates/mingle-cli",
        USUAL,
        &[
            ("crates/mingle-cli", "lib", &[]),
            ("crates/mingle-cli", "mingle", &[]),
            ("crates/mingle-cli", "it", &[]),
        ],
    ),
    alone(
        "stores/embedded",
        &[
            ("stores/embedded", "lib", &[]),
            ("stores/embedded", "it", &[]),
            ("stores/embedded", "kill", &[]),
        ],
    ),
    with_servers(
        "stores/postgres",
        &["postgres"],
        &[("stores/postgres", "lib", &[]), ("stores/postgres", "it", &[])],
    ),
    with_servers(
        "stores/redis",
        &["redis"],
        &[("stores/redis", "lib", &[]), ("stores/redis", "it", &[])],
    ),
    with_servers(
        "stores/cassandra",
        &["cassandra"],
        &[("stores/cassandra", "lib", &[]), ("stores/cassandra", "it", &[])],
    ),
    with_servers(
        "stores/worker",
        USUAL,
        &[("stores/worker", "lib", &[]), ("crates/mingle", "it", &[])],
    ),
];

const fn alone(folder: &'static str, suites: &'static [Suite]) -> Crate {
    Crate { folder, suites, servers: &[] }
}

const fn with_servers(
    folder: &'static str,
    servers: &'static [&'static str],
    suites: &'static [Suite],
) -> Crate {
    Crate { folder, suites, servers }
}

impl Crate {
    /// Returns the name for people: the last part of the folder of a crate, the whole folder of a
    /// store.
    pub fn name(&self) -> &'static str {
        self.folder.strip_prefix("crates/").unwrap_or(self.folder)
    }
}

/// Returns the name of the package in a folder.
pub fn package(folder: &str) -> String {
    match folder.strip_prefix("stores/") {
        Some(store) => format!("mingle-store-{store}"),
        None => folder.trim_start_matches("crates/").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::root;

    #[test]
    fn the_packages_are_there() {
        for planned in &CRATES {
            for (folder, ..) in planned.suites {
                let manifest = std::fs::read_to_string(root().join(folder).join("Cargo.toml"));
                let manifest = manifest.expect("the package is there");
                let name = format!("name = \"{}\"\n", package(folder));
                assert!(manifest.contains(&name), "{folder}");
            }
        }
    }
}
