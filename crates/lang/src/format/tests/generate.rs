//! Random programs that parse, as tokens. Their meaning does not matter here.

/// Returns a program's tokens; each choice is taken from `choices`, and is 0 after its end.
pub(super) fn program(choices: Vec<u16>) -> Vec<String> {
    let mut generator = Generator { choices: choices.into_iter(), tokens: Vec::new(), depth: 0 };
    for _ in 0..generator.choose(6) {
        generator.item();
    }
    generator.tokens
}

/// Returns the text of the tokens, with blanks, line breaks and comments between them, chosen by
/// `blanks` in turn.
pub(super) fn spaced(tokens: &[String], blanks: &[u8]) -> String {
    let mut text = String::new();
    let mut blanks = blanks.iter().cycle();
    let mut count = 0;
    let ends = tokens.iter().map(String::as_str).chain([""]);
    for token in ends {
        // Up to three comments in a row.
        for _ in 0..3 {
            let blank = *blanks.next().unwrap_or(&0);
            let comment = match blank {
                4 => " // c",
                5 => "\n// d",
                6 => "\n/// e",
                7 => " /// f",
                _ => {
                    text.push_str(match blank {
                        1 => "\n",
                        2 => "\n\n\n",
                        3 => "\r\n\t",
                        _ => " ",
                    });
                    break;
                }
            };
            count += 1;
            text.push_str(comment);
            text.push_str(&count.to_string());
            text.push('\n');
        }
        text.push_str(token);
    }
    text
}

struct Generator {
    choices: std::vec::IntoIter<u16>,
    tokens: Vec<String>,
    depth: usize,
}

impl Generator {
    fn choose(&mut self, among: u16) -> u16 {
        self.choices.next().unwrap_or(0) % among
    }

    fn push(&mut self, text: &str) {
        self.tokens.extend(text.split(' ').map(str::to_owned));
    }

    fn pick(&mut self, texts: &[&str]) {
        let index = usize::from(self.choose(texts.len() as u16));
        self.push(texts[index]);
    }

    fn name(&mut self) {
        const NAMES: [&str; 6] = [
            "a",
            "key",
            "long_name_of_a_thing",
            "ü",
            "query",
            "an_even_longer_name_of_another_thing",
        ];
        self.pick(&NAMES);
    }

    fn list(&mut self, max: u16, element: impl Fn(&mut Self)) {
        let count = self.choose(max + 1);
        for index in 0..count {
            if index > 0 {
                self.push(",");
            }
            element(self);
        }
        if count > 0 && self.choose(2) == 1 {
            self.push(",");
        }
    }

    fn allow(&mut self) {
        if self.choose(9) == 1 {
            self.push("allow W0502 , W0501 because");
            self.tokens.push("\"it is so\"".into());
        }
    }

    fn item(&mut self) {
        self.allow();
        match self.choose(7) {
            0 => self.push("store a : causal ;"),
            1 => self.push("level l between linearizable and causal ;"),
            2 => {
                self.push("store s : causal {");
                for _ in 0..self.choose(3) {
                    self.pick(&["query", "command"]);
                    self.name();
                    self.params();
                    self.result();
                    self.push(";");
                }
                self.push("}");
            }
            3 => {
                self.push("object O in a { key k : string ;");
                for _ in 0..self.choose(4) {
                    self.name();
                    self.push(":");
                    self.type_expr();
                    if self.choose(2) == 1 {
                        self.push("=");
                        self.expr();
                    }
                    self.push(";");
                }
                self.push("}");
            }
            4 => {
                self.push("struct S {");
                self.list(3, Self::param);
                self.push("}");
            }
            5 => {
                self.push("fn f");
                self.params();
                self.push("->");
                self.type_expr();
                self.push("{");
                for _ in 0..self.choose(3) {
                    self.let_binding();
                }
                self.expr();
                self.push("}");
            }
            _ => {
                self.pick(&["transaction t", "isolated transaction t"]);
                self.params();
                self.result();
                self.block();
            }
        }
    }

    fn params(&mut self) {
        self.push("(");
        self.list(4, Self::param);
        self.push(")");
    }

    fn param(&mut self) {
        self.name();
        self.push(":");
        self.type_expr();
    }

    fn result(&mut self) {
        if self.choose(2) == 1 {
            self.push("->");
            self.type_expr();
        }
    }

    fn type_expr(&mut self) {
        match self.choose(7) {
            0 => self.push("int"),
            1 => self.push("ref O"),
            2 => self.push("counter"),
            3 => {
                self.push("map < int ,");
                self.type_expr();
                self.push(">");
            }
            other => {
                self.push(["option", "list", "set"][usize::from(other - 4)]);
                self.push("<");
                self.type_expr();
                self.push(">");
            }
        }
    }

    fn block(&mut self) {
        self.push("{");
        self.depth += 1;
        let count = if self.depth > 4 { 0 } else { self.choose(4) };
        for _ in 0..count {
            self.statement();
        }
        self.depth -= 1;
        self.push("}");
    }

    fn let_binding(&mut self) {
        self.pick(&["let", "var"]);
        self.name();
        if self.choose(2) == 1 {
            self.push(":");
            self.type_expr();
        }
        self.push("=");
        self.expr();
        self.push(";");
    }

    fn statement(&mut self) {
        self.allow();
        match self.choose(9) {
            0 => self.push("return ;"),
            1 => self.let_binding(),
            2 => {
                self.name();
                self.pick(&["=", "+=", "-="]);
                self.expr();
                self.push(";");
            }
            3 => {
                self.push("if (");
                self.expr();
                self.push(") && a");
                self.block();
                if self.choose(2) == 1 {
                    self.push("else if b");
                    self.block();
                }
                if self.choose(2) == 1 {
                    self.push("else");
                    self.block();
                }
            }
            4 => {
                self.push("while f (");
                self.expr();
                self.push(")");
                self.block();
            }
            5 => {
                self.pick(&["for x in a", "for x , y in a . b"]);
                self.block();
            }
            6 => self.match_statement(),
            7 => {
                self.push("require");
                self.expr();
                self.push("else");
                self.expr();
                if self.choose(2) == 1 {
                    self.push("as code");
                }
                self.push(";");
            }
            _ => {
                self.push("f (");
                self.list(3, Self::expr);
                self.push(") ;");
            }
        }
    }

    fn match_statement(&mut self) {
        self.push("match a {");
        let some_first = self.choose(2);
        for arm in 0..2 {
            if arm == some_first {
                self.push("some ( x ) =>");
            } else {
                self.push("none =>");
            }
            self.block();
            if self.choose(2) == 1 {
                self.push(",");
            }
        }
        self.push("}");
    }

    fn expr(&mut self) {
        self.depth += 1;
        self.inner_expr();
        self.depth -= 1;
    }

    fn inner_expr(&mut self) {
        let among = if self.depth > 6 { 7 } else { 18 };
        match self.choose(among) {
            0 => self.push("1"),
            1 => self.name(),
            2 => self.push("- 7_000"),
            3 => self.tokens.push("\"text // of it\"".into()),
            4 => self.push("a . b . c"),
            5 => self.push("none"),
            6 => self.push("2.5e3"),
            7 => self.binary(),
            8 => self.push("f ( ) . g ( [ ] )"),
            9 => {
                self.name();
                self.push("(");
                self.list(4, Self::expr);
                self.push(")");
            }
            10 => {
                self.push("a . m (");
                self.list(3, Self::expr);
                self.push(") . f");
            }
            11 => {
                self.pick(&["put O {", "new O {", "S {"]);
                self.list(3, |generator| {
                    generator.name();
                    generator.push(":");
                    generator.expr();
                });
                self.push("}");
            }
            12 => {
                self.push("[");
                self.list(4, Self::expr);
                self.push("]");
            }
            13 => self.wrapped("some (", ")"),
            14 => self.wrapped(["( ! (", "( - ("][self.tokens.len() % 2], ") )"),
            15 => self.wrapped("O [", "]"),
            16 => {
                self.push("( if a {");
                self.expr();
                self.push("} else if b {");
                self.expr();
                self.push("} else {");
                self.expr();
                self.push("} )");
            }
            _ => {
                self.wrapped("endorse (", ") as causal");
                if self.choose(2) == 1 {
                    self.push("because");
                    self.tokens.push("\"it is so\"".into());
                }
            }
        }
    }

    fn wrapped(&mut self, open: &str, close: &str) {
        self.push(open);
        self.expr();
        self.push(close);
    }

    fn binary(&mut self) {
        const OPERATORS: [&str; 8] = ["+", "*", "-", "??", "&&", "||", "/", "%"];
        self.expr();
        for _ in 0..=self.choose(3) {
            self.pick(&OPERATORS);
            self.expr();
        }
    }
}
