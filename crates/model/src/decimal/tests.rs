//! Decimals against numbers of any length, whose arithmetic is that of the school.

use super::*;
use crate::random::next_random;

const SEED: u64 = 44;

/// A number of 200 decimal digits, the last first, of which 80 stand after the point, with a sign.
#[derive(Clone, Debug, PartialEq)]
struct Long {
    is_negative: bool,
    digits: Vec<u8>,
}

const AFTER: usize = 80;

impl Long {
    fn of(decimal: Decimal) -> Self {
        let shift = AFTER - usize::from(decimal.scale());
        let text = decimal.coefficient().unsigned_abs().to_string();
        let mut digits = vec![0; shift];
        digits.extend(text.bytes().rev().map(|digit| digit - b'0'));
        digits.resize(200, 0);
        Self { is_negative: decimal.coefficient() < 0, digits }
    }

    fn compared(&self, other: &Self) -> Ordering {
        self.digits.iter().rev().cmp(other.digits.iter().rev())
    }

    fn add(&self, other: &Self) -> Self {
        let (more, less) = if self.compared(other).is_ge() { (self, other) } else { (other, self) };
        let sign = if more.is_negative == less.is_negative { 1 } else { -1 };
        let mut carry = 0;
        let digit = |(a, b): (&u8, &u8)| {
            let sum = i32::from(*a) + sign * i32::from(*b) + carry;
            carry = sum.div_euclid(10);
            sum.rem_euclid(10) as u8
        };
        let digits: Vec<u8> = more.digits.iter().zip(&less.digits).map(digit).collect();
        let is_zero = digits.iter().all(|digit| *digit == 0);
        Self { is_negative: more.is_negative && !is_zero, digits }
    }

    fn multiply(&self, other: &Self) -> Self {
        let mut sums = vec![0_u32; 400];
        for (i, a) in self.digits.iter().enumerate().filter(|(_, a)| **a > 0) {
            for (j, b) in other.digits.iter().enumerate() {
                sums[i + j] += u32::from(*a) * u32::from(*b);
            }
        }
        let mut carry = 0;
        let digit = |sum: u32| {
            carry += sum;
            let digit = carry % 10;
            carry /= 10;
            digit as u8
        };
        let all: Vec<u8> = sums.into_iter().map(digit).collect();
        let digits = all[AFTER..AFTER + 200].to_vec();
        let is_zero = digits.iter().all(|digit| *digit == 0);
        Self { is_negative: self.is_negative != other.is_negative && !is_zero, digits }
    }

    /// The decimal of this value, if there is one.
    fn decimal(&self) -> Option<Decimal> {
        let digits = &self.digits;
        let first = digits.iter().position(|digit| *digit != 0).unwrap_or(AFTER).min(AFTER);
        let end = digits.iter().rposition(|digit| *digit != 0).map_or(first, |last| last + 1);
        if AFTER - first > 38 || end.saturating_sub(first) > 38 {
            return None;
        }
        let fold = |sum, digit: &u8| sum * 10 + i128::from(*digit);
        let coefficient = digits[first..end.max(first)].iter().rev().fold(0, fold);
        Decimal::new(
            if self.is_negative { -coefficient } else { coefficient },
            (AFTER - first) as u8,
        )
    }
}

/// Digits that are often 0, 5 or 9, and all numbers of digits.
fn any(random: &mut u64) -> Decimal {
    let count = next_random(random) % 39;
    let style = next_random(random) % 4;
    let mut coefficient: i128 = 0;
    for _ in 0..count {
        let digit = match style {
            0 => 9,
            1 => [0, 5][(next_random(random) % 2) as usize],
            2 => [0, 0, 2][(next_random(random) % 3) as usize],
            _ => next_random(random) % 10,
        };
        coefficient = coefficient * 10 + i128::from(digit);
    }
    let sign = if next_random(random).is_multiple_of(2) { -1 } else { 1 };
    let scale = (next_random(random) % 39) as u8;
    Decimal::new(sign * coefficient, scale).expect("at most 38 digits")
}

#[test]
fn arithmetic_is_that_of_long_numbers() {
    let mut random = SEED;
    let (mut sums, mut products) = (0, 0);
    for round in 0..3_000 {
        let (a, b) = (any(&mut random), any(&mut random));
        let (long_a, long_b) = (Long::of(a), Long::of(b));
        let sum = long_a.add(&long_b).decimal();
        assert_eq!(a.checked_add(b), sum, "round {round} of seed {SEED}: {a} + {b}");
        let difference = long_a.add(&Long::of(b.negated())).decimal();
        assert_eq!(a.checked_sub(b), difference, "round {round} of seed {SEED}: {a} - {b}");
        let product = long_a.multiply(&long_b).decimal();
        assert_eq!(a.checked_mul(b), product, "round {round} of seed {SEED}: {a} * {b}");
        (sums, products) =
            (sums + u32::from(sum.is_some()), products + u32::from(product.is_some()));
        let order = long_a.add(&Long::of(b.negated()));
        let expected = if order.is_negative {
            Ordering::Less
        } else if order.digits.iter().all(|digit| *digit == 0) {
            Ordering::Equal
        } else {
            Ordering::Greater
        };
        assert_eq!(a.cmp(&b), expected, "round {round} of seed {SEED}: {a} and {b}");
        assert_eq!(a.ordered_bytes().cmp(&b.ordered_bytes()), expected, "{a} and {b}");
    }
    assert!(sums > 500 && products > 300, "{sums} sums and {products} products fit");
}

/// A quotient is off by at most half a unit of its last digit: twice the error times the divisor is at most that unit.
#[test]
fn quotients_are_the_nearest() {
    let mut random = SEED;
    let mut found = 0;
    for round in 0..3_000 {
        let (a, b) = (any(&mut random), any(&mut random));
        let scale = (next_random(&mut random) % 39) as u8;
        let Some(quotient) = a.divide(b, scale) else { continue };
        assert_eq!(quotient.scale(), scale);
        found += 1;
        let place =
            || format!("round {round} of seed {SEED}: {a} / {b} with {scale} digits is {quotient}");
        let error = Long::of(a).add(&Long::of(quotient).multiply(&Long::of(b.negated())));
        let unit = Decimal::new(1, scale).expect("a unit");
        let most = Long::of(unit).multiply(&Long::of(b));
        let twice = error.add(&error);
        let order = twice.compared(&most);
        assert!(order.is_le(), "{}", place());
        if order.is_eq() {
            // A tie is rounded away from zero, so the quotient is too large.
            let grew = Long::of(quotient).multiply(&Long::of(b));
            assert!(grew.compared(&Long::of(a)).is_gt(), "{}", place());
        }
    }
    assert!(found > 500, "{found} quotients fit");
    assert_eq!(Decimal::from(1).divide(Decimal::new(0, 5).expect("zero"), 2), None);
    assert_eq!(Decimal::from(1).divide(Decimal::from(3), 39), None);
}

#[test]
fn texts_read_back_with_their_scale() {
    let mut random = SEED;
    for round in 0..20_000 {
        let a = any(&mut random);
        let read = Decimal::parse(&a.to_string()).expect("its own text");
        assert_eq!(
            (read.coefficient(), read.scale()),
            (a.coefficient(), a.scale()),
            "round {round}: {a}"
        );
        let canonical = a.canonical();
        assert_eq!(canonical, a);
        let ordered = Decimal::from_ordered_bytes(a.ordered_bytes()).expect("its own bytes");
        assert_eq!(
            (ordered.coefficient(), ordered.scale()),
            (canonical.coefficient(), canonical.scale()),
            "round {round}: {a}"
        );
        assert_eq!(serde_json::to_value(a).expect("a text"), serde_json::json!(a.to_string()));
    }
}

#[test]
fn texts_of_numbers_that_do_not_fit_are_refused() {
    let nines = "9".repeat(38);
    for (text, shown) in [
        ("0", "0"),
        ("-0.00", "0.00"),
        ("007.50", "7.50"),
        ("-19.90", "-19.90"),
        (&nines, &*nines),
        (&format!("0.{nines}"), &*format!("0.{nines}")),
        (&format!("{nines}.000"), &*nines),
        (&format!("1.5{}", "0".repeat(100)), &*format!("1.5{}", "0".repeat(36))),
        (&format!("1{}", "0".repeat(37)), &*format!("1{}", "0".repeat(37))),
    ] {
        assert_eq!(
            Decimal::parse(text).map(|read| read.to_string()),
            Ok(shown.to_owned()),
            "{text}"
        );
    }
    for text in [
        "", "-", ".", "1.", ".5", "+1", "1e3", "1,5", "NaN", "Infinity", " 1", "--1", "1.-2", "١",
        "0x1", "1_000",
    ] {
        assert!(Decimal::parse(text).is_err_and(|why| why.contains("-19.90")), "{text:?}");
    }
    for text in [
        format!("1{}", "0".repeat(38)),
        format!("{nines}.1"),
        format!("0.{}1", "0".repeat(38)),
        "1".repeat(10_000),
    ] {
        assert!(Decimal::parse(&text).is_err_and(|why| why.contains("38 digits")), "{text}");
    }
    assert_eq!(Decimal::new(10_i128.pow(38), 0), None);
    assert_eq!(Decimal::new(1, 39), None);
    assert_eq!(Decimal::from_ordered_bytes([0; 32]), None);
    assert_eq!(Decimal::from_ordered_bytes([255; 32]), None);
}

#[test]
fn conversions_cut_and_stop_at_the_ends() {
    let decimal = |text| Decimal::parse(text).expect("a decimal");
    assert_eq!(decimal("-1.99").to_int(), -1);
    assert_eq!(decimal("9223372036854775808").to_int(), i64::MAX);
    assert_eq!(decimal("-1").to_int(), -1);
    assert_eq!(decimal("-99999999999999999999.5").to_int(), i64::MIN);
    assert_eq!(decimal("0.1").to_float().to_bits(), 0.1_f64.to_bits());
    assert_eq!(decimal("2.345").round(2).map(|two| two.to_string()), Some("2.35".into()));
    assert_eq!(decimal("-2.345").round(2).map(|two| two.to_string()), Some("-2.35".into()));
    assert_eq!(decimal("7").round(2).map(|two| two.to_string()), Some("7.00".into()));
    assert_eq!(decimal(&"9".repeat(38)).round(1), None);
}
