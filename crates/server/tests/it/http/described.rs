//! The OpenAPI document with odd doc comments and names: only its texts differ.

use std::collections::BTreeSet;

use mingle_store::conformance::hostile::Random;
use serde_json::{Value as Json, json};

use crate::http::documents::check_references;

/// Returns the document of a program with these names and with these doc comments at all possible
/// places.
fn document(docs: &str, names: [&str; 6]) -> Json {
    // A carriage return alone ends a line, and a comment with it.
    let docs: Vec<String> = docs.split(['\n', '\r']).map(|line| format!("/// {line}\n")).collect();
    let docs = docs.concat();
    let [object, field, record, member, transaction, parameter] = names;
    let text = format!(
        "store s: causal;\n\
         {docs}struct {record} {{\n{docs}{member}: int,\n}}\n\
         {docs}object {object} in s {{\n{docs}key k: int;\n{docs}{field}: int;\n}}\n\
         {docs}transaction {transaction}({parameter}: {record}, o: ref {object}) -> int {{\n\
         require {parameter}.{member} > 0 else \"no\" as {member};\n\
         o.{field} += {parameter}.{member};\nreturn o.{field};\n}}\n"
    );
    let program = mingle::compile(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let document = mingle_server::document(&program, "odd \"name\"", true);
    let sent: Json = serde_json::from_str(&document.to_string()).expect("it is JSON");
    assert_eq!(sent, document, "it reads back as it was written");
    check_references(&document, &document);
    // The version is that of the text, doc comments included.
    let mut document = document;
    document["info"]["version"] = json!("");
    document
}

const PLAIN: [&str; 6] = ["Thing", "count", "Change", "amount", "bump", "change"];

/// Removes the texts for people from the document and collects them in `words`.
fn apart(part: &mut Json, words: &mut Vec<String>) {
    match part {
        Json::Object(members) => {
            // In the list of a schema's properties, these are names like others.
            for name in ["summary", "description"] {
                if let Some(Json::String(said)) = members.get_mut(name) {
                    words.push(std::mem::take(said));
                }
            }
            // A part without a description has no such member.
            members.retain(|name, value| name != "description" || *value != json!(""));
            members.values_mut().for_each(|inner| apart(inner, words));
        }
        Json::Array(items) => items.iter_mut().for_each(|inner| apart(inner, words)),
        _ => {}
    }
}

#[test]
fn hostile_doc_comments_are_words_and_no_more() {
    let (mut plain, mut ignored) = (document("plain", PLAIN), Vec::new());
    apart(&mut plain, &mut ignored);
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let mut docs = random.text("d", 8).replace(|c: char| c.is_control() && c != '\n', " ");
        if seed % 100 == 0 {
            docs += &"long ".repeat(20_000);
        }
        let (mut found, mut words) = (document(&docs, PLAIN), Vec::new());
        apart(&mut found, &mut words);
        assert_eq!(found, plain, "seed {seed}: {docs:?}");
        let first = docs.lines().next().expect("there is one").trim();
        let said = words.iter().filter(|words| words.contains(first)).count();
        assert!(said >= 7, "seed {seed}: {docs:?} is said {said} times");
    }
}

#[test]
fn names_of_any_letters_are_names_in_the_document() {
    let long = "n".repeat(2_000);
    let letters = ["constructor", "toString", "default", "ß", "名前", "ǅ", "ٱ", "𝒳", "a_1", &long];
    for seed in 0..100 {
        let mut random = Random::new(seed);
        let drawn: Vec<String> = (0..6)
            .map(|number| format!("{}_{number}", letters[random.below(letters.len())]))
            .collect();
        let names = std::array::from_fn(|index| drawn[index].as_str());
        let document = document("plain", names);
        let components = document["components"]["schemas"].as_object().expect("schemas");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let odd = components.keys().find(|name| !name.chars().all(is_plain));
        assert_eq!(odd, None, "seed {seed}: {drawn:?}");
        let paths = document["paths"].as_object().expect("paths");
        assert_eq!(paths.len(), 3, "seed {seed}");
        let is_path = |c: char| c.is_ascii_alphanumeric() || "/_%{}".contains(c);
        assert!(paths.keys().all(|path| path.chars().all(is_path)), "seed {seed}: {drawn:?}");
        let operations: BTreeSet<&str> = paths
            .values()
            .flat_map(|path| path.as_object().into_iter().flatten())
            .filter_map(|(_, operation)| operation["operationId"].as_str())
            .collect();
        assert_eq!(operations.len(), 3, "seed {seed}");
        let [object, field, record, member, ..] = names;
        let properties: BTreeSet<&str> = components
            .values()
            .filter_map(|schema| schema["properties"].as_object())
            .flat_map(|found| found.keys().map(String::as_str))
            .collect();
        assert!(properties.contains(field) && properties.contains(member), "seed {seed}");
        let described = document.to_string();
        assert!(described.contains(object), "seed {seed}: {record}");
    }
}
