//! Plots as SVG: axes with round values, lines and bars.

use std::fmt::Write as _;

use crate::html::escape;

const LEFT: f64 = 64.0;
const RIGHT: f64 = 500.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 226.0;

/// A plot under construction within one frame.
pub struct Plot {
    svg: String,
    x: (f64, f64),
    y: (f64, f64),
    is_log: bool,
    named: Vec<(String, &'static str)>,
}

/// Returns about `count` round values between two bounds.
fn round_steps((low, high): (f64, f64), count: f64) -> Vec<f64> {
    let rough = (high - low) / count;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let step = step.into_iter().find(|step| *step >= rough).unwrap_or(rough);
    let first = (low / step).ceil() as i64;
    let values = (first..).map(|index| index as f64 * step);
    values.take_while(|value| *value <= high + step * 1e-6).collect()
}

impl Plot {
    /// Creates a frame for these ranges; with `is_log`, x is logarithmic.
    pub fn new(label: &str, x: (f64, f64), y: (f64, f64), is_log: bool) -> Self {
        let svg = format!("<svg viewBox='0 0 520 310' role=img aria-label='{}'>", escape(label));
        Self { svg, x, y, is_log, named: Vec::new() }
    }

    fn place_x(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.is_log { value.max(1e-9).log10() } else { value };
        let (low, high) = (scale(self.x.0), scale(self.x.1));
        LEFT + ((scale(value) - low) / (high - low)).clamp(0.0, 1.0) * (RIGHT - LEFT)
    }

    fn place_y(&self, value: f64) -> f64 {
        let (low, high) = self.y;
        BOTTOM - ((value - low) / (high - low)).clamp(0.0, 1.0) * (BOTTOM - TOP)
    }

    /// Draws horizontal lines at round values of y, and marks at round values of x.
    pub fn axes(&mut self, title: &str, y_format: impl Fn(f64) -> String) {
        for value in round_steps(self.y, 6.0) {
            let y = self.place_y(value);
            let _ = write!(
                self.svg,
                "<line x1={LEFT} x2={RIGHT} y1={y:.1} y2={y:.1} stroke='#e5e5e0'/>\
                 <text x=58 y={at:.1} text-anchor=end>{}</text>",
                y_format(value),
                at = y + 4.0,
            );
        }
        let powers = || (-3..6).flat_map(|power| [1.0, 2.0, 5.0].map(|f| f * 10_f64.powi(power)));
        let marks: Vec<f64> = if self.is_log {
            powers().filter(|value| self.x.0 <= *value && *value <= self.x.1).collect()
        } else {
            round_steps(self.x, 8.0)
        };
        for value in marks {
            let x = self.place_x(value);
            let _ = write!(
                self.svg,
                "<line x1={x:.1} x2={x:.1} y1={TOP} y2={BOTTOM} stroke='#efefea'/>\
                 <text x={x:.1} y=242 text-anchor=middle>{}</text>",
                (value * 1e3).round() / 1e3
            );
        }
        let _ = write!(self.svg, "<text x=282 y=259 text-anchor=middle>{title}</text>");
    }

    /// Draws a line through these points.
    pub fn line(&mut self, name: &str, color: &'static str, points: &[(f64, f64)], dash: &str) {
        let places: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{:.1},{:.1}", self.place_x(*x), self.place_y(*y)))
            .collect();
        let _ = write!(
            self.svg,
            "<polyline points='{}' fill=none stroke='{color}' stroke-width=2 stroke-dasharray='{dash}'/>",
            places.join(" ")
        );
        self.named.push((name.to_owned(), color));
    }

    /// Draws a vertical line with its name at the top.
    pub fn down(&mut self, x: f64, name: &str) {
        let x = self.place_x(x);
        let _ = write!(
            self.svg,
            "<line x1={x:.1} x2={x:.1} y1={TOP} y2={BOTTOM} stroke='#b00020' stroke-dasharray='3 3'/>\
             <text x={at:.1} y=24>{name}</text>",
            at = x + 4.0
        );
    }

    /// Finishes the plot, with the names of the lines below.
    pub fn done(mut self) -> String {
        for (index, (name, color)) in self.named.iter().enumerate() {
            let (x, y) = (LEFT + (index % 2) as f64 * 220.0, 270 + index / 2 * 17);
            let _ = write!(
                self.svg,
                "<rect x={x} y={y} width=10 height=10 fill='{color}'/><text x={tx} y={ty}>{name}</text>",
                name = escape(name),
                tx = x + 16.0,
                ty = y + 9,
            );
        }
        self.svg + "</svg>"
    }
}

/// Draws bars from 0 with confidence intervals, one below the other: name, value, interval and
/// color.
pub fn bars(label: &str, rows: &[(String, f64, (f64, f64), &'static str)], bar: f64) -> String {
    let most = rows.iter().map(|row| row.2.1).fold(bar, f64::max) * 1.05;
    let x = |value: f64| 300.0 + value / most * 570.0;
    let bottom = 10.0 + rows.len() as f64 * 30.0;
    let mut svg = format!(
        "<svg viewBox='0 0 900 {height}' width=900 role=img aria-label='{label}'>",
        label = escape(label),
        height = bottom + 24.0
    );
    for value in round_steps((0.0, most), 8.0) {
        let _ = write!(
            svg,
            "<line x1={x:.1} x2={x:.1} y1=4 y2={bottom} stroke='#e5e5e0'/><text x={x:.1} y={at} text-anchor=middle>{}</text>",
            super::figures::thousands(value),
            x = x(value),
            at = bottom + 16.0,
        );
    }
    for (index, (name, value, (low, high), color)) in rows.iter().enumerate() {
        let y = 10.0 + index as f64 * 30.0;
        let _ = write!(
            svg,
            "<text x=0 y={text:.1}>{name}</text><rect x=300 y={y} width={width:.1} height=18 fill='{color}' opacity=.8 />\
             <line x1={low:.1} x2={high:.1} y1={middle} y2={middle} stroke='#222' stroke-width=2 />",
            name = escape(name),
            text = y + 14.0,
            width = x(*value) - 300.0,
            low = x(low.max(0.0)),
            high = x(*high),
            middle = y + 9.0,
        );
    }
    let _ = write!(
        svg,
        "<line x1={x:.1} x2={x:.1} y1=4 y2={bottom} stroke='#b00020' stroke-width=2 />",
        x = x(bar)
    );
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round() {
        assert_eq!(round_steps((0.0, 10.0), 5.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(round_steps((0.3, 1.0), 3.0), [0.5, 1.0]);
    }
}
