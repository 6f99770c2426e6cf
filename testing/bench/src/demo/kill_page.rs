//! The page of the demonstration that stops a data center.

use std::fmt::Write as _;

use super::Options;
use super::kill::{Moved, Run, fates, per_second};
use super::page::HEAD;
use crate::html::escape;

const COLORS: [&str; 7] =
    ["#0b7a75", "#c1440e", "#4059ad", "#b8860b", "#7b2d8b", "#2e7d32", "#555555"];

/// Renders the page as HTML.
pub fn render(run: &Run, moved: &[Moved], options: &Options) -> String {
    let mut page = String::from(HEAD);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let _ = write!(
        page,
        "<h1>Message Groups over {count} data centers, of which {killed} stops</h1>\
         <p class=lead>Inboxes are a causal store over {names}; groups are linearizable, and elsewhere. \
         After {at:.1} s {killed} stops, and its clients go on where it is nearest.{back}</p>\
         <p>Measured on this machine ({cores} cores, {os}), everything in one process: {clients} clients, each \
         with one call at a time, seed {seed}.</p><pre>{binding}</pre>",
        count = run.names.len(),
        killed = escape(&run.killed),
        names = escape(&run.names.join(", ")),
        at = run.at.as_secs_f64(),
        back = run.back.map_or_else(String::new, |back| format!(
            " After {:.1} s it is given up for good, and comes back with empty disks.",
            back.as_secs_f64()
        )),
        os = std::env::consts::OS,
        clients = options.clients,
        seed = options.seed,
        binding = escape(&run.binding),
    );
    page.push_str("<h2>Calls done by the clients in each data center, by second</h2>");
    page.push_str(&plot(run));
    page.push_str(
        "<h2>Before and after</h2><table><tr><th></th><th>before</th><th>after</th></tr>",
    );
    for (dc, name) in run.names.iter().enumerate() {
        let [before, after] = [false, true].map(|is_after| per_second(run, dc, is_after));
        let name = escape(name);
        let _ = write!(page, "<tr><td>{name}</td><td>{before:.0}/s</td><td>{after:.0}/s</td></tr>");
    }
    let _ = write!(
        page,
        "</table><h2>Sessions of {}</h2><table><tr><th>what became of them</th><th>sessions</th>\
         <th>longest</th></tr>",
        escape(&run.killed)
    );
    for (what, count, longest) in fates(moved) {
        let (what, ms) = (escape(&what), longest.as_secs_f64() * 1e3);
        let _ = write!(page, "<tr><td>{what}</td><td>{count}</td><td>{ms:.0} ms</td></tr>");
    }
    page.push_str("</table><h2>Why calls failed</h2><table><tr><th>reason</th><th>calls</th></tr>");
    for (reason, count) in run.reasons.most() {
        let _ = write!(page, "<tr><td>{}</td><td>{count}</td></tr>", escape(&reason));
    }
    page.push_str("</table><h2>By second</h2>");
    page.push_str(&table(run));
    page.push_str("</main></body></html>\n");
    page
}

fn plot(run: &Run) -> String {
    // The space above the plot shows the events.
    let (left, right, top, bottom) = (50.0, 880.0, 50.0, 240.0);
    let most = run.cells.iter().flatten().map(super::kill::Cell::done).max().unwrap_or(0).max(1);
    let x = |second: f64| left + second / run.seconds as f64 * (right - left);
    let y = |done: u64| bottom - done as f64 / most as f64 * (bottom - top);
    let mut svg = String::from(
        "<svg viewBox='0 0 900 285' width=900 role=img aria-label='calls done by second'>",
    );
    for part in 0..=4 {
        let done = most * part / 4;
        let _ = write!(
            svg,
            "<line x1={left} x2={right} y1={y:.1} y2={y:.1} stroke='#e5e5e0'/>\
             <text x=44 y={ty:.1} text-anchor=end>{done}</text>",
            y = y(done),
            ty = y(done) + 4.0
        );
    }
    let marks = [
        (Some(run.at), "stops"),
        (run.back, "is given up"),
        (run.came_up.get().copied(), "is back"),
    ];
    for (place, (at, what)) in marks.iter().enumerate() {
        let Some(at) = at.map(|at| x(at.as_secs_f64())) else { continue };
        let _ = write!(
            svg,
            "<line x1={at:.1} x2={at:.1} y1={above} y2={bottom} stroke='#222' stroke-dasharray='4 3'/>\
             <text x={label:.1} y={y}>{killed} {what}</text>",
            label = at + 6.0,
            above = 4 + place * 14,
            y = 14 + place * 14,
            killed = escape(&run.killed)
        );
    }
    for (dc, name) in run.names.iter().enumerate() {
        let color = COLORS[dc % COLORS.len()];
        let points = (0..run.seconds).map(|second| {
            let done = run.cells[second as usize][dc].done();
            format!("{:.1},{:.1}", x(second as f64 + 0.5), y(done))
        });
        let points: Vec<String> = points.collect();
        let _ = write!(
            svg,
            "<polyline points='{}' fill=none stroke='{color}' stroke-width=2 />\
             <rect x={lx} y=263 width=10 height=10 fill='{color}'/><text x={tx} y=272>{}</text>",
            points.join(" "),
            escape(name),
            lx = 60 + dc * 120,
            tx = 76 + dc * 120,
        );
    }
    svg + "</svg>"
}

fn table(run: &Run) -> String {
    let mut html = String::from("<table><tr><th>second</th>");
    for name in &run.names {
        let _ = write!(html, "<th>{}: done</th><th>failed</th>", escape(name));
    }
    html.push_str("</tr>");
    for second in 0..run.seconds as usize {
        let _ = write!(html, "<tr><td>{}</td>", second + 1);
        for cell in &run.cells[second] {
            let _ = write!(html, "<td>{}</td><td>{}</td>", cell.done(), cell.failed());
        }
        html.push_str("</tr>");
    }
    html + "</table>"
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;
    use std::time::Duration;

    use clap::Parser;

    use super::*;
    use crate::demo::kill::{Cell, How};
    use crate::demo::reasons::Reasons;
    use crate::html::read::{Random, tags};

    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        options: Options,
    }

    /// Renders the page of a run in which each name is the next of these.
    fn page(mut name: impl FnMut() -> String) -> String {
        let names: Vec<String> = (0..3).map(|_| name()).collect();
        let run = Run {
            binding: name(),
            killed: names[1].clone(),
            names,
            at: Duration::from_secs(1),
            back: Some(Duration::from_secs(2)),
            came_up: OnceLock::from(Duration::from_secs(3)),
            seconds: 4,
            cells: (0..4).map(|_| (0..3).map(|_| Cell::default()).collect()).collect(),
            reasons: Reasons::of(&name()),
        };
        let moved =
            Moved { to: name(), how: How::Resumed, took: Duration::from_secs(1), failed: 1 };
        let options = Arguments::parse_from(["demo", "--kill", "oslo"]).options;
        render(&run, &[moved], &options)
    }

    #[test]
    fn hostile_names_add_no_tag() {
        let plain = tags(&page(|| "oslo".into()));
        assert!(plain.iter().any(|tag| tag.starts_with("polyline")), "{plain:?}");
        for seed in 0..300 {
            let mut random = Random(seed);
            assert_eq!(tags(&page(|| random.text())), plain, "seed {seed}");
        }
    }
}
