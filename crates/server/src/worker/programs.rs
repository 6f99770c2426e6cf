//! Programs from clients.
//!
//! A program may bring transactions of its own. Its declarations for a store that is served here must
//! match those of the served program, because the store keeps data by the latter.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use mingle_lang::Program;
use mingle_model::{Name, Type};
use mingle_runtime::intent::ProgramHash;
use tokio::sync::Semaphore;

use super::WorkerBounds;
use crate::problem::{Code, Problem};

/// Programs by the hashes of their texts.
pub(super) struct Programs {
    served: Arc<Program>,
    served_hash: ProgramHash,
    known: Mutex<Known>,
    known_max: usize,
    /// Checking takes a core, so one program is checked at a time.
    checking: Semaphore,
}

#[derive(Default)]
struct Known {
    programs: HashMap<ProgramHash, (u64, Arc<Program>)>,
    /// A counter of uses, as the time of the last use.
    now: u64,
}

impl Programs {
    pub(super) fn new(served: Arc<Program>, bounds: &WorkerBounds) -> Self {
        let served_hash = ProgramHash::of(&served.text);
        Self {
            served,
            served_hash,
            known: Mutex::default(),
            known_max: bounds.programs_max,
            checking: Semaphore::new(1),
        }
    }

    /// The program of this hash, if it is known.
    pub(super) fn find(&self, hash: ProgramHash) -> Result<Arc<Program>, Problem> {
        if hash == self.served_hash {
            return Ok(self.served.clone());
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.now += 1;
        let now = known.now;
        let found = known.programs.get_mut(&hash).map(|(used, program)| {
            *used = now;
            program.clone()
        });
        found.ok_or_else(|| {
            let detail = format!("the worker does not know program {hash:?}: send its text");
            Problem::new(Code::UnknownProgram, detail).retryable(true)
        })
    }

    /// Checks a program like any other input, and keeps it.
    pub(super) async fn add(&self, hash: ProgramHash, text: String) -> Result<(), Problem> {
        if ProgramHash::of(&text) != hash {
            let detail = "the text is not that of this hash";
            return Err(Problem::new(Code::InvalidArgument, detail));
        }
        if self.find(hash).is_ok() {
            return Ok(());
        }
        let _turn = self.checking.acquire().await.map_err(|_| Problem::shutting_down())?;
        let checked = tokio::task::spawn_blocking(move || mingle::compile(&text)).await;
        let program = match checked {
            Ok(Ok(program)) => program,
            Ok(Err(mistakes)) => {
                let detail = format!("the program has errors: {mistakes}");
                return Err(Problem::new(Code::InvalidArgument, detail));
            }
            Err(_) => {
                let detail = "the program could not be checked";
                return Err(Problem::new(Code::InvalidArgument, detail));
            }
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        while known.programs.len() >= self.known_max.max(1) {
            let oldest = known.programs.iter().min_by_key(|(_, (used, _))| *used);
            let Some(oldest) = oldest.map(|(hash, _)| *hash) else { break };
            known.programs.remove(&oldest);
        }
        known.now += 1;
        let now = known.now;
        known.programs.insert(hash, (now, program));
        Ok(())
    }

    /// Checks that a program's declarations for a store match those of the served program.
    pub(super) fn check_fit(&self, program: &Arc<Program>, store: &str) -> Result<(), Problem> {
        if Arc::ptr_eq(program, &self.served) {
            return Ok(());
        }
        fits(&self.served, program, store).map_err(|why| Problem::new(Code::Unsupported, why))
    }
}

fn fits(served: &Program, program: &Program, store: &str) -> Result<(), String> {
    let find = |program: &Program| {
        program.checked.stores.iter().find(|known| *known.name == *store).cloned()
    };
    let (Some(here), Some(there)) = (find(served), find(program)) else {
        return Err(format!("the program has no store {store}"));
    };
    let level = |program: &Program, id| program.checked.levels.carrier(id);
    let (has, wants) = (level(served, here.level), level(program, there.level));
    // The strongest level is the smallest.
    if has > wants {
        let (has, wants) = (has.name(), wants.name());
        return Err(format!("the program wants store {store} to be {wants}, and it is {has}"));
    }
    // A store sees labels, so that programs with other values of an enumeration fit.
    let (served, wanted) = (served.schema().stored(), program.schema().stored());
    for declared in wanted.objects.values() {
        let known = served.objects.get(&declared.name);
        let is_alike = match known {
            Some(known) if *declared.store == *store => known == declared,
            // Refs to objects of another store may be kept here.
            Some(known) => *known.store != *store && known.key_type == declared.key_type,
            None => *declared.store != *store,
        };
        if !is_alike {
            return Err(format!(
                "object {} is declared in another way than in the program that is served",
                declared.name
            ));
        }
    }
    for (name, declared) in &wanted.structs {
        if served.structs.get(name).is_some_and(|known| known != declared) {
            return Err(format!(
                "struct {name} is declared in another way than in the program that is served"
            ));
        }
    }
    for operation in &there.operations {
        let is_alike = here.operations.iter().any(|known| {
            known.name == operation.name
                && known.is_command == operation.is_command
                && stored(&known.params) == stored(&operation.params)
                && known.result.as_ref().map(Type::stored)
                    == operation.result.as_ref().map(Type::stored)
        });
        if !is_alike {
            return Err(format!(
                "operation {} of store {store} is declared in another way than in the program that is served",
                operation.name
            ));
        }
    }
    Ok(())
}

/// Returns the types of parameters as stores see them.
fn stored(params: &[(Name, Type)]) -> Vec<Type> {
    params.iter().map(|(_, found)| found.stored()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVED: &str = "store bank: linearizable { query sum() -> int; } store feed: causal;
        struct P { a: int }
        object A in bank { key k: string; n: int; p: P; r: ref B; }
        object B in feed { key k: string; n: int; }
        transaction t(a: ref A) { a.n += 1; }";

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let compile =
            |text: &str| mingle::compile(text).unwrap_or_else(|why| panic!("{why}\n{text}"));
        let found = fits(&compile(SERVED), &compile(text), "bank").err().unwrap_or_default();
        let is_right = found.contains(expected) && found.is_empty() == expected.is_empty();
        assert!(is_right, "{found:?} for {text}");
    }

    #[test]
    fn a_program_brings_transactions_and_no_other_data() {
        check("store bank: linearizable; object A in bank { key k: string; n: int; p: P; r: ref B; }
            struct P { a: int } store other: eventual; object B in other { key k: string; x: string; }
            transaction twice(a: ref A) { a.n += 2; }", "");
        check(
            "store bank: snapshot; object B in bank { key k: string; n: int; }
            transaction t(b: ref B) { b.n += 1; }",
            "object B",
        );
        check(
            "store bank: linearizable; object A in bank { key k: string; n: int; }
            transaction t(a: ref A) { a.n += 1; }",
            "object A",
        );
        check(
            "store bank: linearizable; object C in bank { key k: string; n: int; }
            transaction t(c: ref C) { c.n += 1; }",
            "object C",
        );
        check(
            "store feed: causal; object B in feed { key k: string; n: int; }
            transaction t(b: ref B) { b.n += 1; }",
            "no store bank",
        );
        check(
            "store bank: linearizable { query sum() -> string; } transaction t() -> string { return bank.sum(); }",
            "operation sum",
        );
        check("store bank: linearizable; struct P { a: string } object A in bank { key k: string; n: int; p: P; r: ref B; }
            object B in bank { key k: string; n: int; } transaction t(a: ref A) { a.n += 1; }", "object A");
    }
}
