//! What clients call, and what each call reads and writes.

use mingle_model::random::Random;
use mingle_model::{Ref, Value};

/// The transactions of the simulated program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// One store, with reads.
    Deposit,
    /// One strong store, blind.
    Credit,
    /// One causal store, blind.
    Note,
    /// The other one.
    Pin,
    /// Two stores.
    Transfer,
    /// Three stores, blind.
    Send,
    /// Four stores.
    Order,
    /// Three stores, with a read in the middle.
    Post,
    /// Two causal stores.
    Swap,
    /// Reads all stores.
    Look,
    /// Reads one store each.
    ReadAccount,
    /// Reads one store.
    ReadBoard,
    /// Reads one store.
    ReadInbox,
    /// Isolated, writes both strong stores.
    Both,
    /// Isolated, reads the first and writes the second.
    BankToShop,
    /// Isolated, writes the first and reads the second.
    ShopToBank,
    /// Endorses.
    Claim,
    /// Isolated, writes a strong store and a weak one.
    Announce,
    /// Endorses what decides about the second store that it writes.
    Vouch,
}

/// The stores of the simulated program, in the order in which transactions visit them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Store {
    /// Linearizable.
    Bank,
    /// Linearizable.
    Shop,
    /// Causal.
    Wall,
    /// Causal.
    Feed,
}

impl Store {
    /// All of them, in order.
    pub const ALL: [Self; 4] = [Self::Bank, Self::Shop, Self::Wall, Self::Feed];

    /// Its name in the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bank => "bank",
            Self::Shop => "shop",
            Self::Wall => "wall",
            Self::Feed => "feed",
        }
    }

    /// Whether it may have replicas.
    pub fn is_causal(self) -> bool {
        matches!(self, Self::Wall | Self::Feed)
    }
}

/// An object with a log of who wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Object {
    /// At the bank.
    Account(u8),
    /// At the bank.
    Slot(u8),
    /// At the shop.
    Shelf(u8),
    /// At the wall.
    Board(u8),
    /// At the feed.
    Inbox(u8),
}

/// So many objects of each kind there are, at most.
pub const OBJECTS: u8 = 3;

impl Object {
    /// All objects.
    pub fn all() -> impl Iterator<Item = Self> {
        let kinds = [Self::Account, Self::Slot, Self::Shelf, Self::Board, Self::Inbox];
        kinds.into_iter().flat_map(|kind| (0..OBJECTS).map(kind))
    }

    /// Where it lives.
    pub fn store(self) -> Store {
        match self {
            Self::Account(_) | Self::Slot(_) => Store::Bank,
            Self::Shelf(_) => Store::Shop,
            Self::Board(_) => Store::Wall,
            Self::Inbox(_) => Store::Feed,
        }
    }

    /// Its name in the program.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Account(_) => "Account",
            Self::Slot(_) => "Slot",
            Self::Shelf(_) => "Shelf",
            Self::Board(_) => "Board",
            Self::Inbox(_) => "Inbox",
        }
    }

    /// The object as a program names it.
    pub fn to_ref(self) -> Ref {
        let (Self::Account(n) | Self::Slot(n) | Self::Shelf(n) | Self::Board(n) | Self::Inbox(n)) =
            self;
        Ref::new(self.kind(), Value::from(format!("{n}")))
    }
}

/// A call, and the objects it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCall {
    /// Which transaction.
    pub kind: Kind,
    /// The account, or of a claim the slot.
    pub account: u8,
    /// The shelf.
    pub shelf: u8,
    /// The board.
    pub board: u8,
    /// The inbox.
    pub inbox: u8,
    /// What it leaves wherever it writes; its own, and a number.
    pub tag: u32,
    /// The caller goes away after so many milliseconds.
    pub patience_ms: Option<u32>,
    /// The caller waits no longer than until this store has committed.
    pub until: Option<Store>,
    /// It begins from the same token as the call before it, as if both had been sent at once.
    pub is_twin: bool,
    /// The client has moved to this replica, from 0.
    pub moves_to: Option<u8>,
    /// It goes to this process, from 0, instead of the client's own.
    pub process: Option<u8>,
    /// It has a key: made again, it is the same call.
    pub is_keyed: bool,
    /// Once it has ended it is made again, by its key, at this process, from 0.
    pub again: Option<u8>,
}

/// What a call does at one store: first the objects whose logs it reads and gives back, then those
/// that it writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Where.
    pub store: Store,
    /// Its log is part of the result.
    pub reads: Option<Object>,
    /// Objects in whose log the tag is afterwards.
    pub writes: Vec<Object>,
}

impl ClientCall {
    /// Draws a call. `objects` is how many of each kind are in use: the fewer, the more they meet.
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

    /// What it does, store after store.
    pub fn visits(&self) -> Vec<Visit> {
        let account = Object::Account(self.account);
        let slot = Object::Slot(self.account);
        let shelf = Object::Shelf(self.shelf);
        let board = Object::Board(self.board);
        let inbox = Object::Inbox(self.inbox);
        let read = |object: Object| Visit {
            store: object.store(),
            reads: Some(object),
            writes: Vec::new(),
        };
        let write =
            |object: Object| Visit { store: object.store(), reads: None, writes: vec![object] };
        let update = |object: Object| Visit {
            store: object.store(),
            reads: Some(object),
            writes: vec![object],
        };
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
            Kind::ReadAccount => vec![read(account)],
            Kind::ReadBoard => vec![read(board)],
            Kind::ReadInbox => vec![read(inbox)],
            Kind::Both => vec![update(account), update(shelf)],
            Kind::BankToShop => vec![read(account), write(shelf)],
            Kind::ShopToBank => vec![write(account), read(shelf)],
            Kind::Claim => vec![write(slot), write(inbox)],
            Kind::Announce => vec![update(account), write(inbox)],
            Kind::Vouch => vec![write(account), write(shelf), write(inbox)],
        }
    }

    /// All objects that it writes.
    pub fn writes(&self) -> Vec<Object> {
        self.visits().into_iter().flat_map(|visit| visit.writes).collect()
    }

    /// The tag as it stands in logs.
    pub fn tag_text(&self) -> String {
        self.tag.to_string()
    }

    /// The transaction's name in the program.
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
        }
    }

    /// Its arguments, in order.
    pub fn arguments(&self) -> Vec<Value> {
        let account = Value::Ref(Object::Account(self.account).to_ref());
        let shelf = Value::Ref(Object::Shelf(self.shelf).to_ref());
        let board = Value::Ref(Object::Board(self.board).to_ref());
        let inbox = Value::Ref(Object::Inbox(self.inbox).to_ref());
        let tag = Value::from(self.tag_text());
        match self.kind {
            Kind::Deposit | Kind::Credit => vec![account, tag],
            Kind::Note => vec![inbox, tag],
            Kind::Pin => vec![board, tag],
            Kind::Transfer | Kind::Announce => vec![account, inbox, tag],
            Kind::Send | Kind::Post => vec![account, board, inbox, tag],
            Kind::Order | Kind::Vouch => vec![account, shelf, board, inbox, tag],
            Kind::Swap => vec![board, inbox, tag],
            Kind::Look => vec![account, shelf, board, inbox],
            Kind::ReadAccount => vec![account],
            Kind::ReadBoard => vec![board],
            Kind::ReadInbox => vec![inbox],
            Kind::Both | Kind::BankToShop | Kind::ShopToBank => vec![account, shelf, tag],
            Kind::Claim => {
                let slot = Value::Ref(Object::Slot(self.account).to_ref());
                vec![slot, inbox, Value::Int(PLACES), tag]
            }
        }
    }

    /// Whether its transaction is declared `isolated`.
    pub fn is_isolated(&self) -> bool {
        matches!(self.kind, Kind::Both | Kind::BankToShop | Kind::ShopToBank | Kind::Announce)
    }

    /// Whether its balance of the account grows by one.
    pub fn is_deposit(&self) -> bool {
        matches!(self.kind, Kind::Deposit | Kind::Transfer | Kind::Order)
    }

    /// Whether it leaves the same mark at wall and feed.
    pub fn marks(&self) -> bool {
        matches!(self.kind, Kind::Order | Kind::Post)
    }
}

/// A slot has so many places.
pub const PLACES: i64 = 4;

/// Mixes of transactions: a seed has one of them.
pub const MIXES: [&[Kind]; 6] = [
    &[
        Kind::Deposit,
        Kind::Credit,
        Kind::Note,
        Kind::Pin,
        Kind::Transfer,
        Kind::Send,
        Kind::Order,
        Kind::Post,
        Kind::Swap,
        Kind::Look,
        Kind::Look,
        Kind::ReadAccount,
        Kind::ReadBoard,
        Kind::ReadInbox,
        Kind::Both,
        Kind::BankToShop,
        Kind::ShopToBank,
        Kind::Claim,
    ],
    &[Kind::Transfer, Kind::Credit, Kind::ReadAccount, Kind::ReadInbox, Kind::Look],
    &[Kind::Order, Kind::Post, Kind::Post, Kind::Swap, Kind::Look, Kind::Send],
    &[
        Kind::Note,
        Kind::Pin,
        Kind::ReadInbox,
        Kind::ReadBoard,
        Kind::Deposit,
        Kind::ReadAccount,
        Kind::Swap,
    ],
    &[Kind::Both, Kind::BankToShop, Kind::ShopToBank],
    &[Kind::Claim, Kind::Send, Kind::Credit, Kind::Look, Kind::Claim],
];
