//! Single cases.

use mingle_geo::certify::Group;
use mingle_geo::flaw::Planted;

use super::World;

fn begin(dcs: u8, planted: Planted) -> (World, u8) {
    let mut world = World::new(1, dcs, planted);
    world.run_until("votes", |world| world.met.votes > 20);
    let leader = world.leader().expect("they vote");
    (world, leader)
}

fn others(world: &World, dc: u8) -> Vec<u8> {
    (0..world.dcs()).filter(|other| *other != dc).collect()
}

impl World {
    fn group(&self, dc: u8) -> &Group {
        self.nodes[usize::from(dc)].group.as_ref().expect("it runs")
    }

    fn configuration(&self, dc: u8) -> u32 {
        self.group(dc).configuration().id()
    }

    /// Loses a data center and starts its successor.
    fn succeed(&mut self, dc: u8) {
        self.lose(dc);
        let incarnation = self.nodes[usize::from(dc)].incarnation;
        self.replace(dc, incarnation);
        self.start(dc);
        self.run_until("the successor takes part", |world| world.group(dc).is_member());
    }
}

#[test]
fn a_lost_one_is_replaced_twice_in_a_row() {
    for is_leader in [true, false] {
        let (mut world, leader) = begin(3, Planted::default());
        let dc = if is_leader { leader } else { others(&world, leader)[0] };
        world.succeed(dc);
        world.succeed(dc);
        assert_eq!(world.configuration(dc), 3);
        world.settle();
    }
}

#[test]
fn one_is_lost_again_before_it_took_part() {
    let (mut world, leader) = begin(3, Planted::default());
    let dc = others(&world, leader)[0];
    world.lose(dc);
    world.replace(dc, 1);
    world.run_until("the group goes on", |world| world.configuration(leader) == 2);
    world.lose(dc);
    world.succeed(dc);
    assert_eq!(world.nodes[usize::from(dc)].incarnation, 3);
    world.settle();
}

#[test]
fn one_that_slept_through_two_configurations_comes_back() {
    let (mut world, leader) = begin(5, Planted::default());
    let others = others(&world, leader);
    let (sleeper, lost) = (others[0], [others[1], others[2]]);
    world.crash(sleeper);
    for dc in lost {
        world.succeed(dc);
    }
    world.start(sleeper);
    assert_eq!(world.configuration(sleeper), 1);
    world.settle();
    assert_eq!(world.configuration(sleeper), 3);
    assert_eq!(world.met.skipped, 1);
}

/// If the leader is lost at any time during a change of configuration, the log still ends in only
/// one configuration.
#[test]
fn the_leader_is_lost_amid_the_change() {
    let mut ends = [0; 2];
    for delay_ms in (0..600).step_by(30) {
        let (mut world, leader) = begin(5, Planted::default());
        let dc = others(&world, leader)[1];
        world.lose(dc);
        world.replace(dc, 1);
        world.run(delay_ms * 1_000);
        let has_gone_on = world.nodes.iter().filter_map(|node| node.group.as_ref());
        let has_gone_on = has_gone_on.filter(|group| group.configuration().id() > 1).count();
        ends[usize::from(has_gone_on > 0)] += 1;
        world.lose(leader);
        world.run_until("others lead", |world| world.leader().is_some());
        world.replace(leader, 1);
        world.start(leader);
        world.start(dc);
        world.settle();
    }
    assert!(ends.iter().all(|count| *count > 2), "{ends:?}: before, and after");
}

/// A replica still runs but was given up: from then on nothing depends on it, and it is silent.
#[test]
fn one_that_is_replaced_while_it_runs_stops() {
    for is_leader in [true, false] {
        let (mut world, leader) = begin(3, Planted::default());
        let dc = if is_leader { leader } else { others(&world, leader)[0] };
        world.replace(dc, 1);
        world.run_until("it stops", |world| world.group(dc).is_replaced());
        assert!(!world.group(dc).is_member() && !world.group(dc).is_leader());
        let before = world.met.votes;
        world.run_until("votes go on", |world| world.met.votes > before + 20);
        world.lose(dc);
        world.start(dc);
        world.settle();
    }
}

/// While one replica is away and another waits to join, the remaining one is a majority of neither
/// configuration.
#[test]
fn a_successor_has_no_vote_before_it_has_one() {
    let (mut world, leader) = begin(3, Planted::default());
    let others = others(&world, leader);
    world.crash(others[0]);
    world.lose(others[1]);
    world.replace(others[1], 1);
    world.start(others[1]);
    world.run(1_000_000);
    let before = world.met.votes;
    world.run(15_000_000);
    assert_eq!(world.met.votes, before, "there is no majority");
    assert!(!world.group(others[1]).is_member());
    world.start(others[0]);
    world.settle();
}

/// One replica has decided with another, which then loses its disk: the third and an empty disk
/// must not be a majority.
fn decided_with_a_disk_that_is_lost(planted: Planted, is_new: bool) {
    let (mut world, leader) = begin(3, planted);
    let others = others(&world, leader);
    let (away, lost) = (others[0], others[1]);
    world.crash(away);
    let before = world.last();
    world.run_until("decided", |world| world.told.keys().any(|id| *id > before));
    world.crash(leader);
    world.lose(lost);
    if !is_new {
        // The operator that starts it does not know this.
        let node = &mut world.nodes[usize::from(lost)];
        (node.incarnation, node.has_written) = (0, true);
    }
    world.start(away);
    world.start(lost);
    world.run(10_000_000);
    let incarnation = world.nodes[usize::from(lost)].incarnation;
    world.start(leader);
    if !is_new {
        let before = world.met.votes;
        world.run_until("the others go on", |world| world.met.votes > before + 10);
        assert!(!world.group(lost).is_member());
        world.lose(lost);
        world.start(lost);
    }
    world.replace(lost, incarnation.max(1));
    world.settle();
}

#[test]
fn an_empty_disk_does_not_vote_for_its_old_self() {
    decided_with_a_disk_that_is_lost(Planted::default(), true);
    decided_with_a_disk_that_is_lost(Planted::default(), false);
}

#[cfg(feature = "planted")]
#[test]
fn an_empty_disk_that_votes_is_noticed() {
    use mingle_geo::flaw::Flaw;

    for is_new in [true, false] {
        let run = || decided_with_a_disk_that_is_lost(Flaw::EmptyDiskVotes.into(), is_new);
        let why = std::panic::catch_unwind(run).expect_err("a log was forgotten");
        let why = why.downcast_ref::<String>().expect("a message");
        assert!(why.contains("two logs") || why.contains("a vote is lost"), "{why}");
    }
}
