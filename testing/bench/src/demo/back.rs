//! The return of the stopped data center: it is given up and comes back with empty disks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mingle::GeoStore;
use tokio::task::JoinHandle;

use super::kill::Run;

/// Checks that it comes back within the run, after it has stopped.
pub fn check(at: Duration, back: Option<Duration>, seconds: u64) -> Result<(), String> {
    match back {
        Some(back) if back <= at || back >= Duration::from_secs(seconds) => Err(format!(
            "--back {back:?}: expected a time after --at {at:?} and within the run, which takes {seconds} s; --seconds makes it longer"
        )),
        _ => Ok(()),
    }
}

/// Gives up and readmits the data center at the planned time, if it is to come back.
pub fn start(
    run: &Arc<Run>,
    store: &Arc<GeoStore>,
    begin: Instant,
) -> Option<JoinHandle<Result<(), String>>> {
    let (run, back, store) = (Arc::clone(run), run.back?, Arc::clone(store));
    Some(tokio::spawn(async move {
        let name = &run.killed;
        tokio::time::sleep_until((begin + back).into()).await;
        let given_up = store.give_up(name).await.map_err(|error| error.to_string())?;
        let lost = given_up.lost.unwrap_or_default();
        say(begin, &format!("{name} is given up; of its transactions {lost} are lost"));
        let asked = Instant::now();
        store.admit(name).await.map_err(|error| error.to_string())?;
        run.came_up.get_or_init(|| begin.elapsed());
        let took = asked.elapsed().as_secs_f64() * 1e3;
        say(begin, &format!("{name} is back: it had what the others had after {took:.0} ms"));
        Ok(())
    }))
}

fn say(begin: Instant, what: &str) {
    println!("{:>6} {what}", format!("{:.1}", begin.elapsed().as_secs_f64()));
}
