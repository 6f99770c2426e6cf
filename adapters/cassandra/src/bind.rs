//! Mutations as statements with values.

use scylla::value::CqlValue;

use crate::block;
use crate::change::{Change, RecordPlace};
use crate::statement::Statement;

/// Bytes as a value.
pub fn blob(bytes: &[u8]) -> CqlValue {
    CqlValue::Blob(bytes.to_vec())
}

/// Text as a value.
pub fn text(text: &str) -> CqlValue {
    CqlValue::Text(text.to_owned())
}

pub fn record(at: &RecordPlace) -> Vec<CqlValue> {
    vec![text(&at.kind), blob(&at.head), blob(&at.tail)]
}

/// The statement of a mutation, and its values.
pub fn bind(area: &str, change: &Change) -> (Statement, Vec<CqlValue>) {
    let time = |time: &i64| CqlValue::BigInt(*time);
    match change {
        Change::Put { at, value, time: when } => (
            Statement::Put,
            vec![
                blob(&at.object),
                text(&at.field),
                blob(&at.element),
                blob(&at.dot),
                blob(value),
                time(when),
            ],
        ),
        Change::Drop { at, time: when } => (
            Statement::Drop,
            vec![time(when), blob(&at.object), text(&at.field), blob(&at.element), blob(&at.dot)],
        ),
        Change::PutRecord { at, value, time: when } => {
            (Statement::PutRecord, [record(at), vec![blob(value), time(when)]].concat())
        }
        Change::Announce { at, value, redo, time: when } => {
            (Statement::Announce, [record(at), vec![blob(value), blob(redo), time(when)]].concat())
        }
        Change::Settle { at, time: when } => {
            (Statement::Settle, [vec![time(when)], record(at)].concat())
        }
        Change::DropRecord { at, time: when } => {
            (Statement::DropRecord, [vec![time(when)], record(at)].concat())
        }
        Change::Cql { .. } => unreachable!("it is bound where it is sent"),
        other => bind_other(area, other),
    }
}

/// Binds the mutations that concern neither data nor records, for [`bind`].
fn bind_other(area: &str, change: &Change) -> (Statement, Vec<CqlValue>) {
    let time = |time: &i64| CqlValue::BigInt(*time);
    match change {
        Change::PutRow { id, place, value, time: when } => (
            Statement::PutRow,
            vec![
                text(area),
                blob(&block::of_id(id)),
                blob(id),
                blob(&place.0),
                blob(&place.1),
                blob(value),
                time(when),
            ],
        ),
        Change::DropRow { id, place, time: when } => (
            Statement::DropRow,
            vec![
                time(when),
                text(area),
                blob(&block::of_id(id)),
                blob(id),
                blob(&place.0),
                blob(&place.1),
            ],
        ),
        Change::PutChunk { id, part, value, time: when } => {
            (Statement::PutChunk, vec![blob(id), CqlValue::Int(*part), blob(value), time(when)])
        }
        Change::DropChunk { id, part, time: when } => {
            (Statement::DropChunk, vec![time(when), blob(id), CqlValue::Int(*part)])
        }
        Change::Settled { id, time: when } => (Statement::Settled, vec![time(when), blob(id)]),
        _ => unreachable!("the caller has bound it"),
    }
}
