//! Programs for keyspaces of Cassandra.

mod address;
mod binding;
mod design;
mod owner;

use std::sync::Arc;

use mingle::{Judgement, OpenError, TokioWorld};
use mingle_gen::one_line;
use mingle_store_cassandra::describe;

use super::design::Design;
use super::text::Next;
use super::{Begun, Variable, bind, checked, empty};
use crate::exit::{Exit, Failure};
use crate::open::failure;
pub use address::{Address, SCHEME};
use binding::{Cluster, binding, own_keyspace};

/// Designs a program, and checks that it is correct and fits the keyspace.
pub async fn begin(name: &str, address: Address) -> Result<Begun, Failure> {
    let (address, variable) = address.without_password(name);
    let keyspace = address.keyspace.clone();
    let none = Design { store: name.to_owned(), schema: keyspace.clone(), ..Design::default() };
    let mut cluster = Cluster { address, ..Cluster::default() };
    let bound = bind(&binding(&none, &cluster), variable.as_ref())?;
    let mingle::binding::Engine::Cassandra(config) = &bound.stores[name].engine else {
        unreachable!("the binding says that it is in Cassandra")
    };
    let found = describe(name, config, &keyspace).await;
    let found = found.map_err(|error| failure(&OpenError::Cassandra(error)))?;
    let wanted = &cluster.address.datacenters;
    if let Some(other) = wanted.iter().find(|wanted| !found.datacenters.contains(wanted)) {
        let known = found.datacenters.join(", ");
        let message = format!(
            "the keyspace {keyspace} has no copies in a data center {other:?}; it has them in {known}"
        );
        return Err(Failure::usage(message));
    }
    cluster.datacenters =
        if wanted.is_empty() { found.datacenters.clone() } else { wanted.clone() };
    cluster.replication.clone_from(&found.replication);
    let design = design::design(name, &keyspace, &found);
    if design.objects.is_empty() {
        let what = format!("the keyspace {} has no table", one_line(&keyspace));
        return Err(empty(&what, &design));
    }
    let program = checked(&design)?;
    let text = binding(&design, &cluster);
    let bound = bind(&text, variable.as_ref())?;
    let world = Arc::new(TokioWorld::new());
    let examined = mingle::examine(&program, &bound, None, world).await;
    let examined = examined.map_err(|error| failure(&error))?;
    let mut warnings = Vec::new();
    let findings = examined.stores.iter().flat_map(|store| &store.findings);
    for finding in findings.filter(|finding| finding.judgement == Judgement::Wrong) {
        if finding.subject != "copies" {
            return Err(Failure { message: finding.text.clone(), exit: Exit::Store });
        }
        warnings.push(format!("calls in a data center need copies there: {}", finding.text));
    }
    Ok(Begun { design, binding: text, variable, warnings })
}

/// Returns the sentences about the files of a design.
pub fn next<'a>(design: &Design, file: &str, variable: Option<&'a Variable>) -> Next<'a> {
    let own = own_keyspace(design);
    Next {
        effects: format!(
            "The tables stay as they are. The first call adds a keyspace {own}, if it is not there, for \
             what the\nruntime has to remember."
        ),
        commands: vec![format!("mingle doctor {file}    examines the cluster")],
        variable: variable.map(|(name, _)| name.as_str()),
    }
}

#[cfg(test)]
mod tests;
