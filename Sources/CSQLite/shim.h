#ifndef BELLHOP_CSQLITE_SHIM_H
#define BELLHOP_CSQLITE_SHIM_H

#include <sqlite3.h>
#include <stdint.h>
#include <sys/resource.h>

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

#endif
