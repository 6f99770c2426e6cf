//! Every mistake is shown in one build, at its own tokens.

mingle_macros::program! {
    store accounts: strong;
    store inboxes: causal;

    /// Somebody who reads.
    object User in inboxes {
        key name: string;
        inbox: log<string>;
    }

    transaction send(to: ref User, text: string) {
        to.inbx.append(text); // nobody has that
        to.inbox.append(text + 1);
    }

    transaction count(of: ref User) -> int {
        return of.inbox.size() + "";
    }
}

fn main() {}
