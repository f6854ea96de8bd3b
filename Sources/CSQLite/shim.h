#ifndef BELLHOP_CSQLITE_SHIM_H
#define BELLHOP_CSQLITE_SHIM_H

#include <sqlite3.h>

// Swift cannot call variadic C functions; each wrapper fixes one form of them.

static inline int csqlite_config_memstatus(int enabled) {
    return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, enabled);
}

static inline int csqlite_db_config_flag(sqlite3 *db, int option, int enabled) {
    return sqlite3_db_config(db, option, enabled, (int *)0);
}

#endif
