//! The records of output files.

use super::*;

pub(super) fn record(content: &str, workflow: &str, place: &str, written: &str) -> OutputRecord {
    OutputRecord {
        content: Digest::of(content.as_bytes()),
        origin: OutputOrigin {
            workflow: workflow.into(),
            file: "w.yaml".into(),
            step: "gen[model=a]".into(),
            port: "out".into(),
            table: Digest::of(content.as_bytes()),
            version: "1.2.3".into(),
        },
        path: "out/a.csv".into(),
        place: Digest::of(place.as_bytes()),
        run: "r".into(),
        written: written.into(),
    }
}

async fn round_trips(store: &Store) {
    let first = record("one", "a", "here", "2026-01-01T00:00:00.000Z");
    let other = record("one", "b", "there", "2026-01-03T00:00:00.000Z");
    let later = record("two", "a", "here", "2026-01-02T00:00:00.000Z");
    assert_eq!(store.outputs_of(&first.content).await.unwrap(), []);
    for record in [&other, &first, &later, &first] {
        store.put_output(record).await.unwrap();
    }
    assert_eq!(store.outputs_of(&first.content).await.unwrap(), [first.clone(), other.clone()]);
    assert_eq!(store.outputs_at(&first.place).await.unwrap(), [first.clone(), later.clone()]);
    assert_eq!(store.verify(&|_| {}).await.unwrap(), []);
    // Old ones that were replaced are removed.
    let gone = store.superseded_outputs("2026-02").await.unwrap();
    assert_eq!(gone.len(), 1);
    assert!(gone[0].contains(&first.content.to_string()));
    assert_eq!(store.superseded_outputs("2026-01-01").await.unwrap().len(), 0);
}

#[tokio::test]
async fn records_are_found_by_content_and_by_place() {
    let (_folder, store) = new_store().await;
    round_trips(&store).await;
    round_trips(&Store::open("memory://outputs").await.unwrap()).await;
}

#[test]
fn an_origin_is_read_back_from_metadata() {
    let origin = record("one", "a \"b\"\n", "here", "").origin;
    let pairs = origin.to_pairs();
    assert_eq!(OutputOrigin::from_pairs(&pairs), Some(origin));
    for at in 0..pairs.len() {
        let mut some = pairs.clone();
        some.remove(at);
        assert_eq!(OutputOrigin::from_pairs(&some), None);
    }
}
