//! The links, anchors and code blocks of a page in Markdown.
//!
//! This reads the part of Markdown that the documents of this repository use: headings that begin
//! with `#`, fenced code, code spans, inline links and images, definitions of references, and `href`
//! and `src` of inline HTML.

use std::collections::{BTreeMap, BTreeSet};

/// A link or an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The number of its line, from 1.
    pub line: usize,
    /// The target, as written.
    pub target: String,
    /// The text that stands for an image; `None` for a link.
    pub alt: Option<String>,
}

/// A fenced code block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The number of the line before its first line of code.
    pub line: usize,
    /// The last line of text above the block that is not empty.
    pub above: &'a str,
    /// The place of the code in the page, in bytes.
    pub range: std::ops::Range<usize>,
}

/// Returns the links and images of a page, in order.
pub fn links(page: &str) -> Vec<Link> {
    let text = without_code(page);
    let mut found = Vec::new();
    for (at, _) in text.match_indices("](") {
        let alt = image_text(&text[..at]);
        if let Some(target) = destination(&text[at + 2..]) {
            found.push((at, target, alt));
        }
    }
    for attribute in ["href=\"", "src=\""] {
        for (at, _) in text.match_indices(attribute) {
            let rest = &text[at + attribute.len()..];
            found.push((at, rest.split('"').next().unwrap_or_default(), None));
        }
    }
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if let Some((label, target)) =
            line.strip_prefix('[').and_then(|rest| rest.split_once("]: "))
            && !label.contains(']')
        {
            found.push((start, target.split_whitespace().next().unwrap_or_default(), None));
        }
        start += line.len();
    }
    found.sort_by_key(|(at, ..)| *at);
    let link = |(at, target, alt): (usize, &str, Option<&str>)| Link {
        line: text[..at].matches('\n').count() + 1,
        target: target.to_owned(),
        alt: alt.map(|alt| alt.trim().to_owned()),
    };
    found.into_iter().map(link).collect()
}

/// Returns the anchors of a page's headings, as mdBook and code hosts name them.
pub fn anchors(page: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for line in outside_fences(page) {
        let marks = line.len() - line.trim_start_matches('#').len();
        let Some(title) = line[marks..].strip_prefix(' ').filter(|_| (1..=6).contains(&marks))
        else {
            continue;
        };
        let slug = slug(title.trim());
        let count = counts.entry(slug.clone()).or_default();
        found.insert(if *count == 0 { slug } else { format!("{slug}-{count}") });
        *count += 1;
    }
    found
}

/// Returns the fenced code blocks of a page, in order.
pub fn blocks(page: &str) -> Vec<Block<'_>> {
    let (mut found, mut above, mut at) = (Vec::new(), "", 0);
    let mut open: Option<(&str, usize, usize)> = None;
    for (index, line) in page.split_inclusive('\n').enumerate() {
        match (open, fence(line)) {
            (None, Some(mark)) => open = Some((mark, index + 1, at + line.len())),
            (Some((mark, line, start)), Some(end)) if end.starts_with(mark) => {
                found.push(Block { line, above, range: start..at });
                open = None;
            }
            (None, None) if !line.trim().is_empty() => above = line.trim(),
            _ => {}
        }
        at += line.len();
    }
    found
}

/// Returns the marks with which a fence begins; `None` for other lines.
fn fence(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let marks = |mark| &line[..line.len() - line.trim_start_matches(mark).len()];
    [marks('`'), marks('~')].into_iter().find(|marks| marks.len() >= 3)
}

/// Returns the lines of a page, with lines of fenced code and fences made empty.
fn outside_fences(page: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = page.lines().collect();
    let mut open: Option<&str> = None;
    for line in &mut lines {
        let mark = fence(line);
        let is_code = open.is_some() || mark.is_some();
        open = match (open, mark) {
            (Some(begun), Some(mark)) if mark.starts_with(begun) => None,
            (None, mark) => mark,
            (begun, _) => begun,
        };
        if is_code {
            *line = "";
        }
    }
    lines
}

/// Returns a page with its code made blank; lines stay where they are.
fn without_code(page: &str) -> String {
    let mut out = String::new();
    for paragraph in outside_fences(page).join("\n").split_inclusive("\n\n") {
        let mut rest = paragraph;
        while let Some(start) = rest.find('`') {
            let (before, code) = rest.split_at(start);
            out.push_str(before);
            let marks = code.len() - code.trim_start_matches('`').len();
            let end = end_of_span(&code[marks..], marks).map_or(marks, |end| marks + end);
            let blank = |c: char| if c == '\n' { '\n' } else { ' ' };
            out.extend(code[..end].chars().map(blank));
            rest = &code[end..];
        }
        out.push_str(rest);
    }
    out
}

/// Returns the end of a code span that was opened with a number of marks, its closing marks included.
fn end_of_span(code: &str, marks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(next) = code[at..].find('`') {
        let run = code[at + next..].len() - code[at + next..].trim_start_matches('`').len();
        at += next + run;
        if run == marks {
            return Some(at);
        }
    }
    None
}

/// Returns the target of a link, from the text after its opening parenthesis.
fn destination(rest: &str) -> Option<&str> {
    if let Some(rest) = rest.strip_prefix('<') {
        return rest.split_once('>').map(|(target, _)| target);
    }
    let mut depth = 0_usize;
    for (at, c) in rest.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(&rest[..at]),
            ')' => depth -= 1,
            c if c.is_whitespace() => return Some(&rest[..at]),
            _ => {}
        }
    }
    None
}

/// Returns the text in the brackets that end here, if they belong to an image.
fn image_text(before: &str) -> Option<&str> {
    let mut depth = 0_usize;
    for (at, c) in before.char_indices().rev() {
        match c {
            ']' => depth += 1,
            '[' if depth == 0 => {
                return before[..at].ends_with('!').then_some(&before[at + 1..]);
            }
            '[' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns the anchor of a heading: its letters and digits in lower case, `-` for each blank, and
/// nothing for the marks of code, emphasis and links.
fn slug(title: &str) -> String {
    let mut text = String::new();
    let mut rest = title;
    while let Some(at) = rest.find("](") {
        text.push_str(&rest[..at]);
        let target = destination(&rest[at + 2..]).unwrap_or_default();
        rest = rest[at + 2 + target.len()..].trim_start_matches(')');
    }
    text.push_str(rest);
    let chars = text.chars().filter_map(|c| match c {
        c if c.is_alphanumeric() || c == '_' || c == '-' => Some(c),
        c if c.is_whitespace() => Some('-'),
        _ => None,
    });
    chars.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(page: &str) -> Vec<(usize, String)> {
        links(page).into_iter().map(|link| (link.line, link.target)).collect()
    }

    fn expect(page: &str, expected: &[(usize, &str)]) {
        let expected: Vec<_> =
            expected.iter().map(|(line, to)| (*line, (*to).to_owned())).collect();
        assert_eq!(targets(page), expected, "{page}");
    }

    #[test]
    fn links_are_found_in_all_forms() {
        expect("a [b](c.md) and [d\ne](f.md#g \"title\")", &[(1, "c.md"), (2, "f.md#g")]);
        expect("[a](<b c.md>) [d](e_(f).md)", &[(1, "b c.md"), (1, "e_(f).md")]);
        expect("\n[a]: b.md\n", &[(2, "b.md")]);
        expect("<a href=\"b.md\"><img src=\"c.svg\"></a>", &[(1, "b.md"), (1, "c.svg")]);
        expect("| [`a`](b.md) | `[` | [c](d.md) |", &[(1, "b.md"), (1, "d.md")]);
    }

    #[test]
    fn code_has_no_links() {
        expect("`[a](b.md)` and ``[c](d.md) ` ``", &[]);
        expect("`a\n[b](c.md)` [d](e.md)", &[(2, "e.md")]);
        expect("```text\n[a](b.md)\n```\n[c](d.md)", &[(4, "d.md")]);
        expect("````\n```\n[a](b.md)\n````\n[c](d.md)", &[(5, "d.md")]);
        expect("one ` alone\n\n[a](b.md) and ` again", &[(3, "b.md")]);
    }

    #[test]
    fn images_have_texts() {
        let found = links("![two\nwords](a.svg) [b](c.md) ![](d.svg)");
        let alts: Vec<_> = found.iter().map(|link| link.alt.as_deref()).collect();
        assert_eq!(alts, [Some("two\nwords"), None, Some("")]);
    }

    #[test]
    fn anchors_are_those_of_code_hosts() {
        let page = "# What `mingle run` does!\n## A call, again\n```\n# no\n```\n## A call, again\n\
                    ### [P4](promises.md#p4) and *P6*\n#hash\n####### seven\n";
        let found: Vec<String> = anchors(page).into_iter().collect();
        let expected = ["a-call-again", "a-call-again-1", "p4-and-p6", "what-mingle-run-does"];
        assert_eq!(found, expected);
    }

    #[test]
    fn blocks_know_the_line_above() {
        let page = "`a.txt`:\n\n```text\none\n```\n\n~~~\ntwo\n~~~\n";
        let found: Vec<_> = blocks(page)
            .into_iter()
            .map(|block| (block.line, block.above, page[block.range].to_owned()))
            .collect();
        let expected = [(3, "`a.txt`:", "one\n".to_owned()), (7, "`a.txt`:", "two\n".to_owned())];
        assert_eq!(found, expected);
    }
}
