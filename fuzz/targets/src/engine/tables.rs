//! Files of users, through the operator `read`: planned, opened and read completely. Output of
//! programs, through `exec`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use galeras_base::scratch::LazyScratch;
use galeras_operator::event::{EventSink, RunEvent};
use galeras_operator::{FullConsent, LowerContext, Lowering, RunEnv};
use galeras_sql::session::{guarded, session};
use tokio_util::sync::CancellationToken;

/// A file of this suffix.
pub(crate) fn read(suffix: &str, input: &[u8]) {
    let folder = super::folder();
    std::fs::write(folder.join(format!("data.{suffix}")), input).unwrap();
    let text =
        format!("galeras: 1\nsteps:\n  data:\n    op: read\n    with: {{ path: data.{suffix} }}\n");
    computed(&folder, &text);
}

/// Lines of JSON, or an Arrow stream, or a Parquet file, that a program prints.
pub(crate) fn exec_output(input: &[u8]) {
    let folder = super::folder();
    std::fs::write(folder.join("printed"), input).unwrap();
    let format = match input {
        [b'P', b'A', b'R', b'1', ..] => "parquet",
        [0xff, ..] => "arrow",
        _ => "jsonl",
    };
    let text = format!(
        "galeras: 1\nsteps:\n  data:\n    op: exec\n    with:\n      sandbox: none\n      command: cat printed\n      \
         format: {format}\n      output: {{ id: utf8!, x: int64, y: float64, names: list<utf8> }}\n"
    );
    computed(&folder, &text);
}

/// Computes the step `data` of a workflow, which reads one file.
fn computed(folder: &Path, text: &str) {
    super::wait(async {
        let Some(plan) = super::planned(folder, text).await else { return };
        let step = &plan.step("data").expect("it was planned").step;
        assert_eq!(step.side_files().unwrap().len(), 1);
        let Lowering::Table(table) = step.lowering() else { panic!("it gives a table") };
        let cx = context(folder);
        // A library that gives up is an error, as it is for the program.
        let Ok(Ok(ports)) = guarded(table.lower(&cx, BTreeMap::new())).await else { return };
        let declared = step.ports();
        assert_eq!(ports.len(), declared.len());
        for ((name, rows), port) in ports.into_iter().zip(declared) {
            assert_eq!(name, port.name);
            let Ok(Ok(batches)) = guarded(rows.collect()).await else { return };
            for batch in batches {
                let schema = batch.schema();
                let got = schema.fields().iter().map(|field| field.name().as_str());
                assert!(got.eq(port.table.names()), "other columns than were planned");
            }
        }
    });
}

struct NoEvents;

impl EventSink for NoEvents {
    fn send(&self, _: RunEvent) {}
}

fn context(folder: &Path) -> LowerContext {
    LowerContext {
        session: session(1),
        scratch: LazyScratch::default(),
        base: folder.to_path_buf(),
        downloads: folder.join("downloads"),
        env: RunEnv {
            jobs: 1,
            memory: 1 << 28,
            consent: Arc::new(FullConsent),
            cancel: CancellationToken::new(),
            events: Arc::new(NoEvents),
        },
        forced: false,
        retry: Arc::default(),
        budget: galeras_chat::Budget::unlimited(),
        sealed: Vec::new(),
        tell: Arc::new(|_| ()),
    }
}
