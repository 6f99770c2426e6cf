//! Names that other languages have for the words, types and operations of this one.

/// Returns the type that another language calls `name`.
pub(crate) fn type_name(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    Some(match &*lower {
        "int" | "integer" | "long" | "short" | "byte" | "number" | "bigint" | "smallint" | "i8"
        | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" | "int32" | "int64" | "uint"
        | "usize" | "isize" | "serial" => "int",
        "string" | "str" | "text" | "varchar" | "char" | "uuid" | "nvarchar" => "string",
        "bool" | "boolean" => "bool",
        "float" | "double" | "f32" | "f64" | "real" | "float64" | "float32" => "float",
        "numeric" | "bigdecimal" | "money" | "decimal" => "decimal",
        "datetime" | "timestamp" | "instant" | "time" | "timestamptz" => "time",
        "date" | "day" | "localdate" => "date",
        "bytes" | "blob" | "bytea" | "binary" | "buffer" => "bytes",
        "json" | "jsonb" | "any" | "unknown" => "json",
        "counter" => "counter",
        _ => return None,
    })
}

/// Returns the type with arguments that another language calls `name`.
pub(crate) fn generic_type(name: &str) -> Option<&'static str> {
    Some(match name {
        "Vec" | "Array" | "List" | "array" | "vec" | "Sequence" | "Iterable" => "list",
        "HashMap" | "Map" | "Dict" | "dict" | "BTreeMap" | "Record" | "hash" => "map",
        "Set" | "HashSet" | "BTreeSet" => "set",
        "Option" | "Optional" | "Maybe" | "optional" | "maybe" | "Nullable" => "option",
        "Log" | "Stream" | "Queue" => "log",
        "Ref" | "Reference" | "Ptr" | "Pointer" => "ref",
        _ => return None,
    })
}

/// Returns the text that replaces a variable which other languages have as a word.
pub(crate) fn constant(name: &str) -> Option<&'static str> {
    Some(match name {
        "null" | "NULL" | "Null" | "nil" | "None" | "undefined" | "Nothing" | "nullptr" => "none",
        "True" | "TRUE" => "true",
        "False" | "FALSE" => "false",
        _ => return None,
    })
}

/// Returns the function that another language calls `name`.
pub(crate) fn function(name: &str) -> Option<&'static str> {
    Some(match name {
        "str" | "String" | "to_string" | "toString" | "format" => "string",
        "Int" | "parseInt" | "integer" | "Number" | "number" | "to_int" => "int",
        "Float" | "parseFloat" | "double" | "to_float" => "float",
        "not" => "!",
        "Some" | "Just" => "some",
        "current_timestamp" | "NOW" | "datetime" => "now",
        "uuid" | "gen_random_uuid" | "new_id" | "random" => "unique",
        "least" | "Min" | "MIN" => "min",
        "greatest" | "Max" | "MAX" => "max",
        _ => return None,
    })
}

/// Returns the operation that another language calls `name`, among the operations of a type.
pub(crate) fn method(known: &[&'static str], name: &str) -> Option<&'static str> {
    let meant: &[&str] = match name {
        "len" | "length" | "count" | "size_of" | "Count" | "Length" => &["size", "value"],
        "add" | "push" | "append" | "put" | "insert" | "add_all" | "push_back" => {
            &["insert", "append"]
        }
        "increment" | "inc" | "incr" | "plus" => &["add"],
        "set" => &["put"],
        "delete" | "erase" | "discard" | "del" => &["remove", "delete"],
        "has" | "includes" | "contains_key" | "has_key" | "include" => &["contains"],
        "get" | "read" | "current" => &["value"],
        "exist" | "is_some" => &["exists"],
        "isSome" | "is_present" | "isPresent" | "has_value" | "exists" => &["is_some"],
        "toList" | "values" | "items" | "toArray" | "to_vec" | "elements" => &["to_list"],
        "at" | "nth" => &["get"],
        _ => return None,
    };
    meant.iter().find_map(|meant| known.iter().find(|known| *known == meant).copied())
}

/// Returns the words of an item that another language begins with `word`.
pub(crate) fn item(word: &str) -> Option<&'static str> {
    Some(match &*word.to_ascii_lowercase() {
        "class" | "table" | "entity" | "model" | "document" | "collection" => "object",
        "record" | "type" | "interface" | "data" => "struct",
        "database" | "db" | "schema" | "datastore" => "store",
        "level" => "level",
        "store" => "store",
        "object" => "object",
        "struct" => "struct",
        "fn" => "fn",
        "transaction" => "transaction",
        _ => return None,
    })
}

/// True if other languages begin a function with this word.
pub(crate) fn is_function_word(word: &str) -> bool {
    matches!(
        word,
        "function" | "def" | "func" | "fun" | "proc" | "procedure" | "sub" | "method" | "Function"
    )
}

/// True if other languages write this word before a declaration.
pub(crate) fn is_modifier(word: &str) -> bool {
    matches!(
        word,
        "async"
            | "pub"
            | "public"
            | "private"
            | "protected"
            | "export"
            | "static"
            | "final"
            | "abstract"
            | "override"
            | "inline"
            | "virtual"
            | "readonly"
            | "mut"
            | "const"
            | "required"
            | "optional"
    )
}

/// True if a statement of SQL begins with this word.
pub(crate) fn is_sql(word: &str) -> bool {
    matches!(
        &*word.to_ascii_uppercase(),
        "SELECT"
            | "INSERT"
            | "UPDATE"
            | "DELETE"
            | "CREATE"
            | "ALTER"
            | "DROP"
            | "BEGIN"
            | "COMMIT"
            | "ROLLBACK"
            | "TRUNCATE"
            | "MERGE"
    )
}
