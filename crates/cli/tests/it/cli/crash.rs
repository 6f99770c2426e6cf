//! Crashes on request under `mingle dev`, and what they leave.

#![cfg(unix)]

use mingle_services::Browser;

use super::new::Background;
use super::{call, folder};

const SALE: &str = "store office: linearizable; store feeds: causal;
object Item in office { key sku: string; stock: int; }
object Feed in feeds { key name: string; lines: log<string>; }
transaction fill(item: ref Item, count: int) { item.stock = count; }
transaction buy(item: ref Item, feed: ref Feed) -> int {
    require item.stock > 0 else \"sold out\" as sold_out;
    item.stock -= 1;
    feed.lines.append(\"bought\");
    return item.stock;
}
transaction left(item: ref Item) -> int { return item.stock; }
transaction lines(feed: ref Feed) -> int { return feed.lines.size(); }
";

const BUY: &str = r#"{"item":"pot","feed":"ana"}"#;

/// Starts a program; returns it and its address.
fn start(folder: &std::path::Path) -> (Background, String) {
    let mut dev = Background::start(folder, &["dev", "--listen", "127.0.0.1:0"]);
    let line = dev.expect("listening on http://");
    let address = line.trim_start_matches("listening on http://").to_owned();
    let filled = call(&address, "fill", "", r#"{"item":"pot","count":9}"#);
    assert!(filled.starts_with("HTTP/1.1 200 "), "{filled}");
    (dev, address)
}

/// Returns the integer that a transaction gives.
fn number(address: &str, transaction: &str, body: &str) -> String {
    let answer = call(address, transaction, "", body);
    let body = answer.rsplit("\r\n").next().unwrap_or_default();
    let number = body.strip_prefix("{\"result\":").and_then(|rest| rest.strip_suffix('}'));
    number.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// The key of the call in which the process crashes for the `n`-th time.
fn key(n: u32) -> String {
    format!("idempotency-key: sale-{n}\r\n")
}

#[test]
fn a_crash_at_each_step_loses_and_doubles_nothing() {
    let folder = folder(&[("sale.mingle", SALE)]);
    let (mut dev, address) = start(folder.path());
    let steps = ["before 0", "after 0", "before 1", "after 1"];
    for (crashes, step) in (1..).zip(steps) {
        let headers = format!("{}mingle-crash: {step}\r\n", key(crashes));
        let answer = call(&address, "buy", &headers, BUY);
        assert_eq!(answer, "", "the process crashes {step}");
        dev.expect(&format!("crash {crashes}: a call has asked for it"));
        dev.expect(&format!("listening on http://{address} again, after crash {crashes}"));
        let again = call(&address, "buy", &key(crashes), BUY);
        let left = 9 - crashes;
        assert!(again.ends_with(&format!("{{\"result\":{left}}}")), "{step}: {again}");
        // Only a call that had written nothing runs anew.
        let is_repeated = again.to_lowercase().contains("mingle-repeated: true");
        assert_eq!(is_repeated, step != "before 0", "{step}: {again}");
        assert_eq!(number(&address, "left", r#"{"item":"pot"}"#), left.to_string(), "{step}");
        assert_eq!(number(&address, "lines", r#"{"feed":"ana"}"#), crashes.to_string(), "{step}");
    }
    let wrong = call(&address, "buy", "mingle-crash: after 2\r\n", BUY);
    assert!(wrong.contains("where N is a phase from 0 to 1, found"), "{wrong}");
}

#[test]
fn the_page_crashes_the_process_and_shows_the_recovery() {
    let folder = folder(&[("sale.mingle", SALE)]);
    let (mut dev, address) = start(folder.path());
    let Some(mut page) = Browser::open(&format!("http://{address}/")) else { return };
    page.wait_for("document.body?.dataset.ready === 'true'");
    assert_eq!(page.text("#name"), "sale");
    page.fill("#transaction-buy input[name=\"param-item\"]", "pot");
    page.fill("#transaction-buy input[name=\"param-feed\"]", "ana");
    page.click("#transaction-buy button[data-step=\"after 0\"]");
    dev.expect("again, after crash 1");
    page.wait_for("document.querySelector('#transaction-buy .answer').textContent !== ''");
    let answer = page.text("#transaction-buy .answer");
    assert!(answer.starts_with("8  ("), "{answer}");
    let story = page.text("#transaction-buy .story li");
    assert!(story.contains("gone; office had committed.|A new process listens"), "{story}");
    assert!(story.ends_with("it took effect once."), "{story}");
    assert_eq!(
        page.text("#transaction-buy li[data-state=\"committed\"] .live"),
        "committed before the crash|committed after the crash"
    );
    assert!(page.text("#calls li").contains("crashed after phase 1"));
    assert_eq!(number(&address, "lines", r#"{"feed":"ana"}"#), "1");
}
