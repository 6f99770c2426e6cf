//! Limits with a simulated clock and store, and the order of waiting calls.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use super::limit::{LIMIT_FIRST, LIMIT_MIN, Limit, PROBE_EVERY, QUICK};
use super::*;

const MS: Duration = Duration::from_millis(1);

/// A simulated store that serves a fixed number of calls at a time, each for a fixed time, and its
/// clients. A client calls again as soon as it is answered, or after a pause if it was refused.
struct Simulated {
    now: Duration,
    limit: Limit,
    slots: usize,
    service: Duration,
    /// The time after which a refused caller tries again.
    pause: Duration,
    served: VecDeque<Duration>,
    /// The times at which calls end, and at which they began.
    ends: BinaryHeap<Reverse<(Duration, Duration)>>,
    /// The times at which clients call.
    comes: BinaryHeap<Reverse<Duration>>,
    done: u64,
    refused: u64,
}

impl Simulated {
    fn new(slots: usize, service: Duration, clients: u32) -> Self {
        let comes = (0..clients).map(|n| Reverse(MS / 10 * n)).collect();
        Self {
            now: Duration::ZERO,
            limit: Limit::new(256, Duration::ZERO),
            slots,
            service,
            pause: 20 * MS,
            served: VecDeque::new(),
            ends: BinaryHeap::new(),
            comes,
            done: 0,
            refused: 0,
        }
    }

    fn running(&self) -> usize {
        self.ends.len() + self.served.len()
    }

    /// Lets this time pass; returns the number of calls that ended in it.
    fn run(&mut self, time: Duration) -> u64 {
        let (until, before) = (self.now + time, self.done);
        loop {
            let end = self.ends.peek().map(|Reverse((at, _))| *at);
            let come = self.comes.peek().map(|Reverse(at)| *at);
            let next = [end, come].into_iter().flatten().min().expect("clients come again");
            if next > until {
                self.now = until;
                return self.done - before;
            }
            self.now = next;
            if end == Some(next) {
                let Reverse((_, began)) = self.ends.pop().expect("it was peeked at");
                if let Some(began) = self.served.pop_front() {
                    self.ends.push(Reverse((self.now + self.service, began)));
                }
                self.done += 1;
                self.limit.ended(
                    self.now,
                    self.now.saturating_sub(began),
                    Ending::Well,
                    self.running(),
                );
                self.comes.push(Reverse(self.now));
            } else {
                self.comes.pop();
                self.come();
            }
        }
    }

    fn come(&mut self) {
        if self.running() >= self.limit.get() {
            self.refused += 1;
            self.comes.push(Reverse(self.now + self.pause));
            return;
        }
        if self.ends.len() < self.slots {
            self.ends.push(Reverse((self.now + self.service, self.now)));
        } else {
            self.served.push_back(self.now);
        }
        self.limit.runs(self.running());
    }

    /// Returns the share of the store's capacity that this number of calls used in this time.
    fn share(&self, calls: u64, time: Duration) -> f64 {
        calls as f64 * self.service.as_secs_f64() / (time.as_secs_f64() * self.slots as f64)
    }
}

#[test]
fn a_limit_keeps_the_store_busy_and_calls_short() {
    for (slots, service) in [(4, 10 * MS), (4, 500 * MS), (32, 10 * MS), (16, MS)] {
        let clients = u32::try_from(10 * slots).expect("a few");
        let mut simulated = Simulated::new(slots, service, clients);
        simulated.run(Duration::from_secs(20));
        for second in 0..90 {
            simulated.run(Duration::from_secs(1));
            let limit = simulated.limit.get();
            let longer = QUICK.as_secs_f64() / service.as_secs_f64();
            let most = 2.0 * slots as f64 * longer.max(1.0) + 10.0;
            assert!(limit as f64 <= most, "{slots} slots, {second} s: the limit is {limit}");
        }
        let time = Duration::from_mins(2);
        let ended = simulated.run(time);
        let share = simulated.share(ended, time);
        assert!(share > 0.9, "{slots} slots of {service:?}: busy for {share:.2} of the time");
    }
}

#[test]
fn without_overload_nothing_is_refused() {
    for clients in [1, 8, 40] {
        let mut simulated = Simulated::new(40, 5 * MS, clients);
        simulated.run(Duration::from_mins(3));
        assert_eq!(simulated.refused, 0, "{clients} clients");
        assert!(simulated.limit.get() >= LIMIT_FIRST.min(clients as usize));
    }
}

#[test]
fn what_has_become_slower_is_measured_anew() {
    let mut simulated = Simulated::new(8, 30 * MS, 80);
    simulated.run(Duration::from_secs(20));
    for service in [300 * MS, 30 * MS] {
        simulated.service = service;
        simulated.run(PROBE_EVERY * 2);
        let time = Duration::from_secs(20);
        let ended = simulated.run(time);
        let share = simulated.share(ended, time);
        assert!(share > 0.85, "{service:?}: busy for {share:.2} of the time");
        let shortest = simulated.limit.shortest().expect("calls have ended");
        assert!(shortest < service * 2, "{shortest:?} for {service:?}");
    }
}

#[test]
fn quick_failures_say_nothing_and_slow_ones_do() {
    let mut limit = Limit::new(256, Duration::ZERO);
    let mut now = Duration::ZERO;
    let mut ends = |limit: &mut Limit, took: Duration, ending| {
        for _ in 0..200 {
            now += MS;
            limit.runs(60);
            limit.ended(now, took, ending, 60);
        }
    };
    ends(&mut limit, 10 * MS, Ending::Well);
    let shortest = limit.shortest();
    ends(&mut limit, MS / 100, Ending::Failed);
    assert_eq!(limit.shortest(), shortest);
    let before = limit.get();
    ends(&mut limit, Duration::from_secs(1), Ending::Failed);
    assert!(limit.get() < before / 2, "{} of {before}", limit.get());
    for _ in 0..100 {
        ends(&mut limit, Duration::from_secs(1), Ending::Failed);
    }
    assert!(limit.get() >= LIMIT_MIN);
}

#[test]
fn conflicts_count_though_calls_are_quick() {
    // The duration of a call grows with the number of concurrent calls, and stays below `QUICK`.
    let settled = |ending: fn(u64) -> Ending| {
        let mut limit = Limit::new(256, Duration::ZERO);
        limit.runs(1);
        (0..20).for_each(|n| limit.ended(MS * 20 * n, 3 * MS, Ending::Well, 0));
        for n in 0..20_000_u64 {
            let running = limit.get();
            limit.runs(running);
            let took = 3 * MS + MS / 10 * running as u32;
            limit.ended(MS * 500 + MS * n as u32, took.min(19 * MS), ending(n), running - 1);
        }
        limit.get()
    };
    let few = |n: u64| if n.is_multiple_of(10) { Ending::Conflicted } else { Ending::Well };
    let many = |n: u64| if n.is_multiple_of(2) { Ending::Conflicted } else { Ending::Well };
    assert_eq!(settled(few), 256);
    let contended = settled(many);
    assert!(contended < 40, "{contended}");
}

#[test]
fn conflicts_hold_the_limit_at_the_calls_that_do_not_hinder_each_other() {
    // Four rows: of more than four calls some wait for others, and half of them are tried again.
    let mut limit = Limit::new(256, Duration::ZERO);
    limit.runs(1);
    (0..20).for_each(|n| limit.ended(MS * 20 * n, 3 * MS, Ending::Well, 0));
    let mut highest = 0;
    for n in 0..20_000_u32 {
        let running = limit.get();
        limit.runs(running);
        let is_tried_again = running > 4 && n % 2 == 0;
        let ending = if is_tried_again { Ending::Conflicted } else { Ending::Well };
        let took = 3 * MS * running.max(4) as u32 / 4;
        limit.ended(MS * 500 + MS * n, took, ending, running - 1);
        if n > 2_000 {
            highest = highest.max(limit.get());
        }
    }
    assert!((LIMIT_MIN..=6).contains(&highest), "{highest}");
}

#[test]
fn no_limit_is_beyond_the_bound() {
    for most in [1, 2, 10] {
        let mut limit = Limit::new(most, Duration::ZERO);
        for n in 0..10_000_u32 {
            limit.runs(most);
            limit.ended(MS * n, MS, Ending::Well, most);
            assert!(limit.get() <= most && limit.get() >= LIMIT_MIN.min(most));
        }
    }
}

/// Returns a sort that runs as many calls as its limit allows.
fn full(most: usize) -> Arc<Sort> {
    let sort = Arc::new(Sort::new(most));
    for _ in 0..most {
        assert!(matches!(sort.lock().enter(Duration::ZERO), Entered::Runs));
    }
    sort
}

fn waits(sort: &Sort, now: Duration) -> (oneshot::Receiver<Admitted>, Duration) {
    match sort.lock().enter(now) {
        Entered::Waits(turn, patience) => (turn, patience),
        Entered::Runs => panic!("it runs"),
        Entered::Refused => panic!("it is refused"),
    }
}

/// Ends one call, at this time of the sort's clock.
fn ends(sort: &Arc<Sort>, now: Duration) {
    let began = Instant::now().checked_sub(now).expect("the machine has run for longer");
    sort.end(began, MS, None);
}

#[test]
fn a_queue_is_first_in_first_out_until_it_stands() {
    let sort = full(3);
    let ((mut first, patience), (mut second, _), (mut third, _)) =
        (waits(&sort, MS), waits(&sort, 2 * MS), waits(&sort, 3 * MS));
    assert_eq!(patience, TARGET);
    assert!(matches!(sort.lock().enter(3 * MS), Entered::Refused), "as many wait as run");
    ends(&sort, 4 * MS);
    let first = first.try_recv().expect("it is the first");
    assert!(second.try_recv().is_err() && third.try_recv().is_err());
    // The queue is standing by now.
    let standing = MS + INTERVAL;
    let (mut fourth, patience) = waits(&sort, standing);
    assert_eq!(patience, TARGET_STANDING);
    ends(&sort, standing);
    let fourth = fourth.try_recv().expect("it is the newest");
    assert!(second.try_recv().is_err() && third.try_recv().is_err());
    assert_eq!(sort.lock().state().refused, 1);
    drop((first, fourth));
    drop((second.try_recv().expect("its turn"), third.try_recv().expect("its turn")));
    assert_eq!(sort.lock().state().running, 1);
}

#[test]
fn callers_that_have_gone_are_passed_over() {
    let sort = full(2);
    let (gone, _) = waits(&sort, MS);
    let (mut waiting, _) = waits(&sort, 2 * MS);
    drop(gone);
    assert_eq!(sort.lock().state().waiting, 1);
    ends(&sort, 3 * MS);
    // A call that gives up after its turn has come, without taking the turn, no longer counts as
    // running.
    let turn = waiting.try_recv().expect("its turn");
    assert_eq!(sort.lock().state().running, 2);
    drop(turn);
    assert_eq!(sort.lock().state().running, 1);
    assert!(matches!(sort.lock().enter(4 * MS), Entered::Runs));
    let (untaken, _) = waits(&sort, 5 * MS);
    ends(&sort, 6 * MS);
    drop(untaken);
    assert_eq!(sort.lock().state().running, 1, "what was sent to it has ended");
}
