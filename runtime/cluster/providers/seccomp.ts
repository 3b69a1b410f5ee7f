/**
 * Docker takes a filter of system calls as a whole or not at all. This one permits what the engine's own filter permits
 * to a container with our capabilities on 64-bit machines (Docker's documentation, "Seccomp security profiles"; moby's
 * default.json), and besides the user namespaces that a browser's own sandbox is made of: `clone` and `unshare` with any
 * flag, and `chroot` into an empty folder. A namespace gives its owner no mount, no key, no module and no tracing beyond
 * what is permitted here.
 */
const PERMITTED = `
  accept accept4 access adjtimex alarm bind brk cachestat capget capset chdir chmod chown clock_adjtime clock_getres
  clock_gettime clock_nanosleep close close_range connect copy_file_range creat dup dup2 dup3 epoll_create epoll_create1
  epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2
  fadvise64 fallocate fanotify_mark fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr
  flistxattr flock fork fremovexattr fsetxattr fstat fstatfs fsync ftruncate futex futex_requeue futex_wait futex_waitv
  futex_wake futimesat get_robust_list get_thread_area getcpu getcwd getdents getdents64 getegid geteuid getgid
  getgroups getitimer getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid getresuid getrlimit
  getrusage getsid getsockname getsockopt gettid gettimeofday getuid getxattr getxattrat inotify_add_watch inotify_init
  inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit ioctl ioprio_get
  ioprio_set kill landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lgetxattr link linkat listen
  listmount listxattr listxattrat llistxattr lremovexattr lseek lsetxattr lstat madvise map_shadow_stack membarrier
  memfd_create memfd_secret mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap mprotect mq_getsetattr
  mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink mremap mseal msgctl msgget msgrcv msgsnd msync munlock
  munlockall munmap name_to_handle_at nanosleep newfstatat open openat openat2 pause pidfd_open pidfd_send_signal pipe
  pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll prctl pread64 preadv preadv2 prlimit64 process_mrelease pselect6
  pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv recvfrom recvmmsg recvmsg remap_file_pages
  removexattr removexattrat rename renameat renameat2 restart_syscall riscv_hwprobe rmdir rseq rt_sigaction
  rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo
  sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler
  sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp select
  semctl semget semop semtimedop sendfile sendmmsg sendmsg sendto set_robust_list set_thread_area set_tid_address
  setfsgid setfsuid setgid setgroups setitimer setpgid setpriority setregid setresgid setresuid setreuid setrlimit
  setsid setsockopt setuid setxattr setxattrat shmat shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4
  socketpair splice stat statfs statmount statx symlink symlinkat sync sync_file_range syncfs sysinfo tee tgkill time
  timer_create timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime
  times tkill truncate umask uname unlink unlinkat uretprobe utime utimensat utimes vfork vmsplice wait4 waitid write
  writev
`;
/** Calls for the agent alone, which may inspect sleeping tasks (SYS_PTRACE). */
const INSPECTING = 'kcmp pidfd_getfd process_madvise process_vm_readv process_vm_writev ptrace';
const NAMESPACES = 'chroot clone unshare';

/** AF_VSOCK leads out of the network namespace of a virtual machine; 38 is AF_ALG. */
const SOCKET_FAMILIES = [
  { value: 38, op: 'SCMP_CMP_LT' },
  { value: 39, op: 'SCMP_CMP_EQ' },
  { value: 40, op: 'SCMP_CMP_GT' },
];
/** Linux, 32-bit words, addresses not at random, both; and the question which it is. */
const PERSONALITIES = [0, 8, 0x20000, 0x20008, 0xffffffff];
const ENOSYS = 38;

const names = (list: string): string[] => list.trim().split(/\s+/);

/** The filter of a container whose browser keeps its own sandbox, as `SecurityOpt` takes it after `seccomp=`. */
export const withNamespaces = (): string =>
  JSON.stringify({
    defaultAction: 'SCMP_ACT_ERRNO',
    defaultErrnoRet: 1,
    architectures: ['SCMP_ARCH_X86_64', 'SCMP_ARCH_AARCH64'],
    syscalls: [
      { names: names(`${PERMITTED} ${INSPECTING} ${NAMESPACES} arch_prctl`), action: 'SCMP_ACT_ALLOW' },
      // The C library goes on with `clone`.
      { names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: ENOSYS },
      ...SOCKET_FAMILIES.map(({ value, op }) => ({
        names: ['socket'],
        action: 'SCMP_ACT_ALLOW',
        args: [{ index: 0, value, op }],
      })),
      ...PERSONALITIES.map((value) => ({
        names: ['personality'],
        action: 'SCMP_ACT_ALLOW',
        args: [{ index: 0, value, op: 'SCMP_CMP_EQ' }],
      })),
    ],
  });
