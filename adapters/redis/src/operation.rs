//! Declared queries and commands: each is one command of the server, with `$1`, `$2` … in place of
//! the arguments.

use std::collections::BTreeMap;

use mingle_model::{Name, Schema, Type, Value};
use mingle_store::StoreOperation;
use redis::Value as Reply;

use crate::limits::{LUA_INT_END, WORDS_MAX};
use crate::reply;
use crate::request::Word;
use mingle_store::codec;

/// The operations of one store, by name; none for one without a body.
pub type Operations = BTreeMap<Name, Option<Operation>>;

/// One operation with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    name: Name,
    /// The words; the first one is the command.
    words: Vec<Vec<Part>>,
    parameters: Vec<Type>,
    result: Option<Type>,
    is_command: bool,
    /// The server's description of its command.
    pub info: Info,
}

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// The argument with this index.
    Argument(usize),
}

/// The server's description of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// The number of words, with the command itself; negative for a minimum.
    arity: i64,
    flags: Vec<String>,
    first_key: i64,
    last_key: i64,
    step: i64,
    /// True if the order of its results has no meaning.
    is_unordered: bool,
    is_random: bool,
}

impl Info {
    /// Parses one entry of `COMMAND INFO`; none if there is no such command.
    pub fn parse(entry: Reply) -> Option<Self> {
        let mut parts = reply::array(entry).ok()?.into_iter();
        let number = |part: Option<Reply>| match part {
            Some(Reply::Int(number)) => Some(number),
            _ => None,
        };
        let texts = |part: Option<Reply>| -> Vec<String> {
            let all = part.and_then(|part| reply::array(part).ok()).unwrap_or_default();
            all.into_iter().filter_map(|one| reply::text(one).ok()).collect()
        };
        parts.next()?;
        let arity = number(parts.next())?;
        let flags = texts(parts.next());
        let (first_key, last_key) = (number(parts.next())?, number(parts.next())?);
        let step = number(parts.next())?;
        let tips = texts(parts.nth(1));
        let has = |tip: &str| tips.iter().any(|one| one == tip);
        Some(Self {
            arity,
            first_key,
            last_key,
            step,
            is_unordered: has("nondeterministic_output_order"),
            is_random: has("nondeterministic_output") || flags.iter().any(|flag| flag == "random"),
            flags,
        })
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|one| one == flag)
    }
}

impl Operation {
    /// Parses the body of a declared operation.
    ///
    /// # Errors
    ///
    /// When it names an argument that is not declared, or cannot produce its result.
    pub fn parse(name: &Name, declared: &StoreOperation, body: &str) -> Result<Self, String> {
        let parameters: Vec<Type> = declared.parameters.iter().map(|(_, of)| of.clone()).collect();
        let words = split(body)?;
        let words: Result<Vec<_>, _> =
            words.iter().map(|word| parse_word(word, parameters.len())).collect();
        let words = words?;
        if !matches!(words.first().map(Vec::as_slice), Some([Part::Text(_)])) {
            return Err("expected a command of the server, such as `ZSCORE scores $1`".into());
        }
        if declared.is_command && declared.result.is_some() {
            return Err("a command gives no result here: it runs with the commit, after the \
                        program has ended"
                .into());
        }
        let (result, is_command) = (declared.result.clone(), declared.is_command);
        let info = Info::default();
        Ok(Self { name: name.clone(), words, parameters, result, is_command, info })
    }

    /// Returns the name of the server's command.
    pub fn command(&self) -> &str {
        match self.words[0].first() {
            Some(Part::Text(text)) => text,
            _ => unreachable!("the first word was checked"),
        }
    }

    /// Records the server's description of its command, and checks the body against it.
    ///
    /// # Errors
    ///
    /// The reason why the command cannot be used.
    pub fn check(&mut self, info: Option<Info>) -> Result<(), String> {
        let command = self.command().to_uppercase();
        let info = info.ok_or_else(|| format!("the server has no command {command}"))?;
        let spreads = self.parameters.iter().any(|of| matches!(of, Type::List(_)));
        let count = i64::try_from(self.words.len()).unwrap_or(i64::MAX);
        let fits = if info.arity >= 0 { count == info.arity } else { count >= -info.arity };
        if !fits && !spreads {
            let wanted = if info.arity >= 0 {
                format!("{} words", info.arity)
            } else {
                format!("at least {} words", -info.arity)
            };
            return Err(format!(
                "{command} takes {wanted}, the command itself included, not {count}"
            ));
        }
        for flag in ["noscript", "blocking", "admin", "pubsub"] {
            if info.has(flag) {
                return Err(format!("{command} cannot run within a transaction: it is `{flag}`"));
            }
        }
        if self.is_command {
            if !info.has("write") {
                return Err(format!("{command} does not write, but is declared as a command"));
            }
            if info.first_key == 0 || info.has("movablekeys") {
                return Err(format!(
                    "{command} does not say which keys it writes, so it could not be undone"
                ));
            }
        } else if !info.has("readonly") {
            return Err(format!("{command} is not read-only, but is declared as a query"));
        } else if info.is_random {
            return Err(format!(
                "{command} answers otherwise each time, so nothing holds it still"
            ));
        }
        self.info = info;
        Ok(())
    }

    /// Returns the words of a query's question.
    ///
    /// # Errors
    ///
    /// When the arguments do not fit.
    pub fn question(&self, schema: &Schema, arguments: &[Value]) -> Result<Vec<Word>, String> {
        let order = match (self.info.is_unordered, self.command().to_uppercase().as_str()) {
            (true, "HGETALL") => "pairs",
            (true, _) => "set",
            (false, _) => "",
        };
        let mut question = vec![b"q".to_vec(), Word::new(), order.into()];
        question.extend(self.fill(schema, arguments)?);
        Ok(question)
    }

    /// Returns the keys that a command writes, and its words.
    ///
    /// # Errors
    ///
    /// When the arguments do not fit, or a key is one of Mingle's own.
    pub fn write(
        &self,
        schema: &Schema,
        arguments: &[Value],
        prefix: &str,
    ) -> Result<(Vec<Word>, Vec<Word>), String> {
        let words = self.fill(schema, arguments)?;
        let count = i64::try_from(words.len()).unwrap_or(i64::MAX);
        let last =
            if self.info.last_key < 0 { count + self.info.last_key } else { self.info.last_key };
        let mut keys = Vec::new();
        let mut at = self.info.first_key;
        while at <= last {
            let key = usize::try_from(at).ok().and_then(|at| words.get(at));
            let key = key.ok_or_else(|| format!("operation {}: too few words", self.name))?;
            if key.starts_with(prefix.as_bytes()) {
                return Err(format!(
                    "operation {} must not write {}: what begins with {prefix} is written by \
                     transactions alone",
                    self.name,
                    String::from_utf8_lossy(key)
                ));
            }
            keys.push(key.clone());
            at += self.info.step.max(1);
        }
        Ok((keys, words))
    }

    fn fill(&self, schema: &Schema, arguments: &[Value]) -> Result<Vec<Word>, String> {
        let (given, wanted) = (arguments.len(), self.parameters.len());
        if given != wanted {
            return Err(format!("operation {} takes {wanted} arguments, not {given}", self.name));
        }
        let mut filled = Vec::with_capacity(self.words.len());
        for word in &self.words {
            if let [Part::Argument(index)] = word[..]
                && let (Value::List(items), Type::List(inner)) =
                    (&arguments[index], &self.parameters[index])
            {
                for item in items.iter() {
                    filled.push(codec::encode(schema, item, inner)?);
                }
                continue;
            }
            let mut text = Word::new();
            for part in word {
                match part {
                    Part::Text(part) => text.extend(part.as_bytes()),
                    Part::Argument(index) => {
                        let of = &self.parameters[*index];
                        text.extend(codec::encode(schema, &arguments[*index], of)?);
                    }
                }
            }
            filled.push(text);
        }
        if filled.len() > WORDS_MAX {
            let found = filled.len();
            return Err(format!(
                "operation {} has {found} words, more than {WORDS_MAX}",
                self.name
            ));
        }
        Ok(filled)
    }

    /// Returns the value that a reply represents.
    ///
    /// # Errors
    ///
    /// When it does not fit the declared result.
    pub fn result(&self, schema: &Schema, found: Reply) -> Result<Value, String> {
        let Some(result) = &self.result else { return Ok(Value::NONE) };
        convert(schema, found, result)
            .map_err(|why| format!("the result of operation {}: {why}", self.name))
    }
}

/// Converts a reply to a value of this type.
fn convert(schema: &Schema, found: Reply, wanted: &Type) -> Result<Value, String> {
    match (found, wanted) {
        (Reply::Nil, Type::Option(_)) => Ok(Value::NONE),
        (found, Type::Option(inner)) => convert(schema, found, inner).map(Value::some),
        (Reply::Nil, _) => Err(format!("expected {wanted}, found nothing")),
        (Reply::Array(items), Type::List(inner)) => {
            let items = items.into_iter().map(|item| convert(schema, item, inner));
            Ok(Value::List(items.collect::<Result<_, _>>()?))
        }
        (Reply::Array(items), Type::Struct(name)) => {
            let declared = schema.structs.get(name).ok_or("no such struct")?;
            if items.len() != declared.fields.len() {
                let (found, fields) = (items.len(), declared.fields.len());
                return Err(format!("{name} has {fields} fields, found {found} items"));
            }
            let fields = items.into_iter().zip(&declared.fields);
            let fields = fields.map(|(item, (_, of))| convert(schema, item, of));
            Ok(Value::Struct(fields.collect::<Result<_, _>>()?))
        }
        (Reply::Int(number), _) if number.abs() >= LUA_INT_END => {
            Err(format!("the number {number} is not exact: Lua holds whole numbers up to 2^53"))
        }
        (Reply::Array(_), _) => Err(format!("expected {wanted}, found several items")),
        (found, _) => {
            let bytes = reply::bytes(found)?.unwrap_or_default();
            codec::decode(schema, &bytes, wanted)
        }
    }
}

/// Splits a body into words at spaces; `"` quotes a word with spaces.
fn split(body: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    for c in body.trim().chars() {
        match c {
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            c if c.is_whitespace() && !is_quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    if is_quoted {
        return Err(format!("a quotation mark is open in `{body}`"));
    }
    words.extend(word);
    Ok(words)
}

fn parse_word(word: &str, count: usize) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut rest = word;
    while let Some(at) = rest.find('$') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits == 0 {
            text.push('$');
            continue;
        }
        let number: usize = rest[..digits].parse().unwrap_or(0);
        if number == 0 || number > count {
            return Err(format!("`${}` is none of {count} arguments", &rest[..digits]));
        }
        if !text.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut text)));
        }
        parts.push(Part::Argument(number - 1));
        rest = &rest[digits..];
    }
    text.push_str(rest);
    if !text.is_empty() || parts.is_empty() {
        parts.push(Part::Text(text));
    }
    Ok(parts)
}

/// Returns the operation called `name`.
///
/// # Errors
///
/// When there is none, or it has no body.
pub fn find<'a>(operations: &'a Operations, name: &Name) -> Result<&'a Operation, String> {
    match operations.get(name) {
        Some(Some(operation)) => Ok(operation),
        Some(None) => Err(format!(
            "operation {name} has no body; give it one in the store's binding, such as \
             `ZSCORE scores $1`"
        )),
        None => Err(format!("no operation {name} is declared")),
    }
}

/// Returns the query called `name`.
///
/// # Errors
///
/// When there is none, or it writes.
pub fn query<'a>(operations: &'a Operations, name: &Name) -> Result<&'a Operation, String> {
    let found = find(operations, name)?;
    if found.is_command {
        return Err(format!("operation {name} is a command, not a query"));
    }
    Ok(found)
}

/// Returns the command called `name`.
///
/// # Errors
///
/// When there is none, or it does not write.
pub fn command<'a>(operations: &'a Operations, name: &Name) -> Result<&'a Operation, String> {
    let found = find(operations, name)?;
    if !found.is_command {
        return Err(format!("operation {name} is a query, not a command"));
    }
    Ok(found)
}
