//! `numeric` in the binary format: a sign, groups of four decimal digits, the place of the first group, and the number of
//! digits after the point.

use mingle_model::Decimal;

const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const MINUS_INFINITY: u16 = 0xF000;

/// More groups than any decimal has.
const GROUPS_MAX: usize = 20;

/// Returns the bytes of a number.
pub fn encode(number: Decimal) -> Vec<u8> {
    let text = number.abs().to_string();
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let before = whole.len().div_ceil(4);
    let after = part.len().div_ceil(4);
    let digits = format!("{whole:0>width$}", width = before * 4)
        + &format!("{part:0<width$}", width = after * 4);
    let group = |four: &[u8]| four.iter().fold(0, |sum, digit| sum * 10 + i16::from(digit - b'0'));
    let all: Vec<i16> = digits.as_bytes().chunks(4).map(group).collect();
    // Groups of zeros at both ends are left out.
    let first = all.iter().position(|group| *group != 0).unwrap_or(all.len());
    let end = all.iter().rposition(|group| *group != 0).map_or(first, |last| last + 1);
    let weight = if first == end { 0 } else { before as i16 - 1 - first as i16 };
    let sign = if number.coefficient() < 0 { NEGATIVE } else { 0 };
    let mut bytes = Vec::with_capacity(8 + 2 * (end - first));
    bytes.extend(((end - first) as i16).to_be_bytes());
    bytes.extend(weight.to_be_bytes());
    bytes.extend(sign.to_be_bytes());
    bytes.extend(u16::from(number.scale()).to_be_bytes());
    bytes.extend(all[first..end].iter().flat_map(|group| group.to_be_bytes()));
    bytes
}

/// Returns the number in a `numeric`.
///
/// # Errors
///
/// The cell's content, if it is no decimal: NaN, infinity, or a number of too many digits.
pub fn decode(raw: &[u8]) -> Result<Decimal, String> {
    let (pairs, []) = raw.as_chunks::<2>() else { return Err("no decimal".into()) };
    let [count, weight, sign, scale, groups @ ..] = pairs else { return Err("no decimal".into()) };
    let sign = u16::from_be_bytes(*sign);
    match sign {
        0 | NEGATIVE => {}
        NAN => return Err("NaN, which is no decimal".into()),
        INFINITY => return Err("infinity, which is no decimal".into()),
        MINUS_INFINITY => return Err("-infinity, which is no decimal".into()),
        _ => return Err("no decimal".into()),
    }
    let (count, weight) = (u16::from_be_bytes(*count), i16::from_be_bytes(*weight));
    let is_group = |group: &[u8; 2]| (0..10_000).contains(&i16::from_be_bytes(*group));
    if usize::from(count) != groups.len() || !groups.iter().all(is_group) {
        return Err("no decimal".into());
    }
    let most = Decimal::DIGITS_MAX;
    let too_many = || format!("a number of more than {most} digits, which is no decimal");
    let reach = i16::try_from(GROUPS_MAX).unwrap_or(i16::MAX);
    if groups.len() > GROUPS_MAX || !(-reach..reach).contains(&weight) {
        return Err(too_many());
    }
    let at = |place: i16| {
        let index = usize::try_from(weight - place).ok();
        index.and_then(|index| groups.get(index)).map_or(0, |group| i16::from_be_bytes(*group))
    };
    let last = weight.saturating_sub(groups.len() as i16 - 1);
    let fours = |places: &mut dyn Iterator<Item = i16>| -> String {
        let digits = |place| {
            let group = at(place);
            [group / 1000, group / 100 % 10, group / 10 % 10, group % 10]
        };
        places.flat_map(digits).map(|digit| char::from(b'0' + digit as u8)).collect()
    };
    let whole = fours(&mut (0..=weight.max(0)).rev());
    let mut part = fours(&mut (last.min(-1)..0).rev());
    // The last group may be cut, or followed by zeros that are not sent.
    let scale = usize::from(u16::from_be_bytes(*scale));
    while part.len() > scale && part.ends_with('0') {
        part.pop();
    }
    let missing = scale.min(Decimal::SCALE_MAX.into()).saturating_sub(part.len());
    part.extend(std::iter::repeat_n('0', missing));
    let sign = if sign == NEGATIVE { "-" } else { "" };
    let point = if part.is_empty() { "" } else { "." };
    Decimal::parse(&format!("{sign}{whole}{point}{part}")).map_err(|_| too_many())
}

#[cfg(test)]
mod tests {
    use mingle_model::random::next_random;

    use super::*;

    #[test]
    fn numbers_read_back_with_their_scale() {
        let mut random = 44;
        for round in 0..5_000 {
            let bits =
                u128::from(next_random(&mut random)) << 64 | u128::from(next_random(&mut random));
            let magnitude = (bits >> (next_random(&mut random) % 128)) % 10_u128.pow(38);
            let zeros = 10_u128.pow((next_random(&mut random) % 20) as u32);
            let magnitude = magnitude / 10_u128.pow((next_random(&mut random) % 20) as u32);
            let magnitude = magnitude.checked_mul(zeros).unwrap_or(magnitude);
            let coefficient =
                (magnitude % 10_u128.pow(38)) as i128 * if round % 2 == 0 { 1 } else { -1 };
            let scale = (next_random(&mut random) % 39) as u8;
            let number = Decimal::new(coefficient, scale).expect("at most 38 digits");
            let read = decode(&encode(number)).expect("its own bytes");
            assert_eq!(
                (read.coefficient(), read.scale()),
                (coefficient, scale),
                "round {round}: {number}"
            );
        }
    }

    #[test]
    fn other_contents_are_named() {
        let header = |count: i16, weight: i16, sign: u16, scale: u16| {
            [count.to_be_bytes(), weight.to_be_bytes(), sign.to_be_bytes(), scale.to_be_bytes()]
                .concat()
        };
        for (raw, words) in [
            (header(0, 0, NAN, 0), "NaN"),
            (header(0, 0, INFINITY, 0), "infinity"),
            (header(0, 0, MINUS_INFINITY, 0), "-infinity"),
            ([header(1, 3_000, 0, 0), vec![0, 1]].concat(), "more than 38 digits"),
            ([header(1, 9, 0, 0), vec![39, 15]].concat(), "more than 38 digits"),
            (header(1, 0, 0, 0), "no decimal"),
            (header(0, 0, 7, 0), "no decimal"),
            (vec![0], "no decimal"),
        ] {
            assert!(decode(&raw).is_err_and(|why| why.contains(words)), "{words}");
        }
    }
}
