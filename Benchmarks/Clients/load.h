/* Code that both load clients share: clock, histogram, request templates, CPU accounting. */
#ifndef LOAD_H
#define LOAD_H

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(2);
}

static void *must(void *memory) {
    if (!memory) die("out of memory");
    return memory;
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t cpu_of_this_process_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* CPU time of a process and its direct children (nginx: master and worker), from schedstat, which counts in
 * nanoseconds; /proc/PID/stat counts in ticks of 10 ms. Ended threads are not included; the servers measured here keep
 * their threads. */
static uint64_t cpu_of_tasks_ns(int pid) {
    char path[320];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    if (!tasks) return 0;
    uint64_t total = 0;
    for (struct dirent *task; (task = readdir(tasks));) {
        if (task->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", pid, task->d_name);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        unsigned long long ran = 0;
        if (fscanf(file, "%llu", &ran) == 1) total += ran;
        fclose(file);
    }
    closedir(tasks);
    return total;
}

static uint64_t cpu_of_process_ns(int pid) {
    if (pid <= 0) return 0;
    uint64_t total = cpu_of_tasks_ns(pid);
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    FILE *file = fopen(path, "r");
    if (!file) return total;
    for (int child; fscanf(file, "%d", &child) == 1;) total += cpu_of_tasks_ns(child);
    fclose(file);
    return total;
}

/* A log-linear histogram of nanoseconds: 64 steps per power of two, so percentiles are accurate within 1.6 %. */
#define HISTOGRAM_STEPS 64
#define HISTOGRAM_BUCKETS (40 * HISTOGRAM_STEPS)
typedef struct {
    uint64_t count, sum, max;
    uint64_t buckets[HISTOGRAM_BUCKETS];
} Histogram;

static inline unsigned histogram_index(uint64_t value) {
    if (value < HISTOGRAM_STEPS) return (unsigned)value;
    unsigned shift = 63u - (unsigned)__builtin_clzll(value) - 6u;
    unsigned index = (shift + 1) * HISTOGRAM_STEPS + (unsigned)((value >> shift) - HISTOGRAM_STEPS);
    return index < HISTOGRAM_BUCKETS ? index : HISTOGRAM_BUCKETS - 1;
}

static inline void histogram_add(Histogram *h, uint64_t value) {
    h->count++;
    h->sum += value;
    if (value > h->max) h->max = value;
    h->buckets[histogram_index(value)]++;
}

static void histogram_merge(Histogram *into, const Histogram *from) {
    into->count += from->count;
    into->sum += from->sum;
    if (from->max > into->max) into->max = from->max;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) into->buckets[i] += from->buckets[i];
}

static double histogram_percentile_us(const Histogram *h, double percentile) {
    if (!h->count) return 0;
    uint64_t rank = (uint64_t)((double)h->count * percentile / 100.0), seen = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->buckets[i];
        if (seen > rank) {
            if (i < HISTOGRAM_STEPS) return i / 1000.0;
            unsigned shift = i / HISTOGRAM_STEPS - 1;
            uint64_t low = (uint64_t)(i % HISTOGRAM_STEPS + HISTOGRAM_STEPS) << shift;
            return ((double)low + (double)(1ull << shift) / 2) / 1000.0;
        }
    }
    return (double)h->max / 1000.0;
}

static void histogram_print(const char *name, const Histogram *h) {
    printf("\"%s\":{\"count\":%llu,\"mean\":%.1f,\"p50\":%.1f,\"p90\":%.1f,\"p95\":%.1f,\"p99\":%.1f,\"p999\":%.1f,\"max\":%.1f}",
           name, (unsigned long long)h->count, h->count ? (double)h->sum / (double)h->count / 1000.0 : 0,
           histogram_percentile_us(h, 50), histogram_percentile_us(h, 90), histogram_percentile_us(h, 95),
           histogram_percentile_us(h, 99), histogram_percentile_us(h, 99.9), (double)h->max / 1000.0);
}

/* A template: {n} is the running number of a request, {u} that number modulo --users, {c} the number of the connection,
 * {flip} alternates between true and false (by n / users). */
typedef enum { PIECE_TEXT, PIECE_NUMBER, PIECE_USER, PIECE_CONNECTION, PIECE_FLIP } PieceKind;
typedef struct {
    PieceKind kind;
    const char *text;
    size_t length;
} Piece;
typedef struct {
    Piece *pieces;
    size_t count;
    size_t bytes_max;
} Template;

static Template template_parse(const char *text) {
    static const struct { const char *name; PieceKind kind; } variables[] = {
        {"{n}", PIECE_NUMBER}, {"{u}", PIECE_USER}, {"{c}", PIECE_CONNECTION}, {"{flip}", PIECE_FLIP}};
    Template t = {must(calloc(strlen(text) + 1, sizeof(Piece))), 0, 0};
    const char *literal = text;
    for (const char *p = text;; p++) {
        size_t v = 4;
        if (*p == '{')
            for (v = 0; v < 4; v++)
                if (!strncmp(p, variables[v].name, strlen(variables[v].name))) break;
        if ((v < 4 || !*p) && p > literal)
            t.pieces[t.count++] = (Piece){PIECE_TEXT, literal, (size_t)(p - literal)};
        if (!*p) break;
        if (v < 4) {
            t.pieces[t.count++] = (Piece){variables[v].kind, NULL, 20};
            p += strlen(variables[v].name) - 1;
            literal = p + 1;
        }
    }
    for (size_t i = 0; i < t.count; i++) t.bytes_max += t.pieces[i].length;
    return t;
}

static size_t append_number(char *out, uint64_t value) {
    char digits[20];
    size_t count = 0;
    do digits[count++] = (char)('0' + value % 10);
    while (value /= 10);
    for (size_t i = 0; i < count; i++) out[i] = digits[count - 1 - i];
    return count;
}

static size_t template_render(const Template *t, char *out, uint64_t n, uint64_t users, uint64_t connection) {
    char *p = out;
    for (size_t i = 0; i < t->count; i++) {
        const Piece *piece = &t->pieces[i];
        switch (piece->kind) {
        case PIECE_TEXT: memcpy(p, piece->text, piece->length); p += piece->length; break;
        case PIECE_NUMBER: p += append_number(p, n); break;
        case PIECE_USER: p += append_number(p, n % users); break;
        case PIECE_CONNECTION: p += append_number(p, connection); break;
        case PIECE_FLIP:
            if (n / users % 2 == 0) { memcpy(p, "true", 4); p += 4; }
            else { memcpy(p, "false", 5); p += 5; }
            break;
        }
    }
    return (size_t)(p - out);
}

/* A complete request: method, templated path, fixed headers, templated body with its Content-Length. */
typedef struct {
    const char *method;
    Template path, body;
    bool has_body;
    char *headers; /* each "Name: value\r\n" */
    size_t headers_length, bytes_max;
    uint64_t users;
} RequestTemplate;

static void headers_append(char **headers, const char *line) {
    size_t length = *headers ? strlen(*headers) : 0;
    *headers = must(realloc(*headers, length + strlen(line) + 3));
    sprintf(*headers + length, "%s\r\n", line);
}

static RequestTemplate request_template(
    const char *method, const char *path, const char *headers, const char *body, uint64_t users) {
    RequestTemplate r = {.method = method, .path = template_parse(path), .users = users ? users : 1};
    r.headers = must(strdup(headers ? headers : ""));
    r.headers_length = strlen(r.headers);
    r.has_body = body != NULL;
    r.body = template_parse(body ? body : "");
    r.bytes_max = strlen(method) + r.path.bytes_max + r.headers_length + r.body.bytes_max + 512;
    return r;
}

static size_t request_render(const RequestTemplate *r, char *out, const char *token, uint64_t n, uint64_t connection) {
    char *p = out;
    size_t length = strlen(r->method);
    memcpy(p, r->method, length); p += length;
    *p++ = ' ';
    p += template_render(&r->path, p, n, r->users, connection);
    static const char version[] = " HTTP/1.1\r\nHost: localhost\r\n";
    memcpy(p, version, sizeof version - 1); p += sizeof version - 1;
    memcpy(p, r->headers, r->headers_length); p += r->headers_length;
    if (token) {
        static const char name[] = "Authorization: Bearer ";
        memcpy(p, name, sizeof name - 1); p += sizeof name - 1;
        length = strlen(token);
        memcpy(p, token, length); p += length;
        *p++ = '\r'; *p++ = '\n';
    }
    if (!r->has_body) {
        *p++ = '\r'; *p++ = '\n';
        return (size_t)(p - out);
    }
    /* The body is rendered after a gap and then moved to the end of the head, whose size depends on the body's length. */
    char *gap = p + 64;
    size_t body = template_render(&r->body, gap, n, r->users, connection);
    static const char name[] = "Content-Length: ";
    memcpy(p, name, sizeof name - 1); p += sizeof name - 1;
    p += append_number(p, body);
    memcpy(p, "\r\n\r\n", 4); p += 4;
    memmove(p, gap, body);
    return (size_t)(p - out) + body;
}

/* Returns the length of the first response in a buffer, or 0 while it is incomplete. Sets `status` once the head is
 * complete. */
static size_t response_length(const char *buffer, size_t length, int *status, bool *closes) {
    const char *end = memmem(buffer, length, "\r\n\r\n", 4);
    if (!end || length < 12) return 0;
    *status = (buffer[9] - '0') * 100 + (buffer[10] - '0') * 10 + (buffer[11] - '0');
    size_t head = (size_t)(end - buffer) + 4, content = 0;
    bool chunked = false;
    for (const char *line = memchr(buffer, '\n', head); line && line + 1 < end; line = memchr(line, '\n', (size_t)(buffer + head - line))) {
        line++;
        if ((*line | 32) == 'c' && !strncasecmp(line, "content-length:", 15)) content = strtoul(line + 15, NULL, 10);
        else if ((*line | 32) == 'c' && !strncasecmp(line, "connection: close", 17)) *closes = true;
        else if ((*line | 32) == 't' && !strncasecmp(line, "transfer-encoding: chunked", 26)) chunked = true;
    }
    if (chunked) {
        const char *last = memmem(buffer + head - 2, length - head + 2, "\r\n0\r\n\r\n", 7);
        return last ? (size_t)(last - buffer) + 7 : 0;
    }
    if (*status == 304 || *status == 204) content = 0;
    return length >= head + content ? head + content : 0;
}

/* Returns the lines of a file, for one bearer token per connection. */
static char **lines_of(const char *path, size_t *count) {
    FILE *file = fopen(path, "r");
    if (!file) die("cannot read %s: %s", path, strerror(errno));
    char **lines = NULL, *line = NULL;
    size_t capacity = 0, size = 0;
    *count = 0;
    for (ssize_t n; (n = getline(&line, &size, file)) > 0;) {
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r')) line[--n] = 0;
        if (!n) continue;
        if (*count == capacity) lines = must(realloc(lines, (capacity = capacity ? capacity * 2 : 1024) * sizeof *lines));
        lines[(*count)++] = must(strdup(line));
    }
    free(line);
    fclose(file);
    if (!*count) die("%s is empty", path);
    return lines;
}

/* Returns a whole file as text, because one argument of a command has at most 128 KiB. */
static inline char *file_text(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t capacity = 0;
    if (!file || getdelim(&text, &capacity, 0, file) <= 0) die("cannot read %s", path);
    fclose(file);
    return text;
}

/* Raises the limit of descriptors for thousands of sockets. Root may also raise the hard limit. */
static void raise_descriptor_limit(size_t wanted) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= wanted) return;
    struct rlimit raised = {wanted, limit.rlim_max > wanted ? limit.rlim_max : wanted};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return;
    raised = (struct rlimit){limit.rlim_max, limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) != 0 || limit.rlim_max < wanted)
        die("needs %zu descriptors, the limit is %llu", wanted, (unsigned long long)limit.rlim_max);
}

/* Starts a non-blocking connection from 127.0.0.(2 + index). One source address has 28 k ports, and a second run would
 * find the ports of the first still in TIME_WAIT. */
static int connect_from(int source_index, int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (source_index >= 0) {
        setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
        struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002u + (uint32_t)source_index)};
        if (bind(fd, (struct sockaddr *)&from, sizeof from) != 0) { close(fd); return -1; }
    }
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(0x7f000001u)};
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS) { close(fd); return -1; }
    return fd;
}

/* Sends RST instead of FIN, so no TIME_WAIT remains. It would exhaust the ports within a few runs. */
static void close_now(int fd) {
    struct linger linger = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(fd);
}

#endif
