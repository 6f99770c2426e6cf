//! The reduction of a failing schedule to a smaller one that still fails.

/// The result of shrinking a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk<E> {
    /// The remaining events.
    pub events: Vec<E>,
    /// The failure of the remaining schedule.
    pub failure: String,
    /// The number of runs used.
    pub runs: usize,
    /// True if no single event can be removed without losing the failure; otherwise the runs were
    /// used up.
    pub is_minimal: bool,
}

/// Removes events from a schedule while it still fails, larger pieces first (Zeller and
/// Hildebrandt, "Simplifying and isolating failure-inducing input", 2002). `fails` runs a schedule
/// from the start and returns the failure if it is of the wanted kind; it is called at most
/// `runs_max` times. Returns `None` if the given schedule does not fail.
///
/// # Examples
///
/// ```
/// use mingle_sim::process::shrink;
///
/// let fails = |events: &[u32]| {
///     let sum: u32 = events.iter().sum();
///     (events.contains(&7) && sum > 9).then(|| format!("the sum is {sum}"))
/// };
/// let shrunk = shrink((0..100).collect(), 1_000, fails).unwrap();
/// assert!(shrunk.is_minimal && shrunk.events.len() == 2, "{shrunk:?}");
/// ```
pub fn shrink<E: Clone>(
    events: Vec<E>,
    runs_max: usize,
    mut fails: impl FnMut(&[E]) -> Option<String>,
) -> Option<Shrunk<E>> {
    let failure = fails(&events)?;
    let mut shrunk = Shrunk { events, failure, runs: 1, is_minimal: false };
    let mut size = shrunk.events.len().div_ceil(2).max(1);
    loop {
        let before = shrunk.events.len();
        if !sweep(&mut shrunk, size, runs_max, &mut fails) {
            return Some(shrunk);
        }
        if size > 1 {
            size = size.div_ceil(2);
        } else if shrunk.events.len() == before {
            shrunk.is_minimal = true;
            return Some(shrunk);
        }
    }
}

/// Tries to remove each piece of this size in turn, from the end; false once the runs are used up.
/// The last events most often have no effect, and they depend on earlier ones.
fn sweep<E: Clone>(
    shrunk: &mut Shrunk<E>,
    size: usize,
    runs_max: usize,
    fails: &mut impl FnMut(&[E]) -> Option<String>,
) -> bool {
    let mut end = shrunk.events.len();
    while end > 0 {
        if shrunk.runs >= runs_max {
            return false;
        }
        let start = end.saturating_sub(size);
        let rest = [&shrunk.events[..start], &shrunk.events[end..]].concat();
        shrunk.runs += 1;
        if let Some(failure) = fails(&rest) {
            shrunk.events = rest;
            shrunk.failure = failure;
        }
        end = start;
    }
    true
}

#[cfg(test)]
mod tests {
    use mingle_model::random::Random;

    use super::*;

    /// Returns a function that fails if all of these are present in this order.
    fn needs(needed: &[u64]) -> impl Fn(&[u64]) -> Option<String> {
        move |events: &[u64]| {
            let mut events = events.iter();
            let all = needed.iter().all(|wanted| events.any(|event| event == wanted));
            all.then(|| "all there".to_owned())
        }
    }

    #[test]
    fn what_is_needed_is_left() {
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let events: Vec<u64> = (0..200).collect();
            let mut needed: Vec<u64> =
                (0..random.below(6)).map(|_| random.below(200) as u64).collect();
            needed.sort_unstable();
            needed.dedup();
            let shrunk = shrink(events, 5_000, needs(&needed)).expect("it fails at first");
            assert!(shrunk.is_minimal, "seed {seed}: {shrunk:?}");
            assert_eq!(shrunk.events, needed, "seed {seed}");
        }
    }

    #[test]
    fn what_does_not_fail_is_not_shrunk() {
        assert_eq!(shrink(vec![1, 2], 100, needs(&[3])), None);
    }

    #[test]
    fn runs_are_bounded() {
        for runs_max in 1..40 {
            let mut runs = 0;
            let needed: Vec<u64> = (0..64).step_by(7).collect();
            let fails = |events: &[u64]| {
                runs += 1;
                needs(&needed)(events)
            };
            let shrunk = shrink((0..64).collect(), runs_max, fails).expect("it fails at first");
            assert_eq!(shrunk.runs, runs);
            assert!(runs <= runs_max && !shrunk.is_minimal, "{shrunk:?}");
            assert_eq!(needs(&needed)(&shrunk.events), Some(shrunk.failure));
        }
    }

    #[test]
    fn what_others_need_goes_after_them() {
        // 8 has an effect only together with 5, as a restart with the kill before it.
        let mut fails = |events: &[u64]| {
            let fits = events.contains(&5) || !events.contains(&8);
            (fits && events.contains(&9)).then(|| "nine".to_owned())
        };
        for events in [[5, 8, 9], [8, 5, 9], [9, 8, 5]] {
            let shrunk = shrink(events.to_vec(), 100, &mut fails).expect("it fails at first");
            assert_eq!(shrunk.events, [9], "of {events:?}");
        }
    }
}
