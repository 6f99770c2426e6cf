//! The dependencies of a transaction's diagnostics: its text, and the items that it names, directly
//! or through others.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use mingle_model::Name;

use crate::syntax::ast::{self, Item, ItemKind};
use crate::syntax::{Source, TokenKind};

/// A set of shared items: bit `i` stands for the `i`th.
type Set = Vec<u64>;

/// A key that identifies everything that a transaction's diagnostics depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key(u64);

/// The facts about the items of the current version.
#[derive(Debug, Default)]
pub(super) struct Closures {
    /// The names in an item, by its text.
    words: HashMap<u64, Arc<[Name]>>,
    /// The items that transactions share, in order: all items other than transactions.
    shared: Vec<usize>,
    shared_texts: Vec<u64>,
    /// The shared items that have a name.
    named: HashMap<Name, Vec<usize>>,
    /// For each shared item, the items that it leads to, including itself.
    reach: Vec<Set>,
    /// The dependencies of every transaction: levels, stores, and the items that they lead to.
    always: Set,
    /// The dependencies of each item that is a transaction.
    transactions: Vec<Option<(Key, Set)>>,
}

impl Closures {
    /// Updates the facts for a version's items.
    pub(super) fn update(&mut self, source: &Source, tree: &ast::Program, is_broken: bool) {
        let texts: Vec<u64> = tree.items.iter().map(|item| text_of(source, item)).collect();
        let old = std::mem::take(&mut self.words);
        for (item, text) in tree.items.iter().zip(&texts) {
            let words = old.get(text).cloned();
            self.words
                .entry(*text)
                .or_insert_with(|| words.unwrap_or_else(|| words_of(source, item)));
        }
        let is_shared = |index: &usize| !is_transaction(&tree.items[*index]);
        self.shared = (0..tree.items.len()).filter(is_shared).collect();
        let shared_texts: Vec<u64> = self.shared.iter().map(|item| texts[*item]).collect();
        if shared_texts != self.shared_texts {
            self.shared_texts = shared_texts;
            self.follow(tree);
        }
        let keys = tree.items.iter().zip(&texts).map(|(item, text)| {
            is_transaction(item).then(|| {
                let set = self.set_of(*text);
                (self.key_of(*text, &set, (is_broken, tree.is_incomplete)), set)
            })
        });
        self.transactions = keys.collect();
    }

    /// Returns the key of an item; none unless it is a transaction.
    pub(super) fn key(&self, item: usize) -> Option<Key> {
        self.transactions[item].as_ref().map(|(key, _)| *key)
    }

    /// Returns the items that a transaction's diagnostics may mention: itself, then its
    /// dependencies in order.
    pub(super) fn items(&self, item: usize) -> Vec<usize> {
        let set = self.transactions[item].as_ref().map(|(_, set)| set);
        let others = set.into_iter().flat_map(members).map(|index| self.shared[index]);
        std::iter::once(item).chain(others).collect()
    }

    /// Finds the items that each shared item leads to.
    fn follow(&mut self, tree: &ast::Program) {
        self.named.clear();
        for (index, item) in self.shared.iter().enumerate() {
            if let Some(name) = name_of(&tree.items[*item]) {
                self.named.entry(name.clone()).or_default().push(index);
            }
        }
        let next: Vec<BTreeSet<usize>> =
            self.shared_texts.iter().map(|text| self.named_in(*text)).collect();
        let words = self.shared.len().div_ceil(64);
        self.reach = (0..next.len())
            .map(|start| {
                let mut set = vec![0; words];
                let mut queue = vec![start];
                insert(&mut set, start);
                while let Some(at) = queue.pop() {
                    queue.extend(next[at].iter().filter(|to| insert(&mut set, **to)));
                }
                set
            })
            .collect();
        self.always = vec![0; words];
        for (index, item) in self.shared.iter().enumerate() {
            if matches!(tree.items[*item].kind, ItemKind::Level { .. } | ItemKind::Store(_)) {
                join(&mut self.always, &self.reach[index]);
            }
        }
    }

    /// Returns the shared items that an item with this text names.
    fn named_in(&self, text: u64) -> BTreeSet<usize> {
        let words = self.words.get(&text).into_iter().flat_map(|words| words.iter());
        words.filter_map(|word| self.named.get(word)).flatten().copied().collect()
    }

    fn set_of(&self, text: u64) -> Set {
        let mut set = self.always.clone();
        for index in self.named_in(text) {
            join(&mut set, &self.reach[index]);
        }
        set
    }

    fn key_of(&self, text: u64, set: &Set, read: (bool, bool)) -> Key {
        let mut hasher = DefaultHasher::new();
        (text, read).hash(&mut hasher);
        for index in members(set) {
            self.shared_texts[index].hash(&mut hasher);
        }
        Key(hasher.finish())
    }
}

pub(super) fn is_transaction(item: &Item) -> bool {
    matches!(item.kind, ItemKind::Transaction(_))
}

/// Returns the name by which other items refer to an item.
pub(super) fn name_of(item: &Item) -> Option<&Name> {
    match &item.kind {
        ItemKind::Level { name, .. } => Some(&name.name),
        ItemKind::Store(store) => Some(&store.name.name),
        ItemKind::Object(object) => Some(&object.name.name),
        ItemKind::Struct(declared) => Some(&declared.name.name),
        ItemKind::Enum(declared) => Some(&declared.name.name),
        ItemKind::Function(function) => Some(&function.name.name),
        ItemKind::Transaction(_) => None,
    }
}

fn text_of(source: &Source, item: &Item) -> u64 {
    let mut hasher = DefaultHasher::new();
    source.span_text(item.span).hash(&mut hasher);
    hasher.finish()
}

fn words_of(source: &Source, item: &Item) -> Arc<[Name]> {
    let tokens = (item.span.start..item.span.end)
        .filter(|token| source.tokens[*token as usize].kind == TokenKind::Ident);
    let words: BTreeSet<&str> = tokens.map(|token| source.token_text(token)).collect();
    words.into_iter().map(Name::from).collect()
}

/// Adds to a set; returns true if the index is new there.
fn insert(set: &mut Set, index: usize) -> bool {
    let bit = 1 << (index % 64);
    let is_new = set[index / 64] & bit == 0;
    set[index / 64] |= bit;
    is_new
}

fn join(set: &mut Set, other: &Set) {
    for (word, added) in set.iter_mut().zip(other) {
        *word |= added;
    }
}

/// Returns the members of a set, in order.
fn members(set: &Set) -> impl Iterator<Item = usize> + '_ {
    set.iter().enumerate().flat_map(|(index, word)| {
        let bits = (0..64).filter(move |bit| word >> bit & 1 == 1);
        let bits = bits.take(word.count_ones() as usize);
        bits.map(move |bit| index * 64 + bit)
    })
}
