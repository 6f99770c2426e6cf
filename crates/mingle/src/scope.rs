//! The scope of sessions: a program's declarations, and the place of its data.

use std::fmt::Write as _;
use std::path::Path;

use mingle_lang::Program;
use mingle_lang::hir::StoreId;
use mingle_runtime::session::SessionScope;
use mingle_store::World;
use mingle_store::catalog::Catalog;

use crate::binding::{Binding, Engine, StoreBinding};
use crate::open::store_schema;

/// The scope of sessions over these stores. Addresses count as written, without users, passwords and
/// options; a store in memory is a new place each time it is opened.
pub(crate) fn scope(
    program: &Program,
    binding: &Binding,
    folder: Option<&Path>,
    world: &dyn World,
) -> SessionScope {
    let (mut declared, mut places) = (String::new(), String::new());
    let default = StoreBinding::default();
    for (index, store) in program.checked.stores.iter().enumerate() {
        let bound = binding.stores.get(&*store.name).unwrap_or(&default);
        let schema = store_schema(program, StoreId(index as u32), bound);
        let mut catalog = Catalog::new(&schema);
        // A checked program does not declare anything twice.
        let _ = catalog.merge(&schema);
        let _ = writeln!(declared, "{:?} {}", store.name, catalog.encode());
        let place = place(&bound.engine, folder, world);
        let _ = writeln!(places, "{:?} {} {place}", store.name, bound.engine.name());
    }
    SessionScope::of(&declared, &places)
}

fn place(engine: &Engine, folder: Option<&Path>, world: &dyn World) -> String {
    // Without any engine, nothing uses these values.
    let _ = (folder, world);
    match engine {
        Engine::Unbound => String::new(),
        #[cfg(feature = "embedded")]
        Engine::Embedded(embedded) => {
            let folder = match folder {
                Some(folder) => {
                    let found = folder.canonicalize();
                    found.unwrap_or_else(|_| folder.to_owned()).to_string_lossy().into_owned()
                }
                None => format!("memory {:016x}", world.random()),
            };
            format!("{folder:?} {:?}", sorted(embedded.places()))
        }
        #[cfg(feature = "postgres")]
        Engine::Postgres(config) => {
            let servers = config.servers.iter().map(|(name, url)| (name, address(url)));
            let servers: Vec<_> = servers.collect();
            format!("{:?} {servers:?} {:?}", address(&config.url), config.schema)
        }
        #[cfg(feature = "redis")]
        Engine::Redis(config) => format!("{:?} {:?}", address(&config.url), config.prefix),
        // The nodes that a client asks first do not change the place of the data.
        #[cfg(feature = "cassandra")]
        Engine::Cassandra(config) => {
            let datacenters = sorted(config.datacenters.clone());
            format!("{datacenters:?} {:?} {:?}", config.keyspace, config.area)
        }
        #[cfg(feature = "mingled")]
        Engine::Mingled(config) => {
            let addresses = config.addresses().map(|(_, address)| address.to_lowercase());
            sorted(addresses.collect()).join(" ")
        }
        #[cfg(feature = "worker")]
        Engine::Worker(config, _) => format!("{:?}", address(&config.url)),
    }
}

#[cfg(any(feature = "embedded", feature = "cassandra", feature = "mingled"))]
fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names
}

/// An address without its scheme, its user, its password and its options.
#[cfg(any(feature = "postgres", feature = "redis", feature = "worker"))]
fn address(text: &str) -> String {
    let Some((_, rest)) = text.split_once("://") else {
        // Key-value settings, for example `host=db user=me`.
        let kept = ["host", "hostaddr", "port", "dbname"];
        let settings = text.split_whitespace();
        let kept = settings.filter(|setting| {
            setting.split_once('=').is_some_and(|(name, _)| kept.contains(&name))
        });
        return kept.collect::<Vec<_>>().join(" ");
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{}/{path}", host.to_lowercase())
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use super::address;

    #[test]
    fn addresses_have_no_secrets() {
        for (text, expected) in [
            ("postgres://me:secret@DB:5432/shop?sslmode=require", "db:5432/shop"),
            ("postgresql://db/shop", "db/shop"),
            ("redis://:secret@db", "db/"),
            ("host=db user=me password=secret dbname=shop", "host=db dbname=shop"),
        ] {
            assert_eq!(address(text), expected);
        }
    }
}
