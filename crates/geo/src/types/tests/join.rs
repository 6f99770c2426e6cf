//! Joins of states that were folded separately.

use super::*;
use crate::types::item::ItemOp;

/// Joins the separately folded states of two sites, and compares with a third site that received
/// all operations.
fn joined_apart(kind: Kind, steps: &[Step], are_forgotten: bool) -> Result<(), TestCaseError> {
    let mut sites = play(kind, steps);
    let runs = sites.sent.concat();
    let vectors: Vec<Vector> = sites.sites.iter().map(|site| site.seen).collect();
    if are_forgotten {
        // An id is past where all its runs are folded; with several runs, once no site lacks any.
        let is_in = |at: &Vector, version: Version| version.timestamp <= at[version.origin];
        for (site, at) in sites.sites.iter_mut().zip(&vectors) {
            site.state.forget_ids(|id, known| {
                let mut all = runs.iter().filter(|sent| sent.id == Some(*id));
                let mut known = known.iter().skip(usize::from(known.len() < 2));
                let is_known = |run: &Mark| vectors.iter().all(|at| is_in(at, run.version));
                all.all(|sent| is_in(at, sent.cause.version)) && known.all(is_known)
            });
        }
    }
    for (own, other) in [(0, 1), (1, 2), (2, 0), (1, 0)] {
        let (mut at, other_at) = (vectors[own], vectors[other]);
        let mut state = sites.sites[own].state.clone();
        state.join(&at, &sites.sites[other].state, &other_at);
        at.join(&other_at);
        let mut expected = State::new(kind);
        let mut all: Vec<&Sent> = runs.iter().collect();
        all.sort_by_key(|sent| sent.cause.version);
        for sent in all {
            if sent.cause.version.timestamp <= at[sent.cause.version.origin] {
                expected.apply(&sent.cause, &sent.op, sent.id.as_ref());
            }
        }
        if !are_forgotten {
            prop_assert_eq!(&state.ids, &expected.ids);
            prop_assert_eq!(&state.body, &expected.body);
        }
        prop_assert_eq!(Model::of(&state), Model::of(&expected));
        // It continues as the other does.
        let clock = runs.iter().map(|sent| sent.cause.version.timestamp.0).max().unwrap_or(0) + 1;
        let version = Version { timestamp: Timestamp(clock), origin: DcId(2), index: 0 };
        let cause = Cause { version, seen: vectors[other] };
        for op in [Op::Erase, Op::Reset, Op::Clear, Op::Empty, Op::Item(ItemOp::Delete)] {
            if op.fits(kind) {
                let op = sites.sites[other].state.measured(&op, &vectors[other], &[]);
                state.apply(&cause, &op, None);
                expected.apply(&cause, &op, None);
            }
        }
        prop_assert_eq!(Model::of(&state), Model::of(&expected));
    }
    Ok(())
}

proptest! {
    #[test]
    fn what_was_folded_apart_is_joined((kind, steps) in with_kind(false)) {
        joined_apart(kind, &steps, false)?;
    }

    #[test]
    fn it_is_where_operations_repeat((kind, steps) in with_kind(true)) {
        joined_apart(kind, &steps, false)?;
    }

    #[test]
    fn it_is_where_ids_are_forgotten((kind, steps) in with_kind(true)) {
        joined_apart(kind, &steps, true)?;
    }
}
