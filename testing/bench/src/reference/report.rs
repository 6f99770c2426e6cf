//! The report: sections with tables and plots, in the terminal and as a page.

use std::fmt::Write as _;
use std::path::Path;

use crate::geo::{Figure, head, table, verdict};
use crate::html::escape;

/// A part of the report.
#[derive(Debug, Default)]
pub struct Section {
    pub title: String,
    /// The setting, with which figures are measured and which are modelled.
    pub text: String,
    pub header: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
    /// Plots as SVG, each with its caption.
    pub plots: Vec<(String, String)>,
}

impl Section {
    /// Formats the section as Markdown.
    fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let header: Vec<String> = self.header.iter().map(ToString::to_string).collect();
        let rule: Vec<String> = header.iter().map(|_| "---".to_owned()).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        let Self { title, text, .. } = self;
        format!("\n## {title}\n\n{text}\n\n{}{}{rows}", line(&header), line(&rule))
    }

    /// Formats the section as HTML.
    fn html(&self) -> String {
        let mut html = format!("<h2>{}</h2><p>{}</p>", escape(&self.title), escape(&self.text));
        html.push_str("<div class=wide><table><tr>");
        for name in &self.header {
            let _ = write!(html, "<th>{}", escape(name));
        }
        for row in &self.rows {
            html.push_str("<tr>");
            for cell in row {
                let _ = write!(html, "<td>{}", escape(cell));
            }
        }
        html.push_str("</table></div><div class=grid>");
        for (caption, svg) in &self.plots {
            let caption = escape(caption);
            let _ = write!(html, "<figure><figcaption>{caption}</figcaption>{svg}</figure>");
        }
        html + "</div>"
    }
}

/// Prints sections and figures, and writes them as a page.
///
/// # Errors
///
/// The bars that are missed, or why the page cannot be written.
pub fn publish(
    (title, setting): (&str, &str),
    sections: &[Section],
    figures: &[Figure],
    page: &Path,
) -> Result<(), String> {
    println!("{setting}");
    for section in sections {
        println!("{}", section.markdown());
    }
    println!("\n## Bars\n\n| figure | measured | bar | |\n| --- | --- | --- | --- |");
    for figure in figures {
        let met = match figure.is_met {
            Some(true) => "met",
            Some(false) => "missed",
            None => "",
        };
        println!("| {} | {} | {} | {met} |", figure.name, figure.value, figure.bar);
    }
    let html: String = sections.iter().map(Section::html).collect();
    let html = format!(
        "{}<h1>{}</h1>{}<p>{}</p>{}{html}</main></body></html>\n",
        head(title),
        escape(title),
        verdict(figures),
        escape(setting),
        table(figures),
    );
    if let Some(folder) = page.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    std::fs::write(page, html).map_err(|error| format!("{}: {error}", page.display()))?;
    println!("\nplots: {}", page.display());
    let missed = figures.iter().filter(|figure| figure.is_met == Some(false));
    let missed: Vec<String> = missed.map(Figure::missed).collect();
    if missed.is_empty() { Ok(()) } else { Err(missed.join("\n")) }
}

/// Formats a ratio.
pub fn ratio(value: f64) -> String {
    format!("{value:.2}")
}

/// Formats microseconds.
pub fn us(value: f64) -> String {
    if value < 100.0 { format!("{value:.1} µs") } else { format!("{value:.0} µs") }
}

/// Formats a fraction in percent.
pub fn percent(value: f64) -> String {
    format!("{:.1} %", value * 100.0)
}

/// Formats a number of events in a second.
pub fn per_second(value: f64) -> String {
    format!("{value:.0}/s")
}

/// Formats a number of bytes.
pub fn bytes(value: f64) -> String {
    format!("{value:.0} B")
}
