//! The page in a headless browser, if one is installed.

use mingle_services::Browser;
use serde_json::json;

use crate::http::client::{Request, Served, TEXT};

/// Opens the page of a server, and waits until the program is on it.
fn open(served: &Served) -> Option<Browser> {
    let mut page = Browser::open(&format!("http://{}/", served.address))?;
    page.wait_for("document.body?.dataset.ready === 'true'");
    Some(page)
}

/// Sends the form of a card, as a person would, and waits for the answer.
fn send(page: &mut Browser, card: &str) -> String {
    page.value(&format!("document.querySelector('#{card} .answer').textContent = ''"));
    page.click(&format!("#{card} form > button"));
    page.wait_for(&format!("document.querySelector('#{card} .answer').textContent !== ''"));
    page.text(&format!("#{card} .answer"))
}

/// Fills in a form and sends it.
fn submit(page: &mut Browser, card: &str, fields: &[(&str, &str)]) -> String {
    for (name, value) in fields {
        page.fill(&format!("#{card} input[name=\"{name}\"]"), value);
    }
    send(page, card)
}

#[test]
fn a_person_can_read_the_program_call_it_and_see_its_phases() {
    let served = Served::with(TEXT, "[stores.feed]\ndistance = \"5ms\"", |_| {});
    served.ok("add", &json!({ "item": "tea", "count": 5 }));
    let Some(mut page) = open(&served) else { return };
    assert_eq!(page.text("#program"), TEXT);
    assert!(page.text("#transaction-buy .docs").contains("Sells items, and tells whoever"));
    assert!(page.text("#object-Item .docs").contains("What is sold."));
    assert_eq!(page.text("#transaction-buy li strong"), "stock (linearizable)|feed (causal)");

    let buy = [("param-item", "tea"), ("param-count", "2"), ("param-buyer", "ana")];
    submit(&mut page, "transaction-buy", &buy);
    let answer = page.text("#transaction-buy .answer");
    assert!(answer.starts_with("3  (") && answer.ends_with(" ms)"), "{answer}");
    let live = page.text("#transaction-buy li[data-state=\"committed\"] .live");
    let phases: Vec<&str> = live.split('|').collect();
    assert_eq!(phases.len(), 2, "{live}");
    assert!(phases.iter().all(|phase| phase.starts_with("committed in ")), "{live}");
    assert!(phases[1].contains("1 attempt, "), "{live}");
    assert_eq!(served.ok("count", &json!({ "item": "tea" })), json!(3));

    submit(&mut page, "transaction-buy", &[("param-count", "9")]);
    assert_eq!(
        page.text("#transaction-buy .answer[data-ok=\"false\"]").split("  (").next(),
        Some("require: sold out")
    );
    assert_eq!(
        page.value(
            "document.querySelectorAll('#transaction-buy li[data-state=\"failed\"]').length"
        ),
        1
    );

    submit(&mut page, "object-Item", &[("key", "tea")]);
    assert!(page.text("#object-Item .answer").contains("\"count\": 3"));
}

#[test]
fn objects_are_listed_and_picked() {
    let served = Served::new();
    for count in 0..25 {
        served.ok("add", &json!({ "item": format!("tea {count:02}"), "count": count }));
    }
    let Some(mut page) = open(&served) else { return };
    page.click("#object-Item button.list");
    let rows = "document.querySelectorAll('#object-Item .listed li').length";
    page.wait_for(&format!("{rows} === 20"));
    page.click("#object-Item .listed + button");
    page.wait_for(&format!("{rows} === 25"));
    assert!(page.text("#object-Item .listed li span").contains("count: 24, tags: [\"new\"]"));
    page.click("#object-Item .listed button");
    assert!(page.text("#object-Item .answer").contains("\"name\": \"tea 00\""));
}

#[test]
fn forms_know_the_types_of_arguments() {
    let served = Served::new();
    let Some(mut page) = open(&served) else { return };
    served.ok("add", &json!({ "item": "tea", "count": 5 }));

    // An integer that no floating point number equals, and an option that is not given.
    let echo = [("param-a", "9007199254740993"), ("param-c", "1.5"), ("param-d", "AQI=")];
    page.click("#transaction-echo .row button");
    let answer = submit(&mut page, "transaction-echo", &echo);
    assert!(answer.starts_with("[\"9007199254740993\", \"1.5\"]"), "{answer}");
    // A value of another type reaches the server, which says what it expects.
    let answer = submit(&mut page, "transaction-echo", &[("param-a", "many")]);
    assert!(answer.starts_with("invalid-argument: ") && answer.contains("int"), "{answer}");

    // A list of structs with an option each.
    let card = "transaction-order";
    for (index, (count, note)) in [("2", Some("7")), ("1", None)].into_iter().enumerate() {
        page.click(&format!("#{card} .items ~ button"));
        let row = format!("#{card} .items > li:nth-child({})", index + 1);
        page.fill(&format!("{row} input[name=\"param-lines-item\"]"), "tea");
        page.fill(&format!("{row} input[name=\"param-lines-count\"]"), count);
        if let Some(note) = note {
            page.click(&format!("{row} input[type=\"checkbox\"]"));
            page.fill(&format!("{row} input[name=\"param-lines-note\"]"), note);
        }
    }
    let answer = send(&mut page, card);
    assert!(answer.starts_with("2  ("), "{answer}");
    assert_eq!(served.ok("count", &json!({ "item": "tea" })), json!(2));
    // The keys that were typed are offered where this object is asked for.
    assert_eq!(page.value("document.getElementById('known-Item').options[0].value"), json!("tea"));

    // Each call is listed, and can be filled in again.
    assert_eq!(page.value("document.querySelectorAll('#calls li').length"), json!(3));
    page.fill("#transaction-echo input[name=\"param-a\"]", "1");
    page.click("#calls li:last-child button");
    let again = page.value("document.querySelector('input[name=\"param-a\"]').value");
    assert_eq!(again, json!("9007199254740993"));
    assert!(send(&mut page, "transaction-echo").starts_with("[\"9007199254740993\""));

    // At both widths nothing is wider than the window.
    for width in [400, 1_600] {
        page.resize(width, 900);
        page.wait_for("document.documentElement.scrollWidth <= window.innerWidth");
    }
}

#[test]
fn a_server_that_cannot_crash_offers_and_does_none() {
    let served = Served::new();
    let request = Request::call("add", &json!({ "item": "tea", "count": 1 }));
    let refused = served.send(&request.header("Mingle-Crash", "after 0"));
    assert_eq!(refused.code(), "invalid-argument");
    assert!(refused.detail().contains("mingle dev"), "{}", refused.detail());
    let Some(mut page) = open(&served) else { return };
    let step = page.text("#transaction-buy .step:nth-child(3)");
    assert!(step.starts_with("A crash here leaves: A promise: stock has its writes"), "{step}");
    assert_eq!(page.value("document.querySelectorAll('.crash').length"), json!(0));
}
