//! Programs for keys of Redis.

mod binding;
mod design;
mod parts;
mod patterns;
mod sampled;
mod values;

use std::sync::Arc;
use std::time::Duration;

use mingle::{Judgement, OpenError, TokioWorld};
use mingle_store_redis::Sampler;

use super::address::Address;
use super::design::{Design, Kind};
use super::text::Next;
use super::{Begun, Variable, bind, checked, empty};
use crate::exit::{Exit, Failure};
use crate::open::failure;
use binding::binding;
use sampled::Sampled;

/// The number of keys to look at where the caller gives none.
const KEYS: u32 = 10_000;

/// The longest time to look at keys.
const PATIENCE: Duration = Duration::from_mins(1);

/// Designs a program, and checks that it is correct and that its binding fits.
pub async fn begin(name: &str, address: Address, most: Option<u32>) -> Result<Begun, Failure> {
    let (address, variable) = address.without_password(name);
    let none = Design { store: name.to_owned(), kind: Kind::Redis, ..Design::default() };
    let bound = bind(&binding(&none, &address), variable.as_ref())?;
    let mingle::binding::Engine::Redis(config) = &bound.stores[name].engine else {
        unreachable!("the binding says that it is in Redis")
    };
    let world = Arc::new(TokioWorld::new());
    let failed = |error| failure(&OpenError::Redis(error));
    let sampler = Sampler::connect(name, config, PATIENCE, world.clone()).await.map_err(failed)?;
    let most = usize::try_from(most.unwrap_or(KEYS)).unwrap_or(usize::MAX);
    let sample = sampler.keys(most).await.map_err(failed)?;
    if sample.keys.is_empty() {
        return Err(without_keys(&sample));
    }
    let sampled = Sampled::look(&sampler, sample).await.map_err(failed)?;
    let mut design = design::design(name, &sampled);
    design.schema = sampled.summary();
    if design.objects.is_empty() {
        return Err(empty("the sample has no keys", &design));
    }
    let program = checked(&design)?;
    let text = binding(&design, &address);
    let bound = bind(&text, variable.as_ref())?;
    let examined = mingle::examine(&program, &bound, None, world).await;
    let examined = examined.map_err(|error| failure(&error))?;
    let mut warnings = Vec::new();
    for finding in examined.stores.iter().flat_map(|store| &store.findings) {
        match (finding.judgement, &*finding.subject) {
            (Judgement::Wrong, "durability") => warnings.push(format!(
                "the store does not open as long as the server may lose what it acknowledged: {}",
                finding.text
            )),
            (Judgement::Wrong, _) => {
                return Err(Failure { message: finding.text.clone(), exit: Exit::Store });
            }
            _ => {}
        }
    }
    Ok(Begun { design, binding: text, variable, warnings })
}

fn without_keys(sample: &mingle_store_redis::Sample) -> Failure {
    let message = match sample.forbidden {
        0 if sample.is_late => "the server is too slow: it named no key in a minute".to_owned(),
        0 => "the database has no keys, so there is nothing to begin with; `mingle new` begins without a database"
            .to_owned(),
        forbidden => format!(
            "the server refuses TYPE for all {forbidden} keys of the sample: its user needs `+type`, `+pttl` and the \
             commands that read, for the keys to look at"
        ),
    };
    Failure::usage(message)
}

/// Returns the sentences about the files of a design.
pub fn next<'a>(design: &Design, file: &str, variable: Option<&'a Variable>) -> Next<'a> {
    Next {
        effects: format!(
            "{}\nThe keys stay as they are. The first call adds keys that begin with mingle:{}:, for what \
             the\nruntime has to remember.",
            design.schema, design.store
        ),
        commands: vec![format!("mingle doctor {file}    examines the server")],
        variable: variable.map(|(name, _)| name.as_str()),
    }
}

#[cfg(test)]
mod tests;
