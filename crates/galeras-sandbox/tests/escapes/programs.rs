//! Programs that try to escape, to stay, or to use more than they may.
//!
//! In their text `@CANARY@` is a folder outside, with a `secret` and a `victim` file, that any user of the
//! machine may read and write; `@TCP@` and `@UDP@` are ports of servers on this machine, `@ABSTRACT@` the
//! name of an abstract socket; `@VICTIM@` is a process of the same user, `@CALLER@` the process of the tests;
//! `@TOKEN@` is unique to the run. A program that gets through prints `ESCAPED`.

use galeras_sandbox::Ending::{
    self, CpuTime, Exited, Memory, Output, Processes, Scratch, Signaled, WallTime,
};

use self::Language::{C, Python};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Python,
    C,
}

/// A program, and the ways in which it may end. A second way is one of another set of layers.
pub(crate) type Case = (&'static str, Language, &'static [Ending], &'static str);

/// The start of each Python program. `attempt` runs an attack that must raise an error or return -1.
pub(crate) const PYTHON: &str = r"
import ctypes, mmap, os, resource, signal, socket, stat, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def escaped(what):
    print('ESCAPED', what, flush=True)
def attempt(attack, *arguments):
    result = attack(*arguments)
    if result != -1:
        escaped(repr(result))
    sys.exit(1)
def syscall(*numbers):
    attempt(libc.syscall, *numbers)
";

pub(crate) const C_HEADER: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static int attempt(long result) {
    if (result != -1) { puts("ESCAPED"); fflush(stdout); }
    return 1;
}
"#;

pub(crate) const CASES: &[Case] = &[
    // A sandbox does not prevent these.
    ("runs", Python, &[Exited(0)], "print('hello', os.getcwd() != '/')"),
    ("starts a shell", Python, &[Exited(3)], "sys.exit(subprocess.run('ls . > out && exit 3', shell=True).returncode)"),
    ("uses a pair of sockets", Python, &[Exited(0)], "a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'"),
    ("uses threads and processes", Python, &[Exited(0)], "
t = threading.Thread(target=print); t.start(); t.join()
pid = os.fork()
if pid == 0: os._exit(0)
os.waitpid(pid, 0)"),
    ("writes files", Python, &[Exited(0)], "
import tempfile
os.makedirs('a/b'); open('a/b/c', 'w').write('x'); os.rename('a/b/c', 'd'); os.remove('d')
tempfile.NamedTemporaryFile().write(b'x')"),
    ("ends a child", Python, &[Exited(0), Exited(1)], "
p = subprocess.Popen(['sleep', '60'])
p.kill(); p.wait()"),
    // Early and false ends.
    ("exits early", Python, &[Exited(0)], "sys.exit(0)"),
    ("exits at once", Python, &[Exited(0)], "os._exit(0)"),
    ("hides a failure at exit", Python, &[Exited(0)], "import atexit; atexit.register(os._exit, 0); raise SystemError"),
    ("prints a token of success", Python, &[Exited(3)], "print('PASSED'); sys.exit(3)"),
    ("becomes another program", Python, &[Exited(0)], "os.execv('/bin/true', ['true'])"),
    ("ends itself by a signal", Python, &[Signaled(9)], "os.kill(os.getpid(), 9)"),
    ("ends its group", Python, &[Signaled(9)], "os.kill(0, 9)"),
    ("aborts", Python, &[Signaled(6)], "os.abort()"),
    ("reads from nowhere", Python, &[Signaled(11)], "ctypes.string_at(1)"),
    ("overflows the stack", C, &[Signaled(11)], "
int deep(volatile char *p) { volatile char a[4096]; a[0] = p[0]; return deep(a) + a[1]; }
int main(void) { char c = 1; return deep(&c); }"),
    // Other processes.
    ("ends its parent", Python, &[Exited(7)], "
try: os.kill(os.getppid(), 9)
except OSError: pass
time.sleep(0.1); sys.exit(7)"),
    ("ends all processes", Python, &[Exited(7)], "
try: os.kill(-1, 9)
except OSError: pass
time.sleep(0.1); sys.exit(7)"),
    ("ends a process outside", Python, &[Exited(1)], "attempt(os.kill, @VICTIM@, 9)"),
    ("ends the caller", Python, &[Exited(1)], "attempt(os.kill, @CALLER@, 9)"),
    ("asks for a process outside", Python, &[Exited(1)], "attempt(os.kill, @VICTIM@, 0)"),
    ("ends a process outside by its descriptor", Python, &[Exited(1)], "
fd = os.pidfd_open(@VICTIM@)
attempt(signal.pidfd_send_signal, fd, 9)"),
    ("queues a signal", C, &[Exited(1)], "
int main(void) { union sigval v = {0}; return attempt(sigqueue(@VICTIM@, SIGKILL, v)); }"),
    ("sends a signal to a thread outside", C, &[Exited(1)], "
int main(void) { return attempt(syscall(SYS_tkill, @VICTIM@, SIGKILL)); }"),
    ("makes a pipe send a signal", C, &[Exited(0), Exited(1)], "
int main(void) {
    int p[2]; if (pipe(p)) return 2;
    if (fcntl(p[0], F_SETOWN, @VICTIM@) || fcntl(p[0], F_SETSIG, SIGKILL)) return 1;
    fcntl(p[0], F_SETFL, O_ASYNC); write(p[1], \"x\", 1); usleep(100000); return 0; }"),
    ("joins the group of the launcher", C, &[Exited(7), Signaled(9)], "
int main(void) { setpgid(0, getppid()); kill(0, SIGKILL); usleep(100000); return 7; }"),
    ("traces its parent", C, &[Exited(1)], "
#include <sys/ptrace.h>
int main(void) { return attempt(ptrace(PTRACE_ATTACH, getppid(), 0, 0)); }"),
    ("reads another process's memory", Python, &[Exited(1)], "
buffer = ctypes.create_string_buffer(8)
class Iovec(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]
here = Iovec(ctypes.addressof(buffer), 8); there = Iovec(0x400000, 8)
attempt(libc.process_vm_readv, @CALLER@, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)"),
    ("writes its parent's memory", Python, &[Exited(1)], "attempt(open, f'/proc/{os.getppid()}/mem', 'r+b')"),
    ("reads its parent's environment", Python, &[Exited(1)], "attempt(open(f'/proc/{os.getppid()}/environ').read)"),
    ("reads the first process's environment", Python, &[Exited(1)], "attempt(open('/proc/1/environ').read)"),
    ("reads all environments", Python, &[Exited(0), Exited(1)], "
for name in os.listdir('/proc'):
    try: text = open(f'/proc/{name}/environ').read()
    except OSError: continue
    if 'key-of-the-caller' in text: escaped(name)"),
    ("takes a descriptor of another process", C, &[Exited(1)], "
int main(void) { int fd = syscall(SYS_pidfd_open, @VICTIM@, 0); return attempt(syscall(438, fd, 1, 0)); }"),
    ("limits another process", Python, &[Exited(1)], "attempt(resource.prlimit, @VICTIM@, resource.RLIMIT_CPU, (0, 0))"),
    ("slows another process down", Python, &[Exited(1)], "attempt(os.setpriority, os.PRIO_PROCESS, @VICTIM@, 19)"),
    ("slows all processes of the user down", C, &[Exited(0), Exited(1)], "
int main(void) { return setpriority(PRIO_USER, 0, 19) ? 1 : 0; }"),
    ("lets all files of the user wait", C, &[Exited(0), Exited(1)], "
int main(void) { return syscall(SYS_ioprio_set, 3, 0, 3 << 13) ? 1 : 0; }"),
    ("takes queues and semaphores of others", C, &[Exited(1)], "
int main(void) {
    long calls[] = { SYS_semop, SYS_semctl, SYS_semtimedop, SYS_msgsnd, SYS_msgrcv, SYS_msgctl, SYS_mq_unlink };
    for (int i = 0; i < sizeof calls / sizeof *calls; i++)
        if (syscall(calls[i], 0, 0, 0, 0, 0) != -1 || errno != EPERM) attempt(i);
    return 1; }"),
    ("makes a crash start a program outside", Python, &[Exited(1)], "
attempt(resource.setrlimit, resource.RLIMIT_CORE, (0, 0))"),
    ("lets others wait for a file", Python, &[Exited(1)], "
import fcntl
attempt(fcntl.fcntl, os.open('f', os.O_CREAT | os.O_RDONLY), 1024, fcntl.F_RDLCK)"),
    ("moves another process", Python, &[Exited(1)], "attempt(os.sched_setaffinity, @VICTIM@, {0})"),
    // Staying.
    ("interrupts the process that reports", Python, &[Exited(7)], "
for number in (signal.SIGSEGV, signal.SIGBUS):
    try: os.kill(1, number)
    except OSError: pass
time.sleep(0.1); sys.exit(7)"),
    ("limits the process that reports", Python, &[Exited(1)], "attempt(resource.prlimit, 1, resource.RLIMIT_CPU, (0, 0))"),
    ("leaves a daemon", Python, &[Exited(0)], "
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: time.sleep(600)
    os._exit(0)"),
    ("leaves a daemon that ignores signals", Python, &[Exited(0)], "
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
if os.fork() == 0:
    os.setsid(); libc.prctl(1, 0); time.sleep(600)"),
    ("leaves many children", Python, &[Exited(0)], "
for _ in range(20):
    if os.fork() == 0: time.sleep(600); os._exit(0)"),
    ("leaves a process that flees", C, &[Exited(0)], "
int main(void) {
    if (fork()) return 0;
    setsid();
    for (;;) { if (fork() > 0) _exit(0); } }"),
    ("leaves an orphan that adopts", Python, &[Exited(0)], "
if os.fork() == 0:
    libc.prctl(36, 1); os.setsid()
    if os.fork() == 0: time.sleep(600)
    time.sleep(600)"),
    ("closes its outputs and stays", Python, &[WallTime], "
for fd in (0, 1, 2): os.close(fd)
time.sleep(600)"),
    // Time, memory, processes, disk.
    ("spins", Python, &[CpuTime], "
while True: pass"),
    ("spins and ignores the signal", Python, &[CpuTime], "
signal.signal(signal.SIGXCPU, signal.SIG_IGN)
while True: pass"),
    ("spins in children that it forgets", Python, &[CpuTime], "
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    if os.fork() == 0:
        end = time.process_time() + 0.2
        while time.process_time() < end: pass
        os._exit(0)
    time.sleep(0.1)"),
    ("sleeps", Python, &[WallTime], "time.sleep(600)"),
    ("stops itself", Python, &[WallTime], "os.kill(os.getpid(), signal.SIGSTOP)"),
    ("waits with all signals blocked", Python, &[WallTime], "
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65)); signal.pause()"),
    ("waits for itself", Python, &[WallTime], "
lock = threading.Lock(); lock.acquire(); lock.acquire()"),
    ("forks without end", Python, &[CpuTime, Processes, Memory], "
while True:
    try: os.fork()
    except OSError: pass"),
    ("forks without end in C", C, &[CpuTime, Processes], "
int main(void) { for (;;) fork(); }"),
    ("starts threads without end", Python, &[Exited(1)], "
while True: threading.Thread(target=time.sleep, args=(600,), daemon=True).start()"),
    ("allocates 100 GB", Python, &[Exited(1)], "bytearray(100 << 30)"),
    ("allocates step by step", Python, &[Exited(1), Memory], "
kept = []
while True: kept.append(b'x' * 10_000_000)"),
    ("allocates in C", C, &[Exited(1), Memory], "
int main(void) { for (;;) { char *p = malloc(1 << 24); if (!p) return 1; memset(p, 1, 1 << 24); } }"),
    ("shares memory with itself", C, &[Memory, Exited(1)], "
int main(void) {
    size_t n = 2ul << 30;
    char *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return 1;
    for (size_t i = 0; i < n; i += 4096) p[i] = 1;
    puts(\"ESCAPED\"); return 0; }"),
    ("allocates in many processes", Python, &[Memory], "
for _ in range(8):
    if os.fork() == 0: kept = b'x' * 150_000_000; time.sleep(600)
time.sleep(600)"),
    ("keeps shared memory that it does not map", C, &[Exited(1)], "
int main(void) {
    size_t n = 16 << 20;
    for (int i = 0; i < 64; i++) {
        char *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) return 1;
        memset(p, 1, n); munmap(p + 4096, n - 4096); }
    puts(\"ESCAPED\"); return 0; }"),
    ("keeps memory of a device", C, &[Exited(1)], "
int main(void) { return attempt(open(\"/dev/zero\", O_RDWR)); }"),
    ("keeps memory in a pipe", C, &[Exited(1)], "
#include <sys/uio.h>
int main(void) {
    int p[2]; static char t[4096]; struct iovec v = { t, sizeof t };
    if (pipe(p)) return 2;
    return attempt(vmsplice(p[1], &v, 1, 0)); }"),
    ("fills the kernel's tables of pages", C, &[Memory, CpuTime], "
int main(void) {
    size_t n = 2ul << 40;
    char *p = mmap(0, n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return 1;
    int sum = 0;
    for (size_t i = 0; i < n; i += 2 << 20) sum += p[i];
    puts(\"ESCAPED\"); return sum; }"),
    ("asks for asynchronous files", Python, &[Exited(1)], "syscall(206, 1, ctypes.create_string_buffer(8))"),
    ("maps shared memory of System V", C, &[Exited(1)], "
#include <sys/shm.h>
int main(void) { return attempt(shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600)); }"),
    ("makes a file in memory", Python, &[Exited(1)], "attempt(os.memfd_create, 'x')"),
    ("opens files without end", Python, &[Exited(1)], "
kept = []
while True: kept.append(open('/dev/null'))"),
    ("raises its limits", Python, &[Exited(1)], "
attempt(resource.setrlimit, resource.RLIMIT_NPROC, (10_000, 10_000))"),
    ("fills the disk", Python, &[Exited(1), Scratch], "
for i in range(1000): open(f'f{i}', 'wb').write(b'x' * 4_000_000)
escaped('')"),
    ("fills the folder for temporary files", Python, &[Exited(1), Scratch], "
for i in range(1000): open(os.environ['TMPDIR'] + f'/f{i}', 'wb').write(b'x' * 4_000_000)
escaped('')"),
    ("fills the disk with files without names", Python, &[Exited(1), Scratch], "
kept = []
for i in range(100):
    f = open('f', 'wb'); os.unlink('f'); f.write(b'x' * 4_000_000); f.flush(); kept.append(f)
escaped('')"),
    ("fills the disk where its path is too long", Python, &[Exited(1), Scratch], "
for i in range(20): os.mkdir('x' * 250); os.chdir('x' * 250)
for i in range(1000): open(f'f{i}', 'wb').write(b'x' * 4_000_000)
escaped('')"),
    ("fills the disk where nobody can look", Python, &[Exited(1), Scratch], "
os.mkdir('x', 0o300); os.chdir('x')
for i in range(1000): open(f'f{i}', 'wb').write(b'x' * 4_000_000)
escaped('')"),
    ("writes a large file", Python, &[Exited(1)], "open('f', 'wb').write(b'x' * 9_000_000); escaped('')"),
    ("makes a large sparse file", Python, &[Exited(1)], "os.close(os.open('f', os.O_CREAT)); attempt(os.truncate, 'f', 1 << 40)"),
    ("makes many files", Python, &[Exited(1), Scratch], "
for i in range(1_000_000): open(f'f{i}', 'w').close()"),
    ("prints without end", Python, &[Output], "
while True: print('x' * 10_000)"),
    ("prints without end to both outputs", C, &[Output], "
int main(void) { static char t[65536]; for (;;) { write(1, t, sizeof t); write(2, t, sizeof t); } }"),
    // Files.
    ("reads /etc/passwd", Python, &[Exited(1)], "attempt(open('/etc/passwd').read)"),
    ("reads /etc/shadow", Python, &[Exited(1)], "attempt(open('/etc/shadow').read)"),
    ("reads the host's name", Python, &[Exited(1)], "attempt(open('/etc/hostname').read)"),
    ("lists keys", Python, &[Exited(1)], "attempt(os.listdir, '@HOME@/.ssh')"),
    ("lists the home folder", Python, &[Exited(1)], "attempt(os.listdir, '@HOME@')"),
    ("lists the root folder", Python, &[Exited(1)], "attempt(os.listdir, '/')"),
    ("reads a secret", Python, &[Exited(1)], "attempt(open('@CANARY@/secret').read)"),
    ("reads a secret through a link", Python, &[Exited(1)], "
os.symlink('@CANARY@/secret', 'link'); attempt(open('link').read)"),
    ("reads a secret through its parents", Python, &[Exited(1)], "attempt(open('../../../../..@CANARY@/secret').read)"),
    ("reads a secret through another root", Python, &[Exited(1)], "attempt(open('/proc/1/root@CANARY@/secret').read)"),
    ("reads a secret through its parent's root", Python, &[Exited(1)], "
attempt(open(f'/proc/{os.getppid()}/cwd/../../../..@CANARY@/secret').read)"),
    ("links a file from outside", Python, &[Exited(1)], "attempt(os.link, '@CANARY@/victim', 'link')"),
    ("creates a file outside", Python, &[Exited(1)], "attempt(open, '@CANARY@/new', 'w')"),
    ("appends to a file outside", Python, &[Exited(1)], "attempt(open, '@CANARY@/victim', 'a')"),
    ("empties a file outside", Python, &[Exited(1)], "attempt(os.truncate, '@CANARY@/victim', 0)"),
    ("empties a file while reading it", Python, &[Exited(1)], "attempt(os.open, '@CANARY@/victim', os.O_RDONLY | os.O_TRUNC)"),
    ("deletes a file outside", Python, &[Exited(1)], "attempt(os.remove, '@CANARY@/victim')"),
    ("renames a file outside", Python, &[Exited(1)], "attempt(os.rename, '@CANARY@/victim', '@CANARY@/moved')"),
    ("makes a folder outside", Python, &[Exited(1)], "attempt(os.mkdir, '@CANARY@/folder')"),
    ("changes permissions outside", Python, &[Exited(1)], "attempt(os.chmod, '@CANARY@/victim', 0o600)"),
    ("changes permissions of the folder outside", Python, &[Exited(1)], "attempt(os.chmod, '@CANARY@', 0o700)"),
    ("changes times outside", Python, &[Exited(1)], "attempt(os.utime, '@CANARY@/victim', (1, 1))"),
    ("changes attributes outside", Python, &[Exited(1)], "attempt(os.setxattr, '@CANARY@/victim', 'user.x', b'x')"),
    ("changes the owner outside", Python, &[Exited(1)], "attempt(os.chown, '@CANARY@/victim', os.getuid(), os.getgid())"),
    ("writes into the interpreter", Python, &[Exited(1)], "attempt(open, os.path.realpath('/usr/bin/python3'), 'r+b')"),
    ("writes into /usr", Python, &[Exited(1)], "attempt(os.mkdir, '/usr/lib/@TOKEN@')"),
    ("writes into the root folder", Python, &[Exited(1)], "attempt(os.mkdir, '/@TOKEN@')"),
    ("writes into the folder above", Python, &[Exited(1)], "attempt(open, '../@TOKEN@', 'w')"),
    ("writes shared memory", Python, &[Exited(0), Exited(1)], "open('/dev/shm/@TOKEN@', 'w').write('x')"),
    ("writes /tmp", Python, &[Exited(0), Exited(1)], "open('/tmp/@TOKEN@', 'w').write('x')"),
    ("makes a device", Python, &[Exited(1)], "attempt(os.mknod, 'disk', stat.S_IFBLK | 0o600, os.makedev(254, 0))"),
    ("reads a disk", Python, &[Exited(1)], "attempt(open, '/dev/vda', 'rb')"),
    ("reads memory", Python, &[Exited(1)], "attempt(open, '/dev/mem', 'rb')"),
    ("opens the terminal", Python, &[Exited(1)], "attempt(open, '/dev/tty', 'r+b')"),
    ("types into the terminal", C, &[Exited(1)], "
#include <sys/ioctl.h>
int main(void) { for (int fd = 0; fd < 3; fd++) if (!ioctl(fd, TIOCSTI, \"x\")) attempt(0); return 1; }"),
    ("changes settings of the kernel", Python, &[Exited(1)], "attempt(open, '/proc/sys/kernel/core_pattern', 'w')"),
    ("changes a control group", Python, &[Exited(1)], "attempt(open, '/sys/fs/cgroup/cgroup.procs', 'w')"),
    ("watches a folder outside", Python, &[Exited(1)], "
fd = libc.inotify_init(); attempt(libc.inotify_add_watch, fd, b'@CANARY@', 0xfff)"),
    ("finds files that are open", Python, &[Exited(0)], "
for fd in range(3, 200):
    try: os.fstat(fd)
    except OSError: continue
    escaped(fd)"),
    ("finds keys in the environment", Python, &[Exited(0)], "
if 'key-of-the-caller' in str(os.environ): escaped('')"),
    // The network.
    ("connects by TCP", Python, &[Exited(1)], "attempt(socket.create_connection, ('127.0.0.1', @TCP@), 2)"),
    ("sends by UDP", Python, &[Exited(1)], "
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); attempt(s.sendto, b'x', ('127.0.0.1', @UDP@))"),
    ("connects to a socket in the file system", Python, &[Exited(1)], "
s = socket.socket(socket.AF_UNIX); attempt(s.connect, '@CANARY@/socket')"),
    ("connects to an abstract socket", Python, &[Exited(1)], "
s = socket.socket(socket.AF_UNIX); attempt(s.connect, '\\0@ABSTRACT@')"),
    ("sends to a socket from a pair", Python, &[Exited(1)], "
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); attempt(a.sendto, b'x', '@CANARY@/socket')"),
    ("listens", Python, &[Exited(1)], "attempt(socket.create_server, ('127.0.0.1', 0))"),
    ("looks a name up", Python, &[Exited(1)], "attempt(socket.getaddrinfo, 'localhost.localdomain', 80)"),
    ("opens a raw socket", Python, &[Exited(1)], "attempt(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1)"),
    ("opens a netlink socket", Python, &[Exited(1)], "attempt(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW, 0)"),
    // Privileges and the kernel.
    ("becomes root", Python, &[Exited(1)], "attempt(os.setuid, 0)"),
    ("leaves its groups", Python, &[Exited(1)], "attempt(os.setgroups, [])"),
    ("runs a program that changes the user", Python, &[Exited(1)], "
for program in ('su', 'passwd', 'mount', 'newgrp'):
    done = subprocess.run([program], stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode == 0 and program != 'mount': escaped(program)
status = open('/proc/self/status').read() if os.path.exists('/proc/self/status') else ''
if status and 'CapEff:\\t0000000000000000' not in status: escaped(status)
sys.exit(1)"),
    ("makes a user namespace", C, &[Exited(1)], "int main(void) { return attempt(unshare(CLONE_NEWUSER)); }"),
    ("makes a namespace by clone", C, &[Exited(1)], "
int main(void) { return attempt(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)); }"),
    ("makes a namespace by clone3", C, &[Exited(1)], "
int main(void) {
    uint64_t a[11] = { CLONE_NEWUSER, 0, 0, 0, SIGCHLD };
    return attempt(syscall(435, a, sizeof a)); }"),
    ("mounts", Python, &[Exited(1)], "attempt(libc.mount, b'x', b'.', b'tmpfs', 0, None)"),
    ("mounts with the new calls", Python, &[Exited(1)], "syscall(430, b'tmpfs', 0)"),
    ("unmounts", Python, &[Exited(1)], "attempt(libc.umount2, b'/proc', 2)"),
    ("makes its root writable", Python, &[Exited(1)], "attempt(libc.mount, None, b'/', None, 32 | 4096, None)"),
    ("changes its root", Python, &[Exited(1)], "attempt(os.chroot, '.')"),
    ("opens a file by its handle", Python, &[Exited(1)], "syscall(304, -100, b'x' * 16, 0)"),
    ("uses io_uring", Python, &[Exited(1)], "syscall(425, 1, ctypes.create_string_buffer(200))"),
    ("loads a program into the kernel", Python, &[Exited(1)], "syscall(321, 0, ctypes.create_string_buffer(128), 128)"),
    ("handles page faults", Python, &[Exited(1)], "syscall(323, 1)"),
    ("counts events", Python, &[Exited(1)], "syscall(298, ctypes.create_string_buffer(128), 0, -1, -1, 0)"),
    ("uses keyrings", Python, &[Exited(1)], "syscall(250, 0, -3, 1)"),
    ("loads a module", Python, &[Exited(1)], "syscall(313, 0, b'', 0)"),
    ("restarts the machine", Python, &[Exited(1)], "syscall(169, 0xfee1dead, 672274793, 0x89abcdef)"),
    ("renames the host", Python, &[Exited(1)], "attempt(socket.sethostname, 'x')"),
    ("sets the clock", Python, &[Exited(1)], "attempt(time.clock_settime, time.CLOCK_REALTIME, 0)"),
    ("uses a call that is newer than the filter", Python, &[Exited(1)], "syscall(463, 0, 0, 0, 0, 0, 0)"),
    ("uses calls of the x32 interface", C, &[Exited(1)], "
int main(void) { return attempt(syscall(0x40000000 | 41, AF_INET, SOCK_STREAM, 0)); }"),
    ("uses calls of 32 bits", C, &[Signaled(31), Signaled(11)], "
int main(void) {
    int result;
    __asm__ volatile(\"int $0x80\" : \"=a\"(result) : \"a\"(359), \"b\"(2), \"c\"(1), \"d\"(0) : \"memory\");
    return attempt(result < 0 ? -1 : result); }"),
    ("asks for a socket without the library", C, &[Exited(1)], "
int main(void) { return attempt(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0)); }"),
    ("removes the filter", C, &[Exited(1)], "
#include <sys/prctl.h>
int main(void) {
    prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0); prctl(PR_SET_SECCOMP, 0, 0, 0, 0);
    return attempt(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0)); }"),
];
