//! The status page, over HTTP.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use mingle_services::Browser;
use mingled::server::StatusPage;

use super::{PATIENCE, Started};

/// Sends a request, and returns the whole answer.
fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the page accepts");
    stream.set_read_timeout(Some(PATIENCE)).expect("it is connected");
    stream.write_all(request.as_bytes()).expect("the page reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// Returns the status and the body of the answer for a path.
pub fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let answer = ask(address, &head);
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
    (status, body.to_owned())
}

fn page(started: &Started) -> StatusPage {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    StatusPage::start(started.server.as_ref().expect("it runs"), listener).expect("it starts")
}

#[test]
fn the_page_and_its_parts_are_there() {
    let mut started = Started::new();
    let page = page(&started);
    for (path, part) in [
        ("/", "<title>mingled</title>"),
        ("/page.css", "#figures"),
        ("/page.js", "status.json"),
        ("/live", "alive"),
        ("/ready", "ready"),
    ] {
        let (status, body) = get(page.address(), path);
        assert!(status == 200 && body.contains(part), "{path}: {status} {body}");
    }
    page.stop();
    started.stop();
}

#[test]
fn requests_of_clients_are_counted() {
    let mut started = Started::new();
    let page = page(&started);
    let mut client = started.client();
    for _ in 0..7 {
        client.ask("INCR hits");
    }
    let (status, figures) = get(page.address(), "/metrics");
    assert_eq!(status, 200);
    for line in [
        "mingled_requests_total 7",
        "mingled_clients 1",
        "mingled_ready 1",
        "mingled_held_back{stage=\"uniformity\"} 0",
        "mingled_held_back{stage=\"folding\"} 0",
        "# HELP mingled_requests Requests of clients.",
        "# EOF",
    ] {
        assert!(figures.lines().any(|it| it == line), "{line} is missing in:\n{figures}");
    }
    let (status, facts) = get(page.address(), "/status.json");
    assert_eq!(status, 200);
    for part in [
        "\"data_center\":\"d0\"",
        "\"requests\":7",
        "\"state\":\"here\"",
        "\"strong_only\":[\"strong-*\",\"?*:lock\"]",
        &format!("\"address\":\"{}\"", started.address()),
    ] {
        assert!(facts.contains(part), "{part} is missing in {facts}");
    }
    page.stop();
    started.stop();
}

/// Returns the names of figures in a text.
fn named(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
    let names = text.split(|c| !is_part(c)).filter(|word| word.starts_with("mingled_"));
    names.map(str::to_owned).collect()
}

/// The figures that are there only once transactions have come so far.
const OF_PROGRESS: [&str; 2] = ["mingled_folded_age_seconds", "mingled_uniform_age_seconds"];

/// The figures that are there only beside other data centers.
pub const OF_OTHERS: [&str; 4] = [
    "mingled_data_center_incarnations_total",
    "mingled_data_center_lag_seconds",
    "mingled_data_center_state",
    "mingled_data_center_state_since_seconds",
];

/// The book's table, the dashboard and the alarms name the figures that there are.
#[test]
fn operators_see_each_figure() {
    let mut started = Started::new();
    let page = page(&started);
    let (_, told) = get(page.address(), "/metrics");
    let types = told.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let figure = |(name, kind): (&str, &str)| match kind {
        "counter" => format!("{name}_total"),
        "info" => format!("{name}_info"),
        _ => name.to_owned(),
    };
    let later = OF_OTHERS.into_iter().chain(OF_PROGRESS).map(str::to_owned);
    let shown: BTreeSet<String> = types.map(figure).chain(later).collect();
    let dashboard = include_str!("../../../../../docs/grafana-mingled.json");
    serde_json::from_str::<serde_json::Value>(dashboard).expect("it is JSON");
    assert_eq!(named(dashboard), shown, "the dashboard, and what there is");
    let book = named(include_str!("../../../../../docs/mingled.md"));
    assert!(shown.is_subset(&book), "not in the book: {:?}", shown.difference(&book));
    let alarms = named(include_str!("../../../../../docs/alarms.yml"));
    assert!(!alarms.is_empty() && alarms.is_subset(&shown), "{:?}", alarms.difference(&shown));
    page.stop();
    started.stop();
}

#[test]
fn a_person_sees_the_state_of_the_data_center() {
    let mut started = Started::new();
    let page = page(&started);
    let mut client = started.client();
    client.ask("INCR hits");
    if let Some(mut shown) = Browser::open(&format!("http://{}/", page.address())) {
        shown.wait_for("document.querySelectorAll('#centers tr').length > 0");
        assert_eq!(shown.text("#name"), "d0");
        let figures = shown.text("#figures div");
        assert!(figures.contains("strong-*, ?*:lockstrong only"), "{figures}");
        let center = shown.text("#centers tr");
        assert!(center.starts_with("d0here"), "{center}");
        client.ask("INCR hits");
        // It follows the server by itself.
        shown.wait_for("/\\b2\\s*requests\\b/.test(document.querySelector('#figures').innerText)");
        assert_ne!(shown.text("#rate-now"), "-");
        for width in [500, 1_600] {
            shown.resize(width, 900);
            shown.wait_for("document.documentElement.scrollWidth <= window.innerWidth");
        }
    }
    page.stop();
    started.stop();
}

#[test]
fn other_requests_are_refused() {
    let mut started = Started::new();
    let page = page(&started);
    let address = page.address();
    let answers = [
        (format!("POST / HTTP/1.1\r\nHost: {address}\r\n"), "405", "expected GET or HEAD"),
        ("GET / HTTP/1.1\r\nHost: evil.example\r\n".into(), "421", "expected a Host header"),
        ("GET / HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n".into(), "421", "expected a Host"),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: b\r\n".into(), "421", "expected a Host"),
        ("GET /a\u{7f} HTTP/1.1\r\nHost: localhost\r\n".into(), "400", ""),
        ("GET /other HTTP/1.1\r\nHost: localhost:1\r\n".into(), "404", "there is no '/other'"),
        ("GET /live HTTP/1.1\r\nHost: [::1]:7\r\n".into(), "200", "alive"),
        ("GET /live HTTP/1.0\r\n".into(), "200", "alive"),
        ("no HTTP\r\n".into(), "400", ""),
    ];
    for (head, status, part) in answers {
        let answer = ask(address, &format!("{head}Connection: close\r\n\r\n"));
        let found = answer.split(' ').nth(1).unwrap_or_default();
        assert!(found == status && answer.contains(part), "{head}: {answer}");
    }
    // A client that sends nothing keeps no other one from an answer, and does not delay the end.
    let _silent: Vec<TcpStream> =
        (0..8).map(|_| TcpStream::connect(address).expect("the page accepts")).collect();
    assert_eq!(get(address, "/live").0, 200);
    page.stop();
    started.stop();
}
