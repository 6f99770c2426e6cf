//! A generated program that is cut into files is the same program.

use mingle_lang::generate::program;
use mingle_lang::syntax::{Places, TextPlaces, TokenKind, lex, parse};
use mingle_lang::{Checked, check, check_source};

use super::source;

/// A small generator of numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// Cuts a text before some of its items, at the ends of lines.
fn pieces(text: &str, random: &mut Random) -> Vec<String> {
    let source = lex(text);
    let (tree, _) = parse(&source);
    let mut cuts = Vec::new();
    for (item, next) in tree.items.iter().zip(tree.items.iter().skip(1)) {
        let first = next.allows.first().map_or(next.span, |allow| allow.span);
        let between = source.bytes(item.span).end..source.bytes(first).start;
        let line = text.get(between.clone()).and_then(|gap| gap.find('\n'));
        cuts.extend(line.filter(|_| random.below(2) == 0).map(|line| between.start + line + 1));
    }
    let starts = std::iter::once(0).chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([text.len()]);
    starts.zip(ends).map(|(start, end)| text[start..end].to_owned()).collect()
}

/// Returns files with these pieces: the last is the root. Each imports some of those before it, and
/// the root what no other imports.
fn files(pieces: &[String], random: &mut Random) -> Vec<(String, String)> {
    let is_chain = random.below(2) == 0;
    let root = pieces.len() - 1;
    let mut files: Vec<(String, String)> = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let mut text = String::new();
        let before = match (is_chain, index) {
            (true, _) => index.saturating_sub(1)..index,
            (false, _) if index == root => 0..index,
            // Files that were read before change nothing.
            (false, _) => random.below(index + 1)..index,
        };
        for other in before {
            text += "import \"";
            text += &other.to_string();
            text += ".mingle\";\n";
        }
        files.push((format!("{index}.mingle"), text + piece));
    }
    files.reverse();
    files
}

/// Returns the diagnostics with the texts of their places, and the lines of these.
fn told(checked: &Checked) -> Vec<String> {
    let places = TextPlaces::new(&checked.source);
    let lines = checked.source.text.lines().collect::<Vec<_>>();
    let place = |span| {
        let start = checked.source.bytes(span).start;
        let (at, _) = places.place(span);
        let first = checked.source.file_bytes(checked.source.file_at(start)).start;
        let line = checked.source.text[first..].lines().nth(at.line as usize - 1);
        let line = line.or(lines.last().copied()).unwrap_or_default();
        format!("{:?} in {line:?}, column {}", checked.source.span_text(span), at.column)
    };
    let diagnostics = checked.diagnostics.iter().map(|found| {
        let labels =
            found.labels.iter().map(|label| format!("{} {}", place(label.span), label.message));
        let labels = labels.collect::<Vec<_>>();
        let help = found.help.iter().map(|help| {
            let edits = help.edits.iter().map(|edit| format!("{} {}", place(edit.span), edit.text));
            format!("{} {:?}", help.message, edits.collect::<Vec<_>>())
        });
        let help = help.collect::<Vec<_>>();
        format!(
            "{} {} {} {labels:?} {:?} {help:?}",
            found.code,
            found.title,
            place(found.span),
            found.notes
        )
    });
    diagnostics.collect()
}

/// Replaces a name of the text by another of its names.
fn renamed(text: &str, random: &mut Random) -> String {
    let source = lex(text);
    let is_name = |token: &u32| source.tokens[*token as usize].kind == TokenKind::Ident;
    let names: Vec<u32> = (0..source.tokens.len() as u32).filter(is_name).collect();
    let (old, new) = (names[random.below(names.len())], names[random.below(names.len())]);
    let token = source.tokens[old as usize];
    let (before, after) = (&text[..token.start as usize], &text[token.end as usize..]);
    format!("{before}{}{after}", source.token_text(new))
}

#[test]
fn a_program_cut_into_files_is_the_same_program() {
    let (mut cut, mut wrong) = (0, 0);
    for seed in 0..400 {
        let mut random = Random(seed);
        let mut text = program(seed);
        if seed % 2 == 1 {
            text = renamed(&text, &mut random);
        }
        if !parse(&lex(&*text)).1.is_empty() {
            continue;
        }
        let pieces = pieces(&text, &mut random);
        let files = files(&pieces, &mut random);
        let files: Vec<_> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
        let several = source(&files);
        assert_eq!(several.joined_text(), text, "seed {seed}");
        let (several, one) = (check_source(several), check(&*text));
        assert_eq!(told(&several), told(&one), "seed {seed}\n{text}");
        let plans = |checked: &Checked| {
            checked
                .program
                .as_ref()
                .map(|program| (program.text.clone(), format!("{:?}", program.plans)))
        };
        assert!(plans(&several) == plans(&one), "seed {seed}: other plans\n{text}");
        cut += usize::from(pieces.len() > 1);
        wrong += usize::from(one.has_errors());
    }
    assert!(cut > 200 && wrong > 50, "{cut} were cut, {wrong} have errors");
}
