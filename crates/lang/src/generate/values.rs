//! Random expressions that read nothing by themselves: literals, and operations on values.

use super::{Generator, KEYS, Kind, STORES};

impl Generator {
    pub(super) fn literal(&mut self, kind: Kind) -> String {
        let literals: &[&str] = match kind {
            Kind::Int => match self.random.below(8) {
                0 => &["1_000", "-3", "-9223372036854775808", "9223372036854775807"],
                _ => &["0", "1", "2", "3", "4"],
            },
            Kind::Bool => &["true", "false"],
            Kind::Text => return format!("\"{}\"", self.random.pick(&KEYS)),
            Kind::Maybe => &[
                "some(1)",
                "if true { some(2) } else { none }",
                "if true { none } else { some(2) }",
            ],
            Kind::List => &["[1, 2]", "[3]", "[0, 1, 2]", "([1] + [])"],
            Kind::Pair => &["Pair { first: 1, second: true }", "Pair { second: false, first: 2 }"],
            Kind::Float => &["2.5", "1e3", "-0.0", "0.5"],
            Kind::Time => &["now()"],
            Kind::Date => &["date(\"2026-01-31\")", "date(\"1969-12-31\")", "date(\"0000-02-29\")"],
            Kind::Decimal => {
                &["decimal(\"1.50\")", "decimal(\"-0.25\")", "decimal(\"3\")", "decimal(\"0.00\")"]
            }
            Kind::Bytes => &["b\"ab\"", "b\"\\x00\"", "b\"\""],
            Kind::Tone => &["Tone.low", "Tone.mid", "Tone.high"],
            // No literal is a document: this is the transaction's parameter.
            Kind::Json => &["j"],
            Kind::Ref(store) => {
                return format!("O{store}[\"{}\"]", self.random.pick(&KEYS));
            }
        };
        (*self.random.pick(literals)).into()
    }

    fn part(&mut self, kind: Kind, (rank, depth): (usize, usize)) -> String {
        self.expr(kind, rank, depth)
    }

    fn two(&mut self, kind: Kind, at: (usize, usize)) -> (String, String) {
        (self.part(kind, at), self.part(kind, at))
    }

    /// Returns an `if` expression, sometimes with an `else if`.
    pub(super) fn select(&mut self, kind: Kind, at: (usize, usize)) -> String {
        let condition = self.part(Kind::Bool, at);
        let (one, other) = self.two(kind, at);
        if self.random.one_in(4) {
            let (second, third) = (self.part(Kind::Bool, at), self.part(kind, at));
            return format!(
                "(if {condition} {{ {one} }} else if {second} {{ {other} }} else {{ {third} }})"
            );
        }
        format!("(if {condition} {{ {one} }} else {{ {other} }})")
    }

    /// Returns an expression computed from values of up to this rank.
    pub(super) fn local(&mut self, kind: Kind, rank: usize, depth: usize) -> String {
        let at = (rank, depth);
        match kind {
            Kind::Int => self.int(at),
            Kind::Bool => self.truth(at),
            Kind::Text => match self.random.below(6) {
                0 | 1 => format!("({} + {})", self.part(Kind::Text, at), self.literal(Kind::Text)),
                2 => {
                    let kinds = [
                        Kind::Int,
                        Kind::Decimal,
                        Kind::Float,
                        Kind::Time,
                        Kind::Date,
                        Kind::Text,
                        Kind::Bool,
                        Kind::Tone,
                    ];
                    let kind = *self.random.pick(&kinds);
                    format!("string({})", self.part(kind, at))
                }
                3 if self.random.one_in(3) => "unique()".into(),
                _ => self.literal(Kind::Text),
            },
            Kind::Maybe => self.maybe(at),
            Kind::List => match self.random.below(4) {
                0 => {
                    let (one, other) = self.two(Kind::Int, at);
                    format!("[{one}, {other}]")
                }
                1 => {
                    let (one, other) = self.two(Kind::List, at);
                    format!("({one} + {other})")
                }
                _ => self.literal(Kind::List),
            },
            Kind::Pair => {
                let (first, second) = (self.part(Kind::Int, at), self.part(Kind::Bool, at));
                format!("(Pair {{ first: {first}, second: {second} }})")
            }
            Kind::Float => self.float(at),
            Kind::Time => self.time(at),
            Kind::Date => self.date(at),
            Kind::Decimal => self.decimal(at),
            Kind::Bytes => self.literal(kind),
            Kind::Json if self.random.one_in(3) => self.select(kind, at),
            Kind::Json => self.literal(kind),
            Kind::Tone if self.random.one_in(3) => self.select(kind, at),
            Kind::Tone => self.literal(kind),
            Kind::Ref(store) => {
                if self.random.one_in(2) {
                    return format!("O{store}[{}]", self.part(Kind::Text, at));
                }
                self.select(kind, at)
            }
        }
    }

    fn time(&mut self, at: (usize, usize)) -> String {
        match self.random.below(4) {
            1 => format!("time({})", self.part(Kind::Date, at)),
            0 => {
                let op = *self.random.pick(&["+", "-"]);
                format!("({} {op} {})", self.part(Kind::Time, at), self.part(Kind::Int, at))
            }
            _ => self.literal(Kind::Time),
        }
    }

    fn date(&mut self, at: (usize, usize)) -> String {
        match self.random.below(5) {
            0 => {
                let op = *self.random.pick(&["+", "-"]);
                format!("({} {op} {})", self.part(Kind::Date, at), self.part(Kind::Int, at))
            }
            1 => format!("date({})", self.part(Kind::Time, at)),
            2 => {
                let (text, other) = (self.part(Kind::Text, at), self.part(Kind::Date, at));
                // A text that stands in the program would give no option.
                format!("(date(\"\" + {text}) ?? {other})")
            }
            _ => self.literal(Kind::Date),
        }
    }

    fn int(&mut self, at: (usize, usize)) -> String {
        let kind =
            if self.random.one_in(3) { self.random.below(9) + 6 } else { self.random.below(7) };
        match kind {
            0 => {
                let (one, other) = self.two(Kind::Int, at);
                format!("({one} + {other})")
            }
            1 => {
                let (one, other) = self.two(Kind::Int, at);
                format!("({one} - {other} * 2)")
            }
            2 => {
                let (one, other) = self.two(Kind::Int, at);
                // Division by a literal would give no option.
                format!("({one} / ({other} + 0) ?? 1)")
            }
            3 => format!("twice({})", self.part(Kind::Int, at)),
            4 => {
                let condition = self.part(Kind::Bool, at);
                let (one, other) = self.two(Kind::Int, at);
                format!("pick({condition}, {one}, {other})")
            }
            5 => format!("{}.size()", self.part(Kind::List, at)),
            6 => self.literal(Kind::Int),
            7 => {
                let op = *self.random.pick(&["/", "%"]);
                format!("({} {op} {})", self.part(Kind::Int, at), 2 + self.random.below(3))
            }
            8 => format!("(-{})", self.part(Kind::Int, at)),
            9 => {
                let function = *self.random.pick(&["min", "max"]);
                let (one, other) = self.two(Kind::Int, at);
                format!("{function}({one}, {other})")
            }
            10 => format!("abs({})", self.part(Kind::Int, at)),
            11 => {
                let kind = *self.random.pick(&[Kind::Float, Kind::Time, Kind::Date, Kind::Decimal]);
                format!("int({})", self.part(kind, at))
            }
            12 => format!("(int({}) ?? 0)", self.part(Kind::Text, at)),
            13 => {
                let kind = *self.random.pick(&[Kind::Text, Kind::Bytes]);
                format!("{}.size()", self.part(kind, at))
            }
            _ => {
                let kind = *self.random.pick(&[Kind::Time, Kind::Date]);
                let (one, other) = self.two(kind, at);
                format!("({one} - {other})")
            }
        }
    }

    fn truth(&mut self, at: (usize, usize)) -> String {
        let orders = ["<", "<=", ">", ">="];
        let kinds = [
            Kind::Int,
            Kind::Int,
            Kind::Int,
            Kind::Text,
            Kind::Float,
            Kind::Time,
            Kind::Date,
            Kind::Decimal,
            Kind::Bytes,
        ];
        let (op, kind) = (*self.random.pick(&orders), *self.random.pick(&kinds));
        match self.random.below(10) {
            0 | 1 => {
                let (one, other) = self.two(kind, at);
                format!("({one} {op} {other})")
            }
            2 => {
                let any = [
                    Kind::Int,
                    Kind::Maybe,
                    Kind::List,
                    Kind::Pair,
                    Kind::Bool,
                    Kind::Tone,
                    Kind::Json,
                    kind,
                ];
                let (any, op) = (*self.random.pick(&any), *self.random.pick(&["==", "!="]));
                let (one, other) = self.two(any, at);
                format!("(({one}) {op} ({other}))")
            }
            3 | 4 => {
                let op = *self.random.pick(&["&&", "||"]);
                let (one, other) = self.two(Kind::Bool, at);
                format!("({one} {op} {other})")
            }
            5 => format!("!{}", self.part(Kind::Bool, at)),
            6 => {
                let store = self.random.below(STORES.len());
                let (one, other) = self.two(Kind::Ref(store), at);
                format!("({one} == {other})")
            }
            7 => match self.random.below(3) {
                0 => format!("({}).is_some()", self.part(Kind::Maybe, at)),
                1 => {
                    let (one, other) = self.two(Kind::Text, at);
                    format!("{one}.contains({other})")
                }
                _ => {
                    let (list, item) = (self.part(Kind::List, at), self.part(Kind::Int, at));
                    format!("({list}).contains({item})")
                }
            },
            _ => self.literal(Kind::Bool),
        }
    }

    fn maybe(&mut self, at: (usize, usize)) -> String {
        match self.random.below(5) {
            0 => format!("some({})", self.part(Kind::Int, at)),
            1 => {
                let (one, other) = self.two(Kind::Int, at);
                format!("({one} % ({other} + 0))")
            }
            2 => format!("({}).get({})", self.part(Kind::List, at), self.part(Kind::Int, at)),
            3 => {
                let function = *self.random.pick(&["checked_add", "checked_sub", "checked_mul"]);
                let (one, other) = self.two(Kind::Int, at);
                if self.random.one_in(2) {
                    return format!("({one}).{function}({other})");
                }
                format!("{function}({one}, {other})")
            }
            _ => {
                let (one, other) = self.two(Kind::Maybe, at);
                format!("(({one}) ?? ({other}))")
            }
        }
    }

    /// Returns a decimal between -99 and 99 with two digits after the point: larger ones could have too many
    /// digits, an error that programs do not have elsewhere.
    fn decimal(&mut self, at: (usize, usize)) -> String {
        let plain = match self.random.below(7) {
            0 => {
                let op = *self.random.pick(&["+", "-", "*"]);
                let (one, other) = self.two(Kind::Decimal, at);
                format!("({one} {op} {other})")
            }
            1 => {
                let (one, other) = self.two(Kind::Decimal, at);
                format!("({one}.divide({other}, {}) ?? {other})", self.random.below(5))
            }
            2 => format!("decimal({})", self.part(Kind::Int, at)),
            // A text that stands in the program would give no option.
            3 => format!("(decimal(\"\" + {}) ?? decimal(\"0.5\"))", self.part(Kind::Text, at)),
            4 => {
                let function = *self.random.pick(&["abs(", "(-"]);
                format!("{function}{})", self.part(Kind::Decimal, at))
            }
            _ => return self.literal(Kind::Decimal),
        };
        format!("max(decimal(\"-99\"), min(decimal(\"99\"), {plain})).round(2)")
    }

    fn float(&mut self, at: (usize, usize)) -> String {
        match self.random.below(6) {
            0 => {
                let op = *self.random.pick(&["+", "-", "*", "/", "%"]);
                let (one, other) = self.two(Kind::Float, at);
                format!("({one} {op} {other})")
            }
            1 => {
                let kind = *self.random.pick(&[Kind::Int, Kind::Decimal]);
                format!("float({})", self.part(kind, at))
            }
            2 => format!("(float({}) ?? 0.25)", self.part(Kind::Text, at)),
            3 => {
                let function = *self.random.pick(&["min", "max"]);
                let (one, other) = self.two(Kind::Float, at);
                format!("{function}({one}, {other})")
            }
            4 => {
                let function = *self.random.pick(&["abs(", "(-"]);
                format!("{function}{})", self.part(Kind::Float, at))
            }
            _ => self.literal(Kind::Float),
        }
    }
}
