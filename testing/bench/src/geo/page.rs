//! The page: plots and the table in one self-contained file.

use std::fmt::Write as _;

use hdrhistogram::Histogram;

use super::Options;
use super::catch_up::Return;
use super::figures::{Figure, demanded, setting, thousands};
use super::measure::{Load, Outcome, Side, Visibility};
use super::plot::{Plot, bars};
use crate::html::escape;

/// Renders the page as HTML.
pub fn render(outcome: &Outcome, figures: &[Figure], options: &Options) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut page = head("the causal core of the geo-replicated store");
    let _ = write!(
        page,
        "<h1>The causal core of the geo-replicated store</h1>{verdict}<p>Measured on this machine ({cores} cores, {os}). \
         {setting}</p>{table}",
        verdict = verdict(figures),
        os = std::env::consts::OS,
        setting = setting(options),
        table = table(figures),
    );
    if !outcome.loads.is_empty() {
        page.push_str("<h2>Under full load</h2>");
        page.push_str(&throughput(&outcome.loads, demanded(options)));
    }
    if !outcome.visibility.is_empty() {
        page.push_str(
            "<h2>How soon a write is seen</h2><p>From the acknowledgement at the first data center until another \
             session has read it. Remote data centers show it once it is uniform.</p><div class=grid>",
        );
        outcome.visibility.iter().for_each(|seen| page.push_str(&visibility(seen)));
        page.push_str("</div>");
    }
    if let Some(back) = outcome.returns.first() {
        page.push_str(
            "<h2>A data center that was away for an hour</h2><p>The hour passes at once on all clocks, and what is kept for it is \
             less than what is done meanwhile, so that it gets the state of each partition. All data centers share the cores: \
             while it is away the others have those to themselves.</p>",
        );
        page.push_str(&timeline(back));
    }
    page + "</main></body></html>\n"
}

const HEAD: &str = "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
<title>Mingle: TITLE</title><style>\
body{font:16px/1.5 system-ui,sans-serif;color:#222;background:#fafaf7;margin:0}\
main{max-width:70rem;margin:0 auto;padding:2rem 1rem}\
h1{font-size:1.7rem;margin:0 0 .5rem}h2{font-size:1.2rem;margin:2rem 0 .5rem}\
.lead{font-size:1.15rem}.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(27rem,1fr));gap:1rem;margin-bottom:1rem}\
figure{margin:0 0 1rem;background:#fff;border:1px solid #ddd;border-radius:6px;padding:1rem;overflow:auto}\
figcaption{font-weight:600;margin-bottom:.5rem}.wide{overflow:auto;margin-bottom:1rem}\
table{border-collapse:collapse;background:#fff;font-size:.85rem}td,th{border:1px solid #ddd;padding:.25rem .6rem;text-align:right}\
td:first-child,th:first-child{text-align:left}.narrow{max-width:40rem}.missed{color:#b00020;font-weight:600}\
svg{max-width:100%;height:auto}text{font:12px system-ui,sans-serif;fill:#333}\
@media(max-width:30rem){.grid{grid-template-columns:1fr}}\
</style></head><body><main>";

/// Returns the beginning of a page.
pub fn head(title: &str) -> String {
    HEAD.replace("TITLE", title)
}

const GREEN: &str = "#0b7a75";
const RED: &str = "#c1440e";
const GREY: &str = "#8a8a84";

/// Returns the verdict: all bars met, or the missed ones.
pub fn verdict(figures: &[Figure]) -> String {
    let missed = figures.iter().filter(|figure| figure.is_met == Some(false));
    let missed: Vec<String> =
        missed.map(|figure| format!("<li>{}", escape(&figure.missed()))).collect();
    if missed.is_empty() {
        return "<p class=lead>Every bar is met.</p>".to_owned();
    }
    format!("<p class=lead>Bars missed:</p><ul>{}</ul>", missed.concat())
}

/// Renders the figures with their bars.
pub fn table(figures: &[Figure]) -> String {
    let mut html = String::from("<div class=wide><table><tr><th>figure<th>measured<th>bar<th>");
    for figure in figures {
        let met = match figure.is_met {
            None => "",
            Some(true) => "met",
            Some(false) => "<span class=missed>missed</span>",
        };
        let _ = write!(
            html,
            "<tr><td>{}<td>{}<td>{}<td>{met}",
            escape(&figure.name),
            escape(&figure.value),
            escape(&figure.bar)
        );
    }
    html + "</table></div>"
}

fn throughput(loads: &[Load], bar: f64) -> String {
    let colors = [GREEN, GREY, RED, "#c98a10"];
    let rows: Vec<_> = Side::ALL
        .iter()
        .zip(loads)
        .zip(colors)
        .map(|((side, load), color)| {
            let estimate = &load.throughput;
            (side.title().to_owned(), estimate.mean(), estimate.interval(), color)
        })
        .collect();
    format!(
        "<figure><figcaption>Transactions a second, all data centers together, with 95 % confidence; red: the \
         bar</figcaption>{}</figure>",
        bars("throughput", &rows, bar)
    )
}

/// Returns the delays in ms by the fraction of the writes seen by then.
fn quantiles(delays_ns: &Histogram<u64>) -> Vec<(f64, f64)> {
    let quantiles = (0..=200).map(|step| f64::from(step) / 200.0);
    quantiles.map(|q| (delays_ns.value_at_quantile(q) as f64 / 1e6, q)).collect()
}

fn visibility(seen: &Visibility) -> String {
    let curves: Vec<_> = seen.delays_ns.iter().map(quantiles).collect();
    let most = seen.delays_ns.iter().map(|delays| delays.value_at_quantile(0.995) as f64 / 1e6);
    let most = most.fold(2.0, f64::max) * 1.1;
    let label = format!("visibility, {}", seen.distance.title());
    let mut plot = Plot::new(&label, (0.5, most), (0.0, 1.0), true);
    plot.axes("ms after the acknowledgement", |value| format!("{:.0} %", value * 100.0));
    let names = ["its data center", "the second", "the third"];
    for ((curve, name), color) in curves.iter().zip(names).zip([GREY, GREEN, RED]) {
        plot.line(name, color, curve, "");
    }
    format!(
        "<figure><figcaption>Writes that are seen, {}, at {} transactions a second</figcaption>{}</figure>",
        seen.distance.title(),
        thousands(seen.throughput.mean()),
        plot.done()
    )
}

fn timeline(back: &Return) -> String {
    let values = back.timeline.iter().map(|(_, value)| *value);
    let most = values.fold(1.0, f64::max) * 1.15;
    let end = back.timeline.last().map_or(1.0, |(seconds, _)| *seconds);
    let mut plot = Plot::new("throughput of the others", (0.0, end), (0.0, most), false);
    plot.axes("seconds", thousands);
    plot.line("transactions a second of the two others", GREEN, &back.timeline, "");
    for (at, name) in back.marks.iter().zip(["lost", "back", "caught up"]) {
        plot.down(*at, name);
    }
    format!(
        "<figure class=narrow><figcaption>The others, in the first round</figcaption>{}</figure>",
        plot.done()
    )
}
