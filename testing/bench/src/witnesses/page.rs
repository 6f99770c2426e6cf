//! The page: plots and tables in one self-contained file.

use std::fmt::Write as _;

use super::report::{added, cpu_percent, per_thousand, waited_ms};
use super::workload::{READS, REDRAWS};
use super::{Options, Point, Series};
use crate::html::escape;

/// Renders the page as HTML.
pub fn render(points: &[Point], options: &Options) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let lowest = points.iter().map(|point| point.ratio(Series::Tracked)).fold(f64::NAN, f64::min);
    let missed = points.iter().filter(|point| !point.is_met()).count();
    let verdict = if missed == 0 {
        "every share is above its bar".to_owned()
    } else {
        format!("{missed} of {} shares are below their bar", points.len())
    };
    let mut page = String::from(HEAD);
    let _ = write!(
        page,
        "<h1>What tracking costs</h1>\
         <p class=lead>With witnesses and sessions at least <b>{lowest:.3}</b> of the throughput without; {verdict}.</p>\
         <p>The counter benchmark of MixT (PLDI 2018, §8.3, Figure 15), measured on this machine ({cores} cores, {os}) with the \
         embedded engine in memory: {clients} clients, each with one call at a time and one session, at {servers} servers; \
         {READS} % reads. A round trip to the linearizable store takes {far}, to the causal one {near}, and an update {delay} to \
         its other replicas. Before {REDRAWS} % of its calls a client draws anew whether it is causal; the first call after it \
         has gone over visits both stores. Both sides make the same calls, in {rounds} rounds forwards and backwards with \
         blocks of {seconds} s; seed {seed}.</p>",
        os = std::env::consts::OS,
        clients = options.clients,
        servers = options.servers,
        far = options.linearizable,
        near = options.causal,
        delay = options.delay,
        rounds = options.rounds,
        seconds = options.seconds,
        seed = options.seed,
    );
    for (group, counters) in options.groups().iter().zip([options.counters, options.few]) {
        let _ = write!(page, "<h2>{} counters at each store</h2>", thousands(counters));
        if !group[0].has_many() {
            page.push_str(
                "<p>So few that clients meet each other's witness rows all the time, and checks of commit witnesses \
                 can be late at all. The bars do not judge these.</p>",
            );
        }
        let _ = write!(
            page,
            "<div class=grid><figure><figcaption>Throughput (logarithmic)</figcaption>{}</figure>\
             <figure><figcaption>Part of the throughput without tracking: median, lowest and highest round</figcaption>{}</figure></div>",
            throughput(points, group),
            ratios(points, group)
        );
        page.push_str(&table(points, group[0], group[1]));
        page.push_str(
            "<p>Round trips, the caller's and with those of cleaning up; refused: commits that did not know a \
             witness row; behind: replicas that lacked what a session had seen; checks: questions for commit witnesses.</p>",
        );
        page.push_str(&costs(points, group[0], group[1]));
    }
    page + "</main></body></html>\n"
}

/// Formats a number with a comma before the last three digits.
fn thousands(number: usize) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", number / 1_000, number % 1_000),
    }
}

const HEAD: &str = "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
<title>Mingle: what tracking costs</title><style>\
body{font:16px/1.5 system-ui,sans-serif;color:#222;background:#fafaf7;margin:0}\
main{max-width:70rem;margin:0 auto;padding:2rem 1rem}\
h1{font-size:1.7rem;margin:0 0 .5rem}h2{font-size:1.2rem;margin:2rem 0 .5rem}\
.lead{font-size:1.15rem}.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(27rem,1fr));gap:1rem;margin-bottom:1rem}\
figure{margin:0;background:#fff;border:1px solid #ddd;border-radius:6px;padding:1rem;overflow:auto}\
figcaption{font-weight:600;margin-bottom:.5rem}.wide{overflow:auto}\
table{border-collapse:collapse;background:#fff;font-size:.85rem}td,th{border:1px solid #ddd;padding:.25rem .6rem;text-align:right}\
svg{max-width:100%;height:auto}text{font:12px system-ui,sans-serif;fill:#333}\
@media(max-width:30rem){.grid{grid-template-columns:1fr}}\
</style></head><body><main>";

fn color(series: Series) -> &'static str {
    match series {
        Series::Untracked | Series::FewUntracked => "#8a8a84",
        Series::Tracked | Series::Few => "#0b7a75",
        Series::SomeLate => "#c98a10",
        Series::AllLate => "#c1440e",
    }
}

const LEFT: f64 = 62.0;
const RIGHT: f64 = 490.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 230.0;

/// A plot over the shares: its frame, and the position of a share.
struct Plot {
    svg: String,
}

impl Plot {
    fn new(label: &str, points: &[Point]) -> Self {
        let mut plot = Self {
            svg: format!("<svg viewBox='0 0 520 300' role=img aria-label='{}'>", escape(label)),
        };
        for point in points {
            let (x, share) = (Self::x(point.share as f64), point.share);
            plot.add(&format!(
                "<line x1={x:.1} x2={x:.1} y1={TOP} y2={BOTTOM} stroke='#efefea'/>\
                 <text x={x:.1} y=246 text-anchor=middle>{share} %</text>"
            ));
        }
        plot.add("<text x=276 y=264 text-anchor=middle>causal calls</text>");
        plot
    }

    fn x(share: f64) -> f64 {
        LEFT + 12.0 + share / 100.0 * (RIGHT - LEFT - 24.0)
    }

    fn add(&mut self, text: &str) {
        self.svg.push_str(text);
    }

    /// Draws a horizontal line, with its value at the left.
    fn across(&mut self, y: f64, value: &str) {
        self.add(&format!(
            "<line x1={LEFT} x2={RIGHT} y1={y:.1} y2={y:.1} stroke='#e5e5e0'/>\
             <text x=56 y={text:.1} text-anchor=end>{value}</text>",
            text = y + 4.0
        ));
    }

    fn line(&mut self, series: Series, at: &[(f64, f64)]) {
        let places: Vec<String> = at.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let color = color(series);
        // The curves overlap: the rings of the first one stay visible.
        let (radius, fill) = if series.tracks() { (3, color) } else { (7, "none") };
        self.add(&format!(
            "<polyline points='{}' fill=none stroke='{color}' stroke-width=2 />",
            places.join(" ")
        ));
        for (x, y) in at {
            self.add(&format!("<circle cx={x:.1} cy={y:.1} r={radius} fill='{fill}' stroke='{color}' stroke-width=2 />"));
        }
    }

    fn done(mut self, named: &[(&str, &str)]) -> String {
        for (index, (name, color)) in named.iter().enumerate() {
            let (x, y) = (LEFT + (index % 2) as f64 * 220.0, 274 + index / 2 * 17);
            self.add(&format!(
                "<rect x={x} y={y} width=10 height=10 fill='{color}'/><text x={tx} y={ty}>{name}</text>",
                tx = x + 16.0,
                ty = y + 9,
            ));
        }
        self.svg + "</svg>"
    }
}

fn named(group: &[Series]) -> Vec<(&'static str, &'static str)> {
    group.iter().map(|series| (series.title(), color(*series))).collect()
}

fn throughput(points: &[Point], group: &[Series]) -> String {
    let all = || points.iter().flat_map(|p| group.iter().map(|s| p.tally(*s).throughput()));
    let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(1.0, f64::max));
    let (low, high) = (least.max(1.0).log10() - 0.1, most.log10() + 0.1);
    let y = |value: f64| BOTTOM - (value.max(1.0).log10() - low) / (high - low) * (BOTTOM - TOP);
    let mut plot = Plot::new("throughput by share of causal calls", points);
    for power in 0..7 {
        for first in [1.0, 2.0, 5.0] {
            let value = first * 10_f64.powi(power);
            if (low..=high).contains(&value.log10()) {
                plot.across(y(value), &format!("{value:.0}/s"));
            }
        }
    }
    for series in group {
        let at =
            |point: &Point| (Plot::x(point.share as f64), y(point.tally(*series).throughput()));
        plot.line(*series, &points.iter().map(at).collect::<Vec<_>>());
    }
    plot.done(&named(group))
}

fn ratios(points: &[Point], group: &[Series]) -> String {
    let lows = points.iter().flat_map(|p| group[1..].iter().map(|s| p.spread(*s).0));
    let highs = points.iter().flat_map(|p| group[1..].iter().map(|s| p.spread(*s).1));
    let low = (lows.fold(0.9, f64::min) * 20.0).floor() / 20.0;
    let high = (highs.fold(1.05, f64::max) * 20.0).ceil() / 20.0;
    let y = |value: f64| BOTTOM - (value - low) / (high - low) * (BOTTOM - TOP);
    let mut plot = Plot::new("ratio by share of causal calls", points);
    let step = if high - low > 0.4 { 0.1 } else { 0.05 };
    let mut value = low;
    while value <= high + 1e-9 {
        plot.across(y(value), &format!("{value:.2}"));
        value += step;
    }
    plot.add(&bars(points, y));
    for (index, series) in group.iter().enumerate().skip(1) {
        let shift = (index as f64 - group.len() as f64 / 2.0) * 5.0;
        let mut at = Vec::new();
        for point in points {
            let (x, (lowest, highest)) =
                (Plot::x(point.share as f64) + shift, point.spread(*series));
            plot.add(&format!(
                "<line x1={x:.1} x2={x:.1} y1={:.1} y2={:.1} stroke='{}' stroke-width=1.5 opacity=.6 />",
                y(lowest),
                y(highest),
                color(*series)
            ));
            at.push((x, y(point.ratio(*series))));
        }
        plot.line(*series, &at);
    }
    let mut named = named(&group[1..]);
    named.push(("bar", BAR));
    plot.done(&named)
}

const BAR: &str = "#b00020";

/// Draws the bars, each from just after the previous share to just after its own.
fn bars(points: &[Point], y: impl Fn(f64) -> f64) -> String {
    let behind = |point: &Point| (Plot::x(point.share as f64) + 9.0).min(RIGHT);
    let mut places = Vec::new();
    for (index, point) in points.iter().enumerate() {
        let from = index.checked_sub(1).map_or(LEFT, |before| behind(&points[before]));
        for x in [from, behind(point)] {
            places.push(format!("{x:.1},{:.1}", y(point.bar)));
        }
    }
    format!(
        "<polyline points='{}' fill=none stroke='{BAR}' stroke-width=1.5 stroke-dasharray='2 3' />",
        places.join(" ")
    )
}

/// Renders the table of throughput and ratios.
fn table(points: &[Point], off: Series, on: Series) -> String {
    let mut html = String::from(
        "<div class=wide><table><tr><th>causal<th>both stores<th>without<th>with tracking<th>ratio, median<th>rounds\
         <th>CPU without<th>with",
    );
    for point in points {
        let (before, after) = (point.tally(off), point.tally(on));
        let (low, high) = point.spread(on);
        let _ = write!(
            html,
            "<tr><td>{} %<td>{:.0} %<td>{:.0}/s<td>{:.0}/s<td><b>{:.3}</b><td>{low:.3} to {high:.3}<td>{:.0} %<td>{:.0} %",
            point.share,
            after.per_call(after.both) * 100.0,
            before.throughput(),
            after.throughput(),
            point.ratio(on),
            cpu_percent(before),
            cpu_percent(after),
        );
    }
    html + "</table></div>"
}

/// Renders the table of tracking's additions to a call and of its delays.
fn costs(points: &[Point], off: Series, on: Series) -> String {
    let mut html = String::from(
        "<div class=wide><table><tr><th rowspan=2>causal<th colspan=3>added to a call, linearizable\
         <th colspan=3>added to a call, causal<th colspan=5>of 1,000 calls with tracking\
         <tr><th>trips waited for<th>all trips<th>reads, writes<th>trips waited for<th>all trips\
         <th>reads, writes<th>tried again<th>refused<th>behind<th>checks<th>ms waited",
    );
    for point in points {
        let (before, after) = (point.tally(off), point.tally(on));
        let _ = write!(html, "<tr><td>{} %", point.share);
        for added in added(before, after) {
            // Adding zero turns a negative zero into a plain one.
            let places = [added.awaited, added.round_trips, added.operations]
                .map(|value| format!("<td>{:.2}", (value * 1e2).round() / 1e2 + 0.0));
            html.push_str(&places.concat());
        }
        let [far, near] = &after.stores;
        let _ = write!(
            html,
            "<td>{:.1}<td>{:.1}<td>{:.1}<td>{:.1}<td>{:.1}",
            per_thousand(after, after.again),
            per_thousand(after, far.witnessed + near.witnessed),
            per_thousand(after, near.behind),
            per_thousand(after, near.checks),
            waited_ms(after),
        );
    }
    html + "</table></div>"
}
