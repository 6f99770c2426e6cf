//! Message Groups written by hand against the store interface: what the interpreter is measured
//! against. It takes the same phases, with the same batches, as the split program.

use std::sync::Arc;

use mingle_model::{Name, Ref, Time, Value};
use mingle_store::{Address, Commit, Data, DataStore, Read, Session, StoreError, Write};

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
    pub inboxes: Arc<dyn DataStore>,
    pub session: Session,
    /// The kind's name, made once.
    pub user_kind: Name,
}

fn address(object: &Ref, field: u16) -> Address {
    Address { object: object.clone(), field }
}

impl Application {
    async fn commit(
        &self,
        store: &Arc<dyn DataStore>,
        writes: Vec<Write>,
    ) -> Result<(), StoreError> {
        let transaction = store.begin(&self.session).await?;
        transaction.commit(Commit { writes, ..Commit::default() }).await?;
        Ok(())
    }

    pub async fn create_user(&self, name: &Value, now: Time) -> Result<Value, StoreError> {
        let user = Ref::new(self.user_kind.clone(), name.clone());
        let since = Write::Assign(address(&user, field::USER_SINCE), Value::Time(now));
        self.commit(&self.inboxes, vec![Write::Create(user.clone()), since]).await?;
        Ok(Value::Ref(user))
    }

    pub async fn join_group(&self, user: &Ref, group: &Ref) -> Result<(), StoreError> {
        let member = Write::Insert(address(group, field::GROUP_MEMBERS), Value::Ref(user.clone()));
        self.commit(&self.groups, vec![member]).await?;
        let joined = Write::Insert(address(user, field::USER_GROUPS), Value::Ref(group.clone()));
        self.commit(&self.inboxes, vec![joined]).await
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
        let writes = members
            .iter()
            .filter_map(Value::as_ref_value)
            .map(|member| Write::Append(address(member, field::USER_UNREAD), post.clone()));
        self.commit(&self.inboxes, writes.collect()).await?;
        Ok(Some(delivered))
    }

    pub async fn check_inbox(&self, user: &Ref) -> Result<Value, StoreError> {
        let mut transaction = self.inboxes.begin(&self.session).await?;
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
        transaction.commit(Commit { writes, ..Commit::default() }).await?;
        Ok(Value::List(posts.into()))
    }
}
