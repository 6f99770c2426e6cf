//! A data center that was away for longer than logs are kept returns by state transfer, and every
//! transaction counts once.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use mingle_geo::limits::{
    TRANSFER_BYTES_MAX, TRANSFER_ITEMS_MAX, TRANSFER_ITEMS_MIN, TRANSFER_ITEMS_PER_S,
};
use mingle_geo::{Address, Alarm, Key, Kind, Message, Op};
use mingle_model::Value;

use crate::support::{Verdict, World};

fn value(world: &mut World, client: u64, key: &Key) -> i128 {
    let states = world.read(client, &[key]).expect("a read");
    world.call(client, |session, _, _| session.rollback());
    states[0].as_counter().expect("a counter").value()
}

fn add(world: &mut World, client: u64, key: &Key, amount: i64) {
    world.write(client, key, Op::Add(amount));
    world.committed(client);
}

fn transfers(world: &World) -> usize {
    let is_complete = |alarm: &Alarm| matches!(alarm, Alarm::Transfer { is_complete: true, .. });
    world.alarms.iter().filter(|(_, alarm)| is_complete(alarm)).count()
}

/// Records the number of items in each part of a state transfer from now on.
fn sizes_of_parts(world: &mut World) -> Rc<RefCell<Vec<usize>>> {
    let sizes = Rc::new(RefCell::new(Vec::new()));
    let seen = sizes.clone();
    world.filter(move |_, envelope| {
        if let Message::TransferPart(part) = &envelope.message {
            seen.borrow_mut().push(part.states.len());
        }
        Verdict::Pass
    });
    sizes
}

/// d2 is away while the others write more than is kept, and writes itself.
fn away() -> (World, Key) {
    let mut world = World::with(3, 1, 1, |config| {
        config.forward_bytes_max = 1_000;
        config.transaction_ms_max = 200;
    });
    let key = Key::new(Kind::Counter, "sum");
    for client in 0..3 {
        world.open(client, client as u8);
    }
    for client in 0..3 {
        add(&mut world, client, &key, 1);
    }
    world.run_ms(1_000);
    world.isolate(2);
    for _ in 0..50 {
        add(&mut world, 0, &key, 10);
        add(&mut world, 1, &key, 100);
        add(&mut world, 2, &key, 1_000);
    }
    world.run_ms(2_000);
    (world, key)
}

const SUM: i128 = 3 + 50 * 1_110;

#[test]
fn everything_counts_once() {
    let (mut world, key) = away();
    assert_eq!(transfers(&world), 0);
    world.heal();
    for client in 0..3 {
        world.run_until("all is there", |world| value(world, client, &key) == SUM);
    }
    assert_eq!(transfers(&world), 1);
    world.run_ms(2_000);
    for client in 0..3 {
        assert_eq!(value(&mut world, client, &key), SUM, "d{client}");
    }
}

/// The sender's answer takes longer than d2's timeout, so d2 asks another sibling, which cannot
/// serve.
#[test]
fn a_late_answer_serves() {
    let (mut world, key) = away();
    let turned = Rc::new(Cell::new(None));
    let first_asked = turned.clone();
    world.filter(move |from, envelope| match (&envelope.message, from, envelope.to) {
        (Message::TransferPull(_), _, Address::Replica(to, _)) => match first_asked.get() {
            None => {
                first_asked.set(Some((to, false)));
                Verdict::Pass
            }
            Some((first, _)) => {
                first_asked.set(Some((first, to != first)));
                Verdict::Drop
            }
        },
        (Message::TransferPart(_), _, _) => Verdict::Hold,
        _ => Verdict::Pass,
    });
    world.heal();
    world.run_until("d2 turns to another", |_| turned.get().is_some_and(|(_, turned)| turned));
    world.release();
    world.run_until("all is there", |world| value(world, 2, &key) == SUM);
    assert_eq!(transfers(&world), 1);
}

#[test]
fn a_restart_after_it_finds_the_same() {
    let (mut world, key) = away();
    world.heal();
    world.run_until("a transfer", |world| transfers(world) == 1);
    world.run_ms(500);
    world.crash(2, 0, false);
    world.restart(2, 0);
    world.run_ms(2_000);
    for client in 0..3 {
        assert_eq!(value(&mut world, client, &key), SUM, "d{client}");
    }
}

#[test]
fn a_crash_in_its_midst_begins_it_again() {
    let (mut world, key) = away();
    // The items have more bytes than two parts hold.
    let long = |index: usize| Key::new(Kind::Register, format!("{index}"));
    let text = Value::from("x".repeat(TRANSFER_BYTES_MAX * 2 / 5));
    for index in 0..5 {
        world.write(0, &long(index), Op::Write(text.clone()));
    }
    world.committed(0);
    world.run_ms(2_000);
    world.heal();
    let mut parts = 0;
    world.run_until("two parts", |world| {
        parts = world.alarms.iter().filter(|(at, _)| *at == (2, 0)).count();
        parts > 0
    });
    world.run_ms(45);
    assert_eq!(transfers(&world), 0, "it is under way");
    world.crash(2, 0, false);
    world.restart(2, 0);
    world.run_until("all is there", |world| value(world, 2, &key) == SUM);
    let states = world.read(2, &[&long(4)]).expect("a read");
    let found = states[0].as_register().expect("a register");
    assert_eq!(found.value(), Some(&text));
}

#[test]
fn a_state_of_many_items_comes_in_parts() {
    let (mut world, key) = away();
    for index in 0..TRANSFER_ITEMS_MAX {
        world.write(0, &Key::new(Kind::Counter, format!("{index}")), Op::Add(1));
    }
    world.committed(0);
    world.run_ms(2_000);
    let sizes = sizes_of_parts(&mut world);
    world.heal();
    world.run_until("all is there", |world| value(world, 2, &key) == SUM);
    assert_eq!(*sizes.borrow(), [TRANSFER_ITEMS_MAX, 1]);
    let last = Key::new(Kind::Counter, format!("{}", TRANSFER_ITEMS_MAX - 1));
    assert_eq!(value(&mut world, 2, &last), 1);
}

#[test]
fn parts_keep_to_a_pace() {
    let (mut world, key) = away();
    let count = 2 * TRANSFER_ITEMS_MAX + 500;
    for index in 0..count {
        world.write(0, &Key::new(Kind::Counter, format!("{index}")), Op::Add(1));
    }
    world.committed(0);
    world.run_ms(2_000);
    let sent = sizes_of_parts(&mut world);
    world.heal();
    let mut parts = Vec::new();
    world.run_until("a transfer", |world| {
        parts.extend(sent.borrow_mut().drain(..).map(|items| (world.now_us, items)));
        transfers(world) == 1
    });
    assert_eq!(value(&mut world, 2, &key), SUM);
    let (began_us, _) = parts[0];
    let mut sent = 0;
    for (at_us, items) in &parts {
        sent += items;
        let after_us = at_us - began_us;
        let allowed = TRANSFER_ITEMS_MAX + (after_us * TRANSFER_ITEMS_PER_S / 1_000_000) as usize;
        assert!(sent <= allowed, "{sent} items after {after_us} µs, {allowed} allowed");
    }
    assert_eq!(sent, count + 1);
    let (_, but_last) = parts.split_last().expect("some parts");
    assert!(but_last.iter().all(|(_, items)| *items >= TRANSFER_ITEMS_MIN), "{parts:?}");
}

#[test]
fn own_transactions_that_nobody_else_has_are_kept_beyond_the_bound() {
    let (world, _) = away();
    let own = world.replica(2, 0).kept_bytes(mingle_geo::DcId(2));
    assert!(own > 1_000, "{own} bytes of 50 transactions");
    let others = world.replica(0, 0).kept_bytes(mingle_geo::DcId(0));
    assert!(others <= 1_000, "{others} bytes are kept for a data center that is away");
}

#[test]
fn two_data_centers_that_need_each_others_state_both_get_it() {
    let mut world = World::with(3, 2, 1, |config| {
        config.forward_bytes_max = 1_000;
        config.transaction_ms_max = 200;
    });
    let keys = [0, 1].map(|partition| crate::support::key_of(Kind::Counter, partition, 2, "sum"));
    for client in 0..3 {
        world.open(client, client as u8);
    }
    world.run_ms(500);
    // First d2 is away, then d0; in between d2 receives messages at partition 0 only. So each
    // lacks, at some partition, transactions that the others no longer keep.
    let mut sum = 0;
    for (away, other) in [(2, 0), (0, 1)] {
        world.isolate(away);
        for _ in 0..50 {
            for key in &keys {
                add(&mut world, other, key, 10);
                add(&mut world, away.into(), key, 1);
                sum += 11;
            }
        }
        world.run_ms(1_000);
        if away == 2 {
            world.filter(|_, envelope| match envelope.to {
                Address::Replica(dc, partition) if dc.0 == 2 && partition.0 == 1 => Verdict::Drop,
                _ => Verdict::Pass,
            });
            world.heal();
            world.run_ms(2_000);
        }
    }
    world.no_filter();
    world.heal();
    for client in 0..3 {
        for key in &keys {
            world.run_until("all is there", |world| value(world, client, key) * 2 == sum);
        }
    }
}

#[test]
fn own_transactions_above_the_state_that_came_are_kept() {
    let (mut world, key) = away();
    // No other data center receives d2's writes before d2 has the others' state.
    world.filter(|_, envelope| match &envelope.message {
        Message::Replicate(replicate) if replicate.origin.0 == 2 => Verdict::Drop,
        _ => Verdict::Pass,
    });
    world.heal();
    world.run_until("a transfer", |world| transfers(world) == 1);
    assert!(value(&mut world, 2, &key) >= 50_000, "d2 lost what it wrote");
    world.no_filter();
    for client in 0..3 {
        world.run_until("all is there", |world| value(world, client, &key) == SUM);
    }
}
