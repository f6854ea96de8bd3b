/* Yardstick: durable notifications with one commit per request.
 *
 * The same HTTP server shape as static_server; each POST does BEGIN IMMEDIATE, the inserts that a notification costs
 * (the row, the count of its owner, two rows of the event log), COMMIT with synchronous=FULL in WAL mode, and only then
 * answers 201. Statements are prepared once; JSON is not parsed: the body is stored as it came, which flatters the
 * yardstick. One writer, because SQLite has one.
 * Usage: commit_server PORT DATABASE */
#include "mhd_loop.h"
#include <sqlite3.h>
#include <time.h>

#define BODY_BYTES_MAX 8192

typedef struct {
    size_t length;
    char body[BODY_BYTES_MAX];
} Upload;

static sqlite3 *database;
static sqlite3_stmt *begin, *insert, *count, *log_event, *commit;
static sqlite3_int64 number;

static void must(int status) {
    if (status == SQLITE_OK || status == SQLITE_DONE || status == SQLITE_ROW) return;
    fprintf(stderr, "sqlite: %s\n", sqlite3_errmsg(database));
    exit(1);
}

static void run(sqlite3_stmt *statement) {
    must(sqlite3_step(statement));
    sqlite3_reset(statement);
}

static sqlite3_stmt *prepared(const char *sql) {
    sqlite3_stmt *statement;
    must(sqlite3_prepare_v3(database, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL));
    return statement;
}

static void text(sqlite3_stmt *statement, int index, const char *value, size_t bytes) {
    must(sqlite3_bind_text(statement, index, value, (int)bytes, SQLITE_STATIC));
}

static void open_database(const char *path) {
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    must(sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL));
    must(sqlite3_exec(database,
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        "CREATE TABLE IF NOT EXISTS notifications (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, user_id TEXT NOT NULL,"
        " event_id TEXT NOT NULL, category TEXT NOT NULL, data TEXT NOT NULL, created_at INTEGER NOT NULL,"
        " UNIQUE (tenant, user_id, event_id)) WITHOUT ROWID;"
        "CREATE INDEX IF NOT EXISTS by_user ON notifications (tenant, user_id, created_at);"
        "CREATE TABLE IF NOT EXISTS counts (tenant TEXT NOT NULL, user_id TEXT NOT NULL, bell INTEGER NOT NULL,"
        " version INTEGER NOT NULL, PRIMARY KEY (tenant, user_id)) WITHOUT ROWID;"
        "CREATE TABLE IF NOT EXISTS events (sequence INTEGER PRIMARY KEY, tenant TEXT NOT NULL, audience TEXT NOT NULL,"
        " type TEXT NOT NULL, payload TEXT NOT NULL, created_at INTEGER NOT NULL);", NULL, NULL, NULL));
    begin = prepared("BEGIN IMMEDIATE");
    insert = prepared("INSERT INTO notifications VALUES (?, 'default', ?, ?, 'visit', ?, ?)");
    count = prepared("INSERT INTO counts VALUES ('default', ?, 1, 1) ON CONFLICT DO UPDATE SET bell = bell + 1, version = version + 1");
    log_event = prepared("INSERT INTO events (tenant, audience, type, payload, created_at) VALUES ('default', ?, ?, ?, ?)");
    commit = prepared("COMMIT");
}

static void store(const Upload *upload) {
    char id[64], user[64], badges[128];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    sqlite3_int64 at = (sqlite3_int64)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    size_t id_bytes = (size_t)snprintf(id, sizeof id, "%llx-%llx", (unsigned long long)at, (unsigned long long)++number);
    size_t user_bytes = (size_t)snprintf(user, sizeof user, "user:u%llu", (unsigned long long)(number % 1000));
    size_t badge_bytes = (size_t)snprintf(badges, sizeof badges, "{\"messages\":0,\"requests\":0,\"bell\":%llu}", (unsigned long long)number);
    run(begin);
    text(insert, 1, id, id_bytes);
    text(insert, 2, user + 5, user_bytes - 5);
    text(insert, 3, id, id_bytes);
    text(insert, 4, upload->body, upload->length);
    sqlite3_bind_int64(insert, 5, at);
    run(insert);
    text(count, 1, user + 5, user_bytes - 5);
    run(count);
    text(log_event, 1, user, user_bytes);
    sqlite3_bind_int64(log_event, 4, at);
    text(log_event, 2, "notification:created", 20);
    text(log_event, 3, upload->body, upload->length);
    run(log_event);
    text(log_event, 2, "badges:update", 13);
    text(log_event, 3, badges, badge_bytes);
    run(log_event);
    run(commit);
}

static enum MHD_Result answer(void *closure, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *body, size_t *body_bytes, void **slot) {
    (void)closure, (void)url, (void)method, (void)version;
    Upload *upload = *slot;
    if (!upload) {
        upload = *slot = malloc(sizeof *upload);
        if (!upload) return MHD_NO;
        upload->length = 0;
        return MHD_YES;
    }
    if (*body_bytes) {
        if (upload->length + *body_bytes > BODY_BYTES_MAX) return MHD_NO;
        memcpy(upload->body + upload->length, body, *body_bytes);
        upload->length += *body_bytes;
        *body_bytes = 0;
        return MHD_YES;
    }
    store(upload);
    struct MHD_Response *response = MHD_create_response_from_buffer(upload->length, upload->body, MHD_RESPMEM_MUST_COPY);
    MHD_add_response_header(response, "Content-Type", "application/json");
    enum MHD_Result result = MHD_queue_response(connection, 201, response);
    MHD_destroy_response(response);
    return result;
}

static void finished(void *closure, struct MHD_Connection *connection, void **slot, enum MHD_RequestTerminationCode code) {
    (void)closure, (void)connection, (void)code;
    free(*slot);
    *slot = NULL;
}

int main(int argc, char **argv) {
    if (argc != 3) return fprintf(stderr, "usage: commit_server PORT DATABASE\n"), 2;
    open_database(argv[2]);
    return serve_forever(atoi(argv[1]), answer, finished);
}
