//! The location of a store, as in `--cache`: a folder, the URL of a bucket, or memory. Also folders
//! that are private to a user, for the downloads of a store that is not a folder.

use std::fmt;
use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use galeras_net::secret_in;
use serde_json::json;
use url::Url;

use super::error::{Result, StoreError, StoreErrorKind};
use galeras_base::digest::Digest;

/// The folders in a store that is a folder.
pub const STORE_FOLDERS: [&str; 11] = [
    "actions",
    "blobs",
    "checks",
    "downloads",
    "locks",
    "memo",
    "outputs",
    "runs",
    "signatures",
    "tmp",
    "work",
];

/// The location of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreLocation {
    /// In a folder, which need not exist.
    Folder(PathBuf),
    /// In the memory of this process.
    Memory(Url),
    /// In a bucket (`s3://bucket/prefix`, `gs://bucket/prefix`).
    Bucket(Url),
}

impl StoreLocation {
    /// Parses a folder's path or a URL. The error is [`StoreErrorKind::Unsupported`] if the
    /// location is empty, is a file or a URL of another scheme, is written as other programs write the
    /// folders of a server or of a user, or contains a password or a key, which is not quoted.
    pub fn parse(location: &str) -> Result<Self> {
        if location.is_empty() {
            return Err(unsupported("a store", "its location is empty"));
        }
        if !location.contains("://") {
            return folder(location);
        }
        let url = match Url::parse(location) {
            Ok(url) => url,
            // Not shown: it may hold a password.
            Err(error) => return Err(unsupported("the store's URL", error.to_string())),
        };
        let shown = shown(&url);
        if let Some(secret) = secret_in(location) {
            let instead = match url.scheme() {
                "gs" => "GOOGLE_SERVICE_ACCOUNT",
                _ => "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            };
            let cause =
                format!("the URL holds {secret}, which ends up in logs; set {instead} instead");
            return Err(unsupported(shown, cause));
        }
        let lacks = |name: &str, feature: &str| {
            let build = format!("cargo install galeras --features {feature}");
            format!("this build has no {name}; build with `{build}`")
        };
        match url.scheme() {
            "file" => match url.to_file_path() {
                Ok(path) => Ok(Self::Folder(path)),
                Err(()) => Err(unsupported(shown, "write file:///absolute/path")),
            },
            "memory" => Ok(Self::Memory(url)),
            "s3" if !cfg!(feature = "s3") => Err(unsupported(shown, lacks("S3", "s3"))),
            "gs" if !cfg!(feature = "gcs") => {
                Err(unsupported(shown, lacks("Google Cloud Storage", "gcs")))
            }
            "s3" | "gs" if url.host_str().is_none_or(str::is_empty) => {
                Err(unsupported(shown, format!("write {}://bucket/prefix", url.scheme())))
            }
            "s3" | "gs" => Ok(Self::Bucket(url)),
            other => Err(unsupported(&shown, format!("{other}:// is not a kind of store"))),
        }
    }

    /// An identifier of this store, the same for equivalent locations. `also` distinguishes it from
    /// other stores, for example by the server of a bucket.
    pub fn digest(&self, also: &[Option<String>]) -> Digest {
        let place = match self {
            Self::Folder(path) => path.to_string_lossy().into_owned(),
            Self::Memory(url) | Self::Bucket(url) => shown(url).trim_end_matches('/').to_string(),
        };
        Digest::of_json(&json!({"store": place, "also": also}))
    }
}

/// The folder at a path. Not `server:folder` or `~/folder` unless it exists: results that seem to be
/// sent elsewhere would end in a new folder of that name.
fn folder(location: &str) -> Result<StoreLocation> {
    let path = Path::new(location);
    if path.exists() && !path.is_dir() {
        return Err(unsupported(location, "it is not a folder"));
    }
    let first = location.split('/').next().unwrap_or(location);
    let problem = match first {
        _ if path.exists() => return Ok(StoreLocation::Folder(path.into())),
        home if home.starts_with('~') => {
            "only a shell knows `~`, and only at the start of a word; write $HOME"
        }
        server if server.contains(':') => {
            "this is how SSH and Git name a folder of a server, which is not a kind of store; the \
             path of a folder of this machine begins with ./"
        }
        _ => return Ok(StoreLocation::Folder(path.into())),
    };
    // The text before an @ may be a password.
    let place = location.rsplit('@').next().unwrap_or(location);
    Err(unsupported(place, problem))
}

/// The address of a web server, if the location is one. The error is
/// [`StoreErrorKind::Unsupported`] if it is not a URL, or contains a password or a key, which is
/// not quoted.
pub(super) fn web_address(location: &str) -> Result<Option<Url>> {
    if !["http://", "https://"].iter().any(|scheme| location.starts_with(scheme)) {
        return Ok(None);
    }
    let url = Url::parse(location);
    let url = url.map_err(|error| unsupported("the remote's URL", error.to_string()))?;
    match secret_in(location) {
        Some(secret) => {
            Err(unsupported(shown(&url), format!("the URL holds {secret}, which ends up in logs")))
        }
        None => Ok(Some(url)),
    }
}

/// A URL without its parts that may be secret.
pub(super) fn shown(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or(""), url.path())
}

fn unsupported(place: impl fmt::Display, cause: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Unsupported, "open", place, cause)
}

/// Creates the folder `name` in `parent` if it does not exist. Only its owner may enter it. The
/// error is [`StoreErrorKind::ReadOnly`] if one of the two belongs to another user, or if other
/// users may write to it, who could then put files or links into it; the error of the system if it
/// cannot be created.
pub fn private_folder(parent: &Path, name: &str) -> Result<PathBuf> {
    let folder = parent.join(name);
    let failed = |error| StoreError::at("use", &folder, error);
    // New folders above it are private as well, as in the XDG specification.
    DirBuilder::new().recursive(true).mode(PRIVATE).create(&folder).map_err(failed)?;
    for place in [parent, &folder] {
        let about = fs::metadata(place).map_err(failed)?;
        let problem = match () {
            () if !about.is_dir() => "it is not a folder",
            () if about.uid() != rustix::process::geteuid().as_raw() => {
                "it belongs to another user"
            }
            () if about.mode() & OTHERS_WRITE != 0 => "other users may write to it",
            () => continue,
        };
        let refused = StoreErrorKind::ReadOnly;
        return Err(StoreError::new(refused, "use", place.display(), problem));
    }
    if fs::metadata(&folder).map_err(failed)?.mode() & OTHERS != 0 {
        fs::set_permissions(&folder, Permissions::from_mode(PRIVATE)).map_err(failed)?;
    }
    Ok(folder)
}

const PRIVATE: u32 = 0o700;
const OTHERS_WRITE: u32 = 0o022;
const OTHERS: u32 = 0o077;

#[cfg(test)]
mod tests {
    use super::*;

    fn location(text: &str) -> StoreLocation {
        StoreLocation::parse(text).unwrap()
    }

    #[test]
    fn a_url_of_a_folder_is_a_folder() {
        assert_eq!(location("cache"), StoreLocation::Folder("cache".into()));
        assert_eq!(location("file:///a/b%20c"), StoreLocation::Folder("/a/b c".into()));
        assert!(matches!(location("memory://"), StoreLocation::Memory(_)));
        for wrong in ["", "file://host/x", "az://bucket", "s3://", "gs:///x", "x://", "http://x/y"]
        {
            let error = StoreLocation::parse(wrong).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Unsupported, "{wrong}");
        }
    }

    #[test]
    fn a_file_and_the_folder_of_a_server_or_of_a_user_are_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (wrong, told) in [
            (file.path().to_str().unwrap(), "it is not a folder"),
            ("host:/store", "begins with ./"),
            ("git@github.com:owner/store.git", "SSH and Git"),
            ("~/store", "write $HOME"),
        ] {
            let error = StoreLocation::parse(wrong).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Unsupported, "{wrong}");
            assert!(error.to_string().contains(told), "{error}");
        }
        assert_eq!(location("./a:b/c"), StoreLocation::Folder("./a:b/c".into()));
        assert_eq!(location("a/b:c"), StoreLocation::Folder("a/b:c".into()));
    }

    #[test]
    fn a_password_is_refused_and_not_quoted() {
        for wrong in [
            "s3://me:hunter2@bucket/x",
            "memory://hunter2@bucket",
            "s3://bucket/x?X-Amz-Signature=hunter2",
            "gs://me:hunter2@bucket/x",
            "file:///x?token=hunter2",
            "s3://me:hunter2@bu cket",
            "me:hunter2@host/x",
        ] {
            let error = StoreLocation::parse(wrong).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn stores_have_different_names() {
        let name = |text: &str, also: &str| location(text).digest(&[Some(also.to_string())]);
        assert_eq!(name("memory://b/p", "x"), name("memory://b/p/", "x"));
        assert_ne!(name("memory://b/p", "x"), name("memory://b/q", "x"));
        assert_ne!(name("memory://b/p", "x"), name("memory://b/p", "y"));
        assert_ne!(name("memory://b/p", "x"), location("memory://b/p").digest(&[None]));
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_private_folder_is_for_its_owner_and_refused_if_others_may_write() {
        let top = tempfile::tempdir().unwrap();
        let caches = top.path().join("new/galeras");
        let folder = private_folder(&caches, "a").unwrap();
        assert_eq!((mode(&folder), mode(&caches)), (0o700, 0o700));
        assert_eq!(private_folder(&caches, "a").unwrap(), folder);
        // One that others may only read is closed.
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        private_folder(&caches, "a").unwrap();
        assert_eq!(mode(&folder), 0o700);

        let folder = private_folder(top.path(), "a").unwrap();
        for (place, rights) in
            [(folder.as_path(), 0o777), (folder.as_path(), 0o720), (top.path(), 0o770)]
        {
            fs::set_permissions(place, Permissions::from_mode(rights)).unwrap();
            let error = private_folder(top.path(), "a").unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::ReadOnly);
            assert!(error.to_string().contains("other users may write"), "{error}");
            fs::set_permissions(place, Permissions::from_mode(0o700)).unwrap();
        }
        fs::write(top.path().join("file"), "").unwrap();
        assert!(private_folder(top.path(), "file").is_err());
    }
}
