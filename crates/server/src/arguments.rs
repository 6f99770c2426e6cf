//! Decodes the arguments of a call from JSON.

use mingle_lang::{Plan, Program};
use mingle_model::{Type, Value, json};
use serde_json::{Map, Value as Json};

use crate::problem::{Code, Problem};

/// Returns the arguments in the order of the parameters.
pub(crate) fn arguments(
    program: &Program,
    plan: &Plan,
    members: &Map<String, Json>,
) -> Result<Vec<Value>, Problem> {
    let name = &plan.name;
    let unknown = members.keys().find(|key| plan.params.iter().all(|(known, _)| **known != ***key));
    if let Some(unknown) = unknown {
        let known: Vec<&str> = plan.params.iter().map(|(known, _)| &**known).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let detail = format!("{name} has no parameter {unknown:?}; it takes {known}");
        return Err(wrong(&format!(".{unknown}"), detail));
    }
    let mut values = Vec::with_capacity(plan.params.len());
    for (param, param_type) in &plan.params {
        let value = match (members.get(&**param), param_type) {
            (Some(found), _) => {
                json::from_json(program.schema(), found, param_type).map_err(|error| {
                    let path = format!(".{param}{}", error.path);
                    let detail = format!("at {path}: {}", error.message);
                    wrong(&path, detail)
                })?
            }
            (None, Type::Option(_)) => Value::NONE,
            (None, _) => {
                let detail = format!("{name} needs {param}, of type {param_type}");
                return Err(wrong(&format!(".{param}"), detail));
            }
        };
        values.push(value);
    }
    Ok(values)
}

fn wrong(path: &str, detail: String) -> Problem {
    Problem::new(Code::InvalidArgument, detail).member("path", path)
}
