//! A second look at existing tables after a statement has failed: they may have changed since the
//! store was opened, or hide a row.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, Weak};

use mingle_model::{Name, Ref};
use mingle_store::{Data, Read, Refusal, StoreError, StoreSchema, Write};

use crate::error::Failure;
use crate::layout::{Kind, Layout, Place};
use crate::mapping::inspect::inspect;
use crate::mapping::{Mapped, ObjectMapping};
use crate::pool::Lease;
use crate::reading::Plan;
use crate::session::Step;
use crate::store::{Current, Inner};
use crate::text::Texts;
use crate::wire::boolean;

/// The declarations of the program and of the binding about existing tables.
pub struct Declared {
    /// The program's declarations.
    pub schema: StoreSchema,
    /// The binding's mappings.
    pub objects: BTreeMap<String, ObjectMapping>,
    /// The state that new transactions share.
    pub(crate) current: Weak<Current>,
}

impl Inner {
    /// Returns the error for a statement that failed before a commit. If a table has changed since
    /// the store was opened, its description is renewed and the next attempt uses it.
    pub(crate) async fn explain(&self, failure: Failure, writes: &[Write]) -> StoreError {
        match failure {
            // The next attempt prepares its statements again.
            Failure::Stale(_) => StoreError::Conflict,
            Failure::Unlike(why) => self.describe_anew(why).await,
            Failure::Hidden(mut violation) => match self.hidden(writes).await {
                Ok(true) => {
                    violation.message.insert_str(
                        0,
                        "a row that is written exists already, but is not visible (row level security): ",
                    );
                    StoreError::Violated { store: self.store.clone(), violation }
                }
                Ok(false) | Err(_) => StoreError::Conflict,
            },
            failure => failure.before_commit(&self.store),
        }
    }

    async fn describe_anew(&self, why: Refusal) -> StoreError {
        let refused = |why: Refusal| why.at(self.store.clone());
        if !self.layout.kinds.values().any(|kind| matches!(kind.place, Place::Mapped(_))) {
            return refused(why);
        }
        let Ok(mut lease) = self.pool.lease().await else { return refused(why) };
        // The connection must not return to the pool: a task moves its line.
        lease.soil();
        let Declared { schema, objects, current } = &*self.declared;
        match inspect(lease.connection().client(), schema, objects).await {
            Err((object, now)) => refused(Refusal::Plain(format!(
                "{why}; the tables are not what they were when the store was opened: object {object}: {now}"
            ))),
            Ok(found) => {
                let Some(layout) = changed(&self.layout, found) else { return refused(why) };
                if let Some(current) = current.upgrade() {
                    current.set(Arc::new(self.with(layout)));
                }
                StoreError::Conflict
            }
        }
    }

    fn with(&self, layout: Layout) -> Self {
        Self {
            store: self.store.clone(),
            layout,
            declared: Arc::clone(&self.declared),
            operations: self.operations.clone(),
            pool: Arc::clone(&self.pool),
            keep: self.keep.clone(),
            ageing: Arc::clone(&self.ageing),
            own: Mutex::new(None),
        }
    }

    /// True if a row that these writes touch is invisible, in a table with row security.
    async fn hidden(&self, writes: &[Write]) -> Result<bool, String> {
        let (mut reads, mut tables) = (Vec::new(), BTreeSet::new());
        for write in writes {
            let Some(object) = write.object() else { continue };
            let Some(mapped) = mapped(&self.layout, object) else { continue };
            tables.extend(mapped.tables());
            reads.push(match write {
                Write::Insert(address, element) => Read::Contains(address.clone(), element.clone()),
                Write::Put(address, entry, _) => Read::Entry(address.clone(), entry.clone()),
                _ => Read::Exists(object.clone()),
            });
        }
        let mut lease = self.pool.lease().await?;
        if !has_security(&mut lease, tables).await? {
            return Ok(false);
        }
        let plan = Plan::new(&self.layout, &self.operations, &reads);
        let mut plan = plan.map_err(|why| why.to_string())?;
        let results = run(&mut lease, plan.take_steps()).await?;
        let answers = plan.answers(&results)?.answers;
        Ok(answers
            .iter()
            .any(|answer| matches!(answer.data, Data::Bool(false) | Data::Register(None))))
    }
}

/// Runs steps in a transaction of their own.
async fn run(lease: &mut Lease, steps: Vec<Step>) -> Result<Vec<Vec<crate::wire::Row>>, String> {
    let count = steps.len();
    let steps = Step::beside(steps);
    let prepared = lease.prepare(&steps).await.ok_or("no answer in time")?;
    prepared.map_err(|wrong| wrong.to_string())?;
    lease.soil();
    let results = lease.run(&steps).await.ok_or("no answer in time")?;
    lease.settle(&results);
    let rows: Result<Vec<_>, _> = results.into_iter().collect();
    let mut rows = rows.map_err(|wrong| wrong.to_string())?;
    // Drop the results of BEGIN and COMMIT.
    rows.remove(0);
    rows.truncate(count);
    Ok(rows)
}

async fn has_security(lease: &mut Lease, tables: BTreeSet<&str>) -> Result<bool, String> {
    let ask = |table: &str| {
        let table = crate::name::literal(table);
        Step::new(format!("SELECT row_security_active({table}::regclass)"), Vec::new())
    };
    let found = run(lease, tables.into_iter().map(ask).collect()).await?;
    Ok(found.iter().flatten().any(|row| boolean(row, 0)))
}

fn mapped<'a>(layout: &'a Layout, object: &Ref) -> Option<&'a Mapped> {
    match &layout.kinds.get(object.kind())?.place {
        Place::Mapped(mapped) => Some(mapped),
        Place::Own { .. } => None,
    }
}

/// Returns the layout with mappings that were checked again; none if nothing changed.
fn changed(layout: &Layout, mut found: BTreeMap<Name, Mapped>) -> Option<Layout> {
    let mut is_changed = false;
    let mut kinds: BTreeMap<Name, Kind> = layout.kinds.clone();
    for (name, kind) in &mut kinds {
        let (Place::Mapped(old), Some(new)) = (&mut kind.place, found.remove(name)) else {
            continue;
        };
        is_changed |= **old != new;
        **old = new;
    }
    let key_indexes = kinds.values().filter_map(|kind| match &kind.place {
        Place::Mapped(mapped) => Some(mapped.key_indexes.iter().cloned()),
        Place::Own { .. } => None,
    });
    let own = layout.key_indexes.iter().filter(|(schema, _)| *schema == layout.own);
    let key_indexes = key_indexes.flatten().chain(own.cloned()).collect();
    let texts = Arc::new(Texts::default());
    is_changed.then(|| Layout { kinds, key_indexes, texts, ..layout.clone() })
}
