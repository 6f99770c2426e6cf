//! Bounds on the words of a diagnostic.
//!
//! A name may be as long as the program, and a diagnostic may repeat it several times. The marked
//! source line shows the name anyway, so messages keep only its beginning. Text that edits insert
//! stays whole.

use super::Diagnostic;

/// The maximum length of a name in a message, in characters.
const NAME_CHARS_MAX: usize = 64;

/// The maximum length of a message, in characters.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// Cuts long names, and then long messages.
pub(super) fn cut(mut diagnostic: Diagnostic) -> Diagnostic {
    let labels = diagnostic.labels.iter_mut().map(|label| &mut label.message);
    let help = diagnostic.help.iter_mut().map(|help| &mut help.message);
    let notes = diagnostic.notes.iter_mut();
    for message in std::iter::once(&mut diagnostic.title).chain(labels).chain(notes).chain(help) {
        if message.len() > NAME_CHARS_MAX {
            *message = shorten(message);
        }
    }
    diagnostic
}

fn shorten(message: &str) -> String {
    let (mut short, mut count, mut in_name) = (String::new(), 0, 0);
    for character in message.chars() {
        let is_name = character.is_alphanumeric() || character == '_';
        in_name = if is_name { in_name + 1 } else { 0 };
        if in_name > NAME_CHARS_MAX {
            if in_name == NAME_CHARS_MAX + 1 {
                short.push('…');
            }
            continue;
        }
        if count == MESSAGE_CHARS_MAX {
            short.push('…');
            break;
        }
        short.push(character);
        count += 1;
    }
    short
}

#[cfg(test)]
mod tests {
    use crate::diagnostic::{render_human, render_short};

    const LENGTH: usize = 100_000;

    /// Checks every diagnostic that repeats a name, with a long name.
    #[test]
    fn long_names_are_cut_in_words() {
        let long = "x".repeat(LENGTH);
        let head = "store s: causal; object O in s { key k: int; n: int; }";
        let programs = [
            format!("{head} transaction t(o: ref O) {{ o.n = {long}; }}"),
            format!("{head} transaction t(o: ref O) {{ o.{long} = 1; }}"),
            format!("{head} transaction t(o: ref {long}) {{ }}"),
            format!("{head} transaction {long}() {{ }} transaction {long}() {{ }}"),
            format!("{head} transaction t({long}: int) {{ }}"),
            format!("{head} transaction t() -> int {{ let {long} = 1; return \"\"; }}"),
            format!(
                "{head} struct {long} {{ a: int }} transaction t(a: {long}) -> int {{ return a; }}"
            ),
            format!(
                "{head} struct A {{ a: int }} transaction t() {{ let a = A {{ {long}: 1 }}; }}"
            ),
            format!("{head} transaction t(o: ref O) {{ o.n.{long}(); {long}(1); }}"),
            format!(
                "store {long}: causal; object O in {long} {{ key k: int; n: int; }} store w: {long};"
            ),
        ];
        for program in programs {
            let checked = crate::check(program);
            assert!(!checked.diagnostics.is_empty(), "{:.200}", checked.source.text);
            for found in &checked.diagnostics {
                let labels = found.labels.iter().map(|label| &label.message);
                let help = found.help.iter().map(|help| &help.message);
                for words in
                    [&found.title].into_iter().chain(labels).chain(&found.notes).chain(help)
                {
                    assert!(words.len() < 1_000, "{}: {words:.300}", found.code);
                }
            }
            let short = render_short(&checked.source, "a.mingle", &checked.diagnostics);
            assert!(short.len() < 1_000 * checked.diagnostics.len(), "{short:.300}");
            let human = render_human(&checked.source, "a.mingle", &checked.diagnostics, false);
            assert!(human.len() < 50_000 * checked.diagnostics.len(), "{human:.300}");
        }
    }

    #[test]
    fn what_is_not_long_stays() {
        let names = "`abc` and `def`, ".repeat(20);
        assert_eq!(super::shorten(&names), names);
        let name = "ö".repeat(64);
        assert_eq!(super::shorten(&format!("no `{name}`")), format!("no `{name}`"));
        assert_eq!(super::shorten(&format!("no `{name}ö` here")), format!("no `{name}…` here"));
        let many = super::shorten(&"a ".repeat(5_000));
        assert_eq!(many.chars().count(), 2_001);
    }
}
