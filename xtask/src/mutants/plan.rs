//! The production crates, and the suites for each: the cheap ones first.

/// A crate whose tests are tried.
pub struct Crate {
    /// Its folder, such as `crates/lang`.
    pub folder: &'static str,
    pub suites: &'static [Suite],
    /// The servers that the suites need.
    pub servers: &'static [&'static str],
}

/// The paths of code for tests only: generators of random programs, planted faults, stores
/// under test. This code is not itself tested for mistakes.
pub const FOR_TESTS: [&str; 5] = [
    "crates/lang/src/generate/",
    "crates/runtime/src/mutants.rs",
    "crates/geo/src/flaw.rs",
    "crates/store/src/conformance/",
    "crates/store/src/test_world.rs",
];

/// A suite: the folder of its package, the target (`lib` or the name of a binary or an integration test), the
/// arguments.
pub type Suite = (&'static str, &'static str, &'static [&'static str]);

/// Seeds that find most planted faults: see `testing/sim/tests/it/simulation.rs`.
const SEEDS: Suite = ("testing/sim", "mingle-sim", &["--seeds", "60", "--jobs", "2"]);
const GEO_SEEDS: Suite = ("testing/sim", "mingle-sim", &["geo", "--seeds", "100", "--jobs", "2"]);

/// Cassandra takes long to start, and only its adapter's suites need it.
const USUAL: &[&str] = &["postgres", "redis"];

/// All production crates.
pub const CRATES: [Crate; 19] = [
    alone("crates/model", &[("crates/model", "lib", &[]), ("crates/lang", "lib", &[])]),
    alone(
        "crates/lang",
        &[
            ("crates/lang", "lib", &[]),
            ("crates/lang", "it", &[]),
            ("crates/runtime", "lib", &[]),
            ("crates/runtime", "it", &[]),
        ],
    ),
    alone("crates/checker", &[("crates/checker", "lib", &[]), ("crates/checker", "it", &[])]),
    alone("crates/geo", &[("crates/geo", "lib", &[]), ("crates/geo", "it", &[]), GEO_SEEDS]),
    alone("crates/geo-node", &[("crates/geo-node", "lib", &[]), GEO_SEEDS]),
    alone("crates/mingled", &[("crates/mingled", "it", &[])]),
    alone(
        "crates/store",
        &[
            ("crates/store", "lib", &[]),
            ("testing/replay", "it", &[]),
            ("adapters/embedded", "it", &[]),
            SEEDS,
        ],
    ),
    with_servers(
        "crates/runtime",
        USUAL,
        &[
            ("crates/runtime", "lib", &[]),
            ("crates/runtime", "it", &[]),
            ("testing/replay", "it", &[]),
            SEEDS,
            ("crates/mingle", "it", &[]),
        ],
    ),
    with_servers(
        "crates/mingle",
        USUAL,
        &[("crates/mingle", "lib", &[]), ("crates/mingle", "it", &[])],
    ),
    alone("crates/gen", &[("crates/gen", "lib", &[]), ("crates/gen", "clients", &[])]),
    alone("crates/macros", &[("crates/macros", "lib", &[])]),
    alone("crates/lsp", &[("crates/lsp", "lib", &[])]),
    with_servers(
        "crates/server",
        USUAL,
        &[("crates/server", "lib", &[]), ("crates/server", "it", &[])],
    ),
    with_servers(
        "crates/cli",
        USUAL,
        &[("crates/cli", "lib", &[]), ("crates/cli", "mingle", &[]), ("crates/cli", "it", &[])],
    ),
    alone(
        "adapters/embedded",
        &[
            ("adapters/embedded", "lib", &[]),
            ("adapters/embedded", "it", &[]),
            ("adapters/embedded", "kill", &[]),
        ],
    ),
    with_servers(
        "adapters/postgres",
        &["postgres"],
        &[("adapters/postgres", "lib", &[]), ("adapters/postgres", "it", &[])],
    ),
    with_servers(
        "adapters/redis",
        &["redis"],
        &[("adapters/redis", "lib", &[]), ("adapters/redis", "it", &[])],
    ),
    with_servers(
        "adapters/cassandra",
        &["cassandra"],
        &[("adapters/cassandra", "lib", &[]), ("adapters/cassandra", "it", &[])],
    ),
    with_servers(
        "adapters/worker",
        USUAL,
        &[("adapters/worker", "lib", &[]), ("crates/mingle", "it", &[])],
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
    /// Returns the name of its package, by which people name it.
    pub fn name(&self) -> String {
        package(self.folder)
    }
}

/// Returns the name of the package in a folder: the folder's name after the prefix of its kind.
pub fn package(folder: &str) -> String {
    let name = folder.rsplit('/').next().unwrap_or(folder);
    match name {
        "mingle" | "mingled" => name.to_owned(),
        _ if folder.starts_with("adapters/") || name == "replay" => format!("mingle-store-{name}"),
        _ => format!("mingle-{name}"),
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
