//! From steps to a script: the expressions of the tests become transactions of the program, so that
//! the compiler checks them and the runtime evaluates them.
//!
//! The expression of `expect Item["tea"].stock == 2;` becomes
//! `transaction mingle_test_0() -> bool { return Item["tea"].stock == 2 ; }` behind the text of the
//! program. A [`Region`] remembers which tokens came from the file of tests, so that the compiler's
//! diagnostics are shown there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mingle_lang::diagnostic::{Code, Diagnostic, Label, Severity};
use mingle_lang::syntax::token::Punct;
use mingle_lang::syntax::{Source, Span, TokenKind, lex};
use mingle_lang::{Plan, Program};
use mingle_model::{Name, Type};

use super::read::{Action, CallText, Expression, Statement, Step, Test, Wanted};

/// A test that can run.
pub struct Script {
    /// Its name.
    pub name: String,
    /// True if it also runs once for each step at which the process can crash.
    pub crashes: bool,
    /// The number of seeds that the test asks for.
    pub seeds: Option<u64>,
    /// The replicas of its clients; the first client is the one that every test has.
    pub clients: Vec<Option<String>>,
    /// Its statements.
    pub body: Vec<Scene>,
}

impl Script {
    /// True if the order of its calls depends on the seed.
    pub fn is_concurrent(&self) -> bool {
        self.body.iter().any(|scene| matches!(scene, Scene::Together(_)))
    }
}

/// A statement of a script.
pub enum Scene {
    /// A step by itself.
    Alone(Act),
    /// Steps that run at the same time.
    Together(Vec<Act>),
    /// A wait in virtual time.
    Wait(Duration),
    /// A wait until all is finished, and has arrived at every replica.
    Settle(Span),
}

/// A step.
pub struct Act {
    /// The index of its client.
    pub client: usize,
    /// Its span.
    pub span: Span,
    /// The action.
    pub deed: Deed,
}

/// The action of a step.
pub enum Deed {
    /// A call, and the name for its result or its success.
    Call {
        /// The call.
        call: Called,
        /// The name.
        bound: Option<String>,
        /// True if it may fail.
        attempt: bool,
    },
    /// A call that must fail by a `require` with this code, or by any.
    Fails(Called, Option<String>),
    /// A call that must succeed with this result.
    Equal(Called, Evaluation),
    /// An expression that must be true, and the two sides of its comparison where they can be shown.
    Expect(Evaluation, Option<(Evaluation, Evaluation)>),
}

/// A call with its arguments.
pub struct Called {
    /// The transaction.
    pub transaction: Name,
    /// Its arguments, in the order of the parameters.
    pub arguments: Vec<Evaluation>,
}

/// An expression, as a transaction of the extended program.
#[derive(Clone)]
pub struct Evaluation {
    /// The transaction.
    pub transaction: Name,
    /// The names whose values it takes, in order.
    pub variables: Vec<String>,
}

/// A program that was extended, and its scripts.
pub struct Scripts {
    /// The program under test, with the transactions that evaluate expressions.
    pub program: Arc<Program>,
    /// The tests.
    pub scripts: Vec<Script>,
}

/// Checks tests against a program, which must be free of errors; `replicas` are those that its stores have.
pub fn scripts(
    program: &Program,
    source: &Source,
    tests: &[Test],
    replicas: &BTreeSet<String>,
) -> Result<Scripts, Vec<Diagnostic>> {
    let mut left_out = BTreeSet::new();
    loop {
        let mut builder = Builder {
            program,
            source,
            replicas,
            left_out: &left_out,
            text: format!("{}\n", program.text),
            tokens: lex(&*program.text).tokens.len() - 1,
            regions: Vec::new(),
            found: Vec::new(),
        };
        let scripts = tests.iter().map(|test| builder.script(test)).collect();
        let Builder { text, regions, mut found, .. } = builder;
        if !found.is_empty() {
            return Err(found);
        }
        let mut checked = mingle_lang::check(text);
        if let Some(program) = checked.program.take() {
            return Ok(Scripts { program: Arc::new(program), scripts });
        }
        let mut unshown = BTreeSet::new();
        for error in checked.diagnostics {
            if error.severity() != Severity::Error {
                continue;
            }
            match regions.iter().find(|region| region.all.contains(&error.span.start)) {
                // A side that has no text is not shown; the comparison itself is checked elsewhere.
                Some(region) if region.is_side => drop(unshown.insert(region.number)),
                Some(region) => found.push(region.lead_back(error)),
                None => found.push(error),
            }
        }
        if !found.is_empty() || unshown.is_subset(&left_out) {
            return Err(found);
        }
        left_out.extend(unshown);
    }
}

/// The tokens of one expression within the extended program.
struct Region {
    number: usize,
    /// All tokens of the transaction.
    all: std::ops::Range<u32>,
    /// The first token of the expression.
    start: u32,
    /// The expression in the file of tests.
    origin: Span,
    /// True if it only shows one side of a comparison.
    is_side: bool,
}

impl Region {
    /// Returns a diagnostic of the extended program as one of the file of tests.
    fn lead_back(&self, mut found: Diagnostic) -> Diagnostic {
        let length = self.origin.end - self.origin.start;
        let back = |span: Span| {
            let place = |at: u32| self.origin.start + at.saturating_sub(self.start).min(length);
            let (start, end) = (place(span.start), place(span.end));
            if start < end { Span { start, end } } else { self.origin }
        };
        found.span = back(found.span);
        found.labels = std::mem::take(&mut found.labels)
            .into_iter()
            .filter(|label| self.all.contains(&label.span.start))
            .map(|label| Label { span: back(label.span), ..label })
            .collect();
        for help in &mut found.help {
            help.edits.clear();
        }
        found
    }
}

struct Builder<'a> {
    program: &'a Program,
    source: &'a Source,
    replicas: &'a BTreeSet<String>,
    left_out: &'a BTreeSet<usize>,
    text: String,
    tokens: usize,
    regions: Vec<Region>,
    found: Vec<Diagnostic>,
}

/// The types of the names that a test has bound so far.
type Types = BTreeMap<String, Type>;

impl Builder<'_> {
    fn wrong(&mut self, code: Code, title: String, span: Span, label: &str) {
        self.found.push(Diagnostic::new(code, title, span, label));
    }

    fn script(&mut self, test: &Test) -> Script {
        let (mut types, mut names) = (Types::new(), BTreeMap::new());
        let (mut clients, mut body) = (vec![None], Vec::new());
        for statement in &test.body {
            match statement {
                Statement::Client { name, at, span } => {
                    let at = at.as_ref().map(|(replica, span)| self.replica(replica, *span));
                    if names.insert(name.clone(), clients.len()).is_some() {
                        let title = format!("there is already a client `{name}`");
                        self.wrong(Code::M0102, title, *span, "");
                    }
                    clients.push(at);
                }
                Statement::Step(step) => {
                    body.push(Scene::Alone(self.act(step, &names, &mut types)));
                }
                Statement::Together(steps) => {
                    // No call sees the result of another that runs at the same time.
                    let before = types.clone();
                    let mut acts = Vec::new();
                    for step in steps {
                        let mut seen = before.clone();
                        acts.push(self.act(step, &names, &mut seen));
                        types.extend(seen.into_iter().filter(|(name, bound)| {
                            before.get(name).is_none_or(|old| old != bound)
                        }));
                    }
                    body.push(Scene::Together(acts));
                }
                Statement::Wait(time) => body.push(Scene::Wait(*time)),
                Statement::Settle(span) => body.push(Scene::Settle(*span)),
            }
        }
        let (name, crashes, seeds) = (test.name.clone(), test.crashes, test.seeds);
        Script { name, crashes, seeds, clients, body }
    }

    fn replica(&mut self, replica: &str, span: Span) -> String {
        if !self.replicas.contains(replica) {
            let known: Vec<_> = self.replicas.iter().map(String::as_str).collect();
            let label = format!("there are: {}", known.join(", "));
            self.wrong(Code::M0101, format!("no store has a replica `{replica}`"), span, &label);
        }
        replica.to_owned()
    }

    fn act(&mut self, step: &Step, names: &BTreeMap<String, usize>, types: &mut Types) -> Act {
        let client = match &step.client {
            None => 0,
            Some((name, span)) => names.get(name).copied().unwrap_or_else(|| {
                let title = format!("no client is called `{name}`");
                self.wrong(Code::M0101, title, *span, "declare it first: `client NAME;`");
                0
            }),
        };
        let deed = match &step.action {
            Action::Call { bound, attempt, call } => {
                let called = self.call(call, types);
                if let Some((name, span)) = bound {
                    let result = self.plan(call).and_then(|plan| plan.result.clone());
                    let result = if *attempt { Some(Type::Bool) } else { result };
                    match result {
                        Some(result) => drop(types.insert(name.clone(), result)),
                        None => {
                            let title = format!("`{}` has no result", call.transaction);
                            self.wrong(Code::M0201, title, *span, "there is nothing to name");
                        }
                    }
                }
                let bound = bound.as_ref().map(|(name, _)| name.clone());
                Deed::Call { call: called, bound, attempt: *attempt }
            }
            Action::ExpectCall { call, wanted, whole } if self.plan(call).is_some() => {
                self.expected(call, wanted, whole, types)
            }
            // A function of the program.
            Action::ExpectCall { wanted: Wanted::Succeeds | Wanted::Equal(_), whole, .. } => {
                self.expect(whole, types)
            }
            Action::ExpectCall { call, .. } => Deed::Fails(self.call(call, types), None),
            Action::Expect(expression) => self.expect(expression, types),
        };
        Act { client, span: step.span, deed }
    }

    fn expected(
        &mut self,
        call: &CallText,
        wanted: &Wanted,
        whole: &Expression,
        types: &Types,
    ) -> Deed {
        let called = self.call(call, types);
        match wanted {
            Wanted::Succeeds => Deed::Call { call: called, bound: None, attempt: false },
            Wanted::Fails(code) => Deed::Fails(called, code.as_ref().map(|(code, _)| code.clone())),
            Wanted::Equal(value) => {
                let Some(result) = self.plan(call).and_then(|plan| plan.result.clone()) else {
                    let title = format!("`{}` has no result", call.transaction);
                    self.wrong(Code::M0201, title, whole.span(), "there is nothing to compare");
                    return Deed::Fails(called, None);
                };
                Deed::Equal(called, self.evaluation(value, &result.to_string(), types))
            }
        }
    }

    fn expect(&mut self, expression: &Expression, types: &Types) -> Deed {
        let value = self.evaluation(expression, "bool", types);
        let sides = self.sides(expression).and_then(|(left, right)| {
            let numbers = (self.regions.len(), self.regions.len() + 1);
            let sides = (self.side(&left, types), self.side(&right, types));
            let is_out = |number| self.left_out.contains(&number);
            (!is_out(numbers.0) && !is_out(numbers.1)).then_some(sides)
        });
        Deed::Expect(value, sides)
    }

    fn plan(&self, call: &CallText) -> Option<&Arc<Plan>> {
        self.program.plan(&call.transaction)
    }

    fn call(&mut self, call: &CallText, types: &Types) -> Called {
        let transaction: Name = call.transaction.as_str().into();
        let Some(plan) = self.plan(call).cloned() else {
            let known: Vec<_> = self.program.plans.iter().map(|plan| &*plan.name).collect();
            let label = format!("there are: {}", known.join(", "));
            let title = format!("no transaction is called `{}`", call.transaction);
            self.wrong(Code::M0101, title, call.span, &label);
            return Called { transaction, arguments: Vec::new() };
        };
        let mut given: BTreeMap<usize, Evaluation> = BTreeMap::new();
        for (position, (name, expression)) in call.arguments.iter().enumerate() {
            let index = match name {
                None => Some(position).filter(|index| *index < plan.params.len()),
                Some((name, _)) => plan.params.iter().position(|(param, _)| **param == **name),
            };
            let span = name.as_ref().map_or_else(|| expression.span(), |(_, span)| *span);
            let Some(index) = index else {
                let title = format!("`{}` has no such parameter", call.transaction);
                self.wrong(Code::M0202, title, span, &signature(&plan));
                continue;
            };
            let (param, wanted) = &plan.params[index];
            let value = self.evaluation(expression, &wanted.to_string(), types);
            if given.insert(index, value).is_some() {
                let title = format!("`{param}` is given twice");
                self.wrong(Code::M0202, title, span, &signature(&plan));
            }
        }
        for (index, (param, _)) in plan.params.iter().enumerate() {
            if !given.contains_key(&index) {
                let title = format!("`{param}` of `{}` is missing", call.transaction);
                self.wrong(Code::M0202, title, call.span, &signature(&plan));
            }
        }
        Called { transaction, arguments: given.into_values().collect() }
    }

    fn evaluation(&mut self, expression: &Expression, result: &str, types: &Types) -> Evaluation {
        self.transaction(expression, result, types, false)
    }

    fn side(&mut self, expression: &Expression, types: &Types) -> Evaluation {
        self.transaction(expression, "string", types, true)
    }

    /// Adds a transaction that returns an expression.
    fn transaction(
        &mut self,
        expression: &Expression,
        result: &str,
        types: &Types,
        is_side: bool,
    ) -> Evaluation {
        let number = self.regions.len();
        let name = format!("mingle_test_{number}");
        let used: BTreeSet<&str> =
            expression.tokens.clone().map(|index| token_text(self.source, index)).collect();
        let variables: Vec<String> =
            types.keys().filter(|name| used.contains(name.as_str())).cloned().collect();
        let params: Vec<String> =
            variables.iter().map(|name| format!("{name}: {}", types[name])).collect();
        let (open, close) = if is_side { ("string (", ")") } else { ("", "") };
        let text = if self.left_out.contains(&number) {
            "\"\"".to_owned()
        } else {
            let tokens = &self.source.tokens[expression.tokens.clone()];
            let (first, last) = (tokens[0], tokens[tokens.len() - 1]);
            format!(
                "{open}\n{}\n{close}",
                &self.source.text[first.start as usize..last.end as usize]
            )
        };
        let head = format!("transaction {name} ({}) -> {result} {{ return ", params.join(", "));
        let count = |text: &str| lex(text).tokens.len() - 1;
        let begin = self.tokens;
        let start = begin + count(&head) + count(open);
        let whole = format!("{head}{text};\n}}\n");
        self.tokens += count(&whole);
        self.text.push_str(&whole);
        self.regions.push(Region {
            number,
            all: begin as u32..self.tokens as u32,
            start: start as u32,
            origin: expression.span(),
            is_side,
        });
        Evaluation { transaction: name.into(), variables }
    }

    /// Returns the two sides of a comparison, if the expression is one.
    fn sides(&self, expression: &Expression) -> Option<(Expression, Expression)> {
        let (mut depth, mut found) = (0_usize, None);
        for index in expression.tokens.clone() {
            let TokenKind::Punct(punct) = self.source.tokens[index].kind else { continue };
            match punct {
                Punct::LeftBrace | Punct::LeftParen | Punct::LeftBracket => depth += 1,
                Punct::RightBrace | Punct::RightParen | Punct::RightBracket => {
                    depth = depth.saturating_sub(1);
                }
                Punct::And | Punct::Or | Punct::Coalesce if depth == 0 => return None,
                Punct::Equal
                | Punct::NotEqual
                | Punct::Less
                | Punct::LessEqual
                | Punct::Greater
                | Punct::GreaterEqual
                    if depth == 0 =>
                {
                    let earlier = found.replace(index);
                    if earlier.is_some() {
                        return None;
                    }
                }
                _ => {}
            }
        }
        let (at, tokens) = (found?, &expression.tokens);
        let (left, right) = (tokens.start..at, at + 1..tokens.end);
        let is_there = !left.is_empty() && !right.is_empty();
        is_there.then_some((Expression { tokens: left }, Expression { tokens: right }))
    }
}

/// Returns the text of a token.
fn token_text(source: &Source, index: usize) -> &str {
    let token = source.tokens[index];
    &source.text[token.start as usize..token.end as usize]
}

/// Returns a transaction with its parameters, as the program declares it.
fn signature(plan: &Plan) -> String {
    let params: Vec<_> =
        plan.params.iter().map(|(name, param_type)| format!("{name}: {param_type}")).collect();
    format!("{}({})", plan.name, params.join(", "))
}
