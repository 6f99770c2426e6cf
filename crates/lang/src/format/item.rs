//! Items.

use super::doc::Doc;
use super::{Formatter, LineStart};
use crate::syntax::Span;
use crate::syntax::ast::{
    Allow, Enum, Function, Index, Item, ItemKind, Object, Operation, Param, Program, Store, Struct,
    Transaction,
};

impl Formatter<'_> {
    pub(super) fn program(&mut self, program: &Program) -> Vec<Doc> {
        let mut docs = Vec::new();
        for import in &program.imports {
            let start = if docs.is_empty() { LineStart::First } else { LineStart::AsWritten };
            docs.extend(self.line(import.span.start, start));
            docs.extend([Doc::text("import"), Doc::Space]);
            docs.extend(self.comments(import.path.start));
            docs.extend([self.token(import.path.start), Doc::text(";")]);
        }
        let has_imports = !docs.is_empty();
        let mut previous: Option<&Item> = None;
        for item in &program.items {
            let start = match previous {
                None if has_imports => LineStart::Blank,
                None => LineStart::First,
                Some(previous) if is_one_line(previous) && is_short(item) => LineStart::AsWritten,
                Some(_) => LineStart::Blank,
            };
            let start = self.allows(&item.allows, start, &mut docs);
            docs.extend(self.line(item.span.start, start));
            self.item(item, &mut docs);
            previous = Some(item);
        }
        let end = self.source.tokens.len() as u32 - 1;
        let is_empty = previous.is_none() && !has_imports;
        let start = if is_empty { LineStart::First } else { LineStart::Blank };
        docs.extend(self.last_comments(end, start));
        docs
    }

    /// Formats what is allowed in the item or statement that follows, each on its line. Returns the
    /// start of the line after it.
    pub(super) fn allows(
        &mut self,
        allows: &[Allow],
        start: LineStart,
        docs: &mut Vec<Doc>,
    ) -> LineStart {
        let mut start = start;
        for allow in allows {
            docs.extend(self.line(allow.span.start, start));
            docs.extend([Doc::text("allow"), Doc::Space]);
            for code in &allow.codes {
                self.ident(code, docs);
                docs.extend([Doc::text(","), Doc::Space]);
            }
            docs.truncate(docs.len() - 2);
            docs.push(Doc::Space);
            if let Some(reason) = allow.reason {
                let comments = self.comments(reason.start);
                docs.extend(comments);
                docs.extend([Doc::text("because"), Doc::Space, self.token(reason.start)]);
            }
            start = LineStart::First;
        }
        start
    }

    fn item(&mut self, item: &Item, docs: &mut Vec<Doc>) {
        let close = item.span.end - 1;
        match &item.kind {
            ItemKind::Level { name, above, below } => {
                let names = [std::slice::from_ref(name), above, below];
                for (word, names) in ["level", "between", "and"].into_iter().zip(names) {
                    docs.extend([Doc::text(word), Doc::Space]);
                    for ident in names {
                        self.ident(ident, docs);
                        docs.extend([Doc::text(","), Doc::Space]);
                    }
                    docs.truncate(docs.len() - 2);
                    docs.push(Doc::Space);
                }
                docs.pop();
                docs.push(Doc::text(";"));
            }
            ItemKind::Store(store) => self.store(store, close, docs),
            ItemKind::Object(object) => self.object(object, close, docs),
            ItemKind::Struct(item) => self.struct_item(item, close, docs),
            ItemKind::Enum(item) => self.enum_item(item, close, docs),
            ItemKind::Function(function) => self.function(function, docs),
            ItemKind::Transaction(transaction) => self.transaction(transaction, docs),
        }
    }

    fn store(&mut self, store: &Store, close: u32, docs: &mut Vec<Doc>) {
        docs.extend([Doc::text("store"), Doc::Space]);
        self.ident(&store.name, docs);
        docs.extend([Doc::text(":"), Doc::Space]);
        self.ident(&store.level, docs);
        if store.operations.is_empty() {
            docs.push(Doc::text(";"));
            return;
        }
        let mut inner = Vec::new();
        let mut start = LineStart::First;
        for operation in &store.operations {
            inner.extend(self.line(operation.span.start, start));
            self.operation(operation, &mut inner);
            start = LineStart::AsWritten;
        }
        self.braces(inner, close, start, docs);
    }

    fn operation(&mut self, operation: &Operation, docs: &mut Vec<Doc>) {
        let word = if operation.is_command { "command" } else { "query" };
        docs.extend([Doc::text(word), Doc::Space]);
        self.ident(&operation.name, docs);
        self.params(operation.name.span, &operation.params, docs);
        if let Some(result) = &operation.result {
            docs.extend([Doc::Space, Doc::text("->"), Doc::Space]);
            self.type_expr(result, docs);
        }
        docs.push(Doc::text(";"));
    }

    fn object(&mut self, object: &Object, close: u32, docs: &mut Vec<Doc>) {
        docs.extend([Doc::text("object"), Doc::Space]);
        self.ident(&object.name, docs);
        docs.extend([Doc::Space, Doc::text("in"), Doc::Space]);
        self.ident(&object.store, docs);
        docs.push(Doc::Space);
        // The word `key` stands before the key's name.
        let mut inner = self.line(object.key.name.span.start - 1, LineStart::First);
        inner.extend([Doc::text("key"), Doc::Space]);
        self.param(&object.key, &mut inner);
        inner.push(Doc::text(";"));
        let mut indexes = object.indexes.iter().peekable();
        for field in &object.fields {
            while let Some(index) = indexes.next_if(|index| index.span.start < field.span.start) {
                self.index(index, &mut inner);
            }
            inner.extend(self.line(field.span.start, LineStart::AsWritten));
            self.ident(&field.name, &mut inner);
            inner.extend([Doc::text(":"), Doc::Space]);
            self.type_expr(&field.field_type, &mut inner);
            self.field_policies(field, &mut inner);
            if let Some(default) = &field.default {
                inner.extend([Doc::Space, Doc::text("="), Doc::Space]);
                self.expr(default, &mut inner);
            }
            inner.push(Doc::text(";"));
        }
        for index in indexes {
            self.index(index, &mut inner);
        }
        docs.pop();
        self.braces(inner, close, LineStart::AsWritten, docs);
    }

    fn index(&mut self, index: &Index, docs: &mut Vec<Doc>) {
        docs.extend(self.line(index.span.start, LineStart::AsWritten));
        let word = if index.is_unique { "unique" } else { "index by" };
        docs.extend([Doc::text(word), Doc::Space]);
        for (at, field) in index.fields.iter().enumerate() {
            if at > 0 {
                docs.extend([Doc::text(","), Doc::Space]);
            }
            self.ident(field, docs);
        }
        if let Some(name) = &index.name {
            docs.extend([Doc::Space, Doc::text("as"), Doc::Space]);
            self.ident(name, docs);
        }
        docs.push(Doc::text(";"));
    }

    fn struct_item(&mut self, item: &Struct, close: u32, docs: &mut Vec<Doc>) {
        docs.extend([Doc::text("struct"), Doc::Space]);
        self.ident(&item.name, docs);
        let mut inner = Vec::new();
        let mut start = LineStart::First;
        for field in &item.fields {
            inner.extend(self.line(field.name.span.start, start));
            self.param(field, &mut inner);
            inner.push(Doc::text(","));
            start = LineStart::AsWritten;
        }
        self.braces(inner, close, start, docs);
    }

    fn enum_item(&mut self, item: &Enum, close: u32, docs: &mut Vec<Doc>) {
        docs.extend([Doc::text("enum"), Doc::Space]);
        self.ident(&item.name, docs);
        let mut inner = Vec::new();
        let mut start = LineStart::First;
        for value in &item.values {
            inner.extend(self.line(value.name.span.start, start));
            inner.extend(self.doc_comments(value.name.span.start));
            self.ident(&value.name, &mut inner);
            if let Some((_, label)) = &value.label {
                inner.extend([Doc::Space, Doc::text("="), Doc::Space]);
                inner.extend(self.comments(label.start));
                inner.push(self.token(label.start));
            }
            inner.push(Doc::text(","));
            start = LineStart::AsWritten;
        }
        self.braces(inner, close, start, docs);
    }

    /// Formats the contents of an item, one member per line.
    fn braces(&mut self, mut inner: Vec<Doc>, close: u32, start: LineStart, docs: &mut Vec<Doc>) {
        inner.extend(self.last_comments(close, start));
        docs.extend([Doc::Space, Doc::text("{")]);
        if !inner.is_empty() {
            docs.extend([Doc::indent(inner), Doc::HardLine]);
        }
        docs.push(Doc::text("}"));
    }

    fn param(&mut self, param: &Param, docs: &mut Vec<Doc>) {
        docs.extend(self.doc_comments(param.name.span.start));
        self.ident(&param.name, docs);
        docs.extend([Doc::text(":"), Doc::Space]);
        self.type_expr(&param.param_type, docs);
    }

    /// Formats parameters in parentheses after a name.
    fn params(&mut self, name: Span, params: &[Param], docs: &mut Vec<Doc>) {
        let mut inner = vec![Doc::SoftLine];
        for (index, param) in params.iter().enumerate() {
            if index > 0 {
                inner.extend([Doc::text(","), Doc::Line]);
            }
            self.param(param, &mut inner);
        }
        let close = match params.last() {
            Some(last) => self.close_after(last.param_type.span),
            // The name, `(`, `)`.
            None => name.end + 1,
        };
        if !params.is_empty() {
            inner.push(Doc::IfBroken(","));
        }
        inner.extend(self.comments(close));
        docs.push(Doc::group(vec![
            Doc::text("("),
            Doc::indent(inner),
            Doc::SoftLine,
            Doc::text(")"),
        ]));
    }

    fn function(&mut self, function: &Function, docs: &mut Vec<Doc>) {
        docs.extend([Doc::text("fn"), Doc::Space]);
        self.ident(&function.name, docs);
        self.params(function.name.span, &function.params, docs);
        docs.extend([Doc::Space, Doc::text("->"), Doc::Space]);
        self.type_expr(&function.result, docs);
        docs.extend([Doc::Space, Doc::text("{")]);
        let mut inner = Vec::new();
        let mut start = LineStart::First;
        for binding in &function.lets {
            inner.extend(self.line(binding.span.start, start));
            self.let_binding(binding, &mut inner);
            start = LineStart::AsWritten;
        }
        if function.lets.is_empty() {
            inner.push(Doc::Line);
        } else {
            inner.extend(self.line(function.body.span.start, start));
        }
        self.expr(&function.body, &mut inner);
        inner.extend(self.last_comments(function.body_span.end - 1, LineStart::AsWritten));
        docs.push(Doc::group(vec![Doc::indent(inner), Doc::Line, Doc::text("}")]));
    }

    fn transaction(&mut self, transaction: &Transaction, docs: &mut Vec<Doc>) {
        if transaction.isolated.is_some() {
            docs.extend([Doc::text("isolated"), Doc::Space]);
        }
        docs.extend([Doc::text("transaction"), Doc::Space]);
        self.ident(&transaction.name, docs);
        self.params(transaction.name.span, &transaction.params, docs);
        if let Some(result) = &transaction.result {
            docs.extend([Doc::Space, Doc::text("->"), Doc::Space]);
            self.type_expr(result, docs);
        }
        docs.push(Doc::Space);
        self.block(&transaction.body, docs);
    }
}

/// True for stores and levels, which may follow one another without an empty line.
fn is_short(item: &Item) -> bool {
    matches!(item.kind, ItemKind::Level { .. } | ItemKind::Store(_))
}

/// True if such an item takes one line.
fn is_one_line(item: &Item) -> bool {
    match &item.kind {
        ItemKind::Level { .. } => true,
        ItemKind::Store(store) => store.operations.is_empty(),
        _ => false,
    }
}
