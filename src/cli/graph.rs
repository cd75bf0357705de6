//! `graph`: the steps of a workflow as a picture or as lines, the cells of a matrix step as one.

use clap::{Args, ValueEnum};

use super::context::{Exit, Failure, load, print};
use super::{Format, WorkflowArgs};
use galeras_display::{GraphFormat, render_graph};
use galeras_study::step_graph;

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Picture {
    /// For Markdown.
    #[default]
    Mermaid,
    /// For Graphviz.
    Dot,
    /// A picture.
    Svg,
    /// A line for each step: operator, state, what it reads.
    Text,
}

#[derive(Args)]
pub(crate) struct GraphArgs {
    #[command(flatten)]
    workflow: WorkflowArgs,
    /// Draw each cell of a matrix step separately.
    #[arg(long)]
    cells: bool,
    /// The format of the graph.
    #[arg(long, value_enum, default_value_t)]
    format: Picture,
}

pub(crate) async fn graph(args: GraphArgs) -> Result<Exit, Failure> {
    let surveyed = load(&args.workflow, Format::Human).await?;
    let format = match args.format {
        Picture::Mermaid => GraphFormat::Mermaid,
        Picture::Dot => GraphFormat::Dot,
        Picture::Svg => GraphFormat::Svg,
        Picture::Text => GraphFormat::Text,
    };
    print(&render_graph(&step_graph(&surveyed, args.cells), format))
}
