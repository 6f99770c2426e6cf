//! The binding keys of a store that is kept in this process.

use std::collections::BTreeMap;

use mingle_store::wrap::distance::Distance;
use mingle_store_embedded::limits::CONFLICTS_MAX;
use mingle_store_embedded::{ConflictPairs, GeoConfig};
use serde::Deserialize;

use super::keys::Keys;
use super::{BindingError, Engine, StoreBinding};

/// The largest number of replicas of a store.
const REPLICAS_MAX: usize = 64;

/// The largest number of data centers of a store.
const DATACENTERS_MAX: usize = mingle_store_embedded::DATACENTERS_MAX;

/// A store of the embedded engine.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddedBinding {
    /// Names of its replicas.
    pub replicas: Vec<String>,
    /// The duration of a round trip.
    pub distance: Distance,
    /// The delay until an update reaches the other replicas.
    pub delay: Distance,
    /// Data centers in place of replicas.
    pub geo: Option<GeoConfig>,
    /// The store whose data centers these are: both live in one engine.
    pub with: Option<String>,
    /// Which transactions conflict; if none, any two at a linearizable store, and no two at a causal
    /// one.
    pub conflicts: Option<ConflictPairs>,
    /// Patterns of fields and objects: of the transactions that write one of them, any two conflict.
    pub strong_only: Vec<String>,
    /// The store's former name: its data in the folder get the new name.
    pub renamed_from: Option<String>,
}

impl EmbeddedBinding {
    /// Names of the replicas or data centers at which a session can stay.
    pub fn places(&self) -> Vec<String> {
        match &self.geo {
            Some(geo) => geo.datacenters.iter().map(ToString::to_string).collect(),
            None => self.replicas.clone(),
        }
    }
}

impl Default for EmbeddedBinding {
    fn default() -> Self {
        Self {
            replicas: vec!["r1".into()],
            distance: Distance::default(),
            delay: Distance::default(),
            geo: None,
            with: None,
            conflicts: None,
            strong_only: Vec::new(),
            renamed_from: None,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    replicas: Option<WrittenReplicas>,
    distance: Option<String>,
    delay: Option<String>,
    datacenters: Option<WrittenDatacenters>,
    partitions: Option<u16>,
    f: Option<u8>,
    between: Option<WrittenBetween>,
    with: Option<String>,
    conflicts: Option<WrittenConflicts>,
    strong_only: Option<Vec<String>>,
    renamed_from: Option<String>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "conflicts: expected a list of pairs of transactions, such as [[\"withdraw\", \"withdraw\"]]"
)]
enum WrittenConflicts {
    Pairs(Vec<Vec<String>>),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "datacenters: expected a number, or a list of names")]
enum WrittenDatacenters {
    Count(usize),
    Names(Vec<String>),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "between: expected a distance, or a table of distances by pair")]
enum WrittenBetween {
    All(String),
    Pairs(BTreeMap<String, String>),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "replicas: expected a number, or a list of names")]
enum WrittenReplicas {
    Count(usize),
    Names(Vec<String>),
}

pub fn bind(keys: &Keys<'_>, written: toml::Table) -> Result<EmbeddedBinding, BindingError> {
    let written: Written = keys.all(written)?;
    if let Some(host) = &written.with {
        check_alone(keys, &written)?;
        let (with, conflicts) = (Some(host.clone()), bind_conflicts(keys, written.conflicts)?);
        let strong_only = bind_strong_only(keys, written.strong_only)?;
        let renamed_from = written.renamed_from;
        let rest = EmbeddedBinding::default();
        return Ok(EmbeddedBinding { with, conflicts, strong_only, renamed_from, ..rest });
    }
    let mut bound =
        EmbeddedBinding { geo: bind_geo(keys, &written)?, ..EmbeddedBinding::default() };
    bound.conflicts = bind_conflicts(keys, written.conflicts)?;
    bound.strong_only = bind_strong_only(keys, written.strong_only)?;
    bound.renamed_from = written.renamed_from;
    match written.replicas {
        None => {}
        Some(WrittenReplicas::Names(names)) => bound.replicas = names,
        Some(WrittenReplicas::Count(count)) if count <= REPLICAS_MAX => {
            bound.replicas = (1..=count).map(|number| format!("r{number}")).collect();
        }
        Some(WrittenReplicas::Count(count)) => {
            let message = format!("expected at most {REPLICAS_MAX}, found {count}");
            return Err(keys.wrong("replicas", message));
        }
    }
    keys.check_names("replicas", bound.replicas.iter().map(String::as_str))?;
    if bound.replicas.len() > REPLICAS_MAX {
        let found = bound.replicas.len();
        return Err(
            keys.wrong("replicas", format!("expected at most {REPLICAS_MAX}, found {found}"))
        );
    }
    if bound.replicas.is_empty() {
        return Err(keys.wrong("replicas", "expected at least one"));
    }
    if let Some(distance) = &written.distance {
        bound.distance = keys.distance("distance", distance)?;
    }
    if let Some(delay) = &written.delay {
        bound.delay = keys.distance("delay", delay)?;
    }
    Ok(bound)
}

/// Refuses keys of a store that repeat or contradict the store with which it shares an engine.
fn check_alone(keys: &Keys<'_>, written: &Written) -> Result<(), BindingError> {
    let also = [
        ("replicas", written.replicas.is_some()),
        ("distance", written.distance.is_some()),
        ("delay", written.delay.is_some()),
        ("datacenters", written.datacenters.is_some()),
        ("partitions", written.partitions.is_some()),
        ("f", written.f.is_some()),
        ("between", written.between.is_some()),
    ];
    match also.iter().find(|(_, is_given)| *is_given) {
        Some((key, _)) => Err(keys.wrong(key, "is said by the store that this one is `with`")),
        None => Ok(()),
    }
}

/// Gives each store that names another store in `with` the data centers of that store.
///
/// # Errors
///
/// When the other store does not exist, or has no data centers of its own to share.
pub fn join_hosts(
    stores: &mut BTreeMap<String, StoreBinding>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<(), BindingError> {
    let guests = stores.iter().filter_map(|(name, bound)| match &bound.engine {
        Engine::Embedded(EmbeddedBinding { with: Some(host), .. }) => {
            Some((name.clone(), host.clone()))
        }
        _ => None,
    });
    for (name, host) in guests.collect::<Vec<_>>() {
        let keys = Keys { path: format!("stores.{name}"), environment };
        let shared = match stores.get(&host).map(|bound| &bound.engine) {
            Some(Engine::Embedded(EmbeddedBinding {
                geo: Some(geo),
                distance,
                with: None,
                ..
            })) => {
                if !distance.mean.is_zero() {
                    let message =
                        format!("{host} has a distance, and its data centers have their own");
                    return Err(keys.wrong("with", message));
                }
                geo.clone()
            }
            _ => {
                let message =
                    format!("expected a store with datacenters of its own, found {host:?}");
                return Err(keys.wrong("with", message));
            }
        };
        if let Some(Engine::Embedded(guest)) = stores.get_mut(&name).map(|bound| &mut bound.engine)
        {
            guest.geo = Some(shared);
        }
    }
    Ok(())
}

/// Pairs of transactions; in each pair the lesser name stands first.
fn bind_conflicts(
    keys: &Keys<'_>,
    written: Option<WrittenConflicts>,
) -> Result<Option<ConflictPairs>, BindingError> {
    let Some(WrittenConflicts::Pairs(pairs)) = written else { return Ok(None) };
    if pairs.len() > CONFLICTS_MAX {
        let message = format!("expected at most {CONFLICTS_MAX} pairs, found {}", pairs.len());
        return Err(keys.wrong("conflicts", message));
    }
    let pairs = pairs.into_iter().map(|pair| match pair.as_slice() {
        [one, other] => Ok((one.min(other).as_str().into(), one.max(other).as_str().into())),
        names => {
            let found = names.join(", ");
            let message = format!("expected pairs of transactions, found [{found}]");
            Err(keys.wrong("conflicts", message))
        }
    });
    pairs.collect::<Result<_, _>>().map(Some)
}

/// Patterns of fields; whether they fit the program is checked with it.
fn bind_strong_only(
    keys: &Keys<'_>,
    written: Option<Vec<String>>,
) -> Result<Vec<String>, BindingError> {
    let patterns = written.unwrap_or_default();
    if patterns.len() > CONFLICTS_MAX {
        let message = format!("expected at most {CONFLICTS_MAX} names, found {}", patterns.len());
        return Err(keys.wrong("strong_only", message));
    }
    Ok(patterns)
}

fn bind_geo(keys: &Keys<'_>, written: &Written) -> Result<Option<GeoConfig>, BindingError> {
    let Some(datacenters) = &written.datacenters else {
        let only = [
            ("partitions", written.partitions.is_some()),
            ("f", written.f.is_some()),
            ("between", written.between.is_some()),
            ("conflicts", written.conflicts.is_some()),
            ("strong_only", written.strong_only.is_some()),
        ];
        return match only.iter().find(|(_, is_given)| *is_given) {
            Some((key, _)) => Err(keys.wrong(key, "is for a store with datacenters")),
            None => Ok(None),
        };
    };
    for (key, is_given) in
        [("replicas", written.replicas.is_some()), ("delay", written.delay.is_some())]
    {
        if is_given {
            let why = "a store with datacenters has none: its data centers are the replicas, and `between` says how far they are from each other";
            return Err(keys.wrong(key, why));
        }
    }
    let mut geo = match datacenters {
        WrittenDatacenters::Count(count) => {
            if *count > DATACENTERS_MAX {
                let message =
                    format!("expected 1 to {DATACENTERS_MAX} data centers, found {count}");
                return Err(keys.wrong("datacenters", message));
            }
            GeoConfig::new((1..=*count).map(|number| format!("dc{number}")))
        }
        WrittenDatacenters::Names(names) => GeoConfig::new(names.iter().map(String::as_str)),
    };
    geo.partitions = written.partitions.unwrap_or(1);
    geo.f = written.f;
    geo.check().map_err(|why| keys.wrong("datacenters", why))?;
    for name in &geo.datacenters {
        keys.check_name("datacenters", name)?;
    }
    match &written.between {
        None => {}
        Some(WrittenBetween::All(text)) => geo.distance = keys.distance("between", text)?,
        Some(WrittenBetween::Pairs(pairs)) => {
            for (pair, text) in pairs {
                let key = format!("between.{pair}");
                let distance = keys.distance(&key, text)?;
                let (one, other) = two_of(&geo, pair).map_err(|why| keys.wrong(&key, why))?;
                geo = geo.with_distance_between(&one, &other, distance);
            }
            check_pairs(&geo).map_err(|why| keys.wrong("between", why))?;
        }
    }
    Ok(Some(geo))
}

/// Returns the two data centers that a key names (for example `oslo-rome`).
fn two_of(geo: &GeoConfig, pair: &str) -> Result<(String, String), String> {
    let names = &geo.datacenters;
    let others = names.iter().flat_map(|one| names.iter().map(move |other| (one, other)));
    let mut fitting = others.filter(|(one, other)| format!("{one}-{other}") == *pair);
    match fitting.next() {
        Some((one, other)) if one != other => Ok((one.to_string(), other.to_string())),
        _ => Err(format!("expected two of {} with a hyphen between", names.join(", "))),
    }
}

/// Refuses a partly specified `between`: a missing pair would have no distance.
fn check_pairs(geo: &GeoConfig) -> Result<(), String> {
    for (index, one) in geo.datacenters.iter().enumerate() {
        for other in &geo.datacenters[index + 1..] {
            let pair = (one.min(other).clone(), one.max(other).clone());
            if !geo.distances.contains_key(&pair) {
                return Err(format!("the distance {one}-{other} is missing"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::binding::{Binding, Engine};

    #[track_caller]
    fn check(text: &str, expected: Result<&[(&str, &str, &str)], &str>) {
        let found = Binding::parse(&format!("[stores.a]\n{text}"));
        match (found, expected) {
            (Ok(binding), Ok(distances)) => {
                let Engine::Embedded(bound) = &binding.stores["a"].engine else {
                    panic!("{binding:?}")
                };
                let geo = bound.geo.as_ref().expect("it has data centers");
                for (one, other, distance) in distances {
                    assert_eq!(geo.between(one, other).to_string(), *distance, "{one} {other}");
                }
            }
            (Err(error), Err(part)) => {
                assert!(error.to_string().contains(part), "{error}");
            }
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn data_centers_are_numbered_or_named_and_apart() {
        check("datacenters = 3", Ok(&[("dc1", "dc3", "0ns")]));
        check("datacenters = 2\nbetween = \"80ms±5ms\"", Ok(&[("dc1", "dc2", "80ms±5ms")]));
        check(
            "datacenters = [\"oslo\", \"rome\", \"lima-2\"]\npartitions = 4\nf = 1\n\
             between = { oslo-rome = \"30ms\", lima-2-oslo = \"190ms\", rome-lima-2 = \"200ms\" }",
            Ok(&[
                ("rome", "oslo", "30ms"),
                ("oslo", "lima-2", "190ms"),
                ("lima-2", "rome", "200ms"),
            ]),
        );
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let host = "datacenters = 3\n[stores.b]\nwith = ";
        check(&format!("{host}\"a\""), Ok(&[("dc1", "dc3", "0ns")]));
        check(
            &format!("{host}\"c\""),
            Err("stores.b.with: expected a store with datacenters of its"),
        );
        check(&format!("{host}\"b\""), Err("of its own, found \"b\""));
        check(
            &format!("{host}\"a\"\nf = 1"),
            Err("stores.b.f: is said by the store that this one is `with`"),
        );
        check(&format!("distance = \"1ms\"\n{host}\"a\""), Err("stores.b.with: a has a distance"));
        let named = "datacenters = [\"oslo\", \"rome\", \"lima\"]\n";
        check("partitions = 3", Err("stores.a.partitions: is for a store with datacenters"));
        check("between = \"3ms\"", Err("stores.a.between: is for a store with datacenters"));
        check("datacenters = 3\nreplicas = 3", Err("stores.a.replicas: a store with datacenters"));
        check("datacenters = 3\ndelay = \"1ms\"", Err("stores.a.delay: a store with"));
        check("datacenters = \"oslo\"", Err("expected a number, or a list of names"));
        check(
            "datacenters = 0",
            Err("stores.a.datacenters: expected 1 to 7 data centers, found 0"),
        );
        check("datacenters = 9", Err("expected 1 to 7 data centers, found 9"));
        check("datacenters = [\"a\", \"a\"]", Err("two data centers are called a"));
        for name in ["", "a b", "a/b", "../a", ".", "a,b", "a\\n", &"a".repeat(64)] {
            let text = format!("datacenters = [\"oslo\", \"{name}\"]");
            check(&text, Err("stores.a.datacenters: "));
            let text = format!("replicas = [\"oslo\", \"{name}\"]");
            check(&text, Err("stores.a.replicas: expected a name"));
        }
        check("replicas = [\"a\", \"a\"]", Err("stores.a.replicas: a is there twice"));
        check("datacenters = 3\nf = 3", Err("at most 2 can be lost"));
        check("datacenters = 3\npartitions = 0", Err("expected 1 to 4096 partitions, found 0"));
        let unknown = format!("{named}between = {{ oslo-bonn = \"1ms\" }}");
        check(&unknown, Err("stores.a.between.oslo-bonn: expected two of oslo, rome, lima"));
        let missing = format!("{named}between = {{ oslo-rome = \"1ms\" }}");
        check(&missing, Err("stores.a.between: the distance oslo-lima is missing"));
        let far = format!("{named}between = \"far\"");
        check(&far, Err("stores.a.between: expected a distance such as 85ms"));
    }
}
