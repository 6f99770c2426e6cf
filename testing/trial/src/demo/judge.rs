//! The comparison at the end: the acknowledged writes against the data.

use std::collections::BTreeSet;

use super::load::{Counter, Counts};
use super::story::Story;
use super::{CENTERS, ask_of, asked, wait};
use crate::center::Cluster;
use crate::client::Client;

/// Compares the acknowledged writes with the data at all data centers.
pub fn judge(cluster: &Cluster, counts: &Counts, story: &Story) -> Result<(), String> {
    let mut clients = (0..CENTERS).map(|dc| ask_of(cluster, dc)).collect::<Result<Vec<_>, _>>()?;
    for client in &mut clients {
        asked(client, "BARRIER")?;
    }
    wait("all data centers have the same", || {
        let found: BTreeSet<Vec<i64>> =
            clients.iter_mut().map(|client| all(client, counts)).collect::<Result<_, _>>()?;
        Ok(found.len() == 1)
    })?;
    let found = all(&mut clients[0], counts)?;
    let faults = faults(counts, &found);
    story.tell(format!(
        "all three have the same data; {} clients had moved with a token; {} replies are missing",
        counts.moved,
        counts.unknown + counts.counters.iter().map(|counter| counter.unknown).sum::<u64>(),
    ));
    tell_cut(counts, &found, story);
    if faults.is_empty() {
        story.tell("no acknowledged write is lost, and none is doubled");
        return Ok(());
    }
    Err(faults.join("\n"))
}

/// Returns the values of all counters, and last the one from which numbers are taken.
fn all(client: &mut Client, counts: &Counts) -> Result<Vec<i64>, String> {
    let names = counts.counters.iter().map(|counter| counter.name.as_str());
    let mut values = Vec::new();
    for name in names.chain(["strong:number"]) {
        let reply = asked(client, &format!("GET {name}"))?;
        values.push(reply.number().ok_or_else(|| format!("{name} is {reply}, no number"))?);
    }
    Ok(values)
}

/// Returns how many of a counter's acknowledged additions are missing, and how many are too many.
fn departure(counter: &Counter, found: i64) -> (u64, u64) {
    let found = found.max(0).unsigned_abs();
    let most = counter.done + counter.unknown;
    (counter.done.saturating_sub(found), found.saturating_sub(most))
}

/// True if the counter's client asked only for the disk of the data center that was killed.
fn may_lose(counter: &Counter) -> bool {
    counter.name.starts_with("adds:d2:") && !counter.is_uniform
}

fn tell_cut(counts: &Counts, found: &[i64], story: &Story) {
    for (counter, found) in counts.counters.iter().zip(found).filter(|(it, _)| may_lose(it)) {
        let (lost, _) = departure(counter, *found);
        story.tell(format!(
            "one client of d2 had asked for its disk only: of {} acknowledged writes, the cut took {lost}",
            counter.done
        ));
    }
}

/// Returns the lost and the doubled writes, each kind in a sentence.
fn faults(counts: &Counts, found: &[i64]) -> Vec<String> {
    let mut faults = Vec::new();
    for (counter, found) in counts.counters.iter().zip(found) {
        let (lost, doubled) = departure(counter, *found);
        let Counter { name, done, unknown, .. } = counter;
        let shown =
            format!("{name} is {found}: {done} additions were acknowledged, {unknown} unknown");
        if lost > 0 && !may_lose(counter) {
            faults.push(format!("{lost} writes are lost: {shown}"));
        }
        if doubled > 0 {
            faults.push(format!("{doubled} writes are doubled: {shown}"));
        }
    }
    let numbers: BTreeSet<i64> = counts.numbers.iter().map(|(number, _)| *number).collect();
    let taken = counts.numbers.len();
    if numbers.len() < taken {
        faults.push(format!("{} numbers were taken twice", taken - numbers.len()));
    }
    let last = found.last().copied().unwrap_or_default();
    let (least, most) = (taken as i64, taken as i64 + counts.unknown as i64);
    if !(least..=most).contains(&last) {
        faults.push(format!(
            "{last} numbers are gone, and {taken} were acknowledged, {} are unknown",
            counts.unknown
        ));
    }
    if taken == 0 || counts.counters.iter().any(|counter| counter.done == 0) {
        faults.push("a client had no reply at all".into());
    }
    faults
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn counts() -> Counts {
        let counter = |name: &str, is_uniform| Counter {
            name: name.into(),
            is_uniform,
            done: 10,
            unknown: 2,
        };
        let counters = vec![
            counter("adds:d0:0", false),
            counter("adds:d2:0", true),
            counter("adds:d2:2", false),
        ];
        let numbers = [1, 2, 4].map(|number| (number, Instant::now())).into();
        Counts { counters, numbers, unknown: 1, moved: 0 }
    }

    #[test]
    fn what_is_lost_or_doubled_is_named() {
        let counts = counts();
        for good in [[10, 10, 10, 3], [12, 11, 5, 4]] {
            assert_eq!(faults(&counts, &good), Vec::<String>::new());
        }
        for (bad, expected) in [
            ([9, 10, 10, 3], "1 writes are lost: adds:d0:0 is 9"),
            ([10, 9, 10, 3], "1 writes are lost: adds:d2:0 is 9"),
            ([10, 10, 13, 3], "1 writes are doubled: adds:d2:2 is 13"),
            ([10, 10, 10, 2], "2 numbers are gone, and 3 were acknowledged"),
            ([10, 10, 10, 5], "5 numbers are gone, and 3 were acknowledged"),
        ] {
            let faults = faults(&counts, &bad);
            assert!(faults.len() == 1 && faults[0].starts_with(expected), "{faults:?}");
        }
        let twice =
            Counts { numbers: [1, 2, 2].map(|number| (number, Instant::now())).into(), ..counts };
        assert_eq!(faults(&twice, &[10, 10, 10, 3]), ["1 numbers were taken twice"]);
    }
}
