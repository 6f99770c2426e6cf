//! Reads with a policy: the strongest answer that comes in time (IPA, section 5.2).
//!
//! A read `by` a bound is a race of two requests. An answer at the store's own level is read in the
//! phase's own transaction and validated there, like any read. A weaker answer comes from a transaction
//! of its own, which validates nothing.
//!
//! | the monitor says of the own level | asked |
//! | --- | --- |
//! | likely in time, or nothing is known | the own level at once; the weaker one shortly before the bound is over |
//! | too slow | the weaker level at once; once a second also the own one, to notice that it is fast again |
//! | any, and a tenth of the reads was sent twice | the weaker level alone |
//!
//! The questions of the attempt, such as whether the transactions are visible for which the session waits, are
//! asked with the own level: its answer counts only if they are. A weaker answer promises nothing about them, so
//! it does not wait.
//!
//! If the bound is over and the own level has not answered, its request goes on: the phase waits for
//! it only if it needs its transaction later.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use mingle_lang::hir::Policy;
use mingle_model::{Level, Name, Stamp, Value};
use mingle_store::{Answer, BoxFuture, Read, Session as StoreSession, StoreError, Transaction};

use crate::api::call::PhaseReport;
use crate::api::error::Error;
use crate::execute::Executor;
use crate::execute::attempt::{Step, Visit};
use crate::execute::execution::Execution;
use crate::execute::lent::{Answers, Lent, Reading, read_all};
use crate::execute::turns::Turns;
use crate::interpreter::machine::Machine;
use crate::interpreter::machine::answer::{Answered, Asked};
use crate::mutants::Mutant;
use crate::observe::metrics;
use crate::protocol::intent::PinnedAnswers;
use crate::stores::Given;
use crate::stores::monitors::Place;

/// The least time that a weaker answer gets before the bound is over, where nothing is known of it.
const MARGIN: Duration = Duration::from_millis(1);

/// The time after the bound for which a request at the own level goes on while its replica lags.
const LAG_MAX: Duration = Duration::from_secs(1);

/// The reply to a read with a policy.
enum Reply {
    Answer(Answered),
    /// The attempt ends here.
    Stop(Step),
}

/// The end of a race.
enum Raced {
    /// The own level has answered, with its transaction.
    Own(Box<dyn Transaction>, Vec<Answer>),
    Weaker(Vec<Answer>),
    Late,
}

/// The requests of one read with a policy.
struct Race {
    /// The time at which the race began, by the world's clock.
    since: Duration,
    own: Option<Reading>,
    /// The request at a weaker level, and the time at which it is sent.
    weaker: Option<(Duration, BoxFuture<'static, Answers>)>,
    /// The end of the bound, if there is one, and whether nothing is waited for after it.
    until: Option<Duration>,
    is_hard: bool,
    /// True if a weaker answer does not wait for the own level.
    takes_weaker: bool,
    /// True if the request at the own level is a probe: its answer is awaited, however late.
    is_probe: bool,
    /// Ends when the request at the weaker level is sent.
    start: Option<BoxFuture<'static, ()>>,
    /// The time at which it was sent.
    sent: Option<Duration>,
    /// The weaker answer, kept until the bound is over.
    kept: Option<Vec<Answer>>,
}

impl Race {
    fn since(since: Duration) -> Self {
        Self {
            since,
            own: None,
            weaker: None,
            until: None,
            is_hard: false,
            takes_weaker: true,
            is_probe: false,
            start: None,
            sent: None,
            kept: None,
        }
    }
}

impl Executor {
    /// Lends the store transaction of a phase to its reads with a policy, and returns it as lent.
    pub(crate) fn lend(
        &self,
        execution: &Execution,
        visit: &mut Visit,
        transaction: Box<dyn Transaction>,
        session: StoreSession,
    ) -> Box<dyn Transaction> {
        let hosted = execution.hosted_at(visit.store);
        let site = hosted.unwrap_or(&self.stores.all[visit.store]).clone();
        let lent = Lent::of(transaction, site, session, hosted.is_some());
        visit.lent = Some(lent.clone());
        Box::new(lent)
    }

    /// Runs the machine of a phase whose reads have policies to its end, unless an answer stops it.
    pub(crate) async fn run_with_answers(
        &self,
        machine: &mut Machine<'_>,
        (execution, index, pinned): (&Execution, usize, Option<&PinnedAnswers>),
        visit: &mut Visit,
        transaction: &mut dyn Transaction,
        (turns, report): (&mut Turns<'_>, &mut PhaseReport),
    ) -> Result<Option<Step>, Error> {
        loop {
            let told = (&mut *turns, &mut *report);
            let driven = self.drive(machine, pinned, visit, transaction, told).await?;
            let asked = match (driven, visit.asked.take()) {
                (None, Some(asked)) => asked,
                (stopped, _) => return Ok(stopped),
            };
            match self.answer((execution, index), &asked, pinned, visit, report).await? {
                Reply::Answer(answer) => machine.supply_answer(answer),
                Reply::Stop(step) => return Ok(Some(step)),
            }
        }
    }

    /// Answers a read with a policy.
    async fn answer(
        &self,
        (execution, index): (&Execution, usize),
        asked: &Asked,
        pinned: Option<&PinnedAnswers>,
        visit: &mut Visit,
        report: &mut PhaseReport,
    ) -> Result<Reply, Error> {
        let batch = visit.batch;
        visit.batch += 1;
        let mutant = self.stores.mutant;
        if let Some(pinned) = pinned.filter(|_| mutant != Mutant::AnswersAskedAgain) {
            let data = pinned.answers.get(batch).cloned().unwrap_or_default();
            return Answered::from_data(data).map(Reply::Answer).ok_or_else(|| {
                Error::Unsupported("the pinned answers do not fit the program".to_owned())
            });
        }
        if let Some(given) = &self.stores.given {
            let answer = self.given_answer(execution, index, asked, given, visit).await;
            return answer.map(Reply::Answer);
        }
        let (weaker, mut race) = self.race(execution, asked, visit);
        report.round_trips += 1;
        let raced = self.run_race(&mut race, visit).await;
        self.let_go(race, visit);
        let levels = &execution.call.program.checked.levels;
        let (level, answers) = match raced.map_err(Error::Store)? {
            Raced::Own(open, answers) => match self.own_answers(open, answers, visit).await? {
                Ok(answers) => (levels.name(asked.own).clone(), answers),
                Err(step) => return Ok(Reply::Stop(step)),
            },
            Raced::Weaker(answers) => {
                let level = Name::from(weaker.map_or(Value::LATE, Level::name));
                let is_passed_off = mutant == Mutant::WeakerCalledOwn;
                (if is_passed_off { levels.name(asked.own).clone() } else { level }, answers)
            }
            Raced::Late => (Name::from(Value::LATE), Vec::new()),
        };
        metrics::answered(&visit.name, &level);
        let is_own = level == *levels.name(asked.own);
        let mut data = Vec::with_capacity(answers.len());
        for answer in answers {
            visit.version = visit.version.max(answer.version.0);
            if is_own || mutant != Mutant::WeakerRowsIgnored {
                visit.rows.extend(answer.witnesses);
            }
            data.push(answer.data);
        }
        let answered = match &*level {
            Value::LATE if data.is_empty() => Answered::Late,
            _ => Answered::Of { level, data },
        };
        keep(execution, index, asked, &answered, is_own, visit);
        Ok(Reply::Answer(answered))
    }

    /// Takes the answers of the store's own level, after those to the questions of the attempt, which may stop
    /// it.
    async fn own_answers(
        &self,
        mut open: Box<dyn Transaction>,
        mut answers: Vec<Answer>,
        visit: &mut Visit,
    ) -> Result<Result<Vec<Answer>, Step>, Error> {
        let questions = std::mem::take(&mut visit.questions);
        let own = answers.split_off(questions.len());
        let stopped = self.judge(visit, &questions, answers, &mut *open).await?;
        if let Some(lent) = &visit.lent
            && self.stores.mutant != Mutant::AnswersUnchecked
        {
            lent.give_back(open);
        }
        if stopped.is_some() || visit.is_settled() {
            return Ok(Err(stopped.unwrap_or(Step::Again)));
        }
        Ok(Ok(own))
    }

    /// Answers a read as a test says.
    async fn given_answer(
        &self,
        execution: &Execution,
        index: usize,
        asked: &Asked,
        given: &Given,
        visit: &mut Visit,
    ) -> Result<Answered, Error> {
        let mut lent =
            visit.lent.clone().expect("the transaction of a phase with policies is lent");
        let answers = lent.read(&asked.reads).await.map_err(Error::Store)?;
        let data = answers.into_iter().map(|answer| answer.data).collect();
        let object = asked.reads[0].object().expect("a read with a policy has an object");
        let store = execution.call.plan.phases[index].store.expect("it reads at a store");
        let at = match asked.answering.policy {
            Policy::At(level) => Some(level),
            Policy::By(_) => None,
        };
        let answered = match given(store, object, at, data) {
            Some((level, data)) => Answered::Of { level, data },
            None => Answered::Late,
        };
        keep(execution, index, asked, &answered, false, visit);
        Ok(answered)
    }

    /// Prepares the requests of a read.
    fn race(&self, execution: &Execution, asked: &Asked, visit: &Visit) -> (Option<Level>, Race) {
        let store = visit.store;
        let capabilities = self.stores.all[store].capabilities();
        let at_once = capabilities.operations_per_round_trip;
        let now = self.stores.world.elapsed();
        let levels = &execution.call.program.checked.levels;
        // A weaker answer lacks what this transaction has already sent.
        let offered = capabilities.weaker_answers.iter().copied();
        let mut offered = offered.filter(|_| visit.flushed.is_empty());
        let weaker = match asked.answering.policy {
            Policy::By(_) => offered.next(),
            Policy::At(wanted) => offered.rfind(|level| {
                levels.find(level.name()).is_some_and(|level| levels.is_at_least(level, wanted))
            }),
        };
        let ask_own = |again: Option<Duration>| {
            let lent =
                visit.lent.as_ref().expect("the transaction of a phase with policies is lent");
            let again = again.map(|until| (self.stores.world.clone(), until));
            lent.ask(visit.questions.clone(), asked.reads.clone(), at_once, again)
        };
        let ask_weaker = |level| self.ask_weaker(execution, visit, level, asked.reads.clone());
        let mut race = Race::since(now);
        let Policy::By(bound) = asked.answering.policy else {
            match weaker {
                Some(level) => race.weaker = Some((now, ask_weaker(level))),
                None => race.own = Some(ask_own(None)),
            }
            return (weaker, race);
        };
        let bound = Duration::from_millis(bound);
        (race.until, race.is_hard) = (Some(now + bound), !asked.answering.must_come);
        // Without a bound that ends the wait, the phase waits, and helps those for which it waits.
        let again = (weaker.is_some() || race.is_hard).then_some(now + bound + LAG_MAX);
        let Some(level) = weaker else {
            race.own = Some(ask_own(again));
            return (None, race);
        };
        let monitors = &self.stores.monitors;
        let place = |is_weaker| -> Place { (store, visit.replica.clone(), is_weaker) };
        let may_duplicate = monitors.may_duplicate(store);
        if monitors.is_likely(&place(false), bound) && may_duplicate {
            let lead = monitors.slowest(&place(true)).unwrap_or(bound / 2) + MARGIN;
            let send_at = now + bound.saturating_sub(lead);
            race.takes_weaker = false;
            race.own = Some(ask_own(again));
            race.weaker = Some((send_at, ask_weaker(level)));
        } else {
            race.weaker = Some((now, ask_weaker(level)));
            if monitors.probes(store, now) {
                (race.own, race.is_probe) = (Some(ask_own(again)), true);
            }
        }
        (weaker, race)
    }

    fn ask_weaker(
        &self,
        execution: &Execution,
        visit: &Visit,
        level: Level,
        reads: Vec<Read>,
    ) -> BoxFuture<'static, Answers> {
        let site = self.stores.all[visit.store].clone();
        let at_once = site.capabilities().operations_per_round_trip;
        let after = match level {
            // Any replica's state will do.
            Level::Eventual => Stamp::default(),
            _ => self.after(execution, visit.store, None),
        };
        let session = StoreSession {
            replica: visit.replica.clone(),
            after,
            level: Some(level),
            transaction: None,
        };
        Box::pin(async move {
            let mut transaction = site.begin(&session).await?;
            read_all(&mut *transaction, &reads, at_once).await
        })
    }

    /// Waits for the end of a race.
    async fn run_race(&self, race: &mut Race, visit: &Visit) -> Result<Raced, StoreError> {
        let world = &self.stores.world;
        let sleep_until = |at: Duration| world.sleep(at.saturating_sub(world.elapsed()));
        let mut bound = race.until.map(sleep_until);
        race.start = race.weaker.as_ref().map(|(at, _)| sleep_until(*at));
        poll_fn(|context| {
            if let Some(end) = self.poll_own(race, visit, context) {
                return Poll::Ready(end);
            }
            if let Some(end) = self.poll_weaker(race, visit, context) {
                return Poll::Ready(end);
            }
            if let Some(sleep) = &mut bound
                && sleep.as_mut().poll(context).is_ready()
            {
                bound = None;
                // After the bound, the first answer counts.
                race.takes_weaker = true;
                if let Some(answers) = race.kept.take() {
                    return Poll::Ready(Ok(Raced::Weaker(answers)));
                }
                if race.is_hard {
                    return Poll::Ready(Ok(Raced::Late));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Polls the request at the own level.
    fn poll_own(
        &self,
        race: &mut Race,
        visit: &Visit,
        context: &mut Context<'_>,
    ) -> Option<Result<Raced, StoreError>> {
        let Poll::Ready((open, answers)) = race.own.as_mut()?.as_mut().poll(context) else {
            return None;
        };
        race.own = None;
        let now = self.stores.world.elapsed();
        let place: Place = (visit.store, visit.replica.clone(), false);
        self.stores.monitors.note(&place, now.saturating_sub(race.since), now);
        match (open, answers) {
            (Some(open), Ok(answers)) => return Some(Ok(Raced::Own(open, answers))),
            (_, Err(error)) if !away(&error) => return Some(Err(error)),
            (_, Err(error)) if race.weaker.is_none() && race.kept.is_none() && !race.is_hard => {
                return Some(Err(error));
            }
            _ => race.takes_weaker = true,
        }
        // The own level fails: the weaker one is asked now.
        race.start = race.start.take().map(|_| self.stores.world.sleep(Duration::ZERO));
        None
    }

    /// Sends and polls the request at the weaker level.
    fn poll_weaker(
        &self,
        race: &mut Race,
        visit: &Visit,
        context: &mut Context<'_>,
    ) -> Option<Result<Raced, StoreError>> {
        let world = &self.stores.world;
        if let Some(sleep) = &mut race.start
            && sleep.as_mut().poll(context).is_ready()
        {
            race.start = None;
            race.sent = Some(world.elapsed());
            if race.own.is_some() && !race.is_probe {
                self.stores.monitors.note_duplicate(visit.store);
            }
        }
        if let Some(sent) = race.sent
            && let Some((_, weaker)) = &mut race.weaker
            && let Poll::Ready(answers) = weaker.as_mut().poll(context)
        {
            race.weaker = None;
            let now = world.elapsed();
            let place: Place = (visit.store, visit.replica.clone(), true);
            self.stores.monitors.note(&place, now.saturating_sub(sent), now);
            match answers {
                Ok(answers) => race.kept = Some(answers),
                Err(error) if race.own.is_none() && !race.is_hard => return Some(Err(error)),
                Err(_) => {}
            }
        }
        let answers = if race.takes_weaker { race.kept.take() } else { None };
        answers.map(|answers| Ok(Raced::Weaker(answers)))
    }

    /// Leaves a request at the own level that has not been answered in time: it goes on, so that the monitor
    /// learns how long it takes.
    fn let_go(&self, race: Race, visit: &Visit) {
        let (Some(own), Some(lent)) = (race.own, &visit.lent) else { return };
        let now = self.stores.world.elapsed();
        let place: Place = (visit.store, visit.replica.clone(), false);
        if race.until.is_some_and(|until| now >= until) {
            // How late the answer is, is not known yet: late enough.
            self.stores.monitors.note(&place, now.saturating_sub(race.since) * 2, now);
        }
        let Some(own) = lent.leave(own) else { return };
        // No later part of the phase needs this transaction.
        let is_probe = race.is_probe || self.stores.monitors.probes(visit.store, now);
        if let Some(stores) = self.stores.me.upgrade().filter(|_| is_probe) {
            self.stores.world.spawn(Box::pin(async move {
                let (_, answers) = own.await;
                if answers.is_ok() {
                    let now = stores.world.elapsed();
                    stores.monitors.note(&place, now.saturating_sub(race.since), now);
                }
            }));
        }
    }
}

/// Keeps an answer: for every process that runs the phase, or to compare it with the answer at the end
/// if an endorsement rests on it.
fn keep(
    execution: &Execution,
    index: usize,
    asked: &Asked,
    answered: &Answered,
    is_own: bool,
    visit: &mut Visit,
) {
    if !visit.keeps_answers {
        return;
    }
    if !execution.call.plan.phases[index].before_endorsement {
        visit.answers.push(answered.to_data());
    } else if let Answered::Of { data, .. } = answered
        && is_own
    {
        visit.reads.extend(asked.reads.iter().cloned());
        visit.answers.push(data.clone());
    }
}

/// True if an error says only that the store did not answer.
fn away(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable { .. } | StoreError::Behind { .. })
}
