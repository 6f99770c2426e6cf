//! Diagnostics as JSON, for other programs.
//!
//! Lines and columns count from 1, columns in characters; an end is exclusive.

use serde_json::{Value, json};

use super::Diagnostic;
use crate::EndorsementInfo;
use crate::syntax::{Places, Position, Source, Span, TextPlaces};

/// Returns one program's diagnostics and endorsements: `{"diagnostics": […], "endorsements": […]}`.
pub fn to_json(
    source: &Source,
    file: &str,
    diagnostics: &[Diagnostic],
    endorsements: &[EndorsementInfo],
) -> Value {
    json!({
        "diagnostics": diagnostics_to_json(source, file, diagnostics),
        "endorsements": endorsements_to_json(source, file, endorsements),
    })
}

/// Returns the elements of `"diagnostics"`, so that one list can hold those of several files.
pub fn diagnostics_to_json(source: &Source, file: &str, diagnostics: &[Diagnostic]) -> Vec<Value> {
    let places = TextPlaces::new(source);
    diagnostics.iter().map(|found| diagnostic(&places, file, found)).collect()
}

/// Returns the elements of `"endorsements"`.
pub fn endorsements_to_json(
    source: &Source,
    file: &str,
    endorsements: &[EndorsementInfo],
) -> Vec<Value> {
    let places = TextPlaces::new(source);
    endorsements
        .iter()
        .map(|endorsement| {
            let (start, _) = places.place(endorsement.span);
            json!({
                "file": places.file(endorsement.span, file),
                "start": position(start),
                "level": &*endorsement.level,
                "reason": &*endorsement.reason,
            })
        })
        .collect()
}

fn diagnostic(places: &TextPlaces<'_>, file: &str, found: &Diagnostic) -> Value {
    let labels = found
        .labels
        .iter()
        .map(|label| with_place(places, file, label.span, ("message", &label.message)));
    let help = found.help.iter().map(|help| {
        let edits =
            help.edits.iter().map(|edit| with_place(places, file, edit.span, ("text", &edit.text)));
        json!({ "message": help.message, "edits": edits.collect::<Vec<_>>() })
    });
    let (start, end) = places.place(found.span);
    json!({
        "code": found.code.text(),
        "severity": found.severity().name(),
        "title": found.title,
        "file": places.file(found.span, file),
        "start": position(start),
        "end": position(end),
        "labels": labels.collect::<Vec<_>>(),
        "notes": found.notes,
        "help": help.collect::<Vec<_>>(),
    })
}

fn with_place(places: &TextPlaces<'_>, file: &str, span: Span, (key, text): (&str, &str)) -> Value {
    let (start, end) = places.place(span);
    let file = places.file(span, file);
    json!({ "file": file, "start": position(start), "end": position(end), key: text })
}

fn position(position: Position) -> Value {
    json!({ "line": position.line, "column": position.column })
}
