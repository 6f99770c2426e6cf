//! The clients' calls, and the reads and writes of each call.

use mingle_model::random::Random;
use mingle_model::{Ref, Value};

/// The transactions of the simulated program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Visits one store, with reads.
    Deposit,
    /// Writes one strong store without reading.
    Credit,
    /// Writes one causal store without reading.
    Note,
    /// Writes the other causal store without reading.
    Pin,
    /// Visits two stores.
    Transfer,
    /// Visits three stores without reading.
    Send,
    /// Visits four stores.
    Order,
    /// Visits three stores, with a read in the middle.
    Post,
    /// Visits two causal stores.
    Swap,
    /// Reads all stores.
    Look,
    /// Reads one store.
    ReadAccount,
    /// Reads one store.
    ReadBoard,
    /// Reads one store.
    ReadInbox,
    /// Is isolated and writes both strong stores.
    Both,
    /// Is isolated, reads the first strong store and writes the second.
    BankToShop,
    /// Is isolated, writes the first strong store and reads the second.
    ShopToBank,
    /// Endorses a value.
    Claim,
    /// Is isolated and writes a strong store and a weak one.
    Announce,
    /// Endorses the value that decides the write at its second store.
    Vouch,
    /// Writes its first store by a command.
    Record,
    /// Reads its first store by a query.
    Audit,
    /// Writes its first store by a command, and reads it by a query.
    Enroll,
    /// Reads by a query in the middle of three stores.
    Tally,
    /// Reads by a query what others write without commands, and then another store.
    Browse,
    /// Adds to an object that others delete at a strong store.
    Jot,
    /// Deletes an object at a strong store, and begins it anew.
    Scrap,
    /// Reads an object that others delete at a strong store.
    ReadPad,
    /// Adds to an object that others delete at a causal store.
    Scribble,
    /// Reads and deletes an object at a causal store.
    Wipe,
    /// Reads an object that others delete at a causal store.
    ReadSheet,
    /// Reads one store with a bound.
    Glance,
    /// Reads another store with a bound after which the first answer counts.
    Peek,
    /// Reads a strong store, and a causal one at a weaker level.
    Skim,
    /// Reads by a bound in the middle of three stores, and writes which answer came.
    Rush,
    /// Reads by a bound at the second of four stores, a strong one, and writes which answer came.
    Hurry,
    /// Takes at its second store ahead of its first.
    Buy,
    /// Is isolated, reads an account and writes it and another one.
    Even,
    /// Is isolated and reads one store.
    Check,
}

/// The stores of the simulated program, in the order in which transactions visit them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Store {
    /// A linearizable store.
    Bank,
    /// A linearizable store.
    Shop,
    /// A causal store.
    Wall,
    /// A causal store.
    Feed,
}

impl Store {
    /// All stores, in order.
    pub const ALL: [Self; 4] = [Self::Bank, Self::Shop, Self::Wall, Self::Feed];

    /// Returns the store's name in the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bank => "bank",
            Self::Shop => "shop",
            Self::Wall => "wall",
            Self::Feed => "feed",
        }
    }

    /// True if the store may have replicas.
    pub fn is_causal(self) -> bool {
        matches!(self, Self::Wall | Self::Feed)
    }
}

/// An object with a log of the calls that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Object {
    /// An object at the bank.
    Account(u8),
    /// An object at the bank.
    Slot(u8),
    /// An object at the shop.
    Shelf(u8),
    /// An object at the wall.
    Board(u8),
    /// An object at the feed.
    Inbox(u8),
    /// An object at the bank, written by commands and read by queries.
    Ledger(u8),
    /// An object at the shop that is deleted now and then.
    Pad(u8),
    /// An object at the wall that is deleted now and then.
    Sheet(u8),
}

/// The maximum number of objects of each kind.
pub const OBJECTS: u8 = 3;

impl Object {
    /// Returns all objects.
    pub fn all() -> impl Iterator<Item = Self> {
        let always = [Self::Account, Self::Slot, Self::Shelf, Self::Board, Self::Inbox];
        let kinds = always.into_iter().chain([Self::Ledger, Self::Pad, Self::Sheet]);
        kinds.flat_map(|kind| (0..OBJECTS).map(kind))
    }

    /// Returns the store of the object.
    pub fn store(self) -> Store {
        match self {
            Self::Account(_) | Self::Slot(_) | Self::Ledger(_) => Store::Bank,
            Self::Shelf(_) | Self::Pad(_) => Store::Shop,
            Self::Board(_) | Self::Sheet(_) => Store::Wall,
            Self::Inbox(_) => Store::Feed,
        }
    }

    /// True if it is a sheet: its lines are no log of its writers, because replicas delete and write
    /// it at the same time.
    pub fn is_sheet(self) -> bool {
        matches!(self, Self::Sheet(_))
    }

    /// Returns the name of the object's class in the program.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Account(_) => "Account",
            Self::Slot(_) => "Slot",
            Self::Shelf(_) => "Shelf",
            Self::Board(_) => "Board",
            Self::Inbox(_) => "Inbox",
            Self::Ledger(_) => "Ledger",
            Self::Pad(_) => "Pad",
            Self::Sheet(_) => "Sheet",
        }
    }

    /// Returns the reference by which a program names the object.
    pub fn to_ref(self) -> Ref {
        let (Self::Account(n)
        | Self::Slot(n)
        | Self::Shelf(n)
        | Self::Board(n)
        | Self::Inbox(n)
        | Self::Ledger(n)
        | Self::Pad(n)
        | Self::Sheet(n)) = self;
        Ref::new(self.kind(), Value::from(format!("{n}")))
    }
}

/// A call and the objects that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCall {
    /// The transaction.
    pub kind: Kind,
    /// The account, or the slot of a claim.
    pub account: u8,
    /// The shelf.
    pub shelf: u8,
    /// The board.
    pub board: u8,
    /// The inbox.
    pub inbox: u8,
    /// The mark that it leaves in each log it writes; unique to the call, and a number.
    pub tag: u32,
    /// The time after which the caller goes away, in milliseconds.
    pub patience_ms: Option<u32>,
    /// The store after whose commit the caller stops waiting.
    pub until: Option<Store>,
    /// True if it begins from the same token as the previous call, as if both had been sent at
    /// once.
    pub is_twin: bool,
    /// The replica, from 0, to which the client has moved.
    pub moves_to: Option<u8>,
    /// The process, from 0, that gets the call instead of the client's own.
    pub process: Option<u8>,
    /// True if the call has a key: a repetition with the key is the same call.
    pub is_keyed: bool,
    /// The process, from 0, at which the finished call is repeated by its key.
    pub again: Option<u8>,
}

/// The actions of a call at one store: it reads and returns the logs of some objects, then writes
/// some objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The store.
    pub store: Store,
    /// The object whose log is part of the result.
    pub reads: Option<Object>,
    /// The objects whose logs contain the tag afterwards.
    pub writes: Vec<Object>,
}

impl Visit {
    fn of(object: Object, reads: bool, writes: bool) -> Self {
        let writes = if writes { vec![object] } else { Vec::new() };
        Self { store: object.store(), reads: reads.then_some(object), writes }
    }
}

impl ClientCall {
    /// Draws a call. `objects` is the number of objects of each kind in use: fewer objects give
    /// more conflicts.
    pub fn draw(random: &mut Random, mix: &[Kind], objects: u8, tag: u32) -> Self {
        let pick = |random: &mut Random| random.below(usize::from(objects)) as u8;
        let kind = mix[random.below(mix.len())];
        let mut call = Self {
            kind,
            account: pick(random),
            shelf: pick(random),
            board: pick(random),
            inbox: pick(random),
            tag,
            patience_ms: random.one_in(20).then(|| random.below(400) as u32),
            until: None,
            is_twin: random.one_in(12),
            moves_to: random.one_in(15).then(|| random.below(3) as u8),
            process: random.one_in(10).then(|| random.below(3) as u8),
            is_keyed: false,
            again: None,
        };
        if random.one_in(8) {
            let stores: Vec<Store> = call.visits().iter().map(|visit| visit.store).collect();
            call.until = Some(stores[random.below(stores.len())]);
        }
        call
    }

    /// Returns the visits of the call, in the order of the stores.
    pub fn visits(&self) -> Vec<Visit> {
        let account = Object::Account(self.account);
        let slot = Object::Slot(self.account);
        let shelf = Object::Shelf(self.shelf);
        let board = Object::Board(self.board);
        let inbox = Object::Inbox(self.inbox);
        let ledger = Object::Ledger(self.account);
        let pad = Object::Pad(self.shelf);
        let sheet = Object::Sheet(self.board);
        let read = |object| Visit::of(object, true, false);
        let write = |object| Visit::of(object, false, true);
        let update = |object| Visit::of(object, true, true);
        match self.kind {
            Kind::Deposit => vec![update(account)],
            Kind::Credit => vec![write(account)],
            Kind::Note => vec![write(inbox)],
            Kind::Pin => vec![write(board)],
            Kind::Transfer => vec![update(account), write(inbox)],
            Kind::Send => vec![write(account), write(board), write(inbox)],
            Kind::Order => vec![update(account), update(shelf), write(board), write(inbox)],
            Kind::Post => vec![write(account), update(board), write(inbox)],
            Kind::Swap => vec![write(board), write(inbox)],
            Kind::Look => vec![read(account), read(shelf), read(board), read(inbox)],
            Kind::ReadAccount | Kind::Check => vec![read(account)],
            Kind::ReadBoard => vec![read(board)],
            Kind::ReadInbox => vec![read(inbox)],
            Kind::Both => vec![update(account), update(shelf)],
            Kind::BankToShop => vec![read(account), write(shelf)],
            Kind::ShopToBank => vec![write(account), read(shelf)],
            Kind::Claim => vec![write(slot), write(inbox)],
            Kind::Announce => vec![update(account), write(inbox)],
            Kind::Vouch | Kind::Buy => vec![write(account), write(shelf), write(inbox)],
            Kind::Record => vec![write(ledger), write(inbox)],
            Kind::Audit => vec![read(ledger), read(inbox)],
            Kind::Enroll => vec![update(ledger), write(inbox)],
            Kind::Tally => vec![write(account), read(shelf), write(inbox)],
            Kind::Jot | Kind::Scrap => {
                let both = Visit { writes: vec![shelf, pad], ..write(shelf) };
                vec![write(account), both, write(inbox)]
            }
            Kind::Browse => vec![read(shelf), read(inbox)],
            Kind::ReadPad => vec![read(pad), read(inbox)],
            // A sheet's lines are no log of its writers: `deletes` judges them.
            Kind::Scribble => {
                let written = Visit { writes: Vec::new(), ..write(sheet) };
                vec![write(account), written, write(inbox)]
            }
            Kind::Wipe => vec![write(account), read(sheet), write(inbox)],
            Kind::ReadSheet => vec![read(account), read(sheet)],
            Kind::Glance => vec![read(board)],
            Kind::Peek => vec![read(inbox)],
            Kind::Even => vec![self.even()],
            // The weaker answer shows no log as the store has it: `answers` judges it.
            Kind::Skim => vec![read(account), Visit { reads: None, ..read(board) }],
            Kind::Rush => vec![write(account), write(board), write(inbox)],
            Kind::Hurry => vec![write(account), write(shelf), write(board), write(inbox)],
        }
    }

    /// Returns the visit of a call that reads an account and writes it and another one.
    fn even(&self) -> Visit {
        let (account, other) = (Object::Account(self.account), Object::Account(self.shelf));
        let others = Some(other).filter(|other| *other != account);
        let writes = [account].into_iter().chain(others).collect();
        Visit { writes, ..Visit::of(account, true, false) }
    }

    /// Returns the object whose log it reads with a policy.
    pub fn asked(&self) -> Option<Object> {
        match self.kind {
            Kind::Glance | Kind::Skim => Some(Object::Board(self.board)),
            Kind::Peek => Some(Object::Inbox(self.inbox)),
            _ => None,
        }
    }

    /// Returns all objects that the call writes.
    pub fn writes(&self) -> Vec<Object> {
        self.visits().into_iter().flat_map(|visit| visit.writes).collect()
    }

    /// Returns the tag as it appears in logs.
    pub fn tag_text(&self) -> String {
        self.tag.to_string()
    }

    /// Returns the transaction's name in the program.
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::Deposit => "deposit",
            Kind::Credit => "credit",
            Kind::Note => "note",
            Kind::Pin => "pin",
            Kind::Transfer => "transfer",
            Kind::Send => "send",
            Kind::Order => "order",
            Kind::Post => "post",
            Kind::Swap => "swap",
            Kind::Look => "look",
            Kind::ReadAccount => "read_account",
            Kind::ReadBoard => "read_board",
            Kind::ReadInbox => "read_inbox",
            Kind::Both => "both",
            Kind::BankToShop => "bank_to_shop",
            Kind::ShopToBank => "shop_to_bank",
            Kind::Claim => "claim",
            Kind::Announce => "announce",
            Kind::Vouch => "vouch",
            Kind::Record => "record",
            Kind::Audit => "audit",
            Kind::Enroll => "enroll",
            Kind::Tally => "tally",
            Kind::Browse => "browse",
            Kind::Jot => "jot",
            Kind::Scrap => "scrap",
            Kind::ReadPad => "read_pad",
            Kind::Scribble => "scribble",
            Kind::Wipe => "wipe",
            Kind::ReadSheet => "read_sheet",
            Kind::Glance => "glance",
            Kind::Peek => "peek",
            Kind::Skim => "skim",
            Kind::Rush => "rush",
            Kind::Hurry => "hurry",
            Kind::Buy => "buy",
            Kind::Even => "even",
            Kind::Check => "check",
        }
    }

    /// Returns the arguments of the call, in order.
    pub fn arguments(&self) -> Vec<Value> {
        let account = Value::Ref(Object::Account(self.account).to_ref());
        let shelf = Value::Ref(Object::Shelf(self.shelf).to_ref());
        let board = Value::Ref(Object::Board(self.board).to_ref());
        let inbox = Value::Ref(Object::Inbox(self.inbox).to_ref());
        let tag = Value::from(self.tag_text());
        let ledger = Value::Ref(Object::Ledger(self.account).to_ref());
        let pad = Value::Ref(Object::Pad(self.shelf).to_ref());
        let sheet = Value::Ref(Object::Sheet(self.board).to_ref());
        match self.kind {
            Kind::Record | Kind::Enroll => vec![ledger, inbox, tag],
            Kind::Audit => vec![ledger, inbox],
            Kind::Tally | Kind::Buy => vec![account, shelf, inbox, tag],
            Kind::Jot | Kind::Scrap => vec![account, shelf, pad, inbox, tag],
            Kind::ReadPad => vec![pad, inbox],
            Kind::Browse => vec![shelf, inbox],
            Kind::Scribble | Kind::Wipe => vec![account, sheet, inbox, tag],
            Kind::ReadSheet => vec![account, sheet],
            Kind::Deposit | Kind::Credit => vec![account, tag],
            Kind::Note => vec![inbox, tag],
            Kind::Pin => vec![board, tag],
            Kind::Transfer | Kind::Announce => vec![account, inbox, tag],
            Kind::Send | Kind::Post | Kind::Rush => vec![account, board, inbox, tag],
            Kind::Order | Kind::Vouch | Kind::Hurry => vec![account, shelf, board, inbox, tag],
            Kind::Swap => vec![board, inbox, tag],
            Kind::Look => vec![account, shelf, board, inbox],
            Kind::ReadAccount | Kind::Check => vec![account],
            Kind::Even => vec![account, Value::Ref(Object::Account(self.shelf).to_ref()), tag],
            Kind::ReadBoard | Kind::Glance => vec![board],
            Kind::ReadInbox | Kind::Peek => vec![inbox],
            Kind::Skim => vec![account, board],
            Kind::Both | Kind::BankToShop | Kind::ShopToBank => vec![account, shelf, tag],
            Kind::Claim => {
                let slot = Value::Ref(Object::Slot(self.account).to_ref());
                vec![slot, inbox, Value::Int(PLACES), tag]
            }
        }
    }

    /// True if its transaction is declared `isolated`.
    pub fn is_isolated(&self) -> bool {
        matches!(
            self.kind,
            Kind::Both
                | Kind::BankToShop
                | Kind::ShopToBank
                | Kind::Announce
                | Kind::Even
                | Kind::Check
        )
    }

    /// True if it increases the account's balance by one.
    pub fn is_deposit(&self) -> bool {
        matches!(self.kind, Kind::Deposit | Kind::Transfer | Kind::Order)
    }

    /// True if it leaves the same mark at wall and feed.
    pub fn marks(&self) -> bool {
        matches!(self.kind, Kind::Order | Kind::Post | Kind::Rush | Kind::Hurry)
    }
}

/// The number of places of a slot.
pub const PLACES: i64 = 4;
