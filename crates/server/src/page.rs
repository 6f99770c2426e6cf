//! The page for people.

use axum::extract::Path;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use mingle_lang::Program;
use mingle_lang::explain::{explain_all, to_json};
use serde_json::{Value as Json, json};

use crate::crash::steps;
use crate::openapi::Described;
use crate::problem::{Code, Problem};
use crate::shapes::{shape, structs};

/// The content security policy: only resources that this server sends may run, be shown, or be
/// called.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const SCRIPT: &str = "text/javascript; charset=utf-8";

fn file(kind: &'static str, text: &'static str) -> Response {
    let mut response = Response::new(text.into());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

pub(crate) async fn html() -> Response {
    file("text/html; charset=utf-8", include_str!("page/page.html"))
}

pub(crate) async fn css() -> Response {
    file("text/css; charset=utf-8", include_str!("page/page.css"))
}

pub(crate) async fn js() -> Response {
    file(SCRIPT, include_str!("page/page.js"))
}

/// The modules that the script of the page imports.
pub(crate) async fn module(Path(name): Path<String>) -> Result<Response, Problem> {
    let text = match &*name {
        "calls.js" => include_str!("page/calls.js"),
        "forms.js" => include_str!("page/forms.js"),
        "json.js" => include_str!("page/json.js"),
        "objects.js" => include_str!("page/objects.js"),
        "timeline.js" => include_str!("page/timeline.js"),
        _ => {
            let name: String = name.chars().take(200).collect();
            return Err(Problem::new(Code::NotFound, format!("the page has no module {name:?}")));
        }
    };
    Ok(file(SCRIPT, text))
}

/// Returns the parts of a program that the page shows: its text, and the head, the phases and the places
/// for crashes of each transaction. `needs_token` if calls need an API token; `can_crash` if a call can ask
/// for a crash.
pub(crate) fn program(program: &Program, name: &str, needs_token: bool, can_crash: bool) -> Json {
    let schema = program.schema();
    let described = Described::of(program);
    let explained = explain_all(&described.checked.source, program, &program.plans);
    let transactions = program.plans.iter().zip(&explained).map(|(plan, explained)| {
        let params = plan.params.iter().map(|(name, param_type)| {
            let shape = shape(schema, param_type);
            json!({ "name": &**name, "type": param_type.to_string(), "shape": shape })
        });
        let phases = to_json(std::slice::from_ref(explained));
        json!({
            "name": &*plan.name,
            "docs": plan.docs,
            "signature": explained.signature,
            "params": params.collect::<Vec<_>>(),
            "result": plan.result.as_ref().map(ToString::to_string),
            "phases": phases["transactions"][0]["phases"],
            "steps": steps(&explained.phases),
        })
    });
    let objects = program.checked.objects.iter().map(|object| {
        let declared = &object.declared;
        json!({
            "name": &*declared.name,
            "docs": object.docs,
            "store": &*declared.store,
            "key": &*declared.key_name,
            "shape": shape(schema, &schema.objects[&declared.name].key_type),
        })
    });
    json!({
        "name": name,
        "text": &*program.text,
        "needs_token": needs_token,
        "can_crash": can_crash,
        "structs": structs(schema),
        "transactions": transactions.collect::<Vec<_>>(),
        "objects": objects.collect::<Vec<_>>(),
    })
}
