/* Yardstick: the cost of a batch of table changes in SQLite alone. Inserts the rows that the service stores for a
 * change (its event, and one route for its table) in BEGIN IMMEDIATE … COMMIT with synchronous=FULL for each batch,
 * with prepared statements. It does not parse, decide or respond. Prints one JSON object. */
#include <sqlite3.h>

#include "../Clients/load.h"

static sqlite3 *database;

static void run(const char *sql) {
    char *message = NULL;
    if (sqlite3_exec(database, sql, NULL, NULL, &message) != SQLITE_OK) die("%s: %s", sql, message);
}

static sqlite3_stmt *prepare(const char *sql) {
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) die("%s: %s", sql, sqlite3_errmsg(database));
    return statement;
}

static void step(sqlite3_stmt *statement) {
    if (sqlite3_step(statement) != SQLITE_DONE) die("%s", sqlite3_errmsg(database));
    sqlite3_reset(statement);
}

int main(int argc, char **argv) {
    if (argc != 5) die("usage: batch_commit DATABASE CHANGES-PER-BATCH BYTES-OF-AN-EVENT SECONDS");
    int batch = atoi(argv[2]), bytes = atoi(argv[3]);
    double seconds = atof(argv[4]);
    if (sqlite3_open(argv[1], &database) != SQLITE_OK) die("cannot open %s", argv[1]);
    run("PRAGMA journal_mode=WAL");
    run("PRAGMA synchronous=FULL");
    run("CREATE TABLE events (sequence INTEGER PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, topic TEXT,"
        " audience TEXT NOT NULL, collapse INTEGER NOT NULL, data TEXT NOT NULL, created_at INTEGER NOT NULL) STRICT");
    run("CREATE TABLE event_routes (tenant TEXT NOT NULL, route TEXT NOT NULL, sequence INTEGER NOT NULL,"
        " PRIMARY KEY (tenant, route, sequence)) STRICT, WITHOUT ROWID");
    sqlite3_stmt *event = prepare("INSERT INTO events VALUES (?, 'bench', 'table:change', '@public:items', '', 0, ?, ?)");
    sqlite3_stmt *route = prepare("INSERT INTO event_routes VALUES ('bench', '#@public:items', ?)");
    char *data = must(malloc((size_t)bytes));
    memset(data, 'x', (size_t)bytes);
    uint64_t begin = now_ns(), cpu = cpu_of_this_process_ns();
    sqlite3_int64 sequence = 0;
    while ((double)(now_ns() - begin) / 1e9 < seconds) {
        run("BEGIN IMMEDIATE");
        for (int i = 0; i < batch; i++) {
            sqlite3_bind_int64(event, 1, ++sequence);
            sqlite3_bind_text(event, 2, data, bytes, SQLITE_STATIC);
            sqlite3_bind_int64(event, 3, (sqlite3_int64)(now_ns() / 1000));
            step(event);
            sqlite3_bind_int64(route, 1, sequence);
            step(route);
        }
        run("COMMIT");
    }
    double took = (double)(now_ns() - begin) / 1e9;
    printf("{\"changes\":%lld,\"seconds\":%.3f,\"changesPerSecond\":%.1f,\"cpuUsPerChange\":%.2f}\n", (long long)sequence, took,
           (double)sequence / took, (double)(cpu_of_this_process_ns() - cpu) / 1e3 / (double)sequence);
    return 0;
}
