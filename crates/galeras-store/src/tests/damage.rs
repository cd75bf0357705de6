//! What `verify` finds and `repair` removes.

use std::cell::Cell;
use std::fs;

use super::*;

async fn kinds(store: &Store) -> Vec<FindingKind> {
    store.verify(&|_| {}).await.unwrap().iter().map(|finding| finding.kind).collect()
}

/// Damages a store, expects these findings, and that nothing is left of them after a repair
/// but an undamaged result.
async fn finds(damage: impl AsyncFnOnce(&Store, &Path, Manifest), expected: &[FindingKind]) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let sound = put_result_of(&store, "other", 7, "").await;
    let manifest = put_result(&store, 1, "").await;
    damage(&store, folder.path(), manifest).await;
    let findings = store.verify(&|_| {}).await.unwrap();
    assert_eq!(findings.iter().map(|f| f.kind).collect::<Vec<_>>(), expected, "{findings:?}");
    assert!(store.repair(&findings).await.unwrap() > 0);
    assert_eq!(kinds(&store).await, []);
    assert_eq!(store.list().await.unwrap(), std::slice::from_ref(&sound));
    assert_eq!(store.unsound_blobs(&sound, VerifyLevel::Hashed).await.unwrap(), []);
}

fn file_of(folder: &Path, manifest: &Manifest) -> std::path::PathBuf {
    folder.join(format!("actions/{}/{}.json", manifest.key.shard(), manifest.key))
}

#[tokio::test]
async fn a_sound_store_has_no_findings_and_every_byte_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let manifest = put_result(&store, 1, "").await;
    put_part(&store, &manifest.preimage.recipe(), 2, "").await;
    put_table(&store, &batch(3, 3)).await;
    fs::write(folder.path().join("tmp/0123456789abcdef"), b"half").unwrap();
    let seen = Cell::new(0);
    let findings = store.verify(&|bytes| seen.set(seen.get() + bytes)).await.unwrap();
    assert_eq!(findings, []);
    assert_eq!(seen.get(), store.usage().await.unwrap().blob_bytes);
    assert_eq!(store.repair(&[]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_changed_byte_is_found() {
    let damage = async |store: &Store, _: &Path, manifest: Manifest| {
        let path = store.local_blob(&manifest.ports[0].blob).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        bytes[20] ^= 1;
        fs::write(&path, bytes).unwrap();
        let findings = store.verify(&|_| {}).await.unwrap();
        assert_eq!(findings[0].steps, ["step1"]);
        assert!(findings[0].to_string().ends_with("(result of step1)"), "{}", findings[0]);
    };
    finds(damage, &[FindingKind::DamagedBlob]).await;
}

#[tokio::test]
async fn a_missing_blob_is_found() {
    let damage = async |store: &Store, _: &Path, manifest: Manifest| {
        fs::remove_file(store.local_blob(&manifest.ports[0].blob).unwrap()).unwrap();
    };
    finds(damage, &[FindingKind::MissingBlob]).await;
}

#[tokio::test]
async fn a_cut_blob_and_a_manifest_with_another_size_are_found() {
    let damage = async |store: &Store, _: &Path, manifest: Manifest| {
        let path = store.local_blob(&manifest.ports[0].blob).unwrap();
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    };
    finds(damage, &[FindingKind::WrongSize]).await;
    let damage = async |store: &Store, _: &Path, mut manifest: Manifest| {
        manifest.ports[0].bytes += 1;
        store.put_manifest(&manifest).await.unwrap();
    };
    finds(damage, &[FindingKind::WrongSize]).await;
}

#[tokio::test]
async fn damaged_manifests_and_parts_are_found() {
    let damage = async |_: &Store, folder: &Path, manifest: Manifest| {
        fs::write(file_of(folder, &manifest), "{\"format\": 1, ").unwrap();
    };
    finds(damage, &[FindingKind::DamagedManifest]).await;
    let damage = async |store: &Store, folder: &Path, manifest: Manifest| {
        let recipe = manifest.preimage.recipe();
        let part = put_part(store, &recipe, 2, "").await;
        let name = format!("memo/{}/{recipe}/{}.json", recipe.shard(), part.blob);
        fs::write(folder.join(name), "").unwrap();
        store.forget(&manifest.key).await.unwrap();
    };
    finds(damage, &[FindingKind::DamagedPart]).await;
}

#[tokio::test]
async fn a_manifest_under_a_key_that_is_not_its_own_is_found() {
    let damage = async |store: &Store, _: &Path, mut manifest: Manifest| {
        manifest.preimage.version += 1;
        store.put_manifest(&manifest).await.unwrap();
    };
    finds(damage, &[FindingKind::WrongKey]).await;
    let damage = async |_: &Store, folder: &Path, manifest: Manifest| {
        let other = folder.join("actions/00");
        fs::create_dir_all(&other).unwrap();
        fs::rename(file_of(folder, &manifest), other.join(format!("{}.json", Digest::of(b""))))
            .unwrap();
    };
    finds(damage, &[FindingKind::DamagedManifest]).await;
}

#[tokio::test]
async fn a_table_that_is_not_what_the_manifest_says_is_found() {
    let rows = async |store: &Store, _: &Path, mut manifest: Manifest| {
        manifest.ports[0].rows += 1;
        store.put_manifest(&manifest).await.unwrap();
    };
    finds(rows, &[FindingKind::WrongTable]).await;
    let digest = async |store: &Store, _: &Path, mut manifest: Manifest| {
        manifest.ports[0].digest = Digest::of(b"other");
        store.put_manifest(&manifest).await.unwrap();
    };
    finds(digest, &[FindingKind::WrongTable]).await;
    let content = async |store: &Store, _: &Path, mut manifest: Manifest| {
        let other = put_table(store, &batch(5, 20)).await;
        manifest.ports[0].blob = other.blob;
        manifest.ports[0].bytes = other.bytes;
        store.put_manifest(&manifest).await.unwrap();
    };
    finds(content, &[FindingKind::WrongTable]).await;
    let no_parquet = async |store: &Store, _: &Path, mut manifest: Manifest| {
        let mut writer = store.blob_writer().unwrap();
        std::io::Write::write_all(&mut writer, b"no table").unwrap();
        let (blob, bytes) = writer.commit(store).await.unwrap();
        manifest.ports[0].blob = blob;
        manifest.ports[0].bytes = bytes;
        store.put_manifest(&manifest).await.unwrap();
    };
    finds(no_parquet, &[FindingKind::WrongTable]).await;
    let part = async |store: &Store, _: &Path, manifest: Manifest| {
        let recipe = manifest.preimage.recipe();
        let mut part = put_part(store, &recipe, 2, "").await;
        part.rows = 99;
        store.put_memo_part(&recipe, &part).await.unwrap();
        store.forget(&manifest.key).await.unwrap();
    };
    finds(part, &[FindingKind::WrongTable]).await;
}

#[tokio::test]
async fn files_among_the_blobs_with_a_wrong_name_are_found() {
    let damage = async |store: &Store, folder: &Path, manifest: Manifest| {
        let false_name = Digest::of(b"something else");
        let path = store.local_blob(&false_name).unwrap();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, b"content").unwrap();
        fs::create_dir_all(folder.join("blobs/ff")).unwrap();
        fs::write(folder.join(format!("blobs/ff/{false_name}.parquet")), b"content").unwrap();
        store.forget(&manifest.key).await.unwrap();
    };
    finds(damage, &[FindingKind::DamagedBlob, FindingKind::StrangeFile]).await;
}

#[tokio::test]
async fn damage_in_a_bucket_is_found_too() {
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
async fn a_repair_waits_for_no_run_but_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let manifest = put_result(&store, 1, "").await;
    fs::remove_file(store.local_blob(&manifest.ports[0].blob).unwrap()).unwrap();
    let findings = store.verify(&|_| {}).await.unwrap();
    let _run = open(folder.path()).await.shared_lock().await.unwrap();
    let error = store.repair(&findings).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Busy);
}

#[tokio::test]
async fn what_was_computed_from_damage_is_forgotten_with_what_follows_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
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

    // Damage without a trace: the record says that the file was looked at.
    let path = store.local_blob(&blob).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[20] ^= 1;
    fs::write(&path, bytes).unwrap();
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
async fn no_flipped_bit_of_a_manifest_a_part_or_an_outcome_is_believed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let manifest = put_result(&store, 1, "").await;
    let recipe = manifest.preimage.recipe();
    let part = put_part(&store, &recipe, 2, "").await;
    let key = Digest::of(b"check");
    store.put_check_result(&key, &json!({"problem": "3 rows"}), vec![part.blob]).await.unwrap();
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
                // A name of a member that is no more its name leaves the rest as it was.
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
async fn what_is_computed_again_heals_damage_of_the_same_size_in_a_bucket() {
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

/// The memory of a process is a file of which nothing can be read at its beginning: an I/O error, as
/// of a disk with a bad spot.
#[tokio::test]
async fn a_file_that_the_disk_cannot_give_is_damaged() {
    let unreadable = |path: &Path| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(path);
        std::os::unix::fs::symlink("/proc/self/mem", path).unwrap();
        let error = fs::read(path).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()), "{error}");
    };
    let manifest_gone = async |store: &Store, folder: &Path, manifest: Manifest| {
        unreadable(&file_of(folder, &manifest));
        assert_eq!(store.manifest(&manifest.key).await.unwrap(), None, "it is a miss");
        // Neither is one behind a link to itself.
        fs::remove_file(file_of(folder, &manifest)).unwrap();
        let path = file_of(folder, &manifest);
        std::os::unix::fs::symlink(path.file_name().unwrap(), &path).unwrap();
        assert_eq!(store.manifest(&manifest.key).await.unwrap(), None, "it is a miss");
        unreadable(&path);
    };
    finds(manifest_gone, &[FindingKind::DamagedManifest]).await;
    let others = async |_: &Store, folder: &Path, _: Manifest| {
        let name = Digest::of(b"x");
        unreadable(&folder.join(format!("memo/{}/{name}/{name}.json", name.shard())));
        unreadable(&folder.join("runs/20261121T093000.123Z-89abcdef.json"));
        unreadable(&folder.join(format!("checks/{}/{name}.json", name.shard())));
    };
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    others(&store, folder.path(), put_result(&store, 1, "").await).await;
    let findings = store.verify(&|_| {}).await.unwrap();
    assert_eq!(findings.len(), 3, "{findings:?}");
    store.repair(&findings).await.unwrap();
    assert_eq!(kinds(&store).await, []);
}
