#include <sqlite3.h>

/* Swift does not import SQLITE_TRANSIENT, which is a cast of -1, or the variadic sqlite3_config. */
static inline int peer_bind_text(sqlite3_stmt *statement, int index, const char *text, int bytes) {
    return sqlite3_bind_text(statement, index, text, bytes, SQLITE_TRANSIENT);
}

static inline int peer_disable_memory_statistics(void) {
    return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}
