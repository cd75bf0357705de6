//! What MiniJinja computes of a template while it compiles it: expressions of constants, such as
//! `'ab' * 100000000`. A few characters would fill the memory before there is any row.

use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, Stmt};
use minijinja::machinery::{Token, parse, tokenize};

use super::template_growth::{ITEM_BYTES, MOST_BYTES};

/// Why the constants of a template are too large, if they are.
pub(super) fn constants_too_large(name: &str, text: &str) -> Option<String> {
    // Without a product, constants are no larger than the template.
    let mut tokens = tokenize(text, false, Default::default()).map_while(Result::ok);
    if !tokens.any(|(token, _)| matches!(token, Token::Mul)) {
        return None;
    }
    // What is no template is reported by the compiler.
    let template = parse(text, name, Default::default()).ok()?;
    let mut constants = Constants { left: MOST_BYTES };
    constants.statement(&template).err()
}

/// Walks through a template and adds up what its constants take.
struct Constants {
    left: u64,
}

/// What is constant.
enum Constant {
    /// A number, a truth value, or nothing.
    Small,
    /// A text or a list, and its bytes.
    Bytes(u64),
}

impl Constant {
    fn bytes(&self) -> u64 {
        match self {
            // As text.
            Self::Small => 40,
            Self::Bytes(bytes) => *bytes,
        }
    }
}

impl Constants {
    fn statement(&mut self, statement: &Stmt<'_>) -> Result<(), String> {
        match statement {
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::EmitExpr(emitted) => self.expression(&emitted.expr),
            Stmt::ForLoop(looped) => {
                self.expression(&looped.iter)?;
                self.expressions(looped.filter_expr.iter())?;
                self.statements(&looped.body)?;
                self.statements(&looped.else_body)
            }
            Stmt::IfCond(condition) => {
                self.expression(&condition.expr)?;
                self.statements(&condition.true_body)?;
                self.statements(&condition.false_body)
            }
            Stmt::WithBlock(with) => {
                self.expressions(with.assignments.iter().map(|(_, value)| value))?;
                self.statements(&with.body)
            }
            Stmt::Set(set) => self.expression(&set.expr),
            Stmt::SetBlock(set) => {
                self.expressions(set.filter.iter())?;
                self.statements(&set.body)
            }
            Stmt::AutoEscape(escape) => {
                self.expression(&escape.enabled)?;
                self.statements(&escape.body)
            }
            Stmt::FilterBlock(filter) => {
                self.expression(&filter.filter)?;
                self.statements(&filter.body)
            }
            Stmt::Block(block) => self.statements(&block.body),
            Stmt::Macro(defined) => {
                self.expressions(defined.defaults.iter())?;
                self.statements(&defined.body)
            }
            Stmt::CallBlock(block) => {
                self.expression(&block.call.expr)?;
                self.arguments(&block.call.args)?;
                self.expressions(block.macro_decl.defaults.iter())?;
                self.statements(&block.macro_decl.body)
            }
            Stmt::Do(done) => {
                self.expression(&done.call.expr)?;
                self.arguments(&done.call.args)
            }
            // A template takes in no others, which is said elsewhere.
            Stmt::EmitRaw(_)
            | Stmt::Import(_)
            | Stmt::FromImport(_)
            | Stmt::Extends(_)
            | Stmt::Include(_) => Ok(()),
        }
    }

    fn statements(&mut self, statements: &[Stmt<'_>]) -> Result<(), String> {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn expressions<'a, 'b: 'a>(
        &mut self,
        mut expressions: impl Iterator<Item = &'a Expr<'b>>,
    ) -> Result<(), String> {
        expressions.try_for_each(|expression| self.expression(expression))
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>]) -> Result<(), String> {
        arguments.iter().try_for_each(|argument| match argument {
            CallArg::Pos(value)
            | CallArg::Kwarg(_, value)
            | CallArg::PosSplat(value)
            | CallArg::KwargSplat(value) => self.expression(value),
        })
    }

    /// An expression that stands for itself.
    fn expression(&mut self, expression: &Expr<'_>) -> Result<(), String> {
        self.constant(expression).map(drop)
    }

    /// What an expression makes, if it is constant.
    fn constant(&mut self, expression: &Expr<'_>) -> Result<Option<Constant>, String> {
        let found = match expression {
            Expr::Const(constant) => {
                // It is in the text already.
                return Ok(Some(match constant.value.as_str() {
                    Some(text) => Constant::Bytes(text.len() as u64),
                    None => Constant::Small,
                }));
            }
            Expr::Var(_) => return Ok(None),
            Expr::List(list) => self.items(&list.items)?,
            Expr::Tuple(tuple) => self.items(&tuple.items)?,
            Expr::Map(map) => {
                let keys = self.items(&map.keys)?;
                let values = self.items(&map.values)?;
                keys.zip(values).map(|(a, b)| Constant::Bytes(a.bytes() + b.bytes()))
            }
            Expr::UnaryOp(unary) => self.constant(&unary.expr)?,
            Expr::BinOp(binary) => {
                let left = self.constant(&binary.left)?;
                let right = self.constant(&binary.right)?;
                match (left, right) {
                    (Some(left), Some(right)) => {
                        let times = |number: &Expr<'_>| {
                            let number = number.as_const().and_then(|number| number.as_i64());
                            number.map_or(u64::MAX, |number| number.max(0).unsigned_abs())
                        };
                        let made = match (binary.op, &left, &right) {
                            (BinOpKind::Mul, Constant::Bytes(bytes), Constant::Small) => {
                                bytes.saturating_mul(times(&binary.right))
                            }
                            (BinOpKind::Mul, Constant::Small, Constant::Bytes(bytes)) => {
                                bytes.saturating_mul(times(&binary.left))
                            }
                            _ => left.bytes().saturating_add(right.bytes()),
                        };
                        match (binary.op, &left, &right) {
                            (BinOpKind::Concat, ..) => Some(Constant::Bytes(made)),
                            (_, Constant::Small, Constant::Small) => Some(Constant::Small),
                            _ => Some(Constant::Bytes(made)),
                        }
                    }
                    _ => None,
                }
            }
            Expr::Compare(compared) => {
                self.expression(&compared.expr)?;
                self.expressions(compared.ops.iter().map(|op| &op.expr))?;
                None
            }
            Expr::Slice(slice) => {
                self.expression(&slice.expr)?;
                self.expressions([&slice.start, &slice.stop, &slice.step].into_iter().flatten())?;
                None
            }
            Expr::IfExpr(condition) => {
                self.expression(&condition.test_expr)?;
                self.expression(&condition.true_expr)?;
                self.expressions(condition.false_expr.iter())?;
                None
            }
            Expr::Filter(filter) => {
                self.expressions(filter.expr.iter())?;
                self.arguments(&filter.args)?;
                None
            }
            Expr::Test(test) => {
                self.expression(&test.expr)?;
                self.arguments(&test.args)?;
                None
            }
            Expr::GetAttr(attribute) => {
                self.expression(&attribute.expr)?;
                None
            }
            Expr::GetItem(item) => {
                self.expression(&item.expr)?;
                self.expression(&item.subscript_expr)?;
                None
            }
            Expr::Call(call) => {
                self.expression(&call.expr)?;
                self.arguments(&call.args)?;
                None
            }
        };
        if let Some(Constant::Bytes(bytes)) = found {
            let left = self.left.checked_sub(bytes).ok_or_else(|| {
                format!(
                    "line {}: its constants make a text of more than {} MiB",
                    expression.span().start_line,
                    MOST_BYTES >> 20
                )
            })?;
            self.left = left;
        }
        Ok(found)
    }

    /// A list of these, if all are constant.
    fn items(&mut self, items: &[Expr<'_>]) -> Result<Option<Constant>, String> {
        let mut bytes = Some(0_u64);
        for item in items {
            let item = self.constant(item)?;
            bytes = bytes.zip(item).map(|(sum, item)| sum + item.bytes() + ITEM_BYTES);
        }
        Ok(bytes.map(Constant::Bytes))
    }
}
