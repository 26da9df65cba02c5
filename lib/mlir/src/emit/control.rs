//! Functions, calls, assertions and structured control flow.

use melior::ir::attribute::Attribute;
use melior::ir::r#type::FunctionType;
use melior::ir::{Type, ValueLike};

use super::{Builder, Value};
use crate::attr;
use crate::error::Error;

impl<'c> Builder<'c> {
    /// A `func.func` with a body; the body gets the arguments and returns the results.
    pub fn function(
        &self,
        name: &str,
        arguments: &[Type<'c>],
        results: &[Type<'c>],
        attributes: &[(&str, Attribute<'c>)],
        body: impl FnOnce(&Self, &[Value<'c>]) -> Result<Vec<Value<'c>>, Error>,
    ) -> Result<(), Error> {
        let mut all = vec![
            ("sym_name", attr::string(self.context, name)),
            ("function_type", attr::r#type(FunctionType::new(self.context, arguments, results).into())),
        ];
        all.extend_from_slice(attributes);
        let mut body = Some(body);
        self.op_with_regions("func.func", &[], &[], &all, &[arguments.to_vec()], |b, _, arguments| {
            let body = body.take().expect("one region is filled once");
            let returned = body(b, arguments)?;
            b.op("func.return", &returned, &[], &[]).map(drop)
        })?;
        Ok(())
    }

    /// `arg_attrs` or `res_attrs` for `function`: a dictionary an argument, in MLIR's syntax (`{m2m.name = "x"}`).
    pub fn attributes_by_position(&self, dictionaries: &[String]) -> Result<Attribute<'c>, Error> {
        let parsed = dictionaries.iter().map(|text| attr::parse(self.context, text)).collect::<Result<Vec<_>, _>>()?;
        Ok(attr::array(self.context, &parsed))
    }

    /// A private `func.func` without a body.
    pub fn declaration(&self, name: &str, arguments: &[Type<'c>], results: &[Type<'c>]) -> Result<(), Error> {
        let attributes = [
            ("sym_name", attr::string(self.context, name)),
            ("function_type", attr::r#type(FunctionType::new(self.context, arguments, results).into())),
            ("sym_visibility", attr::string(self.context, "private")),
        ];
        self.append("func.func", &[], &[], &attributes, vec![melior::ir::Region::new()])?;
        Ok(())
    }

    /// `func.call`.
    pub fn call(&self, name: &str, operands: &[Value<'c>], results: &[Type<'c>]) -> Result<Vec<Value<'c>>, Error> {
        self.op("func.call", operands, results, &[("callee", attr::symbol(self.context, name))])
    }

    /// `cf.assert`.
    pub fn assert(&self, condition: Value<'c>, message: &str) -> Result<(), Error> {
        self.op("cf.assert", &[condition], &[], &[("msg", attr::string(self.context, message))]).map(drop)
    }

    /// `scf.if` with both branches; each returns values of `results`.
    pub fn if_else(
        &self,
        condition: Value<'c>,
        results: &[Type<'c>],
        then: impl FnOnce(&Self) -> Result<Vec<Value<'c>>, Error>,
        otherwise: impl FnOnce(&Self) -> Result<Vec<Value<'c>>, Error>,
    ) -> Result<Vec<Value<'c>>, Error> {
        let (mut then, mut otherwise) = (Some(then), Some(otherwise));
        self.op_with_regions("scf.if", &[condition], results, &[], &[vec![], vec![]], |b, region, _| {
            let yielded = if region == 0 {
                then.take().expect("one region is filled once")(b)?
            } else {
                otherwise.take().expect("one region is filled once")(b)?
            };
            b.op("scf.yield", &yielded, &[], &[]).map(drop)
        })
    }

    /// `scf.for` from `bounds.0` to below `bounds.1` in steps of `bounds.2`, all `index`. The body gets the induction
    /// variable and the carried values, and returns the next ones.
    pub fn for_loop(
        &self,
        bounds: (Value<'c>, Value<'c>, Value<'c>),
        inits: &[Value<'c>],
        body: impl FnOnce(&Self, Value<'c>, &[Value<'c>]) -> Result<Vec<Value<'c>>, Error>,
    ) -> Result<Vec<Value<'c>>, Error> {
        let carried: Vec<Type<'c>> = inits.iter().map(|init| init.r#type()).collect();
        let operands: Vec<_> = [bounds.0, bounds.1, bounds.2].into_iter().chain(inits.iter().copied()).collect();
        let arguments: Vec<_> = std::iter::once(self.index_type()).chain(carried.iter().copied()).collect();
        let mut body = Some(body);
        self.op_with_regions("scf.for", &operands, &carried, &[], &[arguments], |b, _, arguments| {
            let body = body.take().expect("one region is filled once");
            let yielded = body(b, arguments[0], &arguments[1..])?;
            b.op("scf.yield", &yielded, &[], &[]).map(drop)
        })
    }

    /// `scf.while`: `before` returns the condition and what is passed on, `after` the values of the next round. The
    /// results are what `before` passed on when the condition was false; their types are `passed`.
    pub fn while_loop(
        &self,
        inits: &[Value<'c>],
        passed: &[Type<'c>],
        before: impl FnOnce(&Self, &[Value<'c>]) -> Result<(Value<'c>, Vec<Value<'c>>), Error>,
        after: impl FnOnce(&Self, &[Value<'c>]) -> Result<Vec<Value<'c>>, Error>,
    ) -> Result<Vec<Value<'c>>, Error> {
        let carried: Vec<Type<'c>> = inits.iter().map(|init| init.r#type()).collect();
        let (mut before, mut after) = (Some(before), Some(after));
        let arguments = [carried, passed.to_vec()];
        self.op_with_regions("scf.while", inits, passed, &[], &arguments, |b, region, arguments| {
            if region == 0 {
                let before = before.take().expect("one region is filled once");
                let (condition, values) = before(b, arguments)?;
                let operands: Vec<_> = std::iter::once(condition).chain(values).collect();
                b.op("scf.condition", &operands, &[], &[]).map(drop)
            } else {
                let after = after.take().expect("one region is filled once");
                let yielded = after(b, arguments)?;
                b.op("scf.yield", &yielded, &[], &[]).map(drop)
            }
        })
    }
}
