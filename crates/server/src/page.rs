//! The page for people.

use axum::http::{HeaderValue, header};
use axum::response::Response;
use mingle_lang::Program;
use mingle_lang::explain::{explain_all, to_json};
use mingle_model::Type;
use serde_json::{Value as Json, json};

use crate::openapi::Described;

/// The content security policy: only resources that this server sends may run, be shown, or be
/// called.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

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
    file("text/javascript; charset=utf-8", include_str!("page/page.js"))
}

/// True if values of a type are strings in JSON, so that they are typed without quotes.
fn is_text(program: &Program, value_type: &Type) -> bool {
    match value_type {
        Type::String | Type::Bytes | Type::Time | Type::Date | Type::Decimal => true,
        Type::Ref(name) => is_text(program, &program.schema().objects[name].key_type),
        Type::Option(inner) => is_text(program, inner),
        _ => false,
    }
}

/// Returns the parts of a program that the page shows: its text, and the head and phases of each
/// transaction.
pub(crate) fn program(program: &Program) -> Json {
    let described = Described::of(program);
    let explained = explain_all(&described.checked.source, program, &program.plans);
    let transactions = program.plans.iter().zip(&explained).map(|(plan, explained)| {
        let params = plan.params.iter().map(|(name, param_type)| {
            let is_text = is_text(program, param_type);
            json!({ "name": &**name, "type": param_type.to_string(), "is_text": is_text })
        });
        let phases = to_json(std::slice::from_ref(explained));
        json!({
            "name": &*plan.name,
            "docs": plan.docs,
            "signature": explained.signature,
            "params": params.collect::<Vec<_>>(),
            "result": plan.result.as_ref().map(ToString::to_string),
            "phases": phases["transactions"][0]["phases"],
        })
    });
    let objects = program.checked.objects.iter().map(|object| {
        let declared = &object.declared;
        json!({
            "name": &*declared.name,
            "docs": object.docs,
            "store": &*declared.store,
            "key": &*declared.key_name,
        })
    });
    json!({
        "text": &*program.text,
        "transactions": transactions.collect::<Vec<_>>(),
        "objects": objects.collect::<Vec<_>>(),
    })
}
