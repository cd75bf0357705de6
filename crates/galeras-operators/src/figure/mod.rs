//! `figure`: a picture of a table's columns.
//!
//! The drawing is in `galeras_figures`.

mod args;

use datafusion::dataframe::DataFrame;
use futures::future::BoxFuture;
use galeras_figures::{Data, Picture, draw};
use serde_json::{Value, json};

use self::args::Args;
use super::typed_rows;
use galeras_operator::columns::text_field;
use galeras_operator::worker_threads::on_thread;
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, INPUT, InputPorts, Inputs,
    LowerContext, Lowering, MAIN, Operator, Port, Ports, Reads, StepError, TableSchema, TableStep,
    TypedOperator, args_schema, take_input,
};
use galeras_sql::session::{FigureColumn, column, figure_data};

struct FigureOperator;

/// The operator.
pub const FIGURE: &dyn Operator = &FigureOperator;

impl TypedOperator for FigureOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "figure",
        version: 2,
        grain: Grain::of::<BoundFigure, _>(),
        effect: Effect::Pure,
        inputs: InputPorts::One,
        doc: include_str!("doc.md"),
        args_schema: args_schema::<Args>,
    };

    fn bind(args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        ArgError::none(args.check(cx))?;
        let input = cx.input();
        let drawn = args.columns().into_iter().filter_map(|(name, number)| {
            input.field(&name).map(|field| FigureColumn::of(field, number))
        });
        let fields = [
            text_field("svg", "the picture, its font by name"),
            text_field("caption", "what stands below: what is drawn, of how many rows"),
            text_field("alt", "the picture in words, for those who do not see it"),
        ];
        let table = TableSchema::default().with(&fields);
        Ok(Box::new(BoundFigure {
            drawn: drawn.collect(),
            key: input.key.clone(),
            args,
            ports: vec![Port::new(MAIN, table)],
        }))
    }
}

#[derive(Debug)]
struct BoundFigure {
    args: Args,
    drawn: Vec<FigureColumn>,
    /// The key of the input.
    key: Vec<String>,
    ports: Vec<Port>,
}

impl BoundStep for BoundFigure {
    fn args(&self) -> Value {
        json!(self.args)
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn reads(&self, _: &str) -> Reads {
        let drawn = self.drawn.iter().map(|column| column.name.as_str());
        let order = self.args.order().map(|(name, _)| name);
        let key = self.key.iter().map(String::as_str);
        let mut names: Vec<String> = drawn.chain(order).chain(key).map(str::to_string).collect();
        names.sort_unstable();
        names.dedup();
        Reads::Columns(names)
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

impl TableStep for BoundFigure {
    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        mut inputs: Inputs,
    ) -> BoxFuture<'a, Result<Ports, StepError>> {
        Box::pin(async move {
            let input = take_input(&mut inputs, INPUT)?;
            let data = self.data(input).await?;
            let spec = self.args.spec();
            let Picture { svg, caption, alt } = on_thread(move || {
                draw(&spec, &data).map_err(|error| StepError::refused(error.to_string()))
            })
            .await?;
            let row = json!({ "svg": svg, "caption": caption, "alt": alt });
            Ok(vec![(MAIN, typed_rows::table(&cx.session, &self.ports[0].table.stored(), [row])?)])
        })
    }
}

impl BoundFigure {
    /// The drawn columns, with rows in their order.
    async fn data(&self, input: DataFrame) -> Result<Data, StepError> {
        let order = self.args.order().map(|(name, most)| column(name).sort(!most, true));
        let key = self.key.iter().map(|name| column(name).sort(true, true));
        let order: Vec<_> = order.chain(key).collect();
        let mut columns: Vec<_> = Vec::new();
        for (at, drawn) in self.drawn.iter().enumerate() {
            columns.push(column(&drawn.name).alias(format!("c{at}")));
        }
        for (at, sort) in order.iter().enumerate() {
            columns.push(sort.expr.clone().alias(format!("o{at}")));
        }
        let mut rows = input.select(columns)?;
        if !order.is_empty() {
            let order = order.into_iter().enumerate();
            let order = order.map(|(at, sort)| column(&format!("o{at}")).sort(sort.asc, true));
            rows = rows.sort(order.collect())?;
        }
        figure_data(rows, &self.drawn).await
    }
}
