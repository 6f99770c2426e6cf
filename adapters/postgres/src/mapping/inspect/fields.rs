//! Registers and counters in the columns of an object's row.

use mingle_model::{Field, FieldType, Schema, Type, Value};

use super::super::joined::Joined;
use super::{Column, Described, MappedField, MayRefuse, ObjectMapping, Table};

impl Table {
    /// Returns the place of a register or counter, and the parts of the table that may refuse it.
    ///
    /// # Errors
    ///
    /// The reason why its columns do not fit.
    pub(super) fn row_field(
        &self,
        schema: &Schema,
        field: &Field,
        mapping: &ObjectMapping,
        (key_types, what): (&[Type], &str),
    ) -> Result<(MappedField, MayRefuse), String> {
        let columns = mapping.columns_of(&field.name).into_iter().map(|name| self.column(name));
        let columns = columns.collect::<Result<Vec<&Described>, String>>()?;
        let is_in_key = |column: &&&Described| mapping.key.contains(&column.name);
        let (mut may_refuse, mut needs_something) = (MayRefuse::default(), false);
        for column in columns.iter().filter(|column| columns.len() == 1 || !is_in_key(column)) {
            needs_something |= column.is_not_null && !column.has_default && !column.is_generated;
            if column.is_generated {
                let why = format!("GENERATED ALWAYS column {} of {}", column.name, self.name);
                may_refuse.read_only.insert(field.name.clone(), why);
            }
        }
        let fill = |value: Value| needs_something.then_some(value);
        let found = match (&field.field_type, &columns[..]) {
            (FieldType::Register(inner), [column]) => MappedField::Column {
                column: Column::of_register(schema, column, inner, what)?,
                fill: fill(field.default.clone()),
            },
            (FieldType::Register(inner), several) => {
                let keys: Vec<(String, Type)> =
                    mapping.key.iter().cloned().zip(key_types.iter().cloned()).collect();
                let joined = Joined::new(schema, inner, several, (&keys, what))?;
                MappedField::Joined { joined, fill: fill(field.default.clone()) }
            }
            (_, [column]) => MappedField::Column {
                column: Column::counter(column, what)?,
                fill: fill(Value::Int(0)),
            },
            (other, _) => {
                return Err(format!(
                    "{what} is {other}, which has one column, but `columns` lists several"
                ));
            }
        };
        Ok((found, may_refuse))
    }
}
