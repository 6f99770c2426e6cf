//! The results by phase, compared with the bars.

use hdrhistogram::Histogram;

use super::judge::{Answer, Sort};
use super::load::{Outcome, RATE};
use super::plan::{BEFORE, Fault, Kind, RECOVERY};
use crate::geo::Figure;

/// The measurements taken once a second.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Seconds since the load began.
    pub at: f64,
    /// Witness rows in all stores, if they all answered.
    pub rows: Option<i64>,
    /// Transactions that are not cleaned up yet, if both servers reported their number.
    pub open: Option<f64>,
    /// Resident memory in MiB and processor time in seconds, of each server.
    pub used: [Option<(f64, f64)>; 2],
}

/// A time between two faults, or during one.
pub struct Phase {
    pub name: String,
    pub begin: f64,
    pub end: f64,
}

/// All calls and samples of a run.
pub struct Run {
    pub seconds: f64,
    pub faults: Vec<Fault>,
    pub outcomes: Vec<Outcome>,
    pub samples: Vec<Sample>,
    pub sorts: Vec<Sort>,
}

impl Run {
    /// The phases: the time before the first fault without its first seconds, then each fault and the time after it.
    pub fn phases(&self) -> Vec<Phase> {
        let mut phases = vec![Phase { name: "before".into(), begin: BEFORE / 2.0, end: BEFORE }];
        for (index, fault) in self.faults.iter().enumerate() {
            let next = self.faults.get(index + 1).map_or(self.seconds, |next| next.begin);
            let end = fault.end.max(fault.begin + 2.0);
            phases.push(Phase { name: fault.to_string(), begin: fault.begin, end });
            let begin = (fault.end + RECOVERY).min(next - 1.0);
            phases.push(Phase { name: "  after".into(), begin, end: next });
        }
        phases
    }

    fn done(&self, sort: Option<Sort>) -> impl Iterator<Item = &Outcome> {
        let is_done = move |outcome: &&Outcome| {
            outcome.answer == Answer::Done && sort.is_none_or(|sort| outcome.call.sort == sort)
        };
        self.outcomes.iter().filter(is_done)
    }

    /// The share of calls of a sort, due in this time, that were done, and quantiles of their latency in ms.
    pub fn kept(&self, sort: Option<Sort>, begin: f64, end: f64) -> Kept {
        let is_in = |outcome: &&Outcome| (begin..end).contains(&outcome.due);
        let due = self.outcomes.iter().filter(is_in);
        let due = due.filter(|outcome| sort.is_none_or(|sort| outcome.call.sort == sort)).count();
        let mut histogram =
            Histogram::<u64>::new_with_bounds(1, 600_000_000, 3).expect("from 1 µs to 10 minutes");
        for outcome in self.done(sort).filter(is_in) {
            histogram.saturating_record(((outcome.ended - outcome.due) * 1e6) as u64);
        }
        let quantile = |q: f64| histogram.value_at_quantile(q) as f64 / 1e3;
        Kept {
            share: histogram.len() as f64 / due.max(1) as f64,
            p50: quantile(0.5),
            p99: quantile(0.99),
        }
    }

    /// Calls per second that succeeded and ended in this time.
    pub fn throughput(&self, sort: Option<Sort>, begin: f64, end: f64) -> f64 {
        self.done(sort).filter(|outcome| (begin..end).contains(&outcome.ended)).count() as f64
            / (end - begin)
    }

    /// Seconds from the end of a fault until three seconds in a row have at least 90 % of the calls done.
    pub fn back_after(&self, fault: &Fault, until: f64) -> Option<f64> {
        let starts = (0..).map(|step| fault.end + f64::from(step) * 0.5);
        let mut starts = starts.take_while(|start| start + 3.0 <= until);
        starts
            .find(|start| self.throughput(None, *start, start + 3.0) >= 0.9 * RATE)
            .map(|start| start - fault.end)
    }

    pub fn samples_in(&self, begin: f64, end: f64) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| (begin..end).contains(&sample.at))
    }

    /// A server's mean resident memory in this time, in MiB.
    fn memory(&self, server: usize, begin: f64, end: f64) -> Option<f64> {
        let found: Vec<f64> =
            self.samples_in(begin, end).filter_map(|sample| Some(sample.used[server]?.0)).collect();
        (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
    }

    /// Processor time of both servers per call, in ms; none if one of them was killed meanwhile.
    fn cpu_ms(&self, begin: f64, end: f64) -> Option<f64> {
        let both = |sample: &Sample| Some(sample.used[0]?.1 + sample.used[1]?.1);
        let used: Vec<(f64, f64)> = self
            .samples_in(begin, end)
            .filter_map(|sample| Some((sample.at, both(sample)?)))
            .collect();
        let ((from, first), (to, last)) = (*used.first()?, *used.last()?);
        let calls = self.throughput(None, from, to) * (to - from);
        (last >= first && calls > 0.0).then(|| (last - first) * 1e3 / calls)
    }

    /// The largest number of witness rows per open transaction.
    fn rows_by_open(&self, begin: f64, end: f64) -> Option<f64> {
        let ratio = |sample: &Sample| Some(sample.rows? as f64 / sample.open?.max(1.0));
        self.samples_in(begin, end).filter_map(ratio).reduce(f64::max)
    }

    /// A row of the table for each phase.
    pub fn table(&self) -> Vec<Vec<String>> {
        let mut head = vec!["phase".to_owned(), "seconds".into(), "calls/s".into()];
        head.extend(self.sorts.iter().map(|sort| format!("{}: done, p50, p99 ms", sort.title())));
        head.extend(
            ["rows/open", "MiB a", "MiB b", "CPU ms/call", "back after"].map(str::to_owned),
        );
        let mut table = vec![head];
        for phase in self.phases() {
            let (begin, end) = (phase.begin, phase.end);
            let mut row = vec![
                phase.name.clone(),
                format!("{begin:.0}-{end:.0}"),
                format!("{:.1}", self.throughput(None, begin, end)),
            ];
            for sort in &self.sorts {
                let kept = self.kept(Some(*sort), begin, end);
                row.push(format!("{:.0} %, {:.0}, {:.0}", kept.share * 100.0, kept.p50, kept.p99));
            }
            let shown = |value: Option<f64>, digits: usize| {
                value.map_or("-".into(), |value| format!("{value:.digits$}"))
            };
            row.push(shown(self.rows_by_open(begin, end), 1));
            row.extend([0, 1].map(|server| shown(self.memory(server, begin, end), 0)));
            row.push(shown(self.cpu_ms(begin, end), 1));
            let fault = self.faults.iter().find(|fault| fault.begin.total_cmp(&begin).is_eq());
            let until = self.seconds;
            row.push(
                fault.map_or(String::new(), |fault| shown(self.back_after(fault, until), 1) + " s"),
            );
            table.push(row);
        }
        table
    }

    /// The figures that have bars.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for fault in &self.faults {
            let back = self.back_after(fault, self.seconds);
            let name = format!("normal again after {fault} at {:.0} s", fault.begin);
            let value = back.map_or("never".into(), |back| format!("{back:.1} s"));
            figures.push(Figure::barred(
                name,
                value,
                "at most 10 s".into(),
                back.is_some_and(|back| back <= RECOVERY),
            ));
            if fault.kind == Kind::NodeAway {
                figures.extend(self.sorts.iter().flat_map(|sort| self.beside(fault, *sort)));
            }
        }
        let rows = self.rows_by_open(0.0, self.seconds).unwrap_or(0.0);
        figures.push(Figure::barred(
            "witness rows by open transaction",
            format!("{rows:.1}"),
            "at most 10".into(),
            rows <= 10.0,
        ));
        for (server, name) in ["a", "b"].into_iter().enumerate() {
            let before = self.memory(server, BEFORE / 2.0, BEFORE).unwrap_or(0.0);
            let after = self.memory(server, self.seconds - 5.0, self.seconds).unwrap_or(f64::MAX);
            figures.push(Figure::barred(
                format!("memory of serve {name} at the end"),
                format!("{after:.0} MiB, {before:.0} before"),
                "at most 20 % more".into(),
                after <= before * 1.2,
            ));
        }
        if let Some(cpu) = self.cpu_ms(BEFORE / 2.0, BEFORE) {
            let (name, value) = ("CPU of serve by call, healthy", format!("{cpu:.1} ms"));
            figures.push(if cfg!(debug_assertions) {
                Figure::plain(name, format!("{value}, built without optimization"))
            } else {
                Figure::barred(name, value, "at most 2.1 ms".into(), cpu <= 2.1)
            });
        }
        figures
    }

    /// The throughput and latency of calls that do not need a node, while that node is away.
    fn beside(&self, fault: &Fault, sort: Sort) -> [Figure; 2] {
        let before = self.kept(Some(sort), BEFORE / 2.0, BEFORE);
        let during = self.kept(Some(sort), fault.begin, fault.end);
        let share = during.share / before.share.max(f64::EPSILON);
        let name =
            |what: &str| format!("{what} of {}, node away at {:.0} s", sort.title(), fault.begin);
        [
            Figure::barred(
                name("throughput"),
                format!("{:.0} %", share * 100.0),
                "at least 90 %".into(),
                share >= 0.9,
            ),
            Figure::barred(
                name("p99"),
                format!("{:.0} ms, {:.0} before", during.p99, before.p99),
                "at most twice".into(),
                during.p99 <= 2.0 * before.p99,
            ),
        ]
    }
}

/// The results of calls in a time.
pub struct Kept {
    pub share: f64,
    pub p50: f64,
    pub p99: f64,
}

#[cfg(test)]
mod tests {
    use super::super::judge::Call;
    use super::*;

    /// A run of one minute in which the calls due in a time take so many seconds, or are refused if none is given.
    fn run(slow: (f64, f64), takes: Option<f64>) -> Run {
        let fault = Fault { kind: Kind::NodeAway, server: 0, begin: 25.0, end: 30.0 };
        let outcome = |id: i64| {
            let due = id as f64 / RATE;
            let is_slow = (slow.0..slow.1).contains(&due);
            let takes = if is_slow { takes } else { Some(0.01) };
            let answer = if takes.is_some() { Answer::Done } else { Answer::Refused };
            let call = Call { id, sort: Sort::Bank, from: 1, to: 2, page: 3, amount: 1 };
            Outcome { call, answer, why: None, due, ended: due + takes.unwrap_or(0.0) }
        };
        let outcomes = (0..60 * RATE as i64).map(outcome).collect();
        let (faults, samples, sorts) = (vec![fault], Vec::new(), vec![Sort::Bank]);
        Run { seconds: 60.0, faults, outcomes, samples, sorts }
    }

    fn is_met(run: &Run, name: &str) -> Option<bool> {
        run.figures().iter().find(|figure| figure.name.starts_with(name))?.is_met
    }

    #[test]
    fn bars_are_held_and_missed() {
        let well = run((0.0, 0.0), None);
        let kept = well.kept(None, 25.0, 30.0);
        assert!((kept.p99 - 10.0).abs() < 0.1 && (kept.share - 1.0).abs() < 1e-9);
        for name in ["normal again", "throughput", "p99"] {
            assert_eq!(is_met(&well, name), Some(true), "{name}");
        }
        let slow = run((25.0, 30.0), Some(0.03));
        assert_eq!((is_met(&slow, "p99"), is_met(&slow, "throughput")), (Some(false), Some(true)));
        let refused = run((28.0, 45.0), None);
        assert_eq!(is_met(&refused, "throughput"), Some(false));
        assert_eq!(is_met(&refused, "normal again"), Some(false));
        let back = refused.back_after(&refused.faults[0], 60.0);
        assert!(back.is_some_and(|back| (14.0..16.0).contains(&back)), "{back:?}");
        assert_eq!(is_met(&run((28.0, 60.0), None), "normal again"), Some(false));
    }
}
