/* Yardstick: durable notifications in a C program without any other function.
 *
 * It uses the libmicrohttpd loop of static_server. For each POST it writes the rows that the service writes for a
 * notification of `POST /v1/events`, with the service's PRAGMAs, into tables that the service has made. The harness
 * passes a copy of its empty database and compares the rows that both add to it. One writer thread takes up to 512
 * waiting requests between BEGIN IMMEDIATE and COMMIT with synchronous=FULL in WAL mode, then answers all of them with
 * 201. The HTTP thread reads meanwhile. A third thread checkpoints the WAL, as in the service. Statements are prepared
 * once. It searches the JSON for three members. It has no tokens, no policies, no streams and no savepoints, all of
 * which favours the yardstick.
 *
 *   Usage: notification_server PORT DATABASE */
#include "mhd_loop.h"
#include <pthread.h>
#include <sqlite3.h>
#include <sys/eventfd.h>
#include <time.h>

enum { BODY_BYTES_MAX = 2048, ANSWER_BYTES_MAX = 2048, ID_BYTES = 26, GROUP_MAX = 512, CHECKPOINT_PAGES = 2000 };
#define TENANT "bench"

typedef struct {
    const char *bytes;
    int length;
} Text;

typedef struct Request {
    struct Request *next;
    struct MHD_Connection *connection;
    enum { READING, STORING, STORED } state;
    size_t body_bytes, answer_bytes, badges_bytes;
    char id[ID_BYTES + 1], route[64];
    sqlite3_int64 at;
    char body[BODY_BYTES_MAX + 1], answer[ANSWER_BYTES_MAX], badges[256];
} Request;

typedef struct {
    pthread_mutex_t mutex;
    Request *first, **last;
} Queue;

static Queue waiting = {.mutex = PTHREAD_MUTEX_INITIALIZER, .last = &waiting.first};
static Queue stored = {.mutex = PTHREAD_MUTEX_INITIALIZER, .last = &stored.first};
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static Waker waker;

static void push(Queue *queue, Request *first, Request *last) {
    pthread_mutex_lock(&queue->mutex);
    last->next = NULL;
    *queue->last = first;
    queue->last = &last->next;
    pthread_mutex_unlock(&queue->mutex);
}

static Request *take_all(Queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    Request *first = queue->first;
    queue->first = NULL;
    queue->last = &queue->first;
    pthread_mutex_unlock(&queue->mutex);
    return first;
}

/* -- SQLite ------------------------------------------------------------------------------------------------------------- */

static sqlite3 *database;
static const char *database_path;
static sqlite3_stmt *begin, *inbox, *notification, *badges, *counter, *event, *record, *route, *commit;
static int wal_pages, checkpoint_wanted;
static pthread_mutex_t checkpoint_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t checkpoint_due = PTHREAD_COND_INITIALIZER;
static int is_checkpoint_due;

static void must(int status) {
    if (status == SQLITE_OK || status == SQLITE_DONE || status == SQLITE_ROW) return;
    fprintf(stderr, "sqlite: %s\n", sqlite3_errmsg(database));
    exit(1);
}

static sqlite3_stmt *prepared(const char *sql) {
    sqlite3_stmt *statement;
    must(sqlite3_prepare_v3(database, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL));
    return statement;
}

static void run(sqlite3_stmt *statement) {
    must(sqlite3_step(statement));
    sqlite3_reset(statement);
}

/* Steps to the one row of a statement; the caller resets it. */
static void step_to_row(sqlite3_stmt *statement) {
    int status = sqlite3_step(statement);
    if (status != SQLITE_ROW) must(status == SQLITE_DONE ? SQLITE_ERROR : status);
}

static void finish(sqlite3_stmt *statement) {
    must(sqlite3_step(statement));
    sqlite3_reset(statement);
}

static void bind_text(sqlite3_stmt *statement, int index, Text text) {
    must(sqlite3_bind_text(statement, index, text.bytes, text.length, SQLITE_STATIC));
}

static int note_pages(void *closure, sqlite3 *connection, const char *name, int pages) {
    (void)closure, (void)connection, (void)name;
    wal_pages = pages;
    return SQLITE_OK;
}

static void open_database(void) {
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    must(sqlite3_open_v2(database_path, &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL));
    sqlite3_busy_timeout(database, 5000);
    must(sqlite3_exec(database,
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16384; PRAGMA journal_size_limit = 33554432;"
        "PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY", NULL, NULL, NULL));
    sqlite3_wal_hook(database, note_pages, NULL);
    begin = prepared("BEGIN IMMEDIATE");
    inbox = prepared(
        "INSERT INTO inboxes (tenant, user_id, kept, evicting, sound, haptics, time_zone, newest_at)"
        " VALUES ('" TENANT "', ?1, 1, 0, 1, 1, 'UTC', ?2) ON CONFLICT (tenant, user_id) DO UPDATE SET"
        " newest_at = max(newest_at + 1000, excluded.newest_at), kept = kept + 1 RETURNING sound, haptics, newest_at");
    notification = prepared(
        "INSERT INTO notifications (tenant, user_id, id, event_id, type, category, priority, title, message, lock_screen, data,"
        " sounds, vibrates, created_at, is_ranked) VALUES ('" TENANT "', ?1, ?2, ?3, 'VISIT', 'visit', 2, 'Check-up Scheduled',"
        " 'Your check-up at St. Mary is confirmed', 'You have a new update', ?4, ?5, ?6, ?7, 0)"
        " ON CONFLICT (tenant, user_id, event_id) WHERE event_id IS NOT NULL DO NOTHING");
    badges = prepared(
        "INSERT INTO badges (tenant, user_id, messages, requests, bell, version, updated_at)"
        " VALUES ('" TENANT "', ?1, 0, 0, 1, 1, ?2)"
        " ON CONFLICT (tenant, user_id) DO UPDATE SET bell = bell + 1, version = version + 1, updated_at = excluded.updated_at"
        " RETURNING messages, requests, bell, version");
    counter = prepared("UPDATE event_counter SET newest = newest + ? WHERE id = 1 RETURNING newest");
    event = prepared(
        "INSERT INTO events (sequence, tenant, name, topic, audience, collapse, data, created_at)"
        " VALUES (?1, '" TENANT "', ?2, NULL, ?3, ?4, ?5, ?6)");
    /* If the log has records, the events of one transaction are one row, that of the last event. */
    if (sqlite3_table_column_metadata(database, NULL, "events", "earlier", NULL, NULL, NULL, NULL, NULL) == SQLITE_OK)
        record = prepared(
            "INSERT INTO events (sequence, tenant, name, topic, audience, collapse, data, created_at, earlier, step)"
            " VALUES (?1, '" TENANT "', ?2, NULL, ?3, ?4, ?5, ?6, ?7, 2)");
    route = prepared("INSERT INTO event_routes (tenant, route, sequence) VALUES ('" TENANT "', ?1, ?2)");
    commit = prepared("COMMIT");
}

/* Returns the value of the first member with this name, which is a string without escapes. */
static Text member(const char *body, const char *name) {
    const char *found = strstr(body, name);
    if (found) found = strchr(found + strlen(name), ':');
    if (found) found = strchr(found, '"');
    const char *end = found ? strchr(found + 1, '"') : NULL;
    return end ? (Text){found + 1, (int)(end - found - 1)} : (Text){"", 0};
}

/* Makes an id as long as the service's and ordered by time: 48 bits of milliseconds, 80 bits of a counter. */
static void make_id(char *id, sqlite3_int64 at) {
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
    static uint64_t made;
    uint64_t time = (uint64_t)at / 1000, number = ++made;
    for (int i = 9; i >= 0; i--, time >>= 5) id[i] = digits[time & 31];
    for (int i = ID_BYTES - 1; i >= 10; i--, number >>= 5) id[i] = digits[number & 31];
    id[ID_BYTES] = 0;
}

static size_t stamp(char *out, sqlite3_int64 at) {
    static time_t known = -1;
    static char second[32];
    time_t seconds = (time_t)(at / 1000000);
    if (seconds != known) {
        struct tm parts;
        strftime(second, sizeof second, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &parts));
        known = seconds;
    }
    return (size_t)sprintf(out, "%s.%03dZ", second, (int)(at / 1000 % 1000));
}

/* Writes the user's rows; the events of all requests follow together, as in the service. Returns false for a known
 * event. */
static int store(Request *request) {
    Text event_id = member(request->body, "\"id\""), user = member(request->body, "\"userId\"");
    Text visit = member(request->body, "\"visitId\"");
    char data[128], created[40];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    request->at = (sqlite3_int64)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    bind_text(inbox, 1, user);
    sqlite3_bind_int64(inbox, 2, request->at);
    step_to_row(inbox);
    int sounds = sqlite3_column_int(inbox, 0), vibrates = sqlite3_column_int(inbox, 1);
    make_id(request->id, sqlite3_column_int64(inbox, 2));
    finish(inbox);
    bind_text(notification, 1, user);
    bind_text(notification, 2, (Text){request->id, ID_BYTES});
    bind_text(notification, 3, event_id);
    bind_text(notification, 4, (Text){data, snprintf(data, sizeof data, "{\"visitId\":\"%.*s\"}", visit.length, visit.bytes)});
    sqlite3_bind_int(notification, 5, sounds);
    sqlite3_bind_int(notification, 6, vibrates);
    sqlite3_bind_int64(notification, 7, request->at);
    run(notification);
    if (sqlite3_changes(database) == 0) return 0;
    bind_text(badges, 1, user);
    sqlite3_bind_int64(badges, 2, request->at);
    step_to_row(badges);
    int messages = sqlite3_column_int(badges, 0), requests = sqlite3_column_int(badges, 1);
    int bell = sqlite3_column_int(badges, 2), version = sqlite3_column_int(badges, 3);
    finish(badges);
    stamp(created, request->at);
    snprintf(request->route, sizeof request->route, "user:%.*s", user.length, user.bytes);
    request->badges_bytes = (size_t)snprintf(
        request->badges, sizeof request->badges,
        "{\"messages\":%d,\"requests\":%d,\"bell\":%d,\"total\":%d,\"version\":%d,\"epoch\":\"vfa63u\",\"asOf\":\"%s\"}",
        messages, requests, bell, messages + requests + bell, version, created);
    request->answer_bytes = (size_t)snprintf(
        request->answer, sizeof request->answer,
        "{\"notification\":{\"id\":\"%s\",\"eventId\":\"%.*s\",\"userId\":\"%.*s\",\"type\":\"VISIT\",\"category\":\"visit\","
        "\"priority\":\"HIGH\",\"title\":\"Check-up Scheduled\",\"message\":\"Your check-up at St. Mary is confirmed\","
        "\"lockScreen\":\"You have a new update\",\"data\":%s,"
        "\"haptic\":{\"notification\":\"warning\",\"impacts\":[],\"pulses\":2},"
        "\"sound\":%s,\"createdAt\":\"%s\",\"seenAt\":null,\"readAt\":null,\"archivedAt\":null}}",
        request->id, event_id.length, event_id.bytes, user.length, user.bytes, data, sounds ? "true" : "false", created);
    return 1;
}

static void log_row(sqlite3_stmt *statement, sqlite3_int64 sequence, const Request *request, Text name, sqlite3_int64 collapse,
                    Text data) {
    Text owner = {request->route, (int)strlen(request->route)};
    sqlite3_bind_int64(statement, 1, sequence);
    bind_text(statement, 2, name);
    bind_text(statement, 3, owner);
    sqlite3_bind_int64(statement, 4, collapse);
    bind_text(statement, 5, data);
    sqlite3_bind_int64(statement, 6, request->at);
    run(statement);
    bind_text(route, 1, owner);
    sqlite3_bind_int64(route, 2, sequence);
    run(route);
}

/* Writes two events after the given number: the notification and the user's counts. */
static void log_events(sqlite3_int64 sequence, const Request *request) {
    static const int head = sizeof "{\"notification\":" - 1;
    static const sqlite3_int64 collapse = 9003615022361398087;
    Text created = {request->answer + head, (int)request->answer_bytes - head - 1};
    Text counts = {request->badges, (int)request->badges_bytes};
    if (!record) {
        log_row(event, sequence + 1, request, (Text){"notification:created", 20}, 0, created);
        log_row(event, sequence + 2, request, (Text){"badges:update", 13}, collapse, counts);
        return;
    }
    char earlier[ANSWER_BYTES_MAX + 64];
    int length = snprintf(earlier, sizeof earlier, "-%lld 0 notification:created %d %.*s-", sequence + 1, created.length,
                          created.length, created.bytes);
    bind_text(record, 7, (Text){earlier, length});
    log_row(record, sequence + 2, request, (Text){"badges:update", 13}, collapse, counts);
}

static void store_group(Request *first) {
    int events = 0;
    run(begin);
    for (Request *request = first; request; request = request->next) {
        if (!store(request)) request->answer_bytes = 0;
        else events += 2;
    }
    if (events) {
        sqlite3_bind_int(counter, 1, events);
        step_to_row(counter);
        sqlite3_int64 sequence = sqlite3_column_int64(counter, 0) - events;
        finish(counter);
        for (Request *request = first; request; request = request->next) {
            if (!request->answer_bytes) continue;
            log_events(sequence, request);
            sequence += 2;
        }
    }
    run(commit);
}

static void checkpoint_if_needed(void) {
    if (wal_pages < CHECKPOINT_PAGES) checkpoint_wanted = 0;
    if (wal_pages < CHECKPOINT_PAGES || wal_pages < checkpoint_wanted) return;
    checkpoint_wanted = wal_pages + CHECKPOINT_PAGES;
    pthread_mutex_lock(&checkpoint_mutex);
    is_checkpoint_due = 1;
    pthread_cond_signal(&checkpoint_due);
    pthread_mutex_unlock(&checkpoint_mutex);
}

static void *move_pages(void *closure) {
    sqlite3 *connection;
    if (sqlite3_open_v2(database_path, &connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) exit(1);
    sqlite3_exec(connection, "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0", NULL, NULL, NULL);
    for (;;) {
        pthread_mutex_lock(&checkpoint_mutex);
        while (!is_checkpoint_due) pthread_cond_wait(&checkpoint_due, &checkpoint_mutex);
        is_checkpoint_due = 0;
        pthread_mutex_unlock(&checkpoint_mutex);
        sqlite3_wal_checkpoint_v2(connection, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    }
    return closure;
}

static void *write_groups(void *closure) {
    for (;;) {
        pthread_mutex_lock(&waiting.mutex);
        while (!waiting.first) pthread_cond_wait(&work, &waiting.mutex);
        Request *first = waiting.first, *last = first;
        for (int count = 1; count < GROUP_MAX && last->next; count++) last = last->next;
        waiting.first = last->next;
        if (!waiting.first) waiting.last = &waiting.first;
        last->next = NULL;
        pthread_mutex_unlock(&waiting.mutex);
        store_group(first);
        push(&stored, first, last);
        uint64_t one = 1;
        if (write(waker.descriptor, &one, sizeof one) < 0) exit(1);
        checkpoint_if_needed();
    }
    return closure;
}

/* -- HTTP --------------------------------------------------------------------------------------------------------------- */

static void resume_stored(void) {
    uint64_t count;
    if (read(waker.descriptor, &count, sizeof count) < 0) return;
    for (Request *request = take_all(&stored), *next; request; request = next) {
        next = request->next;
        request->state = STORED;
        MHD_resume_connection(request->connection);
    }
}

static enum MHD_Result respond(struct MHD_Connection *connection, unsigned status, char *body, size_t bytes) {
    struct MHD_Response *response = MHD_create_response_from_buffer(bytes, body, MHD_RESPMEM_MUST_COPY);
    MHD_add_response_header(response, "Content-Type", "application/json");
    MHD_add_response_header(response, "X-Request-Id", "ety91wn3vyd7n");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Vary", "Authorization");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer(void *closure, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *body, size_t *body_bytes, void **slot) {
    (void)closure, (void)url, (void)version;
    Request *request = *slot;
    if (!request) {
        request = *slot = malloc(sizeof *request);
        if (!request) return MHD_NO;
        request->connection = connection;
        request->state = READING;
        request->body_bytes = request->answer_bytes = 0;
        return MHD_YES;
    }
    if (*body_bytes) {
        if (request->body_bytes + *body_bytes > BODY_BYTES_MAX) return MHD_NO;
        memcpy(request->body + request->body_bytes, body, *body_bytes);
        request->body_bytes += *body_bytes;
        *body_bytes = 0;
        return MHD_YES;
    }
    if (request->state == STORED)
        return respond(connection, request->answer_bytes ? 201 : 200, request->answer, request->answer_bytes);
    if (strcmp(method, "POST")) return respond(connection, 200, "", 0);
    request->body[request->body_bytes] = 0;
    request->state = STORING;
    MHD_suspend_connection(connection);
    push(&waiting, request, request);
    pthread_cond_signal(&work);
    return MHD_YES;
}

static void finished(void *closure, struct MHD_Connection *connection, void **slot, enum MHD_RequestTerminationCode code) {
    (void)closure, (void)connection, (void)code;
    free(*slot);
    *slot = NULL;
}

int main(int argc, char **argv) {
    if (argc != 3) return fprintf(stderr, "usage: notification_server PORT DATABASE\n"), 2;
    database_path = argv[2];
    open_database();
    waker = (Waker){eventfd(0, EFD_CLOEXEC), resume_stored};
    pthread_t writer, checkpointer;
    if (pthread_create(&writer, NULL, write_groups, NULL) || pthread_create(&checkpointer, NULL, move_pages, NULL)) return 1;
    return serve_forever(atoi(argv[1]), answer, finished, &waker);
}
