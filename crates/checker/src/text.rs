//! The plain form that public checkers read: one operation a line, `r(key,value,session,transaction)`
//! or `w(key,value,session,transaction)`, with -1 for a transaction that aborted.
//!
//! It cannot express stores, levels, times and recorded orders.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use mingle_model::Level;

use crate::history::{History, Kind, Operation, Outcome, Transaction};
use crate::jsonl::ReadError;

/// The store of all keys in this form.
const STORE: &str = "default";

/// Reads the plain form. Skips empty lines and lines that begin with `#`. Consecutive lines of a
/// session with transaction -1 form one transaction.
///
/// # Errors
///
/// The first invalid line.
///
/// # Examples
///
/// ```
/// let history = mingle_checker::read_text("w(1,5,1,1)\nr(1,5,2,2)\n").unwrap();
/// assert_eq!(mingle_checker::write_text(&history), "w(1,5,1,1)\nr(1,5,2,2)\n");
/// let error = mingle_checker::read_text("x(1,5,1,1)").unwrap_err();
/// assert!(error.to_string().starts_with("line 1: "));
/// ```
pub fn read_text(text: &str) -> Result<History, ReadError> {
    let mut reader = Reader::default();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            let number = index + 1;
            reader.line(number, line).map_err(|message| ReadError { line: number, message })?;
        }
    }
    reader.finish()
}

/// Writes the plain form. A transaction with unknown outcome is written as committed if a
/// transaction that took effect read from it, and otherwise as aborted.
pub fn write_text(history: &History) -> String {
    let live = crate::index::live(history);
    let mut text = String::new();
    for (transaction, is_live) in history.transactions().iter().zip(live) {
        let id = if is_live { transaction.id } else { -1 };
        for Operation { kind, key, value, .. } in &transaction.operations {
            let letter = if *kind == Kind::Read { 'r' } else { 'w' };
            writeln!(text, "{letter}({key},{value},{},{id})", transaction.session)
                .expect("writing to a string does not fail");
        }
    }
    text
}

#[derive(Default)]
struct Reader {
    transactions: Vec<Transaction>,
    /// The line of each operation.
    lines: Vec<Vec<usize>>,
    /// The index of the last transaction of each session.
    last: HashMap<i64, usize>,
    ids: HashSet<i64>,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        let (kind, [key, value, session, id]) = parse(line)?;
        let index = self.transaction(session, id)?;
        let (store, level) = (STORE.into(), Level::Linearizable);
        let operation = Operation { kind, key, value, store, level, version: None };
        self.transactions[index].operations.push(operation);
        self.lines[index].push(number);
        Ok(())
    }

    /// Returns the index of the transaction that continues or begins.
    fn transaction(&mut self, session: i64, id: i64) -> Result<usize, String> {
        if id < -1 {
            return Err(format!("transaction {id}: expected -1 or a number that is not negative"));
        }
        let aborted = id == -1;
        if let Some(&last) = self.last.get(&session) {
            let found = &self.transactions[last];
            let goes_on = if aborted { found.outcome == Outcome::Aborted } else { found.id == id };
            if goes_on {
                return Ok(last);
            }
        }
        if !aborted && !self.ids.insert(id) {
            return Err(format!(
                "transaction {id} goes on in session {session}, expected its operations in one \
                 session and together"
            ));
        }
        let index = self.transactions.len();
        let outcome = if aborted { Outcome::Aborted } else { Outcome::Committed };
        self.transactions.push(Transaction {
            id,
            session,
            outcome,
            interval: None,
            commit: None,
            is_final: false,
            operations: Vec::new(),
        });
        self.lines.push(Vec::new());
        self.last.insert(session, index);
        Ok(index)
    }

    fn finish(mut self) -> Result<History, ReadError> {
        // An aborted transaction has no number in this form, and gets an unused one.
        let mut next: i64 = 0;
        for transaction in &mut self.transactions {
            if transaction.outcome == Outcome::Aborted {
                while self.ids.contains(&next) {
                    next += 1;
                }
                self.ids.insert(next);
                transaction.id = next;
            }
        }
        let lines = self.lines;
        History::new(self.transactions).map_err(|error| {
            let of = lines.get(error.transaction);
            let line = of.and_then(|lines| lines.get(error.operation.unwrap_or(0)).copied());
            ReadError { line: line.unwrap_or(0), message: error.message }
        })
    }
}

fn parse(line: &str) -> Result<(Kind, [i64; 4]), String> {
    const FORM: &str = "expected r(key,value,session,transaction) or the same with w";
    let wrong = || format!("`{}`: {FORM}", shorten(line));
    let inner = line.strip_suffix(')').ok_or_else(wrong)?;
    let (letter, inner) = inner.split_once('(').ok_or_else(wrong)?;
    let kind = match letter.trim() {
        "r" => Kind::Read,
        "w" => Kind::Write,
        _ => return Err(wrong()),
    };
    let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
    let parts: [&str; 4] = parts.try_into().map_err(|_| wrong())?;
    let mut numbers = [0; 4];
    for ((number, part), name) in
        numbers.iter_mut().zip(parts).zip(["key", "value", "session", "transaction"])
    {
        let whole = part.parse();
        *number = whole.map_err(|_| {
            format!("{name} `{}`: expected a whole number of 64 bits", shorten(part))
        })?;
    }
    Ok((kind, numbers))
}

/// Returns the beginning of a text, for a message.
pub(crate) fn shorten(text: &str) -> String {
    const CHARS_MAX: usize = 40;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
