//! The bodies of functions and transactions, and declarations that are never used.

use std::collections::HashMap;

use mingle_model::Type;

use super::cycles::Cycles;
use super::{Body, Checker, Outcome, Used};
use crate::diagnostic::m0204::{self, Unfit};
use crate::diagnostic::{m0102, m0205, w0501};
use crate::hir::{Function, FunctionId, ObjectId, Stmt, StmtKind, StoreId, Transaction};
use crate::syntax::Span;
use crate::syntax::ast::{self, ItemKind};

/// The maximum depth of function calls: the compiler inlines functions recursively.
const CALLS_MAX: usize = 64;

impl<'a> Checker<'a> {
    pub(super) fn functions(&mut self) {
        let tree: &'a ast::Program = self.tree;
        let functions = tree.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Function(function) => Some(function),
            _ => None,
        });
        // Results first: a function may call one that is declared later.
        for function in functions.clone() {
            let result = self.value_type(&function.result);
            let mut body = Body::new(Some(FunctionId(self.program.functions.len() as u32)));
            body.open();
            self.declare_params(&mut body, &function.params);
            self.program.functions.push(Function {
                name: function.name.name.clone(),
                param_count: body.vars.len(),
                vars: body.vars,
                lets: Vec::new(),
                body: None,
                result,
            });
            self.function_uses.push(Vec::new());
        }
        for (index, function) in functions.enumerate() {
            let errors_before = self.diagnostics.errors;
            let mut body = Body::new(Some(FunctionId(index as u32)));
            body.open();
            self.quiet_params(&mut body, index);
            body.open();
            let mut lets = Vec::new();
            for binding in &function.lets {
                lets.extend(self.let_binding(&mut body, binding));
            }
            let result = self.program.functions[index].result.clone();
            let value = match &result {
                Some(expected) => self.value_of(&mut body, &function.body, expected),
                None => self.value(&mut body, &function.body),
            };
            body.close();
            if self.diagnostics.errors == errors_before {
                self.unused_vars(&body, 0);
            }
            let checked = &mut self.program.functions[index];
            checked.vars = body.vars;
            checked.lets = lets;
            checked.body = value;
        }
        self.recursive_functions();
    }

    /// Declares a function's parameters again, without reports: the signature's check reported
    /// their mistakes.
    fn quiet_params(&self, body: &mut Body, index: usize) {
        for var in &self.program.functions[index].vars {
            let id = crate::hir::VarId(body.vars.len() as u32);
            body.scopes[0].names.insert(var.name.clone(), id);
            body.vars.push(var.clone());
            body.used.push(false);
            body.let_spans.push(None);
        }
    }

    fn declare_params(&mut self, body: &mut Body, params: &[ast::Param]) {
        for (param, (_, found)) in params.iter().zip(self.param_types(params)) {
            self.bind(body, &param.name, found);
        }
    }

    /// Reports functions that call themselves, directly or not, and drops their bodies so that
    /// later stages terminate.
    fn recursive_functions(&mut self) {
        let uses = self.function_uses.iter();
        let edges: Vec<Vec<usize>> =
            uses.map(|uses| uses.iter().map(|(callee, _)| callee.index()).collect()).collect();
        let cycles = Cycles::of(&edges);
        for first in cycles.firsts() {
            let mut uses = self.function_uses[first].iter();
            if let Some((_, span)) = uses.find(|(to, _)| cycles.share_one(first, to.index())) {
                let name = self.program.functions[first].name.to_string();
                self.diagnostics.push(m0204::render(Unfit::Recursion { name }, *span));
            }
        }
        for (index, function) in self.program.functions.iter_mut().enumerate() {
            if cycles.leads_to_one(index) {
                function.body = None;
            }
        }
        let mut depths = vec![0; edges.len()];
        for index in cycles.inside_out() {
            depths[index] =
                1 + edges[index].iter().map(|callee| depths[*callee]).max().unwrap_or(0);
            if depths[index] > CALLS_MAX {
                let function = &mut self.program.functions[index];
                let unfit = Unfit::TooDeep { name: function.name.to_string(), limit: CALLS_MAX };
                if let Some((_, span)) = self.names.get(&function.name) {
                    self.diagnostics.push(m0204::render(unfit, *span));
                }
                function.body = None;
                depths[index] = 0;
            }
        }
    }

    pub(super) fn transactions(&mut self) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        let tree: &'a ast::Program = self.tree;
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for item in &tree.items {
            let ItemKind::Transaction(declared) = &item.kind else {
                continue;
            };
            let name = &declared.name;
            if let Some(first) = seen.insert(&name.name, name.span) {
                self.diagnostics.push(m0102::render(&name.name, name.span, Some(first)));
                continue;
            }
            let errors_before = self.diagnostics.errors;
            self.used_here.clear();
            // A statement that could not be read may have declared a variable.
            self.diagnostics.only_certain = tree.is_incomplete || has_errors(&declared.body);
            let mut body = Body::new(None);
            body.open();
            self.declare_params(&mut body, &declared.params);
            let param_count = body.vars.len();
            body.has_result = declared.result.is_some();
            body.result = declared.result.as_ref().and_then(|written| self.answer_type(written));
            let statements = self.block(&mut body, &declared.body);
            if let Some(result) = &body.result
                && !ends(&declared.body.statements)
            {
                self.no_result(declared, result, &statements);
            }
            // After a mistake, an unused variable may have its use in the part that was left out.
            if self.diagnostics.errors == errors_before {
                self.unused_vars(&body, param_count);
            }
            self.program.transactions.push(Transaction {
                name: name.name.clone(),
                span: name.span,
                docs: item.docs.clone(),
                isolated: declared.isolated,
                vars: body.vars,
                param_count,
                result: body.result,
                body: statements,
            });
            outcomes.push(Outcome {
                is_good: self.diagnostics.errors == errors_before,
                used: std::mem::take(&mut self.used_here),
            });
        }
        self.diagnostics.only_certain = tree.is_incomplete;
        outcomes
    }

    /// Reports a path through a transaction that ends without its result.
    fn no_result(&mut self, declared: &ast::Transaction, result: &Type, statements: &[Stmt]) {
        let name = &declared.name;
        let span = declared.result.as_ref().map_or(name.span, |written| written.span);
        let end = declared.body.span.end;
        let end = Span { start: end.saturating_sub(1), end };
        let last = match statements.last() {
            Some(Stmt { kind: StmtKind::Expr(value), span }) if value.value_type == *result => {
                Some(Span::token(span.start))
            }
            _ => None,
        };
        let found = m0205::render(&name.name, span, &result.to_string(), (end, last));
        self.diagnostics.push(found);
    }

    fn unused_vars(&mut self, body: &Body, param_count: usize) {
        for (index, (var, used)) in body.vars.iter().zip(&body.used).enumerate() {
            if !used && !var.name.starts_with('_') && !var.name.is_empty() {
                let is_param = index < param_count
                    || body
                        .function
                        .is_some_and(|id| index < self.program.functions[id.index()].param_count);
                let what = if is_param { "parameter" } else { "variable" };
                self.diagnostics.push(w0501::render(what, &var.name, var.span, !is_param));
            }
        }
    }

    /// Records a use of an object.
    pub(super) fn use_object(&mut self, object: ObjectId) {
        self.object_used[object.index()] = true;
        self.used_here.push(Used::Object(object));
    }

    /// Records a use of a store.
    pub(super) fn use_store(&mut self, store: StoreId) {
        self.store_used[store.index()] = true;
        self.used_here.push(Used::Store(store));
    }

    pub(super) fn unused_items(&mut self) {
        if self.diagnostics.has_errors() {
            return;
        }
        for (object, used) in self.program.objects.iter().zip(&self.object_used) {
            if !used {
                self.diagnostics.push(w0501::render(
                    "object",
                    &object.declared.name,
                    object.span,
                    false,
                ));
            }
        }
        for (store, used) in self.program.stores.iter().zip(&self.store_used) {
            if !used {
                self.diagnostics.push(w0501::render("store", &store.name, store.span, false));
            }
        }
    }
}

/// True if some statement of a block could not be read.
fn has_errors(block: &ast::Block) -> bool {
    use ast::{Else, StmtKind};
    fn in_if(branch: &ast::If) -> bool {
        has_errors(&branch.then_block)
            || match &branch.else_branch {
                Some(Else::Block(block)) => has_errors(block),
                Some(Else::If(inner, _)) => in_if(inner),
                None => false,
            }
    }
    block.statements.iter().any(|statement| match &statement.kind {
        StmtKind::Error => true,
        StmtKind::If(branch) => in_if(branch),
        StmtKind::While { body, .. } | StmtKind::For { body, .. } => has_errors(body),
        StmtKind::Match { some_block, none_block, .. } => {
            has_errors(some_block) || has_errors(none_block)
        }
        StmtKind::MatchAnswer { arms, .. } => arms.iter().any(|arm| has_errors(&arm.block)),
        _ => false,
    })
}

/// True if every path through these statements returns.
pub(super) fn ends(statements: &[ast::Stmt]) -> bool {
    use ast::{Else, StmtKind};
    fn ends_if(branch: &ast::If) -> bool {
        ends(&branch.then_block.statements)
            && match &branch.else_branch {
                Some(Else::Block(block)) => ends(&block.statements),
                Some(Else::If(inner, _)) => ends_if(inner),
                None => false,
            }
    }
    statements.iter().any(|statement| match &statement.kind {
        // A statement with a mistake may have been the `return`.
        StmtKind::Return(_) | StmtKind::Error => true,
        StmtKind::If(branch) => ends_if(branch),
        StmtKind::Match { some_block, none_block, .. } => {
            ends(&some_block.statements) && ends(&none_block.statements)
        }
        StmtKind::MatchAnswer { arms, .. } => arms.iter().all(|arm| ends(&arm.block.statements)),
        _ => false,
    })
}
