//! Decodes the arguments of a call from JSON.

use mingle_lang::{Plan, Program};
use mingle_model::{Tree, Type, Value, json};

use crate::problem::{Code, Problem};

/// Returns the arguments in the order of the parameters.
pub(crate) fn arguments(
    program: &Program,
    plan: &Plan,
    members: &[(String, Tree)],
) -> Result<Vec<Value>, Problem> {
    let name = &plan.name;
    let is_known = |key: &str| plan.params.iter().any(|(known, _)| **known == *key);
    if let Some((unknown, _)) = members.iter().find(|(key, _)| !is_known(key)) {
        let known: Vec<&str> = plan.params.iter().map(|(known, _)| &**known).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let detail = format!("{name} has no parameter {unknown:?}; it takes {known}");
        return Err(wrong(&format!(".{unknown}"), detail));
    }
    let mut values = Vec::with_capacity(plan.params.len());
    for (param, param_type) in &plan.params {
        let given = members.iter().find(|(key, _)| **key == **param);
        let value = match (given, param_type) {
            (Some((_, found)), _) => {
                json::from_tree(program.schema(), found, param_type).map_err(|error| {
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
