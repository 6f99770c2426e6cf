use super::*;
use crate::diagnostic::{apply_edits, to_json};
use crate::syntax::{Span, lex};

/// Returns the token that is the `nth` occurrence of `text`, from 0.
fn find(source: &Source, text: &str, nth: usize) -> Span {
    let indices = 0..source.tokens.len() as u32;
    let mut found = indices.filter(|index| source.token_text(*index) == text);
    Span::token(found.nth(nth).expect("the token is there"))
}

const FLOW: &str = "store accounts: linearizable;
store inboxes: causal;

transaction win(user: ref User, group: ref Group) {
    let size = user.inbox.size();
    if size > 10 {
        group.winner = user;
    }
}
";

fn flow_error(source: &Source) -> Diagnostic {
    let read = find(source, "user", 1).to(find(source, ")", 1));
    let effect = find(source, "group", 1).to(find(source, "user", 2));
    let condition = find(source, "size", 2).to(find(source, "10", 0));
    Diagnostic::new(Code::M0302, "a weaker condition decides", effect, "written here")
        .with_label(condition, "the condition")
        .with_label(read, "read from `inboxes` here")
        .with_note("`causal` is weaker than `linearizable`")
        .with_help(
            "endorse the condition",
            vec![
                Edit { span: condition.before(), text: "endorse(".into() },
                Edit {
                    span: find(source, "10", 0),
                    text: "10) as linearizable because \"…\"".into(),
                },
            ],
        )
        .with_help("move the object to a stronger store", vec![])
}

/// Returns the source and all renderings of one diagnostic.
fn renderings(source: &Source, diagnostic: &Diagnostic) -> String {
    let all = std::slice::from_ref(diagnostic);
    let json = serde_json::to_string_pretty(&to_json(source, "a.mingle", all, &[]));
    format!(
        "{}\n---\n{}---\n{}---\n{}",
        source.text,
        render_human(source, "a.mingle", all, false),
        render_short(source, "a.mingle", all),
        json.expect("it is JSON"),
    )
}

#[test]
fn a_flow_is_shown_with_its_path_and_its_advice() {
    let source = lex(FLOW);
    let diagnostic = flow_error(&source);
    insta::assert_snapshot!(renderings(&source, &diagnostic));
    let mended = apply_edits(&source, &diagnostic.help[0].edits);
    assert!(mended.contains("if endorse(size > 10) as linearizable because \"…\" {"), "{mended}");
}

#[test]
fn colors_are_only_there_where_they_are_asked_for() {
    let source = lex(FLOW);
    let all = [flow_error(&source)];
    assert!(render_human(&source, "a", &all, true).contains('\u{1b}'));
    assert!(!render_human(&source, "a", &all, false).contains('\u{1b}'));
}

#[test]
fn odd_texts_are_shown_in_the_right_place() {
    let source = lex("let ä = \"日本\";\r\n\tlet y = 1; // ü\r\n");
    let y = find(&source, "y", 0);
    let end = Span::token(source.tokens.len() as u32 - 1);
    let diagnostic = Diagnostic::new(Code::W0501, "a title\nof two lines", y, "here")
        .with_label(find(&source, "\"日本\"", 0), "wide")
        .with_label(end, "the end")
        .with_label(y.before(), "before");
    insta::assert_snapshot!(renderings(&source, &diagnostic));
}

#[test]
fn distant_marks_stand_in_snippets_of_their_own() {
    let filler = "// nothing to see\n".repeat(1_000);
    let source = lex(format!("let a = 1;\n{filler}let b = 2;\n"));
    let diagnostic = Diagnostic::new(Code::M0301, "far away", find(&source, "b", 0), "written")
        .with_label(find(&source, "a", 0), "read");
    insta::assert_snapshot!(render_human(&source, "a.mingle", &[diagnostic], false));
}

#[test]
fn a_very_long_line_is_cut_around_the_mark() {
    let source = lex(format!("{}here{}", "x ".repeat(50_000), " y".repeat(50_000)));
    let diagnostic = Diagnostic::new(Code::M0001, "long", find(&source, "here", 0), "this");
    let text = render_human(&source, "a.mingle", &[diagnostic], false);
    assert!(text.contains("a.mingle:1:100001"), "{text}");
    assert!(text.contains("^^^^ this"), "{text}");
    assert!(text.len() < 10_000);
}

#[test]
fn no_span_makes_it_panic() {
    let long = "z".repeat(5_000);
    let texts = [
        "",
        "\n",
        "a",
        "é\u{301}\u{feff}",
        "\ta\t\r\n\r\n",
        "a\r",
        "\"a\n\n\n b {",
        "日 本\u{202e}",
        "\u{0}\u{1b}[31m",
    ];
    for text in texts.into_iter().chain([long.as_str()]) {
        let source = lex(text);
        let count = source.tokens.len() as u32;
        for start in 0..=count + 1 {
            for end in 0..=count + 2 {
                check_span(&source, Span { start, end });
            }
        }
    }
}

fn check_span(source: &Source, span: Span) {
    let edits = || {
        vec![
            Edit { span, text: "new\n".into() },
            Edit { span: span.before(), text: String::new() },
            Edit { span: Span::token(0), text: "é".into() },
        ]
    };
    let all = [
        Diagnostic::new(Code::M0001, "title", span, "label")
            .with_label(Span::default(), "start")
            .with_label(span.before(), "")
            .with_help("help", edits()),
        Diagnostic { labels: vec![], ..Diagnostic::new(Code::W0501, "", span, "") },
    ];
    for color in [false, true] {
        assert!(!render_human(source, "a", &all, color).is_empty());
    }
    assert_eq!(render_short(source, "a", &all).lines().count(), 2);
    apply_edits(source, &edits());
    to_json(source, "a", &all, &[]);
}

/// If the cost of a diagnostic grew with the program, this test would run for minutes.
#[test]
fn a_large_program_with_many_mistakes_is_rendered() {
    for line in ["let name = value; // é\n", "let name = value; "] {
        let source = lex(line.repeat(10_000_000 / line.len()));
        let count = source.tokens.len() as u32;
        let diagnostics: Vec<_> = (0..1_000)
            .map(|index| {
                let at = Span::token((count / 1_000) * index);
                let all = Span { start: at.start, end: count };
                Diagnostic::new(Code::M0301, "mistake", at, "here")
                    .with_label(all, "all the rest")
                    .with_label(Span::token(count - 1), "the end")
                    .with_help("remove it", vec![Edit { span: all, text: String::new() }])
            })
            .collect();
        let text = render_human(&source, "a", &diagnostics, false);
        assert!(text.len() < 10_000_000, "{}", text.len());
        let places = to_json(&source, "a", &diagnostics, &[]);
        assert_eq!(places["diagnostics"].as_array().map(Vec::len), Some(1_000));
    }
}
