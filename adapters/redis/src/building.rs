//! The making of indexes over objects that are there, when a store is opened.
//!
//! The state of a kind in `!indexes` says which indexes its objects have. If the program has others, its process
//! takes the state away: it becomes `?` with a token that no program has, so all commits that write such objects
//! are refused, in every process. Then the process removes the entries that are left of earlier indexes, gives each
//! object its entries, and sets the state of its program. Each step changes the token, and does nothing if the
//! token is another one: a process that stops in the middle is followed by the next one that opens the store, which
//! begins anew once the token has stood still for a while.
//!
//! The token is followed by the state before. If the objects break a `unique`, the process makes the indexes of
//! that state again, so the processes of the earlier program go on.

use std::collections::BTreeMap;

use mingle_model::{FieldType, ObjectType, Ref, Value};
use mingle_store::unique::twice;
use mingle_store::{StoreOperation, StoreSchema, World, codec};
use redis::Cmd;

use crate::config::OpenError;
use crate::index::{self, Index, ordered, settle, split};
use crate::limits::{
    INDEX_BATCH, INDEX_PAGE, INDEX_PAUSE, INDEX_PAUSES_MAX, INDEX_SCAN, INDEX_TRIES_MAX,
};
use crate::link::Failed;
use crate::reply;
use crate::request::{Objects, Word, words};
use crate::store::Core;

/// The reason why the indexes of a kind are not made.
enum Trouble {
    /// The server failed.
    Failed(Failed),
    /// Another process makes them.
    Lost,
    /// They cannot be made.
    Odd(String),
}

impl From<Failed> for Trouble {
    fn from(failed: Failed) -> Self {
        Self::Failed(failed)
    }
}

impl From<String> for Trouble {
    fn from(why: String) -> Self {
        Self::Odd(why)
    }
}

/// The making of the indexes of a kind.
struct Building<'a> {
    core: &'a Core,
    declared: &'a ObjectType,
    token: u64,
    /// The number of steps so far.
    count: u64,
    /// The state before, of a program.
    before: String,
    state: String,
}

impl Core {
    /// Makes sure that all objects have the indexes that the program declares.
    ///
    /// # Errors
    ///
    /// When the server does not answer; when the objects break a `unique`; when what is stored cannot be read.
    pub(crate) async fn keep_indexes(
        &self,
        schema: &StoreSchema,
        world: &dyn World,
    ) -> Result<(), OpenError> {
        let unavailable = |reason| OpenError::Unavailable { store: schema.store.clone(), reason };
        let error = |kind: &str, trouble| match trouble {
            Trouble::Failed(failed) => unavailable(failed.reason().to_owned()),
            Trouble::Lost => {
                unavailable(format!("others change the indexes of {kind} all the time"))
            }
            Trouble::Odd(reason) => OpenError::Config { store: schema.store.clone(), reason },
        };
        let states = self.states().await.map_err(|trouble| error("its objects", trouble))?;
        for (kind, of) in &self.layout.kinds {
            let found = states.get(&**kind).cloned().unwrap_or_default();
            let made = self.keep_indexes_of(schema, &of.declared, found, world).await;
            made.map_err(|trouble| error(kind, trouble))?;
        }
        Ok(())
    }

    /// Returns the state of each kind that has one.
    async fn states(&self) -> Result<BTreeMap<String, String>, Trouble> {
        let states = format!("{}!indexes", self.prefix);
        let found = reply::strings(self.link.ask(&["HGETALL", &states]).await?)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(found.chunks_exact(2).map(|pair| (text(&pair[0]), text(&pair[1]))).collect())
    }

    async fn keep_indexes_of(
        &self,
        schema: &StoreSchema,
        declared: &ObjectType,
        mut found: String,
        world: &dyn World,
    ) -> Result<(), Trouble> {
        let again = async || -> Result<String, Trouble> {
            Ok(self.states().await?.remove(&*declared.name).unwrap_or_default())
        };
        let indexes = self.layout.indexes.of(&declared.name);
        let wanted = index::state(indexes);
        let (mut pauses, mut tries) = (0, 0);
        while found != wanted {
            // Another process may be about to make them.
            if found.starts_with('?') && pauses < INDEX_PAUSES_MAX {
                world.sleep(INDEX_PAUSE).await;
                let before = std::mem::replace(&mut found, again().await?);
                pauses = if before == found { pauses + 1 } else { 0 };
                continue;
            }
            let before = match found.strip_prefix('?') {
                Some(token) => token.split_once(' ').map_or("", |(_, before)| before),
                None => &found,
            };
            let building = Building {
                core: self,
                declared,
                token: world.random(),
                count: 0,
                before: before.to_owned(),
                state: found.clone(),
            };
            match building.run(schema, indexes).await {
                Ok(()) => return Ok(()),
                Err(Trouble::Lost) if tries < INDEX_TRIES_MAX => {
                    (found, pauses, tries) = (again().await?, 0, tries + 1);
                }
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(())
    }
}

impl Building<'_> {
    async fn run(mut self, schema: &StoreSchema, indexes: &[Index]) -> Result<(), Trouble> {
        let made = match self.make(schema, indexes).await {
            Ok(()) => self.check_uniques(schema).await,
            Err(trouble) => Err(trouble),
        };
        if let Err(Trouble::Odd(reason)) = made {
            let before = index::of_state(&self.before, self.declared);
            let state = match self.make(schema, &before).await {
                Ok(()) => index::state(&before),
                Err(Trouble::Odd(_)) => String::new(),
                Err(trouble) => return Err(trouble),
            };
            self.change(state, &[], &Objects::default(), &[]).await?;
            return Err(Trouble::Odd(reason));
        }
        made?;
        self.change(index::state(indexes), &[], &Objects::default(), &[]).await
    }

    /// Removes the entries of earlier indexes, and gives each object those of these indexes.
    async fn make(&mut self, schema: &StoreSchema, indexes: &[Index]) -> Result<(), Trouble> {
        self.step(&[], &Objects::default(), &[]).await?;
        let kind = &self.declared.name;
        let prefix = &self.core.prefix;
        for pattern in [format!("{prefix}!index:{kind}:"), format!("{prefix}{kind}!index:")] {
            let mut cursor = "0".to_owned();
            loop {
                let (next, keys) = self.scan(&pattern, &cursor).await?;
                self.step(&keys, &Objects::default(), &[]).await?;
                cursor = next;
                if cursor == "0" {
                    break;
                }
            }
        }
        let objects = format!("{prefix}{kind}!:");
        let mut cursor = "0".to_owned();
        while !indexes.is_empty() {
            let (next, keys) = self.scan(&objects, &cursor).await?;
            let keys: Vec<&[u8]> = keys.iter().map(|key| &key[objects.len()..]).collect();
            for keys in keys.chunks(INDEX_BATCH) {
                self.index(schema, indexes, keys).await?;
            }
            if keys.is_empty() {
                // Other processes see that this one goes on.
                self.step(&[], &Objects::default(), &[]).await?;
            }
            cursor = next;
            if cursor == "0" {
                break;
            }
        }
        Ok(())
    }

    /// Returns some keys that begin with `prefix`, and the cursor for the next ones.
    async fn scan(&self, prefix: &str, cursor: &str) -> Result<(String, Vec<Word>), Trouble> {
        let escaped = prefix.chars().flat_map(|c| {
            let mark = (!c.is_alphanumeric()).then_some('\\');
            mark.into_iter().chain([c])
        });
        let pattern: String = escaped.chain(['*']).collect();
        let words = ["SCAN", cursor, "MATCH", &pattern, "COUNT", INDEX_SCAN];
        let [next, keys] = reply::parts(self.core.link.ask(&words).await?)?;
        Ok((reply::text(next)?, reply::strings(keys)?))
    }

    /// Does a step: keys go, and objects get their entries.
    async fn step(
        &mut self,
        gone: &[Word],
        objects: &Objects,
        ops: &[Vec<Word>],
    ) -> Result<(), Trouble> {
        self.count += 1;
        let state = format!("?{:016x}:{} {}", self.token, self.count, self.before);
        self.change(state, gone, objects, ops).await
    }

    async fn change(
        &mut self,
        state: String,
        gone: &[Word],
        objects: &Objects,
        ops: &[Vec<Word>],
    ) -> Result<(), Trouble> {
        let mut request = self.core.request();
        request.lists(objects.names());
        for word in [&*self.declared.name, &*self.state, &*state] {
            request.word(word);
        }
        request.list(gone);
        request.lists(ops);
        let answer = self.core.link.run(&self.core.scripts.indexes, &request).await?;
        let [status, why] = reply::parts(answer)?;
        match reply::text(status)?.as_str() {
            "ok" => {
                self.state = state;
                Ok(())
            }
            "lost" => Err(Trouble::Lost),
            _ => Err(Trouble::Odd(reply::text(why)?)),
        }
    }

    /// Gives objects their entries, by their stored keys.
    async fn index(
        &mut self,
        schema: &StoreSchema,
        indexes: &[Index],
        keys: &[&[u8]],
    ) -> Result<(), Trouble> {
        let name = &self.declared.name;
        let fields = &self.declared.fields;
        let places: Vec<u16> = (0..fields.len())
            .filter_map(|place| u16::try_from(place).ok())
            .filter(|place| indexes.iter().any(|index| index.fields.contains(place)))
            .collect();
        let asked = keys.iter().map(|key| {
            let data = [self.core.prefix.as_bytes(), name.as_bytes(), b":", key].concat();
            let mut command = Cmd::new();
            command.arg("HMGET").arg(data);
            for place in &places {
                command.arg(&*fields[usize::from(*place)].name);
            }
            command
        });
        let found = self.core.link.ask_all(&asked.collect::<Vec<_>>()).await?;
        let (mut objects, mut ops) = (Objects::default(), Vec::new());
        for (key, found) in keys.iter().zip(found) {
            let of = codec::decode(&schema.schema, key, &self.declared.key_type)?;
            let object = Ref::new(name.clone(), of);
            let number = objects.number(&object, || Ok(key.to_vec()))?;
            for (place, found) in places.iter().zip(reply::array(found)?) {
                let field = &fields[usize::from(*place)];
                let FieldType::Register(of) = &field.field_type else { continue };
                let value = reply::bytes(found)?;
                let value =
                    value.map(|bytes| codec::decode(&schema.schema, &bytes, of)).transpose()?;
                ops.push(words!["v", &*number, &*field.name, ordered(value.as_ref())]);
            }
            ops.push(settle(&number, &object, indexes, self.declared));
        }
        self.step(&[], &objects, &ops).await
    }

    /// Finds objects that break a `unique`.
    async fn check_uniques(&mut self, schema: &StoreSchema) -> Result<(), Trouble> {
        let reads = schema.operations.values().filter_map(StoreOperation::index);
        let reads = reads.filter(|read| {
            read.is_unique && read.object == self.declared.name && !read.counts && !read.has_range()
        });
        for read in reads {
            let key = format!("{}!index:{}", self.core.prefix, index::name_of(read));
            let mut first = b"-".to_vec();
            let mut last: Option<(Vec<Value>, Value)> = None;
            loop {
                let mut command = Cmd::new();
                command.arg("ZRANGEBYLEX").arg(&*key).arg(&*first).arg("+");
                command.arg("LIMIT").arg(0).arg(INDEX_PAGE);
                let page = self.core.link.ask_all(&[command]).await?.into_iter().next();
                let page = reply::strings(page.unwrap_or_default())?;
                self.step(&[], &Objects::default(), &[]).await?;
                let Some(end) = page.last() else { break };
                first = [b"(", &**end].concat();
                for entry in &page {
                    let next = split(read.fields.len(), entry)?;
                    if let Some(last) = last.as_ref().filter(|last| last.0 == next.0) {
                        let [one, other] = [last, &next]
                            .map(|(_, key)| Ref::new(read.object.clone(), key.clone()));
                        return Err(Trouble::Odd(twice(read, &next.0, (&one, &other))));
                    }
                    last = Some(next);
                }
            }
        }
        Ok(())
    }
}
