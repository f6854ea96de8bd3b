/* Yardstick: the duration of one durable commit. Repeatedly updates a row of the given size between BEGIN IMMEDIATE and
 * COMMIT with synchronous=FULL in WAL mode, with prepared statements. Prints one JSON object with the percentiles. */
#include <sqlite3.h>

#include "../Clients/load.h"

enum { ROWS = 1000, ROW_BYTES = 100 };

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
    if (argc != 3) die("usage: flushed_commit DATABASE COMMITS");
    if (sqlite3_open(argv[1], &database) != SQLITE_OK) die("cannot open %s", argv[1]);
    run("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        "CREATE TABLE rows (id INTEGER PRIMARY KEY, content TEXT NOT NULL) STRICT");
    sqlite3_stmt *begin = prepare("BEGIN IMMEDIATE"), *commit = prepare("COMMIT");
    sqlite3_stmt *write = prepare("INSERT INTO rows VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET content = excluded.content");
    static Histogram times;
    char content[ROW_BYTES];
    for (int i = 0; i < atoi(argv[2]); i++) {
        uint64_t start = now_ns();
        memset(content, 'a' + i % 26, sizeof content);
        step(begin);
        sqlite3_bind_int(write, 1, i * 7919 % ROWS);
        sqlite3_bind_text(write, 2, content, sizeof content, SQLITE_STATIC);
        step(write);
        step(commit);
        histogram_add(&times, now_ns() - start);
    }
    printf("{");
    histogram_print("commitUs", &times);
    printf("}\n");
    return 0;
}
