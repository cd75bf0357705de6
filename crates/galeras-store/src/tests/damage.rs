//! The findings of `verify` and their repair.

use std::cell::Cell;
use std::fs;

use super::*;

async fn put_again(store: &Store, mut manifest: Manifest, change: impl FnOnce(&mut Manifest)) {
    change(&mut manifest);
    store.put_manifest(&manifest).await.unwrap();
}

fn rename_to(folder: &Path, from: &Path, to: &str) {
    let to = folder.join(to);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::rename(from, to).unwrap();
}

/// Damages a result of a store, or adds something damaged.
async fn damage(case: &str, store: &Store, folder: &Path, manifest: Manifest) {
    let blob = store.local_blob(&manifest.ports[0].blob).unwrap();
    let file = folder.join(manifest_name(&manifest.key));
    let recipe = manifest.preimage.recipe();
    match case {
        "a changed byte" => {
            flip(&blob, 20);
            let findings = store.verify(&|_| {}).await.unwrap();
            assert_eq!(findings[0].steps, ["step1"]);
            assert!(findings[0].to_string().ends_with("(result of step1)"), "{}", findings[0]);
        }
        "a missing blob" => fs::remove_file(blob).unwrap(),
        "a cut blob" => {
            let bytes = fs::read(&blob).unwrap();
            fs::write(&blob, &bytes[..bytes.len() / 2]).unwrap();
        }
        "another size" => put_again(store, manifest, |m| m.ports[0].bytes += 1).await,
        "a cut manifest" => fs::write(file, "{\"format\": 1, ").unwrap(),
        "an empty part" => {
            let part = put_part(store, &recipe, 2, "").await;
            fs::write(folder.join(memo_name(&recipe, &part)), "").unwrap();
            store.forget(&manifest.key).await.unwrap();
        }
        "another pre-image" => put_again(store, manifest, |m| m.preimage.version += 1).await,
        "another key" => {
            rename_to(folder, &file, &format!("actions/00/{}.json", Digest::of(b"")));
        }
        "another number of rows" => put_again(store, manifest, |m| m.ports[0].rows += 1).await,
        "another digest" => {
            put_again(store, manifest, |m| m.ports[0].digest = Digest::of(b"other")).await;
        }
        "another table" => {
            let PortArtifact { blob, bytes, .. } = put_table(store, &batch(5, 20)).await;
            let file = (blob, bytes);
            put_again(store, manifest, |m| (m.ports[0].blob, m.ports[0].bytes) = file).await;
        }
        "no table" => {
            let mut writer = store.blob_writer().unwrap();
            std::io::Write::write_all(&mut writer, b"no table").unwrap();
            let file = writer.commit(store).await.unwrap();
            put_again(store, manifest, |m| (m.ports[0].blob, m.ports[0].bytes) = file).await;
        }
        "another number of rows of a part" => {
            let part = MemoPart { rows: 99, ..put_part(store, &recipe, 2, "").await };
            store.put_memo_part(&recipe, &part).await.unwrap();
            store.forget(&manifest.key).await.unwrap();
        }
        "other files among the blobs" => {
            let false_name = Digest::of(b"something else");
            for folder in
                [store.local_blob(&false_name).unwrap().parent().unwrap(), &folder.join("blobs/ff")]
            {
                fs::create_dir_all(folder).unwrap();
                fs::write(folder.join(format!("{false_name}.parquet")), b"content").unwrap();
            }
            store.forget(&manifest.key).await.unwrap();
        }
        "an unreadable manifest" => {
            unreadable(&file);
            assert_eq!(store.manifest(&manifest.key).await.unwrap(), None, "it is a miss");
            // A link to itself.
            fs::remove_file(&file).unwrap();
            std::os::unix::fs::symlink(file.file_name().unwrap(), &file).unwrap();
            assert_eq!(store.manifest(&manifest.key).await.unwrap(), None, "it is a miss");
            unreadable(&file);
        }
        _ => panic!("{case}"),
    }
}

/// Replaces a file. The memory of a process is a file with an I/O error at its beginning, like that
/// of a damaged disk.
fn unreadable(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(path);
    std::os::unix::fs::symlink("/proc/self/mem", path).unwrap();
    let error = fs::read(path).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()), "{error}");
}

/// After a repair only an undamaged result is left.
#[tokio::test]
async fn damage_is_found_and_removed() {
    use FindingKind::*;
    for (case, expected) in [
        ("a changed byte", &[DamagedBlob][..]),
        ("a missing blob", &[MissingBlob]),
        ("a cut blob", &[WrongSize]),
        ("another size", &[WrongSize]),
        ("a cut manifest", &[DamagedManifest]),
        ("an empty part", &[DamagedPart]),
        ("another pre-image", &[WrongKey]),
        ("another key", &[DamagedManifest]),
        ("another number of rows", &[WrongTable]),
        ("another digest", &[WrongTable]),
        ("another table", &[WrongTable]),
        ("no table", &[WrongTable]),
        ("another number of rows of a part", &[WrongTable]),
        ("other files among the blobs", &[DamagedBlob, StrangeFile]),
        ("an unreadable manifest", &[DamagedManifest]),
    ] {
        let (folder, store) = new_store().await;
        let sound = put_result_of(&store, "other", 7, "").await;
        let manifest = put_result(&store, 1, "").await;
        damage(case, &store, folder.path(), manifest).await;
        let findings = store.verify(&|_| {}).await.unwrap();
        let found: Vec<_> = findings.iter().map(|finding| finding.kind).collect();
        assert_eq!(found, expected, "{case}: {findings:?}");
        assert!(store.repair(&findings).await.unwrap() > 0, "{case}");
        assert_eq!(kinds(&store).await, [], "{case}");
        assert_eq!(store.list().await.unwrap(), std::slice::from_ref(&sound), "{case}");
        let unsound = store.unsound_blobs(&sound, VerifyLevel::Hashed).await.unwrap();
        assert_eq!(unsound, [], "{case}");
    }
}

#[tokio::test]
async fn unreadable_objects_are_found_and_removed() {
    let (folder, store) = new_store().await;
    put_result(&store, 1, "").await;
    let name = Digest::of(b"x");
    unreadable(&folder.path().join(format!("memo/{}/{name}/{name}.json", name.shard())));
    unreadable(&folder.path().join("runs/20261121T093000.123Z-89abcdef.json"));
    unreadable(&folder.path().join(format!("checks/{}/{name}.json", name.shard())));
    unreadable(&folder.path().join(format!("outputs/{}/{name}/{name}.json", name.shard())));
    let findings = store.verify(&|_| {}).await.unwrap();
    let found: Vec<_> = findings.iter().map(|finding| finding.kind).collect();
    use FindingKind::*;
    assert_eq!(found, [DamagedOutcome, DamagedPart, DamagedOrigin, DamagedRun], "{findings:?}");
    store.repair(&findings).await.unwrap();
    assert_eq!(kinds(&store).await, []);
}

#[tokio::test]
async fn a_sound_store_has_no_findings_and_every_byte_is_counted() {
    let (folder, store) = new_store().await;
    let manifest = put_result(&store, 1, "").await;
    put_part(&store, &manifest.preimage.recipe(), 2, "").await;
    put_table(&store, &batch(3, 3)).await;
    fs::write(folder.path().join("tmp/.galeras-0.part"), b"half").unwrap();
    let seen = Cell::new(0);
    let findings = store.verify(&|bytes| seen.set(seen.get() + bytes)).await.unwrap();
    assert_eq!(findings, []);
    assert_eq!(seen.get(), store.usage().await.unwrap().blob_bytes);
    assert_eq!(store.repair(&[]).await.unwrap(), 0);
}

#[tokio::test]
async fn damage_in_a_bucket_is_found() {
    let store = Store::open("memory://b/p").await.unwrap();
    let manifest = put_result(&store, 1, "").await;
    let path = store.blob_path(&manifest.ports[0].blob);
    let objects = store.object_store();
    object_store::ObjectStoreExt::put(&objects, &path, "other".into()).await.unwrap();
    assert_eq!(kinds(&store).await, [FindingKind::WrongSize]);
    let findings = store.verify(&|_| {}).await.unwrap();
    assert_eq!(store.repair(&findings).await.unwrap(), 2);
    assert_eq!(kinds(&store).await, []);
}

#[tokio::test]
async fn only_results_that_were_computed_from_damage_are_forgotten() {
    let (_folder, store) = new_store().await;
    let first = put_result(&store, 1, "").await;
    let blob = first.ports[0].blob;
    let reading = async |seed, reads: Vec<Digest>| {
        let manifest = Manifest { reads, ..put_result(&store, seed, "").await };
        store.put_manifest(&manifest).await.unwrap();
        manifest
    };
    let second = reading(2, vec![blob]).await;
    let third = reading(3, vec![Digest::of(b"x"), second.ports[0].blob]).await;
    let other = reading(4, vec![Digest::of(b"x")]).await;
    let (own, after) = (put_part(&store, &Digest::of(b"r"), 8, "").await, Digest::of(b"after"));
    let outcome = json!({"problem": null});
    store.put_check_result(&after, &outcome, vec![third.ports[0].blob]).await.unwrap();
    let sound = Digest::of(b"sound");
    store.put_check_result(&sound, &outcome, vec![other.ports[0].blob]).await.unwrap();

    // Damage after which the log still has the file.
    let path = store.local_blob(&blob).unwrap();
    flip(&path, 20);
    let backend = store.inner.backend.folder().unwrap();
    backend.verified.remember(&blob, &fs::metadata(&path).unwrap());
    assert_eq!(store.unsound_blobs(&first, VerifyLevel::Usual).await.unwrap(), []);
    let hashed = store.unsound_blobs(&first, VerifyLevel::Hashed).await.unwrap();
    assert_eq!(hashed, [(blob, BlobState::Damaged)]);

    let findings = store.verify(&|_| {}).await.unwrap();
    assert_eq!(store.repair(&findings).await.unwrap(), 5, "{findings:?}");
    assert_eq!(store.list().await.unwrap(), [other]);
    assert_eq!(store.check_result(&after).await, None);
    assert_eq!(store.check_result(&sound).await, Some(outcome));
    assert_eq!(store.memo_parts(&Digest::of(b"r")).await.unwrap().sound, [own]);
    assert_eq!(kinds(&store).await, []);
}

#[tokio::test]
async fn a_flipped_bit_of_an_object_is_noticed() {
    let (folder, store) = new_store().await;
    let manifest = put_result(&store, 1, "").await;
    let recipe = manifest.preimage.recipe();
    let part = put_part(&store, &recipe, 2, "").await;
    let key = Digest::of(b"check");
    store.put_check_result(&key, &json!({"problem": "3 rows"}), vec![part.blob]).await.unwrap();
    let output = outputs::record("one", "a", "here", "2026-01-01T00:00:00.000Z");
    store.put_output(&output).await.unwrap();
    for name in files(folder.path()) {
        let path = folder.path().join(&name);
        let sound = fs::read(&path).unwrap();
        for at in (0..sound.len()).step_by(7) {
            let mut damaged = sound.clone();
            damaged[at] ^= 1 << (at % 8);
            fs::write(&path, damaged).unwrap();
            match name.split('/').next().unwrap() {
                "actions" => assert_eq!(store.manifest(&manifest.key).await.unwrap(), None),
                "checks" => assert_eq!(store.check_result(&key).await, None),
                "outputs" => assert_eq!(store.outputs_of(&output.content).await.unwrap(), []),
                // A damaged name of a member does not affect the rest.
                "memo" => {
                    let sound = store.memo_parts(&recipe).await.unwrap().sound;
                    assert!(sound.iter().all(|found| *found == part), "byte {at}");
                }
                "blobs" if name.contains(&part.blob.to_string()) => {
                    assert_eq!(store.memo_parts(&recipe).await.unwrap().damaged, [part.blob]);
                    store.put_memo_part(&recipe, &part).await.unwrap();
                }
                "blobs" => {
                    let unsound = store.unsound_blobs(&manifest, VerifyLevel::Usual).await.unwrap();
                    assert_eq!(unsound, [(manifest.ports[0].blob, BlobState::Damaged)]);
                }
                _ => {}
            }
        }
        fs::write(&path, sound).unwrap();
    }
    assert_eq!(kinds(&store).await, []);
}

#[tokio::test]
async fn a_table_that_is_computed_again_repairs_damage_of_the_same_size_in_a_bucket() {
    let store = Store::open("memory://b/p").await.unwrap();
    let manifest = put_result(&store, 1, "").await;
    let port = &manifest.ports[0];
    let garbage = vec![7; usize::try_from(port.bytes).unwrap()];
    let path = store.blob_path(&port.blob);
    object_store::ObjectStoreExt::put(&store.object_store(), &path, garbage.into()).await.unwrap();
    let hashed = async || store.unsound_blobs(&manifest, VerifyLevel::Hashed).await.unwrap();
    assert_eq!(hashed().await, [(port.blob, BlobState::Damaged)]);
    put_table(&store, &batch(1, 20)).await;
    assert_eq!(hashed().await, []);
}
