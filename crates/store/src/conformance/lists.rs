//! Lists of objects, at stores that have them.

use std::collections::BTreeSet;

use mingle_model::random::Random;
use mingle_model::{Date, Ref, Value};

use super::schema::{NUMBER, at, thing};
use super::{Bench, Checked, Wrong, ensure, ensure_eq, tests};
use crate::listing::{Listed, Listing};
use crate::operation::Write;
use crate::store::StoreError;

tests![pages_have_each_object_that_exists_once, what_is_no_cursor_is_refused];

async fn page(bench: &Bench<'_>, at: usize, listing: &Listing) -> Result<Listed, Wrong> {
    Ok(bench.store.list(&bench.session(at), listing).await?)
}

/// Pages of any size have each object that exists once, at each replica, between writes and deletions.
async fn pages_have_each_object_that_exists_once(bench: &Bench<'_>) -> Checked {
    let mut random = Random::new(47);
    let keys = ["", "a", "aa", "ä", "\u{1}", "z", "ab", "b/c", "\"q\""];
    let mut expected = BTreeSet::new();
    for round in 0..12 {
        let key = keys[random.below(keys.len())];
        if random.below(4) == 0 {
            bench.write(vec![Write::Delete(thing(key))]).await?;
            expected.remove(&thing(key));
        } else {
            bench.write(vec![Write::Assign(at(key, NUMBER), Value::Int(round))]).await?;
            expected.insert(thing(key));
        }
        bench.deliver().await;
        for replica in 0..bench.replicas().len().max(1) {
            let most = 1 + random.below(4);
            let mut listing = Listing { kind: "Thing".into(), after: None, most };
            let mut found: Vec<Ref> = Vec::new();
            loop {
                let listed = page(bench, replica, &listing).await?;
                ensure!(listed.objects.len() <= most, "a page has at most {most}: {listed:?}");
                found.extend(listed.objects);
                let Some(next) = listed.next else { break };
                ensure!(found.len() <= expected.len(), "pages come to an end: {found:?}");
                listing.after = Some(next);
            }
            let once: BTreeSet<Ref> = found.iter().cloned().collect();
            ensure_eq!(once, expected, "round {round}, replica {replica}");
            ensure_eq!(found.len(), expected.len(), "each once: {found:?}");
        }
    }
    // Keys that are no texts, in the same way.
    let kinds = [
        ("ByInt", [-5, 0, 7].map(Value::Int)),
        ("ByRef", ["", "a", "z"].map(|key| Value::Ref(thing(key)))),
        ("ByDate", [-5, 0, 20_000].map(|day| Value::Date(Date::from_days(day)))),
    ];
    for (kind, keys) in kinds {
        let all = keys.map(|key| Ref::new(kind, key));
        bench.write(all.iter().cloned().map(Write::Create).collect()).await?;
        let first = Listing { kind: kind.into(), after: None, most: 2 };
        let (mut found, listed) = (Vec::new(), page(bench, 0, &first).await?);
        found.extend(listed.objects);
        let next = Listing { after: listed.next, ..first };
        ensure!(next.after.is_some(), "{kind}: there is a second page");
        found.extend(page(bench, 0, &next).await?.objects);
        ensure_eq!(found.iter().collect::<BTreeSet<_>>(), all.iter().collect(), "{kind}");
    }
    Ok(())
}

/// A text that no page gave, and a kind that does not live there, are refused.
async fn what_is_no_cursor_is_refused(bench: &Bench<'_>) -> Checked {
    for (kind, after, part) in [("Thing", Some("?"), "cursor"), ("Nothing", None, "Nothing")] {
        let after = after.map(str::to_owned);
        let listing = Listing { kind: kind.into(), after, most: 1 };
        let found = bench.store.list(&bench.session(0), &listing).await;
        let is_named =
            matches!(&found, Err(StoreError::Refused { reason, .. }) if reason.contains(part));
        ensure!(is_named, "{listing:?}: {found:?}");
    }
    Ok(())
}
