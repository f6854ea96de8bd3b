#ifndef BELLHOP_CSQLITE_SHIM_H
#define BELLHOP_CSQLITE_SHIM_H

#include <sqlite3.h>
#include <stdint.h>
#include <sys/resource.h>

// Swift cannot call variadic C functions; each wrapper fixes one form of them.

static inline int csqlite_config_memstatus(int enabled) {
    return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, enabled);
}

static inline int csqlite_db_config_flag(sqlite3 *db, int option, int enabled) {
    return sqlite3_db_config(db, option, enabled, (int *)0);
}

// The size that a file of this process may have. The names of limits are imported differently by each C library.
static inline uint64_t csqlite_file_bytes_max(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 ? (uint64_t)limit.rlim_cur : UINT64_MAX;
}

#endif
