//! The pictures of the book: SVG files in `docs/pictures`, drawn by hand.
//!
//! A picture must be legible wherever its page is shown: in a column of the book, on a light or dark
//! page, read aloud, and without a network.

use std::collections::{BTreeMap, BTreeSet};

use super::markdown;

const FOLDER: &str = "docs/pictures/";

/// The widest picture, in pixels: the width of a column of the book.
const WIDTH_MAX: u32 = 750;

/// The smallest text, in pixels.
const TEXT_MIN: u32 = 12;

/// Checks all pictures among the files.
pub fn check(files: &BTreeMap<&str, &str>, problems: &mut Vec<String>) {
    let pages = files.iter().filter(|(path, _)| path.rsplit('.').next() == Some("md"));
    let shown: BTreeSet<String> = pages
        .flat_map(|(_, text)| markdown::links(text))
        .filter(|link| link.alt.is_some())
        .filter_map(|link| link.target.rsplit('/').next().map(str::to_owned))
        .collect();
    for (path, text) in files {
        let Some(name) = path.strip_prefix(FOLDER) else { continue };
        problems.extend(faults(text).into_iter().map(|fault| format!("{path}: {fault}")));
        if !shown.contains(name) {
            problems.push(format!("{path}: no page shows it"));
        }
    }
}

/// Returns what is wrong with a picture.
fn faults(svg: &str) -> Vec<String> {
    let mut found = Vec::new();
    let head = svg.split('>').next().unwrap_or_default();
    for (needed, why) in [
        ("role=\"img\"", "no role=\"img\": screen readers would read its parts"),
        ("viewBox=\"", "no viewBox: it cannot be scaled"),
    ] {
        if !head.contains(needed) {
            found.push(why.to_owned());
        }
    }
    match number(head, " width=\"") {
        None => found.push("no width in pixels".to_owned()),
        Some(width) if width > WIDTH_MAX => {
            found.push(format!("{width} pixels wide, {WIDTH_MAX} at most"));
        }
        Some(_) => {}
    }
    for (needed, why) in [
        ("<title", "no title"),
        ("<desc", "no desc: a text that says all that the picture says"),
        ("prefers-color-scheme: dark", "no colours for dark pages"),
    ] {
        if !svg.contains(needed) {
            found.push(why.to_owned());
        }
    }
    for banned in ["<script", "<image", "@import", "@font-face", "url(http", "href=\"http"] {
        if svg.contains(banned) {
            found.push(format!("`{banned}`: a picture needs nothing else"));
        }
    }
    for before in ["font-size=\"", "font-size: ", "font: "] {
        let sizes = svg.match_indices(before).filter_map(|(at, _)| number(&svg[at..], before));
        for size in sizes.filter(|size| *size < TEXT_MIN) {
            found.push(format!("text of {size} pixels, {TEXT_MIN} at least"));
        }
    }
    found
}

/// Returns the whole number that follows a text.
fn number(svg: &str, before: &str) -> Option<u32> {
    let (_, rest) = svg.split_once(before)?;
    let digits = rest.chars().take_while(char::is_ascii_digit);
    digits.collect::<String>().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PICTURE: &str = "\
<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" viewBox=\"0 0 720 300\" role=\"img\">
<title>A</title><desc>B</desc>
<style>text { font: 14px sans-serif } @media (prefers-color-scheme: dark) { text { fill: #fff } }</style>
<text font-size=\"13\">C</text>
</svg>
";

    #[test]
    fn a_right_picture_has_no_faults() {
        assert_eq!(faults(PICTURE), Vec::<String>::new());
    }

    #[test]
    fn each_rule_finds_its_fault() {
        for (old, new) in [
            (" role=\"img\"", ""),
            ("viewBox", "view"),
            (" width=\"720\"", ""),
            ("width=\"720\"", "width=\"800\""),
            ("<title>A</title>", ""),
            ("<desc>B</desc>", ""),
            ("dark", "light"),
            ("14px", "11px"),
            ("\"13\"", "\"9\""),
            ("<text ", "<image href=\"a.png\"/><text "),
            ("text { font", "@import 'a.css'; text { font"),
        ] {
            let svg = PICTURE.replace(old, new);
            assert_eq!(faults(&svg).len(), 1, "{old} → {new}: {:?}", faults(&svg));
        }
    }

    #[test]
    fn every_picture_is_shown() {
        let mut files = BTreeMap::from([("docs/pictures/a.svg", PICTURE), ("a.md", "[a](a.svg)")]);
        let mut problems = Vec::new();
        check(&files, &mut problems);
        assert_eq!(problems, ["docs/pictures/a.svg: no page shows it"]);
        files.insert("docs/in/a.md", "![a](../pictures/a.svg)");
        problems.clear();
        check(&files, &mut problems);
        assert_eq!(problems, Vec::<String>::new());
    }
}
