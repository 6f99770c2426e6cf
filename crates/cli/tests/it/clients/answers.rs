//! The clients' treatment of answers.

use super::language::Language;
use super::stub::Reply::{After, Answer, Close, Silence};
use super::stub::{Reply, Request, Stub};

/// Runs a script in each language against a stub, and passes the received requests to `look`.
fn each(script: &str, replies: impl Fn() -> Vec<Reply>, look: impl Fn(&[Request])) {
    for language in Language::ALL {
        let Some(workshop) = language.workshop() else { continue };
        let stub = Stub::start(replies());
        workshop.run(script, &[&stub.url()]);
        look(&stub.requests());
    }
}

#[test]
fn errors_are_told_apart() {
    let replies = || {
        vec![
            Answer(
                422,
                None,
                r#"{"code": "require", "require_code": "closed", "detail": "no", "retryable": false}"#,
            ),
            Answer(409, None, r#"{"code": "exists", "title": "it exists", "retryable": false}"#),
            Answer(
                409,
                None,
                r#"{"code": "taken", "title": "another has it", "retryable": false}"#,
            ),
            Answer(409, None, r#"{"code": "conflict", "store": "groups", "retryable": true}"#),
            Answer(503, None, r#"{"code": "store", "store": "inboxes", "retryable": false}"#),
            Answer(
                202,
                Some("after"),
                r#"{"code": "incomplete", "committed": ["groups"], "store": "inboxes", "retryable": false}"#,
            ),
            Answer(504, None, r#"{"code": "unknown", "store": "groups", "retryable": false}"#),
            Answer(410, None, r#"{"code": "result-gone"}"#),
            Answer(503, None, r#"{"code": "overloaded", "retryable": true}"#),
            Answer(401, None, r#"{"code": "unauthenticated"}"#),
            Answer(400, None, r#"{"code": "invalid-session"}"#),
            Answer(400, None, r#"{"code": "limit"}"#),
            Answer(500, None, r#"{"code": "toString"}"#),
            Answer(502, None, "<html>who knows</html>"),
            Answer(200, None, "<html>a page</html>"),
            Answer(200, None, r#"{"result": "twelve"}"#),
            Answer(200, None, r#"["result"]"#),
            Answer(404, None, r#"{"code": "not-found"}"#),
            Close,
            Silence,
            Silence,
        ]
    };
    each("errors", replies, |requests| {
        assert!(requests.iter().all(|request| request.header("idempotency-key").is_none()));
        // The answer for an error that committed something contained a token.
        assert_eq!(requests[5].header("mingle-session"), None);
        assert_eq!(requests[6].header("mingle-session"), Some("after"));
        assert!(requests[17].line.starts_with("GET /v1/objects/Group/rust"), "{requests:#?}");
    });
}

#[test]
fn what_is_made_again_runs_once() {
    let overloaded = || Answer(503, None, r#"{"code": "overloaded", "retryable": true}"#);
    let unknown = || Answer(504, None, r#"{"code": "unknown", "retryable": false}"#);
    let replies = || {
        vec![
            overloaded(),
            Close,
            Answer(200, None, r#"{"result": 3}"#),
            Answer(422, None, r#"{"code": "require", "retryable": false}"#),
            overloaded(),
            unknown(),
            Answer(200, None, r#"{"result": 4}"#),
            overloaded(),
            overloaded(),
            Close,
            Answer(200, None, r#"{"name": "rust", "closed": true, "members": ["ana"]}"#),
        ]
    };
    each("retries", replies, |requests| {
        let keys: Vec<_> = requests.iter().map(|it| it.header("idempotency-key")).collect();
        let made = keys[0].expect("a call that may be made again has a key");
        assert!(made.len() == 32 && made.chars().all(|c| c.is_ascii_hexdigit()), "{made}");
        assert_eq!(keys[1..3], [Some(made); 2]);
        assert!(keys[3].is_some_and(|key| key != made), "another call has another key");
        assert_eq!(keys[4..7], [None, Some("mine"), Some("mine")]);
        assert!(keys[7].is_some() && keys[7] == keys[8]);
        assert_eq!(keys[9..], [None, None], "reading needs no key");
        assert_eq!(requests[0].body.replace(' ', ""), r#"{"group":"rust","post":"hello"}"#);
    });
}

#[test]
fn calls_side_by_side_lose_nothing_of_a_session() {
    let replies = || {
        vec![
            After(2, 200, Some("t1"), r#"{"result": 1}"#),
            Answer(200, Some("t2"), r#"{"result": 1}"#),
            Answer(200, Some("t3"), r#"{"result": 1}"#),
            Answer(200, Some("t4"), r#"{"result": 1}"#),
            Answer(200, None, r#"{"result": 1}"#),
            Answer(200, Some("u1"), r#"{"result": 1}"#),
            Answer(200, Some("t5"), r#"{"result": null, "follows": ["inboxes"]}"#),
            Answer(200, None, r#"{"result": 7, "follows": []}"#),
        ]
    };
    each("sessions", replies, |requests| {
        let sent: Vec<_> = requests.iter().map(|it| it.header("mingle-session")).collect();
        assert_eq!(sent[..2], [None; 2]);
        // The two answers may come in either order.
        assert!(matches!(sent[2], Some("t1, t2" | "t2, t1")), "{sent:?}");
        assert_eq!(sent[3..], ["t3", "t4", "kept", "t4", "t5"].map(Some));
        assert_eq!(requests[6].line, "POST /v1/transactions/add_post?until=groups");
        assert_eq!(
            requests[7].line,
            "POST /v1/transactions/add_post?deadline_ms=1500&until=inboxes"
        );
        assert_eq!(requests[7].header("authorization"), Some("Bearer secret"));
    });
}

#[test]
fn a_session_has_no_more_tokens_than_calls() {
    // The ninth call waits for its turn, so its session includes the token of at least one earlier
    // answer.
    let replies = || {
        let tokens = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        let reply = |token| After(8, 200, Some(token), r#"{"result": 1}"#);
        tokens.into_iter().map(reply).collect()
    };
    each("crowd", replies, |requests| {
        assert_eq!(requests.len(), 10);
        let counts = requests.iter().map(|request| {
            request.header("mingle-session").map_or(0, |tokens| tokens.split(", ").count())
        });
        let counts: Vec<usize> = counts.collect();
        assert_eq!(counts[..8], [0; 8]);
        assert!(counts[8..].iter().all(|count| (1..=8).contains(count)), "{counts:?}");
    });
}

#[test]
fn a_client_in_go_waits_as_long_as_the_answer_asks() {
    let Some(workshop) = Language::Go.workshop() else { return };
    workshop.run("pauses", &[]);
}
