//! The page: plots and the table in one self-contained file.

use std::fmt::Write as _;

use mingle_geo::Baseline;

use super::Options;
use super::curve::{Curve, Outcome};
use super::figures::setting;
use super::tally::{SLICE_US, Tally};
use crate::geo::{Figure, Plot, head, table, thousands, verdict};

/// Renders the page as HTML.
pub fn render(outcome: &Outcome, figures: &[Figure], options: &Options) -> String {
    let mut page = head("the evaluation of UniStore");
    let _ = write!(
        page,
        "<h1>The systems of UniStore's evaluation, in a capacity model</h1>{}<p>{}</p>{}",
        verdict(figures),
        setting(options),
        table(figures)
    );
    page.push_str("<h2>The auction site</h2><div class=grid>");
    page.push_str(&site(&outcome.site, false));
    page.push_str(&site(&outcome.site, true));
    page.push_str("</div><h2>Over time</h2><div class=grid>");
    if let Some(loss) = &outcome.loss {
        page.push_str(&over_time(loss, "The leader's data center is lost", Some(1.5)));
    }
    if let Some(contention) = &outcome.contention {
        let name = "A fifth of the strong transactions access one partition";
        page.push_str(&over_time(contention, name, None));
    }
    page + "</div></main></body></html>\n"
}

fn color(system: Baseline) -> &'static str {
    match system {
        Baseline::UniStore => "#0b7a75",
        Baseline::Strong => "#c1440e",
        Baseline::RedBlue => "#7a3e9d",
        Baseline::Causal => "#8a8a84",
        Baseline::CureFt => "#c98a10",
        Baseline::Uniform => "#2b6cb0",
    }
}

/// Plots throughput against average latency; the right plot shows only values below 30 ms.
fn site(curves: &[Curve], is_close: bool) -> String {
    let tallies = || curves.iter().flat_map(|curve| &curve.points).map(|point| &point.tally);
    let most = tallies().map(Tally::throughput).fold(1.0, f64::max) * 1.05;
    let slowest = tallies().map(Tally::latency_ms).fold(1.0, f64::max) * 1.05;
    let slowest = if is_close { slowest.min(30.0) } else { slowest };
    let mut plot = Plot::new("throughput against latency", (0.0, most), (0.0, slowest), false);
    plot.axes("transactions a second", |ms| format!("{ms:.0} ms"));
    for curve in curves {
        let points: Vec<(f64, f64)> = curve
            .points
            .iter()
            .map(|point| (point.tally.throughput(), point.tally.latency_ms().min(slowest)))
            .collect();
        plot.line(curve.system.name(), color(curve.system), &points, "");
    }
    let closer = if is_close { ", closer" } else { "" };
    format!(
        "<figure><figcaption>Average latency by throughput{closer}</figcaption>{}</figure>",
        plot.done()
    )
}

/// Plots commits over time.
fn over_time(tally: &Tally, name: &str, lost_s: Option<f64>) -> String {
    let slice_s = SLICE_US as f64 / 1e6;
    let series = |of: usize| -> Vec<(f64, f64)> {
        let slices = tally.slices.iter().enumerate();
        slices.map(|(at, slice)| (at as f64 * slice_s, slice[of] as f64 / slice_s)).collect()
    };
    let all = series(0).into_iter().chain(series(1));
    let most = all.map(|(_, value)| value).fold(1.0, f64::max) * 1.1;
    let end = tally.slices.len() as f64 * slice_s;
    let mut plot = Plot::new(name, (0.0, end), (0.0, most), false);
    plot.axes("seconds", thousands);
    plot.line("causal", color(Baseline::Causal), &series(0), "");
    plot.line("strong", color(Baseline::UniStore), &series(1), "");
    if let Some(at) = lost_s {
        plot.down(at, "lost");
    }
    format!("<figure><figcaption>{name}: commits a second</figcaption>{}</figure>", plot.done())
}
