//! A data center comes back after an hour: the time until it has everything, and the throughput of
//! the others meanwhile.
//!
//! The hour passes at once on all clocks. A few seconds of work during the absence exceed the limit
//! kept for it (see [`FORWARD_BYTES_MAX`]), as an hour's work exceeds the usual limit. So it gets
//! the state of all partitions, and then the newer transactions.

use std::time::{Duration, Instant};

use super::plan::{Distance, Plan};
use super::site::{Reading, Site};

/// The number of bytes kept for an absent data center, for each origin and partition.
pub const FORWARD_BYTES_MAX: usize = 128 << 10;

/// The duration of the absence by the clocks.
pub const AWAY: Duration = Duration::from_hours(1);

/// The data center that is away.
const LOST: u8 = 2;

/// It counts as caught up when its lag is at most this.
const CAUGHT_UP: Duration = Duration::from_millis(500);

/// The time limit for catching up, in seconds.
const PATIENCE_S: f64 = 60.0;

/// The interval between points of the timeline, in seconds.
const POINT_S: f64 = 0.1;

/// The measurements of one return.
#[derive(Clone, Debug, Default)]
pub struct Return {
    /// The time from the return until it had caught up.
    pub seconds: f64,
    /// The number of state transfers that brought it up, one for each partition.
    pub transfers: u64,
    /// The others' transactions per second before the loss, with its replicas up to date but its
    /// clients away.
    pub before: f64,
    /// The same during the absence.
    pub away: f64,
    /// The same during the catching up.
    pub during: f64,
    /// The same afterwards, in the state of `before`.
    pub after: f64,
    /// The process's time per transaction of the others during the catching up, relative to that
    /// before and after.
    pub cpu_ratio: f64,
    /// The number of items that differed between data centers in the end.
    pub differing: usize,
    /// The times of the loss, the return and the end of catching up, in seconds.
    pub marks: [f64; 3],
    /// The others' transactions per second over time, in seconds.
    pub timeline: Vec<(f64, f64)>,
}

impl Return {
    /// Returns the others' throughput during the catching up, relative to that before and after.
    pub fn kept(&self) -> f64 {
        self.during / f64::midpoint(self.before, self.after)
    }
}

/// The observation of the other data centers.
struct Watch<'a> {
    site: &'a Site,
    began: Instant,
    timeline: Vec<(f64, f64)>,
}

impl Watch<'_> {
    fn now(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Counts until `is_over`, which is called at intervals, returns true.
    fn until(&mut self, mut is_over: impl FnMut(f64) -> bool) -> Reading {
        let (first, began) = (self.site.read(), self.now());
        let (mut last, mut drawn) = (first, began);
        loop {
            std::thread::sleep(Duration::from_millis(5));
            let now = self.now();
            let is_over = is_over(now - began);
            if is_over || now - drawn >= POINT_S {
                let reading = self.site.read();
                self.timeline.push((now, others(&reading.since(&last))));
                (last, drawn) = (reading, now);
            }
            if is_over {
                return last.since(&first);
            }
        }
    }

    fn during(&mut self, time: Duration) -> Reading {
        self.until(|passed| passed >= time.as_secs_f64())
    }
}

fn others(reading: &Reading) -> f64 {
    let all = reading.transactions.iter().enumerate();
    let others = all.filter(|(dc, _)| *dc != usize::from(LOST));
    others.map(|(_, count)| *count).sum::<u64>() as f64 / reading.seconds
}

/// Returns the processor time per transaction of the others.
fn cpu(reading: &Reading) -> f64 {
    reading.cpu_seconds / (others(reading) * reading.seconds)
}

/// Loses a data center, and lets it come back.
pub fn measure(plan: &Plan, warm_up: Duration, time: Duration) -> Result<Return, String> {
    let (distance, forward_bytes_max) = (Distance::Continents, Some(FORWARD_BYTES_MAX));
    let plan = Plan { distance, forward_bytes_max, ..plan.clone() };
    let site = Site::start(&plan)?;
    site.let_all_clients();
    std::thread::sleep(warm_up / 2);
    site.let_clients(LOST, false);
    std::thread::sleep(warm_up / 2);
    let mut watch = Watch { site: &site, began: Instant::now(), timeline: Vec::new() };
    let before = watch.during(time);
    let mut back = Return { before: others(&before), ..Return::default() };
    back.marks[0] = watch.now();
    site.let_run(LOST, false);
    site.jump(AWAY);
    // Runs until the space kept for it is full.
    watch.during(warm_up);
    back.away = others(&watch.during(time));
    back.marks[1] = watch.now();
    site.let_run(LOST, true);
    let mut is_late = false;
    let during = watch.until(|passed| {
        is_late = passed > PATIENCE_S;
        is_late || passed > 0.02 && site.lag(LOST) <= CAUGHT_UP
    });
    if is_late {
        return Err(format!("a data center that came back is behind by {:?}", site.lag(LOST)));
    }
    back.marks[2] = watch.now();
    back.seconds = back.marks[2] - back.marks[1];
    let after = watch.during(time);
    (back.during, back.after) = (others(&during), others(&after));
    back.cpu_ratio = cpu(&during) / f64::midpoint(cpu(&before), cpu(&after));
    back.timeline = watch.timeline;
    back.transfers = site.transfers(LOST);
    site.settle()?;
    back.differing = site.end()?.differing();
    Ok(back)
}
