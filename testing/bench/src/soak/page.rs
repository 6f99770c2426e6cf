//! The page: figures, phases and plots over time in one self-contained file.

use std::fmt::Write as _;

use super::Options;
use super::report::{Run, Sample};
use crate::geo::{Plot, head, table, verdict};
use crate::html::escape;

const COLORS: [&str; 4] = ["#222222", "#0b7a75", "#c1440e", "#4059ad"];

type Line = (String, Vec<(f64, f64)>);

/// The page as HTML.
pub fn render(run: &Run, options: &Options) -> String {
    let figures = run.figures();
    let seed = options.seed;
    let mut page = head("soak");
    let _ = write!(
        page,
        "<h1>Soak over real servers</h1>{}<p>{:.0} seconds, seed {seed}.</p>{}",
        verdict(&figures),
        run.seconds,
        table(&figures)
    );
    page.push_str("<h2>Phases</h2><div class=wide><table>");
    for row in run.table() {
        page.push_str("<tr>");
        for cell in row {
            let _ = write!(page, "<td>{}", escape(&cell));
        }
    }
    page.push_str("</table></div><div class=grid>");
    let ends = |index: usize| (index as f64, index as f64 + 1.0);
    let seconds = || 0..run.seconds as usize;
    let sorts = || [None].into_iter().chain(run.sorts.iter().copied().map(Some));
    let named = |sort: Option<super::judge::Sort>| {
        sort.map_or("all".to_owned(), |sort| sort.title().to_owned())
    };
    let throughput = sorts().map(|sort| {
        let at = |index| (ends(index).0, run.throughput(sort, ends(index).0, ends(index).1));
        (named(sort), seconds().map(at).collect())
    });
    page.push_str(&plot(run, "calls done by second", throughput.collect()));
    let latency = sorts().skip(1).map(|sort| {
        let at = |index| (ends(index).0, run.kept(sort, ends(index).0, ends(index).1).p99);
        (named(sort), seconds().map(at).collect())
    });
    page.push_str(&plot(run, "latency, p99 of calls due in a second, ms", latency.collect()));
    let of = |value: &dyn Fn(&Sample) -> Option<f64>| {
        run.samples.iter().filter_map(|sample| Some((sample.at, value(sample)?))).collect()
    };
    let rows = vec![
        ("witness rows".to_owned(), of(&|sample| sample.rows.map(|rows| rows as f64))),
        ("open transactions".to_owned(), of(&|sample| sample.open)),
    ];
    page.push_str(&plot(run, "rows", rows));
    let memory = ["serve a", "serve b"].into_iter().enumerate();
    let memory =
        memory.map(|(index, name)| (name.to_owned(), of(&|sample| Some(sample.used[index]?.0))));
    page.push_str(&plot(run, "resident memory, MiB", memory.collect()));
    page + "</div></main></body></html>\n"
}

fn plot(run: &Run, title: &str, lines: Vec<Line>) -> String {
    let most = lines.iter().flat_map(|(_, points)| points).map(|point| point.1).fold(1.0, f64::max);
    let mut plot = Plot::new(title, (0.0, run.seconds), (0.0, most * 1.1), false);
    plot.axes("seconds", |value| format!("{value:.0}"));
    for fault in &run.faults {
        plot.down(fault.begin, &escape(&fault.to_string()));
        plot.down(fault.end, "");
    }
    for ((name, points), color) in lines.iter().zip(COLORS) {
        plot.line(name, color, points, "");
    }
    format!("<figure><figcaption>{}</figcaption>{}</figure>", escape(title), plot.done())
}
