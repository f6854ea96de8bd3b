#include <sqlite3.h>

/* SQLITE_TRANSIENT is a cast of -1, which Swift does not import; the variadic sqlite3_config likewise. */
static inline int peer_bind_text(sqlite3_stmt *statement, int index, const char *text, int bytes) {
    return sqlite3_bind_text(statement, index, text, bytes, SQLITE_TRANSIENT);
}

static inline int peer_disable_memory_statistics(void) {
    return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}
