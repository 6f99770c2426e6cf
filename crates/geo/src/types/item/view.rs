//! The content of an item, as a reader sees it.

use mingle_model::Value;

use super::super::dots::Dots;
use super::cell::Cell;
use super::list::Element;
use super::{Item, time};
use crate::timestamp::Version;

/// The type that an item shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemType {
    /// A value.
    Value,
    /// Values by field.
    Hash,
    /// Distinct members.
    Set,
    /// Members with scores.
    SortedSet,
    /// Elements in order.
    List,
}

/// The content of an item at a time.
///
/// # Examples
///
/// ```
/// use mingle_geo::types::item::{ItemOp, ItemType, Place};
/// use mingle_geo::{Cause, DcId, Kind, Op, State, Timestamp, Vector, Version};
/// use mingle_model::Value;
///
/// let mut state = State::new(Kind::Item);
/// for (dc, op) in [
///     (0, ItemOp::Set(Value::Int(5))),
///     (1, ItemOp::Add(Place::Value, 1)),
/// ] {
///     let version = Version { timestamp: Timestamp(10 << 12), origin: DcId(dc), index: 0 };
///     state.apply(&Cause { version, seen: Vector::ZERO }, &Op::Item(op), None);
/// }
/// let view = state.as_item().expect("an item").at(10);
/// assert_eq!(view.shown_type(), Some(ItemType::Value));
/// assert_eq!(view.value(), Some(Value::Int(6)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    item: &'a Item,
    life: u64,
    shown: Option<ItemType>,
}

impl<'a> View<'a> {
    pub(super) fn new(item: &'a Item, life: u64) -> Self {
        let mut view = Self { item, life, shown: None };
        view.shown = view.find_type();
        view
    }

    fn find_type(&self) -> Option<ItemType> {
        let present = ItemType::ALL.into_iter().filter(|of| self.is_present(*of));
        let present: Vec<ItemType> = present.collect();
        match present[..] {
            [] => None,
            [only] => Some(only),
            _ => present.into_iter().max_by_key(|of| self.highest(*of)),
        }
    }

    fn is_present(&self, of: ItemType) -> bool {
        let (item, life) = (self.item, self.life);
        match of {
            ItemType::Value => item.value.is_present(life),
            ItemType::Hash => item.fields.values().any(|cell| cell.is_present(life)),
            ItemType::SortedSet => item.scores.values().any(|cell| cell.is_present(life)),
            ItemType::Set => item.members.values().any(|dots| self.has(dots)),
            ItemType::List => item.list.iter().any(|it| self.is_alive(it.version)),
        }
    }

    /// Returns the highest version of what stands in a body.
    fn highest(&self, of: ItemType) -> Option<Version> {
        let (item, life) = (self.item, self.life);
        let cells = |cells: &imbl::OrdMap<Value, Cell>| {
            cells.values().filter_map(|cell| cell.highest(life)).max()
        };
        match of {
            ItemType::Value => item.value.highest(life),
            ItemType::Hash => cells(&item.fields),
            ItemType::SortedSet => cells(&item.scores),
            ItemType::Set => {
                let last = item.members.values().filter_map(Dots::last);
                last.map(|dot| dot.mark.version).max()
            }
            ItemType::List => item.list.highest(),
        }
    }

    fn is_alive(&self, version: Version) -> bool {
        time(version) >= self.life
    }

    fn has(&self, dots: &Dots<()>) -> bool {
        dots.last().is_some_and(|dot| self.is_alive(dot.mark.version))
    }

    /// Returns the type that it shows; `None` if it does not exist.
    pub fn shown_type(&self) -> Option<ItemType> {
        self.shown
    }

    /// True if it exists.
    pub fn exists(&self) -> bool {
        self.shown.is_some()
    }

    fn shows(&self, of: ItemType) -> bool {
        self.shown == Some(of)
    }

    /// Returns its deadline, in microseconds since 1970; `None` if it does not exist, or does not
    /// expire.
    pub fn deadline_us(&self) -> Option<u64> {
        self.shown.and_then(|_| self.item.deadlines.current(self.life))
    }

    /// Returns its value, if that is the type that it shows.
    pub fn value(&self) -> Option<Value> {
        self.item.value.shown(self.life).filter(|_| self.shows(ItemType::Value))
    }

    /// Returns the value of a field, if it shows a hash.
    pub fn field(&self, field: &Value) -> Option<Value> {
        let cell = self.item.fields.get(field).filter(|_| self.shows(ItemType::Hash))?;
        cell.shown(self.life)
    }

    /// Returns the fields with their values, in the order of the fields; none if it shows no hash.
    pub fn fields(&self) -> impl Iterator<Item = (&'a Value, Value)> + use<'a> {
        self.cells(ItemType::Hash, &self.item.fields)
    }

    /// Returns the score of a member, if it shows a sorted set.
    pub fn score(&self, member: &Value) -> Option<Value> {
        let cell = self.item.scores.get(member).filter(|_| self.shows(ItemType::SortedSet))?;
        cell.shown(self.life)
    }

    /// Returns the members with their scores, in the order of the members; none if it shows no sorted
    /// set.
    pub fn scores(&self) -> impl Iterator<Item = (&'a Value, Value)> + use<'a> {
        self.cells(ItemType::SortedSet, &self.item.scores)
    }

    fn cells(
        &self,
        of: ItemType,
        cells: &'a imbl::OrdMap<Value, Cell>,
    ) -> impl Iterator<Item = (&'a Value, Value)> + use<'a> {
        let (life, is_shown) = (self.life, self.shows(of));
        let cells = cells.iter().take_while(move |_| is_shown);
        cells.filter_map(move |(key, cell)| Some((key, cell.shown(life)?)))
    }

    /// True if it shows a set that has this member.
    pub fn has_member(&self, member: &Value) -> bool {
        let dots = self.item.members.get(member).filter(|_| self.shows(ItemType::Set));
        dots.is_some_and(|dots| self.has(dots))
    }

    /// Returns the members in order; none if it shows no set.
    pub fn members(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        let (view, is_shown) = (*self, self.shows(ItemType::Set));
        let members = self.item.members.iter().take_while(move |_| is_shown);
        members.filter_map(move |(member, dots)| view.has(dots).then_some(member))
    }

    /// Returns the elements in order; none if it shows no list.
    pub fn elements(&self) -> impl DoubleEndedIterator<Item = Element<'a>> + use<'a> {
        let (view, is_shown) = (*self, self.shows(ItemType::List));
        let elements = self.item.list.iter();
        elements.filter(move |element| is_shown && view.is_alive(element.version))
    }
}

impl ItemType {
    /// All types.
    pub const ALL: [Self; 5] = [Self::Value, Self::Hash, Self::Set, Self::SortedSet, Self::List];
}
