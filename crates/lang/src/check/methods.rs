//! The operations of types.

use std::sync::Arc;

use mingle_model::{FieldType, Type};

use crate::hir::{CollectionRead, CollectionWrite};
use crate::names::Typed;

/// The effect of a collection's method.
pub(super) enum Method {
    Read(CollectionRead, Vec<Type>, Type),
    Write(CollectionWrite, Vec<Type>),
}

/// Returns the operations of a type, for suggestions after a misspelling and for completion.
pub(crate) fn operations(on: &Typed) -> &'static [&'static str] {
    match on {
        Typed::Value(Type::List(_)) => &["size", "get", "contains"],
        Typed::Value(Type::String) => &["size", "contains"],
        Typed::Value(Type::Option(_)) => &["is_some"],
        Typed::Value(Type::Ref(_)) => &["exists", "delete"],
        Typed::Value(Type::Bytes) => &["size"],
        Typed::Value(Type::Decimal) => &["divide", "round"],
        Typed::Collection(FieldType::Counter) => &["add", "value"],
        Typed::Bounded(_) => &["take", "give", "value"],
        Typed::Collection(FieldType::Set(_)) => {
            &["insert", "remove", "clear", "contains", "size", "to_list"]
        }
        Typed::Collection(FieldType::Map(..)) => {
            &["put", "remove", "clear", "get", "size", "keys", "first", "last", "after", "slice"]
        }
        Typed::Collection(FieldType::Log(_)) => {
            &["append", "clear", "last", "slice", "size", "to_list"]
        }
        _ => &[],
    }
}

pub(super) fn find_method(field_type: &FieldType, name: &str) -> Option<Method> {
    use CollectionRead as R;
    use CollectionWrite as W;
    let list = |inner: &Type| Type::List(Arc::new(inner.clone()));
    Some(match (field_type, name) {
        (FieldType::Counter, "add") => Method::Write(W::Add, vec![Type::Int]),
        (FieldType::Counter, "value") => Method::Read(R::CounterValue, vec![], Type::Int),
        (FieldType::Set(inner), "insert") => Method::Write(W::Insert, vec![inner.clone()]),
        (FieldType::Set(inner), "remove") => Method::Write(W::Remove, vec![inner.clone()]),
        (FieldType::Set(inner), "contains") => {
            Method::Read(R::SetContains, vec![inner.clone()], Type::Bool)
        }
        (FieldType::Set(_), "size") => Method::Read(R::SetSize, vec![], Type::Int),
        (FieldType::Set(inner), "to_list") => Method::Read(R::SetList, vec![], list(inner)),
        (FieldType::Map(key, value), "put") => {
            Method::Write(W::Put, vec![key.clone(), value.clone()])
        }
        (FieldType::Map(key, _), "remove") => Method::Write(W::Erase, vec![key.clone()]),
        (FieldType::Map(key, value), "get") => {
            Method::Read(R::MapGet, vec![key.clone()], Type::Option(Arc::new(value.clone())))
        }
        (FieldType::Map(..), "size") => Method::Read(R::MapSize, vec![], Type::Int),
        (FieldType::Map(key, _), "keys") => Method::Read(R::MapKeys, vec![], list(key)),
        (FieldType::Map(key, _), "first") => Method::Read(R::MapFirst, vec![Type::Int], list(key)),
        (FieldType::Map(key, _), "last") => Method::Read(R::MapLast, vec![Type::Int], list(key)),
        (FieldType::Map(key, _), "after") => {
            Method::Read(R::MapAfter, vec![key.clone(), Type::Int], list(key))
        }
        (FieldType::Map(key, _), "slice") => {
            Method::Read(R::MapSlice, vec![key.clone(), key.clone(), Type::Int], list(key))
        }
        (FieldType::Log(inner), "append") => Method::Write(W::Append, vec![inner.clone()]),
        (FieldType::Log(inner), "last") => Method::Read(R::LogLast, vec![Type::Int], list(inner)),
        (FieldType::Log(inner), "slice") => {
            Method::Read(R::LogSlice, vec![Type::Int, Type::Int], list(inner))
        }
        (FieldType::Log(_), "size") => Method::Read(R::LogSize, vec![], Type::Int),
        (FieldType::Log(inner), "to_list") => Method::Read(R::LogList, vec![], list(inner)),
        (FieldType::Set(_) | FieldType::Map(..) | FieldType::Log(_), "clear") => {
            Method::Write(W::Clear, vec![])
        }
        _ => return None,
    })
}
