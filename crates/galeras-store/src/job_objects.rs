//! Messages between the processes of a cluster about a job: small objects below `work/`, which are
//! removed at the end of the job. Every result that they name is also named by a manifest.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::content_store::Store;
use super::error::{Result, StoreError, StoreErrorKind};
use super::integrity::unseal;
use super::run_record::random;

/// The folder of the jobs.
pub(super) const WORK: &str = "work";

impl Store {
    /// A new, unique name for a job.
    pub fn new_job(&self) -> String {
        format!("{:016x}{:016x}", random(), random())
    }

    /// Stores an object of a job; `name` may have folders. Like the name of the job, it may contain
    /// letters, digits and `-`; other names are an error of each of these functions.
    pub async fn put_work(&self, job: &str, name: &str, value: &impl Serialize) -> Result<()> {
        self.write_sealed(&work_name(job, name)?, value).await
    }

    /// An object of a job; `None` if there is none, or if it is damaged.
    pub async fn work<T: DeserializeOwned>(&self, job: &str, name: &str) -> Result<Option<T>> {
        let bytes = self.inner.backend.read(&work_name(job, name)?).await?;
        Ok(bytes.and_then(|bytes| unseal(&bytes).ok()))
    }

    /// The names of the objects in a folder of a job, without the folder.
    pub async fn work_names(&self, job: &str, folder: &str) -> Result<Vec<String>> {
        let folder = work_name(job, folder)?;
        let entries = self.inner.backend.list(&folder).await?.into_iter();
        let inside =
            |name: String| name.strip_prefix(&folder)?.strip_prefix('/').map(str::to_string);
        Ok(entries.filter_map(|entry| inside(entry.name)).collect())
    }

    /// Removes an object of a job.
    pub async fn forget_work(&self, job: &str, name: &str) -> Result<()> {
        self.inner.backend.remove(&work_name(job, name)?).await.map(|_| ())
    }

    /// Removes the objects of a job.
    pub async fn end_job(&self, job: &str) -> Result<()> {
        let entries = self.inner.backend.list(&work_name(job, "")?).await?;
        self.inner.backend.remove_all(entries.into_iter().map(|entry| entry.name)).await?;
        if let Some(folder) = self.inner.backend.folder() {
            // Only empty folders are left, which do no harm.
            let _ = std::fs::remove_dir_all(folder.path(&work_name(job, "")?));
        }
        Ok(())
    }
}

/// `work/JOB/NAME`, or the folder of the job.
fn work_name(job: &str, name: &str) -> Result<String> {
    let plain = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    if !plain(job) || !(name.is_empty() || name.split('/').all(plain)) {
        let cause = "the name of a job or of a part of it is not plain";
        return Err(StoreError::new(StoreErrorKind::Corrupt, "use", "a job", cause));
    }
    Ok(if name.is_empty() { format!("{WORK}/{job}") } else { format!("{WORK}/{job}/{name}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn objects_of_a_job_exist_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        for location in [folder.path().to_str().unwrap(), "memory://"] {
            let store = Store::open(location).await.unwrap();
            let (job, other) = (store.new_job(), store.new_job());
            assert_ne!(job, other);
            let content = serde_json::json!({"a": 1});
            for (job, name) in
                [(&job, "order"), (&job, "done/3"), (&job, "begun/3/x"), (&other, "done/4")]
            {
                store.put_work(job, name, &content).await.unwrap();
            }
            let read: serde_json::Value = store.work(&job, "done/3").await.unwrap().unwrap();
            assert_eq!(read["a"], 1);
            assert_eq!(store.work_names(&job, "done").await.unwrap(), ["3"]);
            assert_eq!(store.work_names(&job, "begun/3").await.unwrap(), ["x"]);
            store.forget_work(&job, "done/3").await.unwrap();
            assert!(store.work_names(&job, "done").await.unwrap().is_empty());
            store.end_job(&job).await.unwrap();
            assert_eq!(store.work::<serde_json::Value>(&job, "order").await.unwrap(), None);
            assert_eq!(store.work_names(&other, "done").await.unwrap(), ["4"]);
            for bad in ["", "..", "a/b", "a.b"] {
                store.put_work(bad, "order", &content).await.unwrap_err();
                store.put_work(&job, &format!("{bad}/.."), &content).await.unwrap_err();
            }
        }
    }
}
