//! Messages between the caller, the launcher and the confined process, over Unix sockets: a header of
//! two lengths, JSON, and the bytes of files. File descriptors travel with the header.

use std::collections::BTreeMap;
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::outcome::{Ending, Usage};
use crate::specification::Limits;

/// A process for the launcher to start, and its confinement.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Launch {
    /// Empty in a probe, which only confines a process.
    pub(crate) command: Vec<String>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) files: Vec<FileHeader>,
    pub(crate) readable: Vec<Readable>,
    /// The folder to start in, unless it is that of the scratch folder.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) patience: Duration,
    pub(crate) limits: Limits,
    pub(crate) confinement: Confinement,
    /// The scratch folder on disk, without a mount namespace. It has `work` and `tmp`.
    pub(crate) folder: Option<PathBuf>,
    /// The user and group to change to, which the launcher fills in.
    pub(crate) id: Option<u32>,
}

impl Launch {
    /// A probe of one confinement.
    pub(crate) fn probe(confinement: Confinement) -> Self {
        Self { confinement, ..Self::default() }
    }

    pub(crate) fn is_probe(&self) -> bool {
        self.command.is_empty()
    }
}

/// A file of a specification. Its bytes follow the message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FileHeader {
    pub(crate) path: PathBuf,
    pub(crate) length: usize,
    pub(crate) executable: bool,
}

/// A path that programs may read or also change, and where symbolic links lead from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Readable {
    pub(crate) path: PathBuf,
    pub(crate) real: PathBuf,
    pub(crate) writable: bool,
    /// A folder of which only the names can be read: its entries are readable one by one.
    pub(crate) hollow: bool,
}

/// The layers to apply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confinement {
    /// Namespaces of processes, mounts, the network, IPC and the host's name.
    pub(crate) namespaces: bool,
    /// Nothing keeps the program from the network of the machine.
    pub(crate) network: bool,
    /// A namespace of users for the program alone.
    pub(crate) user_namespace: bool,
    /// The version of Landlock.
    pub(crate) landlock: Option<i32>,
    pub(crate) seccomp: bool,
    /// Another user than root.
    pub(crate) unprivileged_user: bool,
    pub(crate) resource_limits: bool,
}

/// The answer of the launcher and of the confined process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// A probe succeeded.
    Ready {
        landlock: LandlockSupport,
        user_namespace: bool,
    },
    Done {
        ending: Ending,
        usage: Usage,
    },
    Cancelled,
    Failed(Failure),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LandlockSupport {
    #[default]
    NotImplemented,
    NotEnabled,
    Version(i32),
}

/// A step that failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) step: String,
    pub(crate) reason: String,
    /// The process was confined, but the program could not be executed.
    pub(crate) not_started: bool,
}

impl Failure {
    pub(crate) fn new(step: impl Into<String>, reason: impl ToString) -> Self {
        Self { step: step.into(), reason: reason.to_string(), not_started: false }
    }
}

/// Names the step of an error.
pub(crate) trait Step<T> {
    fn step(self, name: impl Into<String>) -> Result<T, Failure>;
}

impl<T, E: ToString> Step<T> for Result<T, E> {
    fn step(self, name: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(name, error))
    }
}

pub(crate) fn send(
    mut socket: &UnixStream,
    message: &impl Serialize,
    bytes: &[&[u8]],
    fd: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let json = serde_json::to_vec(message)?;
    let length: usize = bytes.iter().map(|bytes| bytes.len()).sum();
    let mut header = [0; 16];
    header[..8].copy_from_slice(&(json.len() as u64).to_ne_bytes());
    header[8..].copy_from_slice(&(length as u64).to_ne_bytes());

    let fds = fd.as_slice();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::other("no room for a file descriptor"));
    }
    let sent = rustix::net::sendmsg(
        socket,
        &[IoSlice::new(&header)],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )?;
    socket.write_all(&header[sent..])?;
    socket.write_all(&json)?;
    bytes.iter().try_for_each(|bytes| socket.write_all(bytes))
}

/// A message, its bytes and its file descriptor.
pub(crate) type Received<T> = (T, Vec<u8>, Option<OwnedFd>);

/// The next message with its bytes and file descriptor, or nothing if the other side has closed.
pub(crate) fn receive<T: DeserializeOwned>(
    mut socket: &UnixStream,
) -> io::Result<Option<Received<T>>> {
    let mut header = [0; 16];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::net::recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut header)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let fd = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    socket.read_exact(&mut header[received.bytes..])?;
    let length = |bytes: &[u8]| {
        let bytes = bytes.try_into().map_err(io::Error::other)?;
        usize::try_from(u64::from_ne_bytes(bytes)).map_err(io::Error::other)
    };
    let mut json = vec![0; length(&header[..8])?];
    socket.read_exact(&mut json)?;
    let mut bytes = vec![0; length(&header[8..])?];
    socket.read_exact(&mut bytes)?;
    Ok(Some((serde_json::from_slice(&json)?, bytes, fd)))
}
