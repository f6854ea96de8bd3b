#ifndef BELLHOP_CSQLITE_SHIM_H
#define BELLHOP_CSQLITE_SHIM_H

#include <sqlite3.h>
#include <stdint.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

// Swift cannot call variadic C functions; each wrapper provides one fixed form.

static inline int csqlite_config_memstatus(int enabled) {
    return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, enabled);
}

static inline int csqlite_db_config_flag(sqlite3 *db, int option, int enabled) {
    return sqlite3_db_config(db, option, enabled, (int *)0);
}

// Returns the maximum size of a file of this process. It is written in C because each C library's limit names are imported
// into Swift differently.
static inline uint64_t csqlite_file_bytes_max(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 ? (uint64_t)limit.rlim_cur : UINT64_MAX;
}

// Gives the calling thread, and the threads that it starts from now on, the rights of a user on files (setfsuid(2)). Other
// threads keep theirs: the C library's setgroups would change the groups of all, the system call changes this one's.
static inline int csqlite_use_files_as(uid_t user, gid_t group, int count, const gid_t *groups) {
    if (syscall(SYS_setgroups, count, groups) != 0) return -1;
    setfsgid(group);
    setfsuid(user);
    return (uid_t)setfsuid((uid_t)-1) == user && (gid_t)setfsgid((gid_t)-1) == group ? 0 : -1;
}

#endif
