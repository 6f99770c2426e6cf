//! Whole phases, which run beside the store.

use std::time::Duration;

use hyper::Method;
use mingle_model::Principal;
use mingle_store::{Admission, BoxFuture, Errand, Ran, StoreError, Worker};

use crate::limits::{ASK_PAUSE_MAX, ASK_PAUSE_MIN};
use crate::link::{Answer, Failed, Problem};
use crate::store::WorkerStore;
use crate::wire::{code, hex};

impl Admission for WorkerStore {
    fn admits(&self, principal: Option<&Principal>, transaction: &str) -> bool {
        self.principals().is_none_or(|listed| listed.admits(principal, transaction))
    }
}

impl Worker for WorkerStore {
    fn run<'a>(&'a self, errand: Errand<'a>) -> BoxFuture<'a, Result<Ran, StoreError>> {
        Box::pin(self.send(errand))
    }
}

impl WorkerStore {
    async fn send(&self, errand: Errand<'_>) -> Result<Ran, StoreError> {
        let program = hex(&errand.program);
        let attempt = format!("{}/attempts/{:032x}", self.path(), errand.nonce);
        let run = format!("{attempt}?program={program}");
        let mut round_trips = 0;
        let mut was_sent = false;
        loop {
            round_trips += 1;
            let asked =
                self.link().ask(Method::PUT, &run, errand.attempt.to_vec(), self.patience()).await;
            let answer = match asked {
                Ok(answer) => answer,
                Err(Failed::NotSent(reason)) => return Err(self.unavailable(reason)),
                Err(Failed::Lost(_)) => {
                    return self.ask_again(&attempt, errand.within, round_trips).await;
                }
            };
            match answer.problem() {
                None => return Ok(ran(answer, round_trips)),
                Some(problem) if problem.code == code::UNKNOWN_PROGRAM && !was_sent => {
                    // The worker has run nothing: without the program it cannot run the attempt.
                    was_sent = true;
                    round_trips += 1;
                    self.send_program(&program, errand.text).await?;
                }
                Some(problem) if problem.code == code::IN_PROGRESS => {
                    return self.ask_again(&attempt, errand.within, round_trips).await;
                }
                Some(problem) => return Err(self.refused(problem)),
            }
        }
    }

    /// Requests the result of an attempt with a lost answer, until the worker returns it or reports
    /// that it never had the attempt.
    async fn ask_again(
        &self,
        attempt: &str,
        within: Duration,
        mut round_trips: u32,
    ) -> Result<Ran, StoreError> {
        let unknown = || StoreError::Unknown { store: self.name().clone(), id: None };
        let begun = self.world().elapsed();
        let mut pause = ASK_PAUSE_MIN;
        loop {
            round_trips += 1;
            let patience = self.patience();
            let asked = self.link().ask(Method::GET, attempt, Vec::new(), patience).await;
            if let Ok(answer) = asked {
                match answer.problem() {
                    None => return Ok(ran(answer, round_trips)),
                    // A restarted worker does not know the attempts that it ran before.
                    Some(problem) if problem.code == code::UNKNOWN_ATTEMPT => return Err(unknown()),
                    Some(_) => {}
                }
            }
            if self.world().elapsed().saturating_sub(begun) + pause > within {
                return Err(unknown());
            }
            self.world().sleep(pause).await;
            pause = (pause * 2).min(ASK_PAUSE_MAX);
        }
    }

    /// Sends the text of a program, which the worker checks.
    pub(crate) async fn send_program(&self, hash: &str, text: &str) -> Result<(), StoreError> {
        let path = format!("/v1/worker/programs/{hash}");
        let asked = self.link().ask(Method::PUT, &path, text.into(), self.patience()).await;
        let answer = asked.map_err(|failed| self.unavailable(failed.reason()))?;
        answer.problem().map_or(Ok(()), |problem| Err(self.refused(problem)))
    }

    /// Returns the error for a worker that did not carry out a request.
    pub(crate) fn refused(&self, problem: Problem) -> StoreError {
        match problem.code.as_str() {
            code::OVERLOADED => StoreError::Conflict,
            code::SHUTTING_DOWN => self.unavailable(problem.detail),
            _ => {
                let reason = format!("its worker says {}: {}", problem.code, problem.detail);
                StoreError::Refused { store: self.name().clone(), reason }
            }
        }
    }

    pub(crate) fn unavailable(&self, reason: String) -> StoreError {
        let reason = format!("its worker cannot be reached: {reason}");
        StoreError::Unavailable { store: self.name().clone(), reason }
    }
}

fn ran(answer: Answer, round_trips: u32) -> Ran {
    Ran { answer: answer.body.into(), round_trips }
}
