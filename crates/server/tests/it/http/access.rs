//! Tokens and their rights.

use std::net::SocketAddr;
use std::sync::Arc;

use mingle::{Database, Principal, TokioWorld};
use mingle_lang::hir::StoreId;
use mingle_runtime::Runtime;
use mingle_server::{Config, Server, Tokens};
use mingle_store::wrap::fault::{FaultPlan, FaultyStore, Rates};
use serde_json::json;

use crate::http::client::{Request, Served, TEXT};

/// The file of the tokens `till`, `all` and `none`.
const TOKENS: &str = "
    [[tokens]]
    name = \"till\"
    sha256 = \"a64e98ff18a83009e15ef5bf714722bffd0a669d9c2700cf7ccd9ee625dc5733\"
    transactions = [\"add\"]
    objects = [\"Item\"]
    [[tokens]]
    name = \"all\"
    sha256 = \"5ef5ef0364b6939c4ca61f34b393f7b368d1be8619647aaf83d5b395919ab629\"
    transactions = [\"*\"]
    objects = [\"*\"]
    lists = [\"Item\"]
    [[tokens]]
    name = \"none\"
    sha256 = \"140bedbf9c3f6d56a9846d2ba7088798683f4da0c248231336e6a05679e4fdfe\"
    ";

fn guarded() -> Served {
    let program = mingle::compile(TEXT).expect("the program is good");
    let tokens = Tokens::parse(TOKENS, &program).unwrap_or_else(|error| panic!("{error}"));
    Served::with(TEXT, "", |config| config.tokens = Some(tokens))
}

fn as_(token: &str, request: Request) -> Request {
    request.header("authorization", &format!("Bearer {token}"))
}

#[test]
fn a_token_allows_what_it_names() {
    let served = guarded();
    let add = Request::call("add", &json!({ "item": "tea", "count": 1 }));
    let ping = Request::call("ping", &json!({}));
    let item = Request::get("/v1/objects/Item/tea");
    let inbox = Request::get("/v1/objects/Inbox/ana");
    let items = Request::get("/v1/objects/Item");
    let inboxes = Request::get("/v1/objects/Inbox");
    for (token, request, expected) in [
        ("till", &add, 200),
        ("till", &ping, 403),
        ("till", &item, 200),
        ("till", &inbox, 403),
        ("all", &add, 200),
        ("all", &ping, 200),
        ("all", &inbox, 404),
        ("till", &items, 403),
        ("all", &items, 200),
        ("all", &inboxes, 403),
        ("none", &ping, 403),
        ("none", &item, 403),
        ("guess", &ping, 401),
        ("", &ping, 401),
    ] {
        let answer = served.send(&as_(token, request.clone()));
        assert_eq!(answer.status, expected, "{token}: {}", answer.body);
        if expected == 403 {
            assert_eq!(answer.code(), "forbidden");
        }
    }
    let unknown = served.send(&as_("none", Request::call("sell", &json!({}))));
    assert_eq!(unknown.status, 404);
}

#[test]
fn without_a_token_only_the_page_and_the_health_are_there() {
    let served = guarded();
    let mut basic = Request::get("/openapi.json").header("authorization", "Basic YTpi");
    for path in ["/openapi.json", "/metrics", "/v1/program", "/v1/objects/Item/tea"] {
        for request in [Request::get(path), basic.clone()] {
            let answer = served.send(&request);
            assert_eq!((answer.status, &*answer.code()), (401, "unauthenticated"), "{path}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        }
        basic = Request::get(path).header("authorization", "Bearer");
    }
    for path in ["/", "/page.js", "/page.css", "/page/forms.js", "/healthz", "/readyz"] {
        assert_eq!(served.get(path).status, 200, "{path}");
    }
    let known = served.send(&as_("none", Request::get("/openapi.json")));
    let document = known.json();
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
}

#[test]
fn without_tokens_other_sites_cannot_call() {
    let served = Served::new();
    let ping = Request::call("ping", &json!({}));
    for (name, value, expected) in [
        ("origin", "http://localhost", 200),
        ("origin", "http://example.org", 403),
        ("origin", "null", 403),
        ("host", "127.0.0.1:8080", 200),
        ("host", "[::1]", 200),
        // A name of another site that resolves to this machine.
        ("host", "example.org", 403),
    ] {
        let answer = served.send(&ping.clone().header(name, value));
        assert_eq!(answer.status, expected, "{name}: {value}: {}", answer.body);
    }
}

#[test]
fn what_nothing_protects_is_not_shown_to_other_machines() {
    let served = Served::new();
    let everywhere: SocketAddr = "0.0.0.0:0".parse().expect("it is an address");
    let bind = |config| {
        let database: Arc<Database> = served.database.clone();
        served.block_on(Server::bind(database, everywhere, config))
    };
    let refused = bind(Config::default()).map(|server| server.url());
    let error = refused.expect_err("nothing protects it").to_string();
    assert!(error.contains("without tokens everybody may call everything"), "{error}");
    assert!(bind(Config { is_open: true, ..Config::default() }).is_ok());
    assert!(bind(Config { tokens: Some(Tokens::default()), ..Config::default() }).is_ok());
}

/// The second server is another process over the same stores, with other rights.
#[test]
fn another_server_carries_out_what_a_caller_began_that_has_lost_its_right_since() {
    let program = mingle::compile(TEXT).expect("the program is good");
    let tokens = |text: &str| {
        let tokens = Tokens::parse(text, &program).unwrap_or_else(|error| panic!("{error}"));
        move |config: &mut Config| config.tokens = Some(tokens)
    };
    let plan = FaultPlan::seeded(1, Rates { unavailable: 1_000, ..Rates::default() });
    let may_buy = TOKENS.replacen("[\"add\"]", "[\"buy\"]", 1);
    plan.set_on(false);
    let first = Served::around(TEXT, "", tokens(&may_buy), |name, store| match name {
        "feed" => FaultyStore::new(store, plan.clone()),
        _ => store,
    });
    let add = Request::call("add", &json!({ "item": "tea", "count": 5 }));
    assert_eq!(first.send(&as_("all", add)).status, 200);
    plan.set_on(true);
    let body = json!({ "item": "tea", "count": 1, "buyer": "ana" });
    let mut soon = Request::new("POST", "/v1/transactions/buy?deadline_ms=300");
    soon = soon.header("content-type", "application/json").body(body.to_string());
    let answer = first.send(&as_("till", soon));
    assert_eq!((answer.status, &*answer.code()), (202, "incomplete"), "{}", answer.body);

    let runtime = first.database.runtime();
    let count = program.checked.stores.len() as u32;
    let stores = (0..count).map(|id| runtime.store(StoreId(id)).clone()).collect();
    let settings = runtime.settings().clone();
    // With the first server all its tasks end.
    drop(first);
    let open = || {
        let world = Arc::new(TokioWorld::new());
        let runtime = Runtime::new(program.clone(), stores, world, settings);
        Arc::new(Database::over(runtime))
    };
    let second = Served::over(open, tokens(TOKENS));
    let buy = Request::call("buy", &body);
    assert_eq!(second.send(&as_("till", buy.clone())).status, 403);
    let left = second.block_on(second.database.left_behind()).expect("the stock answers");
    assert_eq!(left.unfinished.len(), 1, "{left:?}");
    assert_eq!(left.unfinished[0].principal, Principal::new("till").ok());
    plan.set_on(false);
    // The call meets the transaction that was begun, and finishes it.
    let answer = second.send(&as_("all", buy));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let read = Request::call("read", &json!({ "of": "ana" }));
    let answer = second.send(&as_("all", read).header("mingle-session", answer.session()));
    assert_eq!(answer.json(), json!({ "result": ["bought", "bought"] }), "{}", answer.body);
}
