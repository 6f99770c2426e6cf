//! Syntax that Rust has and the language does not have.

mingle_macros::program! {
    store a: causal;

    object O in a {
        key k: string;
        n: int = 1u8;
        c: string = r"raw";
        d: string = "\x41";
    }

    transaction t(o: ref O) {
        o.n = 'c';
        o.n <<= 2;
    }
}

fn main() {}
