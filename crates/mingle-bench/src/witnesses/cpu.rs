//! How busy the machine's cores are with this process.

/// Processor time of this process so far, in seconds; none where the system does not say.
pub fn used() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    parse(&text)
}

/// A clock tick of Linux, as every program sees it.
const TICKS_PER_SECOND: f64 = 100.0;

fn parse(text: &str) -> Option<f64> {
    // The second field is the program's name in parentheses, which may hold anything.
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found() {
        let text = "12 (a b) c) S 1 12 12 0 -1 4194560 900 0 0 0 250 50 0 0 20 0 3 0 100";
        assert_eq!(parse(text), Some(3.0));
        assert_eq!(parse("nonsense"), None);
    }
}
