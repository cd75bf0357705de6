//! stub
use crate::event::*;
pub struct JsonReporter; impl JsonReporter { pub fn new<W>(_:W)->Self{Self} } impl EventSink for JsonReporter { fn send(&self,e:RunEvent){ println!("{}", serde_json::to_string(&e).unwrap_or_default()); } }
pub struct HumanReporter; impl HumanReporter { pub fn new(_:Box<dyn std::io::Write+Send>,_:bool,_:bool,_:u16)->Self{Self} } impl EventSink for HumanReporter { fn send(&self,e:RunEvent){ eprintln!("{}", serde_json::to_string(&e).unwrap_or_default()); } }
#[derive(PartialEq,Clone,Copy)] pub enum TableFormat{Table,Json,Csv}
pub fn write_table(o:&mut dyn std::io::Write,b:&[arrow::array::RecordBatch],_:&arrow::datatypes::SchemaRef,_:TableFormat,_:Option<u16>)->std::io::Result<()> { writeln!(o,"{}",arrow::util::pretty::pretty_format_batches(b).unwrap()) }
pub fn count(n:u64)->String{n.to_string()} pub fn bytes(n:u64)->String{n.to_string()}
pub struct GraphNode{pub name:String,pub label:String,pub state:Option<StepStatus>} pub struct GraphEdge{pub from:usize,pub to:usize,pub label:Option<String>} pub struct Graph{pub title:String,pub nodes:Vec<GraphNode>,pub edges:Vec<GraphEdge>} pub enum GraphFormat{Mermaid,Dot,Svg} pub fn render_graph(_:&Graph,_:GraphFormat)->String{String::new()}
