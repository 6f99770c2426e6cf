//! The tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Options;
use super::drive::{Load, Measured};
use super::servers::Promise;

/// The place of a measurement in the table.
type Place = (Promise, usize, Load);

/// All measurements.
#[derive(Debug, Default)]
pub struct Report {
    sides: BTreeMap<Place, BTreeMap<&'static str, Vec<Measured>>>,
    disk: Vec<f64>,
    three: BTreeMap<String, Vec<Measured>>,
}

/// Returns the median; the higher one of two.
fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the number of requests for each second of the server's processor time.
fn per_core(measured: &Measured) -> f64 {
    measured.count as f64 / measured.cpu.as_secs_f64()
}

fn range(all: &[f64]) -> String {
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(0.0, f64::max);
    format!("{least:.2} to {most:.2}")
}

impl Report {
    pub fn add(
        &mut self,
        promise: Promise,
        load: Load,
        depth: usize,
        side: &'static str,
        measured: Measured,
    ) {
        let place = self.sides.entry((promise, depth, load)).or_default();
        place.entry(side).or_default().push(measured);
    }

    pub fn disk(&mut self, rates: &[f64]) {
        self.disk = rates.to_vec();
    }

    pub fn three(&mut self, durability: &str, measured: Measured) {
        self.three.entry(durability.to_owned()).or_default().push(measured);
    }

    /// Returns all tables as text.
    pub fn shown(&self, options: &Options) -> String {
        let mut text = format!(
            "One data center against Redis: {} connections, values of 64 bytes, medians of {} rounds of {} s\n\n\
             | persistence | requests | Redis | mingled | ratio | rounds | ratio per core | p99 Redis | p99 mingled |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
            options.connections, options.rounds, options.seconds
        );
        for ((promise, depth, load), sides) in &self.sides {
            let (Some(redis), Some(mingled)) = (sides.get("redis"), sides.get("mingled")) else {
                continue;
            };
            let rate = |all: &[Measured]| median(all.iter().map(|it| it.per_second).collect());
            let p99 = |all: &[Measured]| {
                let all = all.iter().map(|it| it.latency_us.value_at_quantile(0.99) as f64 / 1e3);
                median(all.collect())
            };
            let pairs = || mingled.iter().zip(redis);
            let ratios: Vec<f64> = pairs().map(|(a, b)| a.per_second / b.per_second).collect();
            let cores: Vec<f64> = pairs().map(|(a, b)| per_core(a) / per_core(b)).collect();
            let promise = match promise {
                Promise::EverySecond => "everysec, memory",
                Promise::Always => "always, disk",
            };
            let _ = writeln!(
                text,
                "| {promise} | {} | {:.0}/s | {:.0}/s | {:.2} | {} | {:.2} | {:.2} ms | {:.2} ms |",
                requests(*load, *depth),
                rate(redis),
                rate(mingled),
                median(ratios.clone()),
                range(&ratios),
                median(cores),
                p99(redis),
                p99(mingled)
            );
        }
        let _ = writeln!(
            text,
            "\nRaw appends of 128 bytes with fdatasync in the same folder, one after the other: {:.0}/s\n",
            median(self.disk.clone())
        );
        text + &self.shown_three()
    }

    fn shown_three(&self) -> String {
        let mut text = String::from(
            "Three data centers on this machine, 48 connections, 90 % reads of three keys, 10 % with a write\n\n\
             | durability | transactions | median | p99 | processor time for each |\n\
             | --- | --- | --- | --- | --- |\n",
        );
        for (durability, all) in &self.three {
            let of = |of: &dyn Fn(&Measured) -> f64| median(all.iter().map(of).collect());
            let quantile = |it: &Measured, at| it.latency_us.value_at_quantile(at) as f64 / 1e3;
            let _ = writeln!(
                text,
                "| {durability} | {:.0}/s | {:.2} ms | {:.2} ms | {:.0} us |",
                of(&|it| it.per_second),
                of(&|it| quantile(it, 0.5)),
                of(&|it| quantile(it, 0.99)),
                of(&|it| 1e6 / per_core(it)),
            );
        }
        text
    }
}

fn requests(load: Load, depth: usize) -> String {
    let name = match load {
        Load::Get => "GET",
        Load::Set => "SET",
        Load::Mixed => "mixed",
    };
    if depth == 1 { name.into() } else { format!("{name}, {depth} at once") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!(median(Vec::new()).is_nan());
        assert_eq!(range(&[0.5, 0.25, 1.0]), "0.25 to 1.00");
    }
}
