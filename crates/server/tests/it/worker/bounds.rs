//! Programs and requests that a worker refuses, by client.

use mingle::Error;
use mingle_server::{Config, Tokens, WorkerBounds};
use mingle_store_worker::wire::hex;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::worker::site::{Site, TEXT, ask};

/// A token called `secret` with these rights.
fn with_token(rights: &str) -> impl FnOnce(&mut Config) {
    let digest = hex(&Sha256::digest("secret"));
    let text = format!("[[tokens]]\nname = \"shop\"\nsha256 = \"{digest}\"\n{rights}");
    let program = mingle::compile(TEXT).expect("the program is right");
    let tokens = Tokens::parse(&text, &program).unwrap_or_else(|error| panic!("{error}"));
    move |config| config.tokens = Some(tokens)
}

#[test]
fn a_phase_that_takes_too_many_steps_is_refused_with_the_bound() {
    let few = WorkerBounds { steps_max: 10_000, ..WorkerBounds::default() };
    let site = Site::with(TEXT, TEXT, "", |config| config.worker = Some(few));
    let error = site.call("spin", &[("a", "x")]).expect_err("it spins");
    assert!(matches!(error, Error::Limit(_)), "{error}");
    assert!(error.to_string().contains("10000 steps"), "{error}");
    assert_eq!(site.ok("add", &[("a", "x"), ("n", "1")]), json!(1));
}

#[test]
fn a_later_phase_beyond_the_bounds_is_run_from_here() {
    let text = "store far: linearizable; store bank: causal;
        object Far in far { key k: string; n: int; }
        object Node in bank { key k: string; n: int; }
        transaction both(f: ref Far, a: ref Node) {
            f.n += 1;
            var i = 0;
            while i < 5000 { i = i + 1; }
            a.n += i;
        }
        transaction get(a: ref Node) -> int { return a.n; }";
    let few = WorkerBounds { steps_max: 1_000, ..WorkerBounds::default() };
    let site = Site::with(text, text, "", |config| config.worker = Some(few));
    site.ok("both", &[("f", "x"), ("a", "y")]);
    assert_eq!(site.ok("get", &[("a", "y")]), json!(5000));
}

#[test]
fn without_a_token_or_with_the_wrong_rights_nothing_runs() {
    let open =
        |binding: &str, rights: &str| Site::try_with(TEXT, TEXT, binding, with_token(rights));
    let token = "token = \"secret\"";
    let error = |binding, rights| open(binding, rights).err().expect("it must not be opened");
    assert!(error("", "worker = [\"bank\"]").contains("Authorization"));
    assert!(error("token = \"guess\"", "worker = [\"bank\"]").contains("not one of this server"));
    let why = error(token, "worker = [\"feed\"]\ntransactions = [\"*\"]");
    assert!(why.contains("does not allow the worker of store bank"), "{why}");
    let other = format!("worker = [\"bank\"]\nprograms = [\"{}\"]", "ab".repeat(32));
    assert!(error(token, &other).contains("does not allow program"));

    let this = hex(&Sha256::digest(TEXT));
    let held = format!("worker = [\"bank\"]\nprograms = [\"{this}\"]");
    let site = open(token, &held).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(site.ok("add", &[("a", "x"), ("n", "2")]), json!(2));
    let pay = [("from", "x"), ("to", "y"), ("inbox", "y"), ("n", "1")];
    assert_eq!(site.ok("pay", &pay), json!(1));
    // Data is read through the programs alone.
    let node = site.client.object("Node", "x").expect("there is such an object");
    let session = mingle::Session::default();
    let shown = site.runtime.block_on(site.client.show(&node, &session, 10));
    assert!(shown.expect_err("it may not").to_string().contains("but through its programs"));
}

#[test]
fn what_is_no_request_of_the_protocol_is_a_problem_and_no_crash() {
    let site = Site::new();
    let program = hex(&Sha256::digest(TEXT));
    let store = "/v1/worker/stores/bank";
    let attempt = |nonce: u8| format!("{store}/attempts/{nonce:032x}?program={program}");
    let deep: Vec<u8> = std::iter::repeat_n([7_u8, 1], 100_000).flatten().collect();
    for (method, path, body, status, code) in [
        ("PUT", attempt(1), vec![], 400, "invalid-argument"),
        ("PUT", attempt(2), vec![1; 50], 400, "invalid-argument"),
        ("PUT", attempt(3), deep.clone(), 400, "invalid-argument"),
        ("PUT", format!("{store}/attempts/xyz?program={program}"), vec![], 400, "invalid-argument"),
        ("PUT", format!("{store}/attempts/{:032x}", 4), vec![], 400, "invalid-argument"),
        ("PUT", attempt(5).replace(&program[..8], "00000000"), vec![], 404, "unknown-program"),
        ("GET", format!("{store}/attempts/{:032x}", 6), vec![], 404, "unknown-attempt"),
        ("PUT", attempt(6), vec![], 404, "unknown-attempt"),
        ("POST", format!("{store}/operations"), deep, 400, "invalid-argument"),
        ("GET", "/v1/worker/stores/none?program=".to_owned() + &program, vec![], 404, "not-found"),
        ("PUT", format!("/v1/worker/programs/{program}"), b"x".to_vec(), 400, "invalid-argument"),
        ("GET", format!("/v1/worker/programs/{program}"), vec![], 405, "method-not-allowed"),
    ] {
        let answer = ask(&site, method, &path, &body);
        assert_eq!(
            (answer.0, answer.1["code"].as_str()),
            (status, Some(code)),
            "{path}: {answer:?}"
        );
    }
    assert_eq!(site.ok("add", &[("a", "x"), ("n", "1")]), json!(1));
}

#[test]
fn a_server_that_is_no_worker_says_so() {
    let error = Site::try_with(TEXT, TEXT, "", |config| config.worker = None);
    let error = error.err().expect("it must not be opened");
    assert!(error.contains("--worker"), "{error}");
}
