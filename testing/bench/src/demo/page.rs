//! The page: plots and phases in one self-contained file.

use std::fmt::Write as _;

use mingle_lang::explain;

use super::shop::{self, Left};
use super::{Options, Side, predicted_ratio, ratio};
use crate::groups::MIX;
use crate::html::escape;

const MIXED: &str = "#0b7a75";
const LINEARIZABLE: &str = "#c1440e";

/// Renders the page as HTML.
pub fn render(
    shops: Option<&[Left; 2]>,
    mixed: &Side,
    linearizable: &Side,
    options: &Options,
    paper: f64,
) -> String {
    let (measured, predicted) = (ratio(mixed, linearizable), predicted_ratio(mixed, linearizable));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut page = String::from(HEAD);
    let mut push = |text: String| page.push_str(&text);
    push("<h1>Mingle in a minute</h1>".into());
    if let Some(shops) = shops {
        push(killed(shops, options.kills));
    }
    push(format!(
        "<h2>Message Groups, mixed and all linearizable</h2>\
         <p class=lead>Mixed consistency carries <b>{measured:.2} times</b> as many transactions. \
         The round-trip counts alone predict {predicted:.2}; MixT (PLDI 2018, §8) reports {paper} on its own stores.</p>\
         <p>Measured on this machine ({cores} cores, {os}) with the embedded engine in memory: {clients} clients, \
         each with one call at a time, {seconds} s a side, seed {seed}. A round trip to a linearizable store takes {far}, \
         to a causal one {near}, as in MixT §8.1. The mix is the paper's: {mix}. For comparison, the same program keeps \
         all its objects in one linearizable store; both sides batch their reads and writes alike.</p>",
        os = std::env::consts::OS,
        clients = options.clients,
        seconds = options.side_seconds(),
        seed = options.seed,
        far = options.linearizable,
        near = options.causal,
        mix = MIX.map(|(name, share)| format!("{share} % {name}")).join(", "),
    ));
    push("<h3>Throughput</h3>".into());
    push(bars(mixed, linearizable));
    push("<h3>Mean latency, and what round trips predict</h3>".into());
    push(table(mixed, linearizable));
    push("<h3>Latency by transaction</h3><p>Share of calls (upwards) that took at most so long (to the right, logarithmic).</p><div class=grid>".into());
    for (index, (name, _)) in MIX.iter().enumerate() {
        push(cdf(name, index, mixed, linearizable));
    }
    push("</div><h3>Phases</h3><p>What <code>mingle explain</code> prints for each side.</p><div class=grid>".into());
    for (own, other) in mixed.phases.iter().zip(&linearizable.phases) {
        for (side, explained) in [(mixed, own), (linearizable, other)] {
            push(format!(
                "<figure><figcaption>{}</figcaption><pre>{}</pre></figure>",
                side.title,
                escape(&explain::render(explained))
            ));
        }
    }
    push("</div></main></body></html>\n".into());
    page
}

pub(super) const HEAD: &str = "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
<title>Mingle: Message Groups</title><style>\
body{font:16px/1.5 system-ui,sans-serif;color:#222;background:#fafaf7;margin:0}\
main{max-width:70rem;margin:0 auto;padding:2rem 1rem}\
h1{font-size:1.7rem;margin:0 0 .5rem}h2{font-size:1.3rem;margin:2rem 0 .5rem}h3{font-size:1.1rem;margin:1.5rem 0 .5rem}\
.lead{font-size:1.15rem}.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(27rem,1fr));gap:1rem}\
figure{margin:0;background:#fff;border:1px solid #ddd;border-radius:6px;padding:1rem;overflow:auto}\
figcaption{font-weight:600;margin-bottom:.5rem}pre{font-size:.78rem;line-height:1.4;margin:0}\
table{border-collapse:collapse;background:#fff}td,th{border:1px solid #ddd;padding:.3rem .7rem;text-align:right}\
td:first-child,th:first-child{text-align:left}svg{max-width:100%;height:auto}text{font:12px system-ui,sans-serif;fill:#333}\
@media(max-width:30rem){.grid{grid-template-columns:1fr}}\
</style></head><body><main>";

/// A figure of what a shop has left.
type Figure = fn(&Left) -> u64;

/// Renders what the shops have left that were killed.
fn killed(shops: &[Left; 2], kills: u32) -> String {
    let [two, one] = shops;
    let mut html = format!(
        "<h2>A crash between two writes</h2>\
         <p class=lead>With two writes, <b>{two}</b> sales are at one store alone; with one transaction, <b>{one}</b>.</p>\
         <p>A shop writes each sale to a linearizable and to a causal store, on disk. Its process was killed {kills} times \
         (<code>kill -9</code>), each time amid sales, and started again. With two writes nothing remembers a sale of which one \
         half is written. A transaction keeps with its first write what is left to do, and the next process does it.</p>\
         <table><tr><th></th>",
        two = two.halves(),
        one = one.halves(),
    );
    for left in shops {
        write!(html, "<th>{}</th>", left.way.title()).expect("writing to a string cannot fail");
    }
    let rows: [(&str, Figure); 3] = [
        ("sales at <code>stock</code>", |left| left.sold.unsigned_abs()),
        ("sales at <code>feed</code>", |left| left.told.unsigned_abs()),
        ("at one of them alone", Left::halves),
    ];
    for (name, of) in rows {
        write!(html, "</tr><tr><td>{name}</td><td>{}</td><td>{}</td>", of(two), of(one))
            .expect("writing to a string cannot fail");
    }
    let program = escape(shop::PROGRAM);
    html + &format!(
        "</tr></table><p>The shop; the one calls <code>take</code> and <code>tell</code>, the other <code>sell</code>:</p><pre>{program}</pre>"
    )
}

fn bars(mixed: &Side, linearizable: &Side) -> String {
    let most = mixed.measured.throughput().max(linearizable.measured.throughput());
    let mut svg = String::from(
        "<svg viewBox='0 0 720 110' width=720 role=img aria-label='throughput of both sides'>",
    );
    for (row, (side, color)) in
        [(mixed, MIXED), (linearizable, LINEARIZABLE)].into_iter().enumerate()
    {
        let throughput = side.measured.throughput();
        let (width, y) = (throughput / most * 460.0, 10 + row * 50);
        write!(
            svg,
            "<text x=0 y={text_y}>{title}</text><rect x=130 y={y} width={width:.1} height=36 rx=3 fill='{color}'/>\
             <text x={label:.1} y={text_y}>{throughput:.0} transactions/s</text>",
            title = side.title,
            text_y = y + 23,
            label = 138.0 + width,
        )
        .expect("writing to a string cannot fail");
    }
    svg + "</svg>"
}

fn table(mixed: &Side, linearizable: &Side) -> String {
    let mut html = String::from(
        "<table><tr><th>transaction</th><th>mixed: round trips</th><th>p50</th><th>p99</th>\
         <th>all linearizable: round trips</th><th>p50</th><th>p99</th></tr>",
    );
    for (index, (name, _)) in MIX.iter().enumerate() {
        write!(html, "<tr><td>{name}</td>").expect("writing to a string cannot fail");
        for side in [mixed, linearizable] {
            write!(
                html,
                "<td>{:.0} ms</td><td>{:.1} ms</td><td>{:.1} ms</td>",
                side.predicted_by_transaction[index],
                side.measured.quantile_ms(index, 0.5),
                side.measured.quantile_ms(index, 0.99)
            )
            .expect("writing to a string cannot fail");
        }
        html.push_str("</tr>");
    }
    html.push_str("<tr><td>all, mean</td>");
    for side in [mixed, linearizable] {
        write!(
            html,
            "<td>{:.1} ms</td><td colspan=2>{:.1} ms</td>",
            side.predicted_ms,
            side.mean_ms()
        )
        .expect("writing to a string cannot fail");
    }
    html + "</tr></table>"
}

/// Plots the distribution of one transaction's latency on both sides.
fn cdf(name: &str, index: usize, mixed: &Side, linearizable: &Side) -> String {
    let (left, right, top, bottom) = (52.0, 490.0, 12.0, 190.0);
    let x =
        |ms: f64| left + (ms.max(0.5) / 0.5).log10() / (1000.0_f64 / 0.5).log10() * (right - left);
    let y = |share: f64| bottom - share * (bottom - top);
    let mut svg = format!(
        "<figure><figcaption>{name}</figcaption><svg viewBox='0 0 520 225' role=img aria-label='latency of {name}'>"
    );
    for ms in [1.0, 10.0, 100.0, 1000.0] {
        write!(
            svg,
            "<line x1={x:.1} x2={x:.1} y1={top} y2={bottom} stroke='#e5e5e0'/><text x={x:.1} y=206 text-anchor=middle>{ms} ms</text>",
            x = x(ms)
        )
        .expect("writing to a string cannot fail");
    }
    for share in [0.0, 0.5, 1.0] {
        write!(
            svg,
            "<line x1={left} x2={right} y1={y:.1} y2={y:.1} stroke='#e5e5e0'/><text x=46 y={ty:.1} text-anchor=end>{percent:.0} %</text>",
            y = y(share),
            ty = y(share) + 4.0,
            percent = share * 100.0
        )
        .expect("writing to a string cannot fail");
    }
    for (row, (side, color)) in
        [(mixed, MIXED), (linearizable, LINEARIZABLE)].into_iter().enumerate()
    {
        let points: Vec<String> = (0..=200)
            .map(|step| {
                let share = f64::from(step) / 200.0;
                format!("{:.1},{:.1}", x(side.measured.quantile_ms(index, share)), y(share))
            })
            .collect();
        write!(
            svg,
            "<polyline points='{}' fill=none stroke='{color}' stroke-width=2 /><rect x={lx} y=213 width=10 height=10 fill='{color}'/><text x={tx} y=222>{}</text>",
            points.join(" "),
            side.title,
            lx = 60 + row * 140,
            tx = 76 + row * 140,
        )
        .expect("writing to a string cannot fail");
    }
    svg + "</svg></figure>"
}
