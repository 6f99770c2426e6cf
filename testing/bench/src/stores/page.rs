//! The page: plots and tables in one self-contained file.

use std::fmt::Write as _;

use super::mixed::{self, Side};
use super::pair;
use super::report::{count, name};
use super::single::{self, TRANSACTIONS};
use super::{Options, Outcome};
use crate::groups::MIX;
use crate::html::escape;
use crate::predict::PAPER_RATIO;
use crate::rounds::Rounds;

/// The page as HTML.
pub fn render(outcome: &Outcome, options: &Options, missed: &[String]) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut page = String::from(HEAD);
    let _ = write!(
        page,
        "<h1>Stores in PostgreSQL and Cassandra: what mixing gains, and what Mingle costs</h1>{verdict}\
         <p>Measured on this machine ({cores} cores, {os}), clients and server included, in {rounds} rounds, forwards and \
         backwards; ratios are medians of rounds, with the lowest and the highest; seed {seed}.</p>",
        verdict = verdict(missed, options.only.is_none(), options.quick),
        os = std::env::consts::OS,
        rounds = options.rounds,
        seed = options.seed,
    );
    if let Some(mixed) = &outcome.mixed {
        page.push_str(&render_mixed(mixed, options));
    }
    if let Some(single) = &outcome.single {
        page.push_str(&render_single(single, options));
    }
    if let Some(pair) = &outcome.pair {
        page.push_str(&render_pair(pair, options));
    }
    page + "</main></body></html>\n"
}

const HEAD: &str = "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
<title>Mingle: stores in PostgreSQL and Cassandra</title><style>\
body{font:16px/1.5 system-ui,sans-serif;color:#222;background:#fafaf7;margin:0}\
main{max-width:70rem;margin:0 auto;padding:2rem 1rem}\
h1{font-size:1.7rem;margin:0 0 .5rem}h2{font-size:1.2rem;margin:2rem 0 .5rem}\
.lead{font-size:1.15rem}.wide{overflow:auto;margin-bottom:1rem}\
figure{margin:0 0 1rem;background:#fff;border:1px solid #ddd;border-radius:6px;padding:1rem;overflow:auto}\
figcaption{font-weight:600;margin-bottom:.5rem}pre{font-size:.78rem;line-height:1.4;margin:0;white-space:pre-wrap}\
table{border-collapse:collapse;background:#fff;font-size:.85rem}td,th{border:1px solid #ddd;padding:.25rem .6rem;text-align:right}\
td:first-child,th:first-child{text-align:left}svg{max-width:100%;height:auto}text{font:12px system-ui,sans-serif;fill:#333}\
</style></head><body><main>";

/// The text on missed bars. If only a part was measured, the text does not mention the others; the bars of a
/// quick run are lenient.
fn verdict(missed: &[String], is_whole: bool, is_quick: bool) -> String {
    if missed.is_empty() && is_quick {
        return "<p class=lead>A quick run: all of it works. Its bars are lenient, and it says nothing \
                of the real ones.</p>"
            .into();
    }
    if missed.is_empty() {
        let bars = if is_whole { "Every bar" } else { "Every bar of what was measured" };
        return format!("<p class=lead>{bars} is met.</p>");
    }
    let items: Vec<String> = missed.iter().map(|bar| format!("<li>{}", escape(bar))).collect();
    format!("<p class=lead>Bars missed:</p><ul>{}</ul>", items.concat())
}

/// One ratio of a plot.
struct Mark<'a> {
    name: String,
    ratios: &'a Rounds,
    color: &'static str,
    /// Values shown as lines beside the ratio, with their names.
    lines: Vec<(f64, &'static str)>,
}

const LEFT: f64 = 400.0;
const RIGHT: f64 = 880.0;
const ROW: f64 = 26.0;

/// A plot of ratios with their spreads, one below the other.
fn plot(label: &str, marks: &[Mark<'_>]) -> String {
    let values = || {
        marks.iter().flat_map(|mark| {
            let (low, high) = mark.ratios.interval();
            [low, high].into_iter().chain(mark.lines.iter().map(|(value, _)| *value))
        })
    };
    let most = (values().fold(1.0, f64::max) * 1.08).max(1.2);
    let x = |value: f64| LEFT + value / most * (RIGHT - LEFT);
    let bottom = 10.0 + marks.len() as f64 * ROW;
    let mut svg = format!(
        "<svg viewBox='0 0 900 {height}' width=900 role=img aria-label='{label}'>",
        label = escape(label),
        height = bottom + 24.0
    );
    let step =
        [0.2, 0.5, 1.0, 2.0, 5.0].into_iter().find(|step| most / step < 10.0).unwrap_or(10.0);
    let mut value = 0.0;
    while value <= most {
        let _ = write!(
            svg,
            "<line x1={x:.1} x2={x:.1} y1=4 y2={bottom} stroke='{color}'/>\
             <text x={x:.1} y={at} text-anchor=middle>{value:.1}</text>",
            x = x(value),
            color = if (value - 1.0_f64).abs() < 1e-9 { "#999" } else { "#e5e5e0" },
            at = bottom + 16.0,
        );
        value += step;
    }
    for (index, mark) in marks.iter().enumerate() {
        let y = 10.0 + (index as f64 + 0.5) * ROW;
        let (low, high) = mark.ratios.interval();
        let _ = write!(
            svg,
            "<text x=0 y={text:.1}>{name}</text><line x1={low:.1} x2={high:.1} y1={y} y2={y} stroke='{color}' stroke-width=3 \
             opacity=.5 /><circle cx={median:.1} cy={y} r=5 fill='{color}'/>",
            text = y + 4.0,
            name = escape(&mark.name),
            low = x(low),
            high = x(high),
            median = x(mark.ratios.median()),
            color = mark.color,
        );
        for (value, title) in &mark.lines {
            let _ = write!(
                svg,
                "<line x1={x:.1} x2={x:.1} y1={:.1} y2={:.1} stroke='#b00020' stroke-width=2><title>{}: {value:.2}</title></line>",
                y - 10.0,
                y + 10.0,
                escape(title),
                x = x(*value),
            );
        }
    }
    svg + "</svg>"
}

const GREEN: &str = "#0b7a75";
const RED: &str = "#c1440e";
const GREY: &str = "#8a8a84";

fn render_pair(pair: &pair::Outcome, options: &Options) -> String {
    let bar = options.bars().pair;
    let plural = |clients| if clients == 1 { "" } else { "s" };
    let marks: Vec<Mark<'_>> = pair
        .cells
        .iter()
        .flat_map(|cell| {
            let mark = |side: pair::Side, color, lines| Mark {
                name: format!("{}, {} client{}", side.title(), cell.clients, plural(cell.clients)),
                ratios: &cell.ratios[side as usize],
                color,
                lines,
            };
            let mingle = mark(pair::Side::Mingle, GREEN, vec![(bar, "bar")]);
            [mingle, mark(pair::Side::Reading, GREY, Vec::new())]
        })
        .collect();
    let mut html = format!(
        "<h2>One row in PostgreSQL and one in Cassandra</h2><p>Both are read and written in one transaction, without a \
         distance, 1,000 rows each; beside it the two plain writes, one after the other, and the same after both rows were \
         read, without any coordination.</p>\
         <figure><figcaption>Throughput by that of two plain writes</figcaption>{}</figure>\
         <table><tr><th><th>calls a second<th>half of them<th>99 %",
        plot("throughput by that of two plain writes", &marks)
    );
    for cell in &pair.cells {
        for (side, measured) in pair::Side::ALL.iter().zip(&cell.measured) {
            let _ = write!(
                html,
                "<tr><td>{}, {} client{}<td>{:.0}<td>{:.1} ms<td>{:.1} ms",
                side.title(),
                cell.clients,
                plural(cell.clients),
                measured.throughput(),
                measured.quantile_ms(0.5),
                measured.quantile_ms(0.99)
            );
        }
    }
    html + "</table>"
}

fn render_mixed(mixed: &mixed::Outcome, options: &Options) -> String {
    let explained = mixed.predicted_ratio();
    let bars = options.bars();
    let marks = [
        Mark {
            name: "mixed by all in PostgreSQL".into(),
            ratios: &mixed.by_all_far,
            color: GREEN,
            lines: vec![
                (explained, "predicted, as explain counts round trips"),
                (PAPER_RATIO, "the paper's"),
            ],
        },
        Mark {
            name: "mixed by mixed by hand".into(),
            ratios: &mixed.by_hand,
            color: RED,
            lines: vec![(bars.by_hand, "bar")],
        },
    ];
    let html = format!(
        "<h2>Message Groups</h2><p>{clients} clients, each with one call at a time. <code>groups</code> are in PostgreSQL, a \
         round trip of {far} away, <code>inboxes</code> in a causal store at {near}. Round trips as <code>mingle explain</code> \
         counts them predict {explained:.2} times the throughput of all in PostgreSQL (measured: {explained_by:+.1} %). MixT (PLDI 2018) reports {PAPER_RATIO} on its own stores. By hand, who joins a group writes a row of an outbox with the member; who posts needs \
         none.</p><figure><figcaption>Throughput: median, lowest and highest round; red: predicted, the paper's, the \
         bar</figcaption>{plot}</figure>",
        clients = options.clients,
        far = options.far,
        near = options.near,
        explained_by = mixed.departure(),
        plot = plot("throughput of mixed by that of others", &marks),
    );
    html + &mixed_table(mixed)
}

fn mixed_table(mixed: &mixed::Outcome) -> String {
    let mut html = String::from("<div class=wide><table><tr><th>");
    for side in Side::ALL {
        let _ = write!(html, "<th>{}", side.title());
    }
    let mut row = |name: &str, cell: &dyn Fn(Side) -> String| {
        let cells: Vec<String> =
            Side::ALL.into_iter().map(|side| format!("<td>{}", cell(side))).collect();
        let _ = write!(html, "<tr><td>{name}{}", cells.concat());
    };
    let of = |side: Side| &mixed.measured[side as usize];
    row("mean latency", &|side| format!("{:.1} ms", of(side).mean_ms()));
    for (index, (name, share)) in MIX.iter().enumerate() {
        row(&format!("{name} ({share} %), half of the calls"), &|side| {
            format!("{:.1} ms", of(side).quantile_ms(index, 0.5))
        });
        row("99 % of them", &|side| format!("{:.1} ms", of(side).quantile_ms(index, 0.99)));
    }
    row("tried again, of 1,000 calls", &|side| format!("{:.0}", of(side).again_per_thousand()));
    row("failed calls", &|side| of(side).failed.to_string());
    row("ratio", &|side| match side {
        Side::Mixed => "1".to_owned(),
        Side::AllFar => mixed.by_all_far.as_ratio(),
        Side::ByHand => mixed.by_hand.as_ratio(),
    });
    html + "</table></div>"
}

fn render_single(single: &single::Outcome, options: &Options) -> String {
    let bar = options.bars().cost;
    let mut marks = Vec::new();
    for cell in &single.cells {
        for (side, color) in [
            (single::Side::Replayed, GREEN),
            (single::Side::Data, RED),
            (single::Side::Plain, GREY),
        ] {
            let is_judged = side == single::Side::Data;
            marks.push(Mark {
                name: if side == single::Side::Replayed { name(cell) } else { String::new() },
                ratios: &cell.ratios[side as usize],
                color,
                lines: if is_judged { vec![(bar, "bar")] } else { Vec::new() },
            });
        }
    }
    let mut html = format!(
        "<h2>Small transactions, without a distance</h2><figure><figcaption>Time of Mingle by that of statements by hand: \
         median, lowest and highest round. <span style='color:{GREEN}'>All that the adapter sends</span>, \
         <span style='color:{RED}'>those for data alone</span> (judged), <span style='color:{GREY}'>a table of one's \
         own</span></figcaption>{}</figure><div class=wide><table><tr><th>",
        plot("time of Mingle by that of statements by hand", &marks)
    );
    for side in &single::Side::ALL[1..] {
        let _ = write!(html, "<th>{}", side.title());
    }
    for cell in &single.cells {
        let _ = write!(html, "<tr><td>{}", escape(&name(cell)));
        for side in &single::Side::ALL[1..] {
            let _ = write!(html, "<td>{}", cell.ratios[*side as usize].as_ratio());
        }
    }
    html.push_str("</table></div><h2>What is sent</h2>");
    for ((_, what), sent) in TRANSACTIONS.iter().zip(&single.sent) {
        for side in &single::Side::ALL[1..] {
            let trips = &sent[*side as usize];
            let text: Vec<String> = trips.iter().map(|trip| trip.join(";\n")).collect();
            let _ = write!(
                html,
                "<figure><figcaption>{what}, {}: {} round trips</figcaption><pre>{}</pre></figure>",
                side.title(),
                count(trips),
                escape(&text.join(";\n\n"))
            );
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::verdict;

    #[test]
    fn the_verdict_is_of_what_was_measured() {
        assert!(verdict(&[], true, false).contains("Every bar is met"));
        assert!(verdict(&[], false, false).contains("Every bar of what was measured is met"));
        assert!(!verdict(&[], true, true).contains("Every bar"), "its bars are lenient");
        for is_whole in [true, false] {
            let missed = verdict(&["0.4 < 0.5".to_owned()], is_whole, !is_whole);
            assert!(
                missed.contains("<li>0.4 &lt; 0.5") && !missed.contains("Every bar"),
                "{missed}"
            );
        }
    }
}
