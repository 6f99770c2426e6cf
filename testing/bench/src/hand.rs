//! Message Groups written by hand against the store interface, as the interpreter's reference. It
//! has the same phases, with the same batches, as the split program.

use std::sync::Arc;

use mingle_model::{Name, Ref, Time, TransactionId, Value};
use mingle_store::{
    Address, Commit, Data, DataStore, Guard, Read, RecordKey, RecordKind, Session, StoreError,
    Write,
};

/// Field numbers, as the program declares them.
mod field {
    pub const GROUP_CLOSED: u16 = 0;
    pub const GROUP_MEMBERS: u16 = 1;
    pub const USER_SINCE: u16 = 0;
    pub const USER_UNREAD: u16 = 1;
    pub const USER_READ: u16 = 2;
    pub const USER_GROUPS: u16 = 3;
}

/// The application, over its two stores.
pub struct Application {
    pub groups: Arc<dyn DataStore>,
    pub inboxes: Inboxes,
    pub session: Session,
}

/// The part of the application at the store of the inboxes.
pub struct Inboxes {
    pub store: Arc<dyn DataStore>,
    pub session: Session,
    /// The name of the user class, created once.
    pub user_kind: Name,
}

fn address(object: &Ref, field: u16) -> Address {
    Address { object: object.clone(), field }
}

async fn commit(
    store: &Arc<dyn DataStore>,
    session: &Session,
    commit: Commit,
) -> Result<(), StoreError> {
    store.begin(session).await?.commit(commit).await?;
    Ok(())
}

fn plain(writes: Vec<Write>) -> Commit {
    Commit { writes, ..Commit::default() }
}

impl Application {
    pub async fn join_group(&self, user: &Ref, group: &Ref) -> Result<(), StoreError> {
        let member = Write::Insert(address(group, field::GROUP_MEMBERS), Value::Ref(user.clone()));
        commit(&self.groups, &self.session, plain(vec![member])).await?;
        commit(&self.inboxes.store, &self.session, plain(vec![joined(user, group)])).await
    }

    pub async fn add_post(&self, group: &Ref, post: &Value) -> Result<Option<i64>, StoreError> {
        let mut transaction = self.groups.begin(&self.session).await?;
        let reads = [
            Read::Register(address(group, field::GROUP_CLOSED)),
            Read::Elements(address(group, field::GROUP_MEMBERS)),
        ];
        let mut answers = transaction.read(&reads).await?.into_iter();
        let closed = matches!(
            answers.next().map(|answer| answer.data),
            Some(Data::Register(Some(Value::Bool(true))))
        );
        let Some(Data::Values(members)) = answers.next().map(|answer| answer.data) else {
            return Ok(None);
        };
        transaction.commit(Commit::default()).await?;
        if closed {
            return Ok(None);
        }
        let delivered = members.len() as i64;
        self.inboxes.deliver(members.iter().filter_map(Value::as_ref_value), post).await?;
        Ok(Some(delivered))
    }
}

/// Returns the write that adds the group to the user's own list.
fn joined(user: &Ref, group: &Ref) -> Write {
    Write::Insert(address(user, field::USER_GROUPS), Value::Ref(group.clone()))
}

impl Inboxes {
    pub async fn create_user(&self, name: &Value, now: Time) -> Result<Value, StoreError> {
        let user = Ref::new(self.user_kind.clone(), name.clone());
        let since = Write::Assign(address(&user, field::USER_SINCE), Value::Time(now));
        let writes = vec![Write::Create(user.clone()), since];
        commit(&self.store, &self.session, plain(writes)).await?;
        Ok(Value::Ref(user))
    }

    /// Delivers a post to the members of a group.
    pub async fn deliver(
        &self,
        members: impl Iterator<Item = &Ref>,
        post: &Value,
    ) -> Result<(), StoreError> {
        let writes =
            members.map(|member| Write::Append(address(member, field::USER_UNREAD), post.clone()));
        commit(&self.store, &self.session, plain(writes.collect())).await
    }

    pub async fn check_inbox(&self, user: &Ref) -> Result<Value, StoreError> {
        let mut transaction = self.store.begin(&self.session).await?;
        let unread = address(user, field::USER_UNREAD);
        let reads = [Read::LogSlice { address: unread.clone(), from: 0, count: u64::MAX }];
        let answers = transaction.read(&reads).await?;
        let Some(Data::Values(posts)) = answers.into_iter().next().map(|answer| answer.data) else {
            return Ok(Value::list([]));
        };
        let mut writes: Vec<Write> = posts
            .iter()
            .map(|post| Write::Append(address(user, field::USER_READ), post.clone()))
            .collect();
        writes.push(Write::Clear(unread));
        transaction.commit(plain(writes)).await?;
        Ok(Value::List(posts.into()))
    }

    /// Adds a group to a user's own list, once for each `id`: a second attempt finds that the write
    /// is done.
    pub async fn join_once(
        &self,
        id: TransactionId,
        user: &Ref,
        group: &Ref,
    ) -> Result<(), StoreError> {
        let done = RecordKey::of(RecordKind::Witness, id, 0);
        let writes = vec![
            joined(user, group),
            Write::Record(done.clone(), id.sequence.to_be_bytes().into()),
        ];
        let guards = vec![Guard::Absent(done)];
        let once = Commit { writes, guards, ..Commit::default() };
        match commit(&self.store, &self.session, once).await {
            // Only the guard can conflict here.
            Err(StoreError::Conflict) => Ok(()),
            other => other,
        }
    }

    /// Removes the marks of finished operations, which no caller will retry.
    pub async fn forget(&self, ids: &[TransactionId]) -> Result<(), StoreError> {
        let keys = ids.iter().map(|id| RecordKey::of(RecordKind::Witness, *id, 0));
        commit(&self.store, &self.session, plain(keys.map(Write::Discard).collect())).await
    }
}
