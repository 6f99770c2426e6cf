//! A flow is reported with its path.

mingle_macros::program! {
    store contests: linearizable;
    store inboxes: causal;

    object Contest in contests {
        key name: string;
        winner: option<ref Team>;
    }

    object Team in inboxes {
        key name: string;
        inbox: log<string>;
    }

    transaction post(contest: ref Contest, team: ref Team, text: string) {
        team.inbox.append(text);
        let size = team.inbox.size();
        if size >= 1_000_000 {
            contest.winner = some(team);
        }
    }
}

fn main() {}
