//! Policies of reads, and the arms of a `match` over their answers.

use super::super::ast::{AnswerArm, Expr, ExprKind, Ident, Policy, PolicyKind};
use super::super::token::{Punct, TokenKind};
use super::{Parse, Parser};

/// The policy of all reads of a field, and those of single operations.
type FieldPolicies = (Option<Policy>, Vec<(Ident, Policy)>);

impl Parser<'_> {
    /// Reads the policy after a read, if one stands there.
    pub(super) fn policy_after(&mut self, read: Expr) -> Parse<Expr> {
        if self.on_new_line() || !self.at_policy(0) {
            return Ok(read);
        }
        let (start, parts) = (read.span.start, self.height);
        let policy = self.policy()?;
        self.finish(ExprKind::Policy(Box::new(read), policy), self.since(start), parts)
    }

    /// Reads the policies after the type of a field: of all its reads, and of single operations.
    pub(super) fn field_policies(&mut self) -> Parse<FieldPolicies> {
        let (mut policy, mut operations) = (None, Vec::new());
        while self.at_policy(0) || (self.kind() == TokenKind::Ident && self.at_policy(1)) {
            if self.at_policy(0) {
                if policy.is_some() {
                    return Err(self.expected("one policy for all reads of the field".into()));
                }
                policy = Some(self.policy()?);
            } else {
                let operation = self.ident("a reading operation")?;
                operations.push((operation, self.policy()?));
            }
            if !self.eat(Punct::Comma) {
                break;
            }
        }
        Ok((policy, operations))
    }

    /// True if a policy begins after this number of tokens.
    fn at_policy(&self, ahead: u32) -> bool {
        let next = self.kind_ahead(ahead + 1);
        if self.kind_ahead(ahead) != TokenKind::Ident {
            return false;
        }
        match self.text_ahead(ahead) {
            "at" => next == TokenKind::Ident,
            "by" => matches!(next, TokenKind::Duration | TokenKind::Int | TokenKind::Float),
            _ => false,
        }
    }

    fn policy(&mut self) -> Parse<Policy> {
        let start = self.at;
        let is_at = self.is_word("at");
        self.advance();
        let kind = if is_at {
            PolicyKind::At(self.ident("a level")?)
        } else if self.kind() == TokenKind::Duration {
            let bound = Ident { name: self.text().into(), span: self.here() };
            self.advance();
            PolicyKind::By(bound)
        } else {
            return Err(self.expected("a duration with its unit, such as `20ms` or `1s`".into()));
        };
        Ok(Policy { kind, span: self.since(start) })
    }

    /// True if the arm of an answer begins here: `level(x) =>` or `late =>`.
    pub(super) fn at_answer_arm(&self) -> bool {
        self.kind() == TokenKind::Ident
            && match self.kind_ahead(1) {
                TokenKind::Punct(Punct::LeftParen) => {
                    !matches!(self.text(), "Some" | "Ok" | "Err" | "Just")
                }
                TokenKind::Punct(Punct::FatArrow) => self.is_word("late"),
                _ => false,
            }
    }

    /// Reads the arms of a `match` over an answer, and the closing brace.
    pub(super) fn answer_arms(&mut self) -> Parse<Vec<AnswerArm>> {
        let mut arms = Vec::new();
        while !self.is(Punct::RightBrace) && self.kind() != TokenKind::End {
            if !self.at_answer_arm() {
                return Err(self.expected("`LEVEL(…) => { … }` or `late => { … }`".into()));
            }
            let level = self.ident("a level")?;
            let open = self.at;
            let name = if self.eat(Punct::LeftParen) {
                let name = self.ident("a name for the answer")?;
                self.close_bracket_before(open, Punct::RightParen, Punct::FatArrow)?;
                Some(name)
            } else {
                None
            };
            self.arrow()?;
            arms.push(AnswerArm { level, name, block: self.arm_block()? });
            self.eat(Punct::Comma);
        }
        self.close_brace();
        Ok(arms)
    }
}
