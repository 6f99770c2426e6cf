//! Advice for a flow that breaks a rule: the legal changes, the strongest guarantee first.
//!
//! Advice produced here is a candidate. The compiler applies each candidate to the program, checks
//! it again, and shows only those that leave fewer errors.

use super::rules::Use;
use super::{Analysis, Sources, bits};
use crate::diagnostic::{Code, Edit, Help};
use crate::flat::{Kind, ReadKind, StmtId};
use crate::hir::{ObjectId, StoreId};
use crate::syntax::Span;

/// The placeholder for an endorsement's reason; the programmer replaces it.
const REASON: &str = "say here why the weaker value may be trusted";

impl Analysis<'_> {
    pub(super) fn advice(&self, used: &Use, weaker: Sources) -> Vec<Help> {
        let mut advice = Vec::new();
        advice.extend(self.hoist(used));
        advice.extend(self.move_sources(used, weaker));
        advice.extend(self.move_target(used, weaker));
        advice.extend(self.endorse(used, weaker));
        advice
    }

    /// Suggests moving a read before the condition.
    fn hoist(&self, used: &Use) -> Option<Help> {
        let stmt = self.flat.get(used.stmt);
        // A draw creates an object, which the condition is to decide about.
        let is_read = match &stmt.kind {
            Kind::Read(access) => !matches!(access.kind, ReadKind::Draw(..)),
            _ => false,
        };
        if used.code != Code::M0302 || !is_read || stmt.call.is_some() {
            return None;
        }
        let around = self.flat.ancestors(used.stmt).filter(|around| {
            let inner = Self::condition_sources(&self.flat.get(*around).kind, &self.sources);
            self.weaker_than(inner, used.target) != 0
        });
        let outermost = around.last()?;
        let before = self.flat.sources[self.flat.get(outermost).source as usize];
        let edits = vec![
            Edit { span: before.before(), text: "let read_before = {read};\n{indent}".into() },
            Edit { span: stmt.span, text: "read_before".into() },
        ];
        Some(Help { message: "read it before the condition".into(), edits })
    }

    /// Suggests moving the objects with the weaker data to the stronger store.
    fn move_sources(&self, used: &Use, weaker: Sources) -> Option<Help> {
        let mut objects: Vec<ObjectId> = Vec::new();
        for bit in bits(weaker) {
            let store = *self.stores.get(bit)?;
            objects.extend(self.objects_read(store));
        }
        objects.sort_unstable();
        objects.dedup();
        self.move_to(&objects, used.target)
    }

    /// Suggests moving the reached object to the weaker store.
    fn move_target(&self, used: &Use, weaker: Sources) -> Option<Help> {
        if !matches!(used.code, Code::M0301 | Code::M0302 | Code::M0303) {
            return None;
        }
        let object = self.object_of(used.stmt)?;
        let store = *self.stores.get(bits(weaker).last()?)?;
        self.move_to(&[object], store)
    }

    fn move_to(&self, objects: &[ObjectId], store: StoreId) -> Option<Help> {
        if objects.is_empty() {
            return None;
        }
        let name = &self.program.stores[store.index()].name;
        let level = self.levels().name(self.program.level_of(store));
        let kinds: Vec<String> = objects
            .iter()
            .map(|object| format!("`{}`", self.program.objects[object.index()].declared.name))
            .collect();
        let edits = objects.iter().map(|object| Edit {
            span: self.program.objects[object.index()].store_span,
            text: name.to_string(),
        });
        let message = format!("keep {} in `{name}` ({level})", kinds.join(" and "));
        Some(Help { message, edits: edits.collect() })
    }

    fn objects_read(&self, store: StoreId) -> Vec<ObjectId> {
        let reads = self.flat.live_statements().filter_map(|(_, stmt)| match &stmt.kind {
            Kind::Read(access) if access.store == store => {
                access.kind.place().map(|(object, _)| object)
            }
            _ => None,
        });
        reads.collect()
    }

    fn object_of(&self, stmt: StmtId) -> Option<ObjectId> {
        use crate::flat::WriteKind as W;
        match &self.flat.get(stmt).kind {
            Kind::Read(access) => access.kind.place().map(|(object, _)| object),
            Kind::Write(access) => match &access.kind {
                W::Assign(object, _)
                | W::Collection(object, ..)
                | W::Delete(object)
                | W::Create(object, _) => Some(*object),
                W::Command(_) => None,
            },
            _ => None,
        }
    }

    /// Suggests endorsing the values and conditions that carry the weaker data.
    fn endorse(&self, used: &Use, weaker: Sources) -> Option<Help> {
        let call = self.flat.get(used.stmt).call;
        if used.own.is_some() || call.is_some() {
            return None;
        }
        let mut places: Vec<Span> = used
            .operands
            .iter()
            .filter(|(operand, _)| self.operand_sources(operand) & weaker != 0)
            .map(|(_, span)| *span)
            .collect();
        if used.context {
            let returns = self.returns_before(used.stmt);
            let returned = returns.flat_map(|id| self.flat.ancestors(id));
            for around in self.flat.ancestors(used.stmt).chain(returned) {
                let sources = Self::condition_sources(&self.flat.get(around).kind, &self.sources);
                if sources & weaker != 0 {
                    places.push(self.condition_span(around));
                }
            }
        }
        places.sort_unstable();
        places.dedup();
        let level = self.levels().name(self.program.level_of(used.target));
        let outermost = places
            .iter()
            .filter(|span| !places.iter().any(|other| other != *span && other.contains(**span)));
        let text = format!("endorse({{text}}) as {level} because \"{REASON}\"");
        let edits: Vec<Edit> =
            outermost.map(|span| Edit { span: *span, text: text.clone() }).collect();
        if edits.is_empty() {
            return None;
        }
        let message =
            format!("vouch for the weaker value yourself: endorse it as {level}, with the reason");
        Some(Help { message, edits })
    }
}
