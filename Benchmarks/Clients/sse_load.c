/* Opens many SSE streams, publishes events by HTTP and measures their arrival. Prints one JSON object.
 *
 *   hold    opens the streams, prints {"ready":N}, reads until standard input closes
 *   closed  the maximum rate: the next event is published when fewer than --window are in flight
 *           (with --window 2 the server never waits for the client, and can join at most one event with another)
 *   paced   --rate events per second, whatever the server does
 *
 * With --port A,B the streams alternate between servers, and --publish-port sets the targets of requests (alternating
 * too). With --subscriptions FILE, once all streams are open, each stream subscribes with one line of the file (lines
 * alternate): the body of PUT /v1/streams/{id}/subscriptions, sent with the stream's own token; {id} is `streamId` of
 * the ready event.
 *
 * An event is identified by the request's {n} after --marker, or with --marker-topics by its {u} there, if the events
 * of one {u} arrive in the order of their requests. Otherwise the order of arrival identifies it.
 *
 * One event is --burst SSE events on each of --expect streams (default: all of them). The publishing connections are in
 * the first thread. Latencies count from the sending of the request. In paced mode, and in closed mode with --expect 1,
 * they are also counted from the reading of its response (which confirms the commit). With --later-ms M they count from
 * M later, for events that are delayed on purpose.
 *
 * With --poll the threads poll for events without sleeping. A sleeping thread would be woken by the server's send on
 * the same machine, and the cost of that wake-up would be attributed to the server. */
#include "load.h"

enum { SOURCES = 8, PORTS_MAX = 8, CONNECTING_MAX = 128, CARRY_MAX = 65536, PUBLISHERS_MAX = 64, READ_BYTES = 65536,
       NAME_MAX_BYTES = 64 };
#define RING (1u << 16)
#define SAMPLES_MAX (16u << 20)

typedef struct {
    int count, numbers[PORTS_MAX];
} Ports;

typedef enum { MODE_HOLD, MODE_CLOSED, MODE_PACED } Mode;
typedef enum { STATE_NEW, STATE_CONNECTING, STATE_HEAD, STATE_WAITING_READY, STATE_OPEN, STATE_CLOSED } StreamState;

static struct {
    Ports ports, publish_ports;
    int threads, server_pid;
    size_t streams, window, burst, group, publishers;
    uint64_t expect;
    Mode mode;
    double seconds, warmup, rate, open_timeout;
    const char *event, *ready_event, *marker;
    RequestTemplate open_request, publish_request;
    char **tokens, **subscriptions;
    size_t token_count, subscription_count;
    bool until_input_ends, marker_topics, polls;
    uint64_t first_number, later_ns;
} options = {.threads = 1, .streams = 1, .window = 1, .burst = 1, .group = 1, .seconds = 3, .warmup = 0.5,
             .rate = 50, .open_timeout = 60, .event = "", .ready_event = ""};

typedef struct {
    int fd;
    uint32_t carried, seen;
    StreamState state;
    char *carry; /* the beginning of an incomplete event */
    char *name;  /* for subscriptions */
} Stream;

typedef struct {
    uint64_t number, at;
} Sample;

typedef struct {
    pthread_t thread;
    int index, epoll;
    size_t mine, next_to_open, connecting;
    char *buffer;
    Histogram latency;
    uint64_t bytes, event_bytes, reads, cpu_start;
    Sample *samples;
    size_t sample_count;
} Reader;

typedef struct {
    int fd;
    size_t received;
    bool busy;
    uint64_t number;
    char in[65536];
} Publisher;

static Stream *streams;
static uint32_t *seen_of_topic; /* [stream * users + topic]; one thread reads a stream */
static atomic_ulong opened, refused, closed_by_server;
static atomic_ullong delivered, unexpected;
static atomic_ullong wake_at; /* thread 0 is woken when `delivered` reaches this */
static atomic_bool measuring, stopping, counting;
static int wake_event;
static _Atomic uint64_t sent_at[RING], answered_at[RING], published_count;
static Publisher *publishers;
static uint64_t publish_failures, statuses[600], lateness_max;

static int port_of(const Ports *ports, size_t turn) { return ports->numbers[turn % (size_t)ports->count]; }

static Stream *stream_of(const Reader *reader, size_t i) { return &streams[i * (size_t)options.threads + (size_t)reader->index]; }

static void count_event(Reader *reader, Stream *stream, const char *text, size_t length, uint64_t at) {
    if (!atomic_load_explicit(&counting, memory_order_relaxed)) return;
    uint64_t number;
    if (options.marker) {
        const char *found = memmem(text, length, options.marker, strlen(options.marker));
        if (!found) return;
        number = strtoull(found + strlen(options.marker), NULL, 10);
        if (options.marker_topics) {
            if (number >= options.publish_request.users) return;
            uint64_t topics = options.publish_request.users;
            number += seen_of_topic[(size_t)(stream - streams) * topics + number]++ * topics;
        } else {
            number -= options.first_number;
        }
    } else if (options.expect >= options.streams * options.burst) {
        number = stream->seen / options.burst;
    } else {
        number = atomic_load(&published_count) - 1;
    }
    stream->seen++;
    if (number >= atomic_load(&published_count)) {
        atomic_fetch_add(&unexpected, 1);
        return;
    }
    if (!atomic_load_explicit(&measuring, memory_order_relaxed)) return;
    uint64_t due = sent_at[number % RING] + options.later_ns;
    histogram_add(&reader->latency, at > due ? at - due : 0);
    if (reader->samples && reader->sample_count < SAMPLES_MAX)
        reader->samples[reader->sample_count++] = (Sample){number, at};
}

/* Returns whether this block is an event named `name` (or, for an empty name, any event with data). The chunk sizes of
 * a chunked body may precede the first line, so the field is searched instead of expected at the start. */
static bool is_event(const char *text, size_t length, const char *name) {
    const char *field = *name ? "event:" : "data:";
    size_t field_length = *name ? 6 : 5;
    const char *found = length >= field_length && !memcmp(text, field, field_length) ? text : NULL;
    if (!found) {
        char with_newline[8] = "\n";
        memcpy(with_newline + 1, field, field_length);
        found = memmem(text, length, with_newline, field_length + 1);
        if (!found) return false;
        found++;
    }
    if (!*name) return true;
    found += field_length;
    if (*found == ' ') found++;
    size_t left = (size_t)(text + length - found), name_length = strlen(name);
    return left >= name_length && !memcmp(found, name, name_length) && (left == name_length || found[name_length] == '\n' || found[name_length] == '\r');
}

/* Subscriptions need the stream's name. */
static void keep_name(Stream *stream, const char *text, size_t length) {
    static const char field[] = "\"streamId\":\"";
    const char *name = memmem(text, length, field, sizeof field - 1);
    if (!name) return;
    name += sizeof field - 1;
    const char *end = memchr(name, '"', (size_t)(text + length - name));
    if (end && end - name < NAME_MAX_BYTES) stream->name = must(strndup(name, (size_t)(end - name)));
}

/* Consumes the complete events in a buffer; returns the number of remaining bytes. */
static size_t take_events(Reader *reader, Stream *stream, char *text, size_t length, uint64_t at, uint64_t *events) {
    char *rest = text;
    for (char *end; (end = memmem(rest, length - (size_t)(rest - text), "\n\n", 2)); rest = end + 2) {
        size_t block = (size_t)(end - rest);
        if (stream->state == STATE_WAITING_READY && is_event(rest, block, options.ready_event)) {
            stream->state = STATE_OPEN;
            if (options.subscriptions) keep_name(stream, rest, block);
            atomic_fetch_add(&opened, 1);
        }
        if (is_event(rest, block, options.event)) {
            count_event(reader, stream, rest, block, at);
            if (atomic_load_explicit(&counting, memory_order_relaxed)) reader->event_bytes += block + 2;
            ++*events;
        }
    }
    return length - (size_t)(rest - text);
}

static void stream_failed(Reader *reader, Stream *stream) {
    if (stream->state == STATE_CONNECTING || stream->state == STATE_HEAD) {
        reader->connecting--;
        atomic_fetch_add(&refused, 1);
    } else if (stream->state != STATE_CLOSED) {
        atomic_fetch_add(&closed_by_server, 1);
    }
    if (stream->fd >= 0) close_now(stream->fd);
    stream->fd = -1;
    stream->state = STATE_CLOSED;
}

static void connected(Reader *reader, Stream *stream, size_t index) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    char request[16384];
    const char *token = options.tokens ? options.tokens[index % options.token_count] : NULL;
    if (error || options.open_request.bytes_max + (token ? strlen(token) : 0) > sizeof request) {
        stream_failed(reader, stream);
        return;
    }
    size_t length = request_render(&options.open_request, request, token, index, index);
    if (send(stream->fd, request, length, MSG_NOSIGNAL) != (ssize_t)length) {
        stream_failed(reader, stream);
        return;
    }
    stream->state = STATE_HEAD;
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.u64 = index};
    epoll_ctl(reader->epoll, EPOLL_CTL_MOD, stream->fd, &event);
}

static void keep(Reader *reader, Stream *stream, const char *rest, size_t length) {
    if (length > CARRY_MAX) { stream_failed(reader, stream); return; }
    if (length) {
        stream->carry = must(realloc(stream->carry, length));
        memmove(stream->carry, rest, length);
    }
    stream->carried = (uint32_t)length;
}

/* Reads once (level-triggered: remaining bytes cause another event). */
static void readable(Reader *reader, Stream *stream, uint64_t *events) {
    char *buffer = reader->buffer;
    if (stream->carried) memcpy(buffer, stream->carry, stream->carried);
    ssize_t n = recv(stream->fd, buffer + stream->carried, READ_BYTES, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) { stream_failed(reader, stream); return; }
    uint64_t at = now_ns();
    reader->bytes += (uint64_t)n;
    reader->reads++;
    size_t length = stream->carried + (size_t)n;
    char *text = buffer;
    if (stream->state == STATE_HEAD) {
        char *end = memmem(text, length, "\r\n\r\n", 4);
        if (!end) { keep(reader, stream, text, length); return; }
        if (length < 12 || memcmp(text + 9, "200", 3)) { stream_failed(reader, stream); return; }
        reader->connecting--;
        stream->state = *options.ready_event ? STATE_WAITING_READY : STATE_OPEN;
        if (stream->state == STATE_OPEN) atomic_fetch_add(&opened, 1);
        length -= (size_t)(end + 4 - text);
        text = end + 4;
    }
    size_t rest = take_events(reader, stream, text, length, at, events);
    keep(reader, stream, text + length - rest, rest);
}

static void open_more(Reader *reader) {
    while (reader->next_to_open < reader->mine && reader->connecting < CONNECTING_MAX) {
        size_t i = reader->next_to_open++;
        Stream *stream = stream_of(reader, i);
        size_t index = (size_t)(stream - streams);
        stream->fd = connect_from((int)(index % SOURCES), port_of(&options.ports, index));
        reader->connecting++;
        stream->state = STATE_CONNECTING;
        if (stream->fd < 0) { stream_failed(reader, stream); continue; }
        struct epoll_event event = {.events = EPOLLOUT, .data.u64 = index};
        epoll_ctl(reader->epoll, EPOLL_CTL_ADD, stream->fd, &event);
    }
}

/* Runs one round of a reader's loop. Events with data ≥ streams belong to the publisher side. */
static int read_round(Reader *reader, struct epoll_event *events, int count, int timeout) {
    open_more(reader);
    int ready = epoll_wait(reader->epoll, events, count, options.polls ? 0 : timeout);
    uint64_t found = 0;
    for (int i = 0; i < ready; i++) {
        uint64_t index = events[i].data.u64;
        if (index >= options.streams) continue;
        Stream *stream = &streams[index];
        if (stream->fd < 0) continue;
        if (stream->state == STATE_CONNECTING) connected(reader, stream, index);
        else readable(reader, stream, &found);
    }
    if (found && atomic_load_explicit(&counting, memory_order_relaxed)) {
        uint64_t before = atomic_fetch_add(&delivered, found), goal = atomic_load(&wake_at);
        if (reader->index != 0 && before < goal && before + found >= goal) {
            uint64_t one = 1;
            (void)!write(wake_event, &one, sizeof one);
        }
    }
    return ready;
}

static void *read_streams(void *argument) {
    Reader *reader = argument;
    struct epoll_event events[256];
    while (!atomic_load_explicit(&stopping, memory_order_relaxed)) read_round(reader, events, 256, 50);
    return NULL;
}

static void publisher_connect(Reader *reader, size_t i) {
    Publisher *p = &publishers[i];
    p->fd = connect_from(-1, port_of(&options.publish_ports, i));
    if (p->fd < 0) die("cannot connect the publisher: %s", strerror(errno));
    for (int tries = 0; tries < 2000; tries++) {
        struct tcp_info info;
        socklen_t length = sizeof info;
        if (getsockopt(p->fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 && info.tcpi_state == TCP_ESTABLISHED) break;
        usleep(1000);
    }
    p->busy = false;
    p->received = 0;
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = options.streams + i};
    epoll_ctl(reader->epoll, EPOLL_CTL_ADD, p->fd, &event);
}

static bool publish(void) {
    static char request[262144];
    for (size_t i = 0; i < options.publishers; i++) {
        Publisher *p = &publishers[i];
        if (p->busy) continue;
        uint64_t number = atomic_load(&published_count), topics = options.publish_request.users;
        /* Two concurrent requests of one topic could complete in either order. */
        if (options.marker_topics && number >= topics && !answered_at[(number - topics) % RING]) return false;
        size_t length = request_render(&options.publish_request, request, NULL, options.first_number + number, i);
        p->busy = true;
        p->number = number;
        answered_at[number % RING] = 0;
        sent_at[number % RING] = now_ns();
        atomic_store(&published_count, number + 1);
        if (send(p->fd, request, length, MSG_NOSIGNAL) != (ssize_t)length) publish_failures++;
        return true;
    }
    return false;
}

static void publisher_readable(Reader *reader, size_t i) {
    Publisher *p = &publishers[i];
    ssize_t n = recv(p->fd, p->in + p->received, sizeof p->in - p->received, 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
        if (p->busy) publish_failures++;
        close_now(p->fd);
        publisher_connect(reader, i);
        return;
    }
    p->received += (size_t)n;
    int status = 0;
    bool closes = false;
    size_t length = response_length(p->in, p->received, &status, &closes);
    if (!length) return;
    answered_at[p->number % RING] = now_ns();
    statuses[status > 0 && status < 600 ? status : 0]++;
    p->busy = false;
    p->received = 0;
    if (closes) {
        close_now(p->fd);
        publisher_connect(reader, i);
    }
}

static bool input_ended(void) {
    char byte;
    return options.until_input_ends && read(0, &byte, 1) == 0;
}

static void drain_publishers(Reader *reader, struct epoll_event *events, int ready) {
    for (int i = 0; i < ready; i++) {
        if (events[i].data.u64 < options.streams) continue;
        size_t which = (size_t)(events[i].data.u64 - options.streams);
        uint64_t ignored;
        if (which >= PUBLISHERS_MAX) (void)!read(wake_event, &ignored, sizeof ignored);
        else publisher_readable(reader, which);
    }
}

typedef struct {
    double seconds;
    uint64_t delivered, published, server_cpu, client_cpu, lost;
} Outcome;

static void wait_for_stragglers(Reader *reader, struct epoll_event *events) {
    uint64_t give_up = now_ns() + 5000000000u;
    uint64_t wanted = atomic_load(&published_count) * options.expect;
    while (atomic_load(&delivered) < wanted && now_ns() < give_up)
        drain_publishers(reader, events, read_round(reader, events, 256, 10));
}

static Outcome run_closed(Reader *reader) {
    struct epoll_event events[256];
    Outcome outcome = {0};
    uint64_t begin = now_ns(), start = 0, stop_at = begin + (uint64_t)((options.warmup + options.seconds) * 1e9);
    uint64_t first_delivered = 0, first_published = 0, server = 0, client = 0;
    for (;;) {
        uint64_t now = now_ns();
        if (!start && now - begin >= (uint64_t)(options.warmup * 1e9)) {
            start = now, first_delivered = atomic_load(&delivered), first_published = atomic_load(&published_count);
            server = cpu_of_process_ns(options.server_pid), client = cpu_of_this_process_ns();
            atomic_store(&measuring, true);
        }
        if (now >= stop_at || (options.until_input_ends && input_ended())) break;
        uint64_t complete = atomic_load(&delivered) / options.expect;
        uint64_t under_way = atomic_load(&published_count) - complete;
        /* With --group the next round starts only when the previous one has arrived everywhere. */
        bool may = options.group > 1 ? under_way == 0 : under_way < options.window;
        for (size_t i = 0; may && i < options.group; i++)
            if (!publish()) break;
        atomic_store(&wake_at, (complete + 1) * options.expect);
        drain_publishers(reader, events, read_round(reader, events, 256, 20));
    }
    /* The span ends with the last complete delivery, not in the middle of an event that is not counted. */
    uint64_t end = now_ns();
    outcome.delivered = atomic_load(&delivered) - first_delivered;
    outcome.seconds = (double)(end - start) / 1e9;
    outcome.published = atomic_load(&published_count) - first_published;
    outcome.server_cpu = cpu_of_process_ns(options.server_pid) - server;
    outcome.client_cpu = cpu_of_this_process_ns() - client;
    atomic_store(&measuring, false);
    wait_for_stragglers(reader, events);
    uint64_t wanted = atomic_load(&published_count) * options.expect, got = atomic_load(&delivered);
    outcome.lost = wanted > got ? wanted - got : 0;
    return outcome;
}

static Outcome run_paced(Reader *reader) {
    struct epoll_event events[64];
    Outcome outcome = {0};
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = options.streams + PUBLISHERS_MAX + 1};
    epoll_ctl(reader->epoll, EPOLL_CTL_ADD, timer, &event);
    uint64_t begin = now_ns(), warm = (uint64_t)(options.warmup * options.rate), server = 0, client = 0, start = begin;
    uint64_t total = warm + (uint64_t)(options.seconds * options.rate), first_delivered = 0;
    for (uint64_t i = 0; i < total;) {
        uint64_t due = begin + (uint64_t)((double)i * 1e9 / options.rate), now = now_ns();
        if (now < due) {
            struct itimerspec when = {.it_value = {(time_t)(due / 1000000000u), (long)(due % 1000000000u)}};
            timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
        } else if (publish()) {
            if (i == warm) {
                start = now, first_delivered = atomic_load(&delivered);
                server = cpu_of_process_ns(options.server_pid), client = cpu_of_this_process_ns();
                atomic_store(&measuring, true);
            }
            if (i >= warm && now - due > lateness_max) lateness_max = now - due;
            i++;
            continue;
        }
        drain_publishers(reader, events, read_round(reader, events, 64, 20));
        if (options.until_input_ends && input_ended()) break;
    }
    outcome.published = atomic_load(&published_count) - warm;
    outcome.server_cpu = cpu_of_process_ns(options.server_pid) - server;
    wait_for_stragglers(reader, events);
    outcome.seconds = (double)(now_ns() - start) / 1e9;
    outcome.client_cpu = cpu_of_this_process_ns() - client;
    outcome.delivered = atomic_load(&delivered) - first_delivered;
    atomic_store(&measuring, false);
    uint64_t wanted = atomic_load(&published_count) * options.expect, got = atomic_load(&delivered);
    outcome.lost = wanted > got ? wanted - got : 0;
    return outcome;
}

static void open_streams(Reader *reader) {
    struct epoll_event events[256];
    uint64_t give_up = now_ns() + (uint64_t)(options.open_timeout * 1e9);
    while (atomic_load(&opened) + atomic_load(&refused) < options.streams && now_ns() < give_up)
        read_round(reader, events, 256, 20);
}

static bool exchange(int fd, const char *request, size_t length, int *status) {
    static char answer[262144];
    for (size_t sent = 0; sent < length;) {
        ssize_t n = send(fd, request + sent, length - sent, MSG_NOSIGNAL);
        if (n <= 0) return false;
        sent += (size_t)n;
    }
    bool closes = false;
    for (size_t received = 0; received < sizeof answer;) {
        ssize_t n = recv(fd, answer + received, sizeof answer - received, 0);
        if (n <= 0) return false;
        received += (size_t)n;
        if (response_length(answer, received, status, &closes)) return true;
    }
    return false;
}

/* Subscribes sequentially on one blocking connection: the server's work does not depend on the client's concurrency. */
static double subscribe(void) {
    uint64_t begin = now_ns();
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port_of(&options.ports, 0)),
                             .sin_addr.s_addr = htonl(0x7f000001u)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to)) die("cannot connect to subscribe: %s", strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    char *request = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < options.streams; i++) {
        const char *body = options.subscriptions[i % options.subscription_count];
        const char *token = options.tokens ? options.tokens[i % options.token_count] : "";
        size_t body_length = strlen(body);
        if (!streams[i].name) die("stream %zu has not told its name", i);
        if (capacity < body_length + 4096) request = must(realloc(request, capacity = body_length + 8192));
        int length = snprintf(request, capacity,
                              "PUT /v1/streams/%s/subscriptions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                              "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                              streams[i].name, token, body_length, body);
        int status = 0;
        if (length < 0 || (size_t)length >= capacity || !exchange(fd, request, (size_t)length, &status) || status != 200)
            die("subscriptions of stream %zu: status %d", i, status);
    }
    free(request);
    close_now(fd);
    return (double)(now_ns() - begin) / 1e9;
}

static void print_outcome(Reader *readers, const Outcome *o, double opening_seconds) {
    static Histogram latency, since_answer;
    uint64_t bytes = 0, event_bytes = 0, reads = 0;
    for (int t = 0; t < options.threads; t++) {
        histogram_merge(&latency, &readers[t].latency);
        bytes += readers[t].bytes, event_bytes += readers[t].event_bytes, reads += readers[t].reads;
        for (size_t i = 0; i < readers[t].sample_count; i++) {
            uint64_t answered = answered_at[readers[t].samples[i].number % RING], at = readers[t].samples[i].at;
            uint64_t due = answered + options.later_ns;
            histogram_add(&since_answer, answered && at > due ? at - due : 0);
        }
    }
    printf("{\"streams\":%zu,\"opened\":%lu,\"refused\":%lu,\"closedByServer\":%lu,\"openSeconds\":%.3f,\"seconds\":%.3f,"
           "\"published\":%llu,\"delivered\":%llu,\"lost\":%llu,\"unexpected\":%llu,\"deliveriesPerSecond\":%.1f,"
           "\"publishFailures\":%llu,\"latenessMaxUs\":%.1f,\"bytes\":%llu,\"eventBytes\":%llu,"
           "\"reads\":%llu,\"clientCpu\":%.3f,\"serverCpu\":%.3f,"
           "\"serverUsPerPublish\":%.2f,\"statuses\":{",
           options.streams, atomic_load(&opened), atomic_load(&refused), atomic_load(&closed_by_server), opening_seconds,
           o->seconds, (unsigned long long)o->published, (unsigned long long)o->delivered, (unsigned long long)o->lost,
           (unsigned long long)atomic_load(&unexpected), o->seconds > 0 ? (double)o->delivered / o->seconds : 0,
           (unsigned long long)publish_failures, (double)lateness_max / 1e3, (unsigned long long)bytes, (unsigned long long)event_bytes,
           (unsigned long long)reads,
           o->seconds > 0 ? (double)o->client_cpu / 1e9 / o->seconds / options.threads : 0,
           o->seconds > 0 ? (double)o->server_cpu / 1e9 / o->seconds : 0,
           o->published ? (double)o->server_cpu / 1e3 / (double)o->published : 0);
    const char *separator = "";
    for (int s = 0; s < 600; s++)
        if (statuses[s]) {
            printf("%s\"%d\":%llu", separator, s, (unsigned long long)statuses[s]);
            separator = ",";
        }
    printf("},");
    histogram_print("latencyUs", &latency);
    printf(",");
    histogram_print("sinceAnswerUs", &since_answer);
    printf("}\n");
}

static Mode mode_named(const char *name) {
    if (!strcmp(name, "hold")) return MODE_HOLD;
    if (!strcmp(name, "closed")) return MODE_CLOSED;
    if (!strcmp(name, "paced")) return MODE_PACED;
    die("no such mode: %s", name);
    return MODE_HOLD;
}

static Ports ports_named(const char *list) {
    Ports ports = {0};
    for (char *end; *list; list = *end ? end + 1 : end) {
        if (ports.count == PORTS_MAX) die("at most %d ports", PORTS_MAX);
        long port = strtol(list, &end, 10);
        if (end == list || (*end && *end != ',') || port <= 0 || port > 65535) die("not a port: %s", list);
        ports.numbers[ports.count++] = (int)port;
    }
    return ports;
}

static void parse(int argc, char **argv) {
    static const struct option longs[] = {
        {"port", 1, 0, 'p'}, {"streams", 1, 0, 'n'}, {"threads", 1, 0, 't'}, {"mode", 1, 0, 'm'}, {"path", 1, 0, 'P'},
        {"header", 1, 0, 'H'}, {"tokens", 1, 0, 'T'}, {"event", 1, 0, 'e'}, {"ready-event", 1, 0, 'y'},
        {"marker", 1, 0, 'k'}, {"publish-method", 1, 0, 'M'}, {"publish-path", 1, 0, 'Q'}, {"publish-header", 1, 0, 'G'},
        {"publish-body", 1, 0, 'b'}, {"users", 1, 0, 'u'}, {"expect", 1, 0, 'x'}, {"burst", 1, 0, 'B'},
        {"group", 1, 0, 'g'}, {"window", 1, 0, 'w'}, {"seconds", 1, 0, 's'}, {"warmup", 1, 0, 'W'}, {"rate", 1, 0, 'r'},
        {"server-pid", 1, 0, 'i'}, {"publishers", 1, 0, 'N'}, {"open-timeout", 1, 0, 'o'}, {"until-input-ends", 0, 0, 'I'},
        {"first-number", 1, 0, 'f'}, {"publish-port", 1, 0, 'q'}, {"marker-topics", 0, 0, 'K'},
        {"subscriptions", 1, 0, 'S'}, {"later-ms", 1, 0, 'l'}, {"poll", 0, 0, 'L'}, {0}};
    const char *path = "/", *publish_path = "/publish", *publish_method = "POST", *publish_body = "";
    char *headers = NULL, *publish_headers = NULL;
    uint64_t users = 1;
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) switch (c) {
        case 'p': options.ports = ports_named(optarg); break;
        case 'q': options.publish_ports = ports_named(optarg); break;
        case 'K': options.marker_topics = true; break;
        case 'n': options.streams = strtoull(optarg, NULL, 10); break;
        case 't': options.threads = atoi(optarg); break;
        case 'm': options.mode = mode_named(optarg); options.until_input_ends |= options.mode == MODE_HOLD; break;
        case 'P': path = optarg; break;
        case 'H': headers_append(&headers, optarg); break;
        case 'T': options.tokens = lines_of(optarg, &options.token_count); break;
        case 'S': options.subscriptions = lines_of(optarg, &options.subscription_count); break;
        case 'l': options.later_ns = strtoull(optarg, NULL, 10) * 1000000u; break;
        case 'L': options.polls = true; break;
        case 'e': options.event = optarg; break;
        case 'y': options.ready_event = optarg; break;
        case 'k': options.marker = optarg; break;
        case 'M': publish_method = optarg; break;
        case 'Q': publish_path = optarg; break;
        case 'G': headers_append(&publish_headers, optarg); break;
        case 'b': publish_body = optarg; break;
        case 'u': users = strtoull(optarg, NULL, 10); break;
        case 'x': options.expect = strtoull(optarg, NULL, 10); break;
        case 'B': options.burst = strtoull(optarg, NULL, 10); break;
        case 'g': options.group = strtoull(optarg, NULL, 10); break;
        case 'w': options.window = strtoull(optarg, NULL, 10); break;
        case 's': options.seconds = atof(optarg); break;
        case 'W': options.warmup = atof(optarg); break;
        case 'r': options.rate = atof(optarg); break;
        case 'N': options.publishers = strtoull(optarg, NULL, 10); break;
        case 'i': options.server_pid = atoi(optarg); break;
        case 'o': options.open_timeout = atof(optarg); break;
        case 'I': options.until_input_ends = true; break;
        case 'f': options.first_number = strtoull(optarg, NULL, 10); break;
        default: die("unknown option");
        }
    if (!options.ports.count || !options.streams || options.threads < 1 || !options.burst || !options.window || !options.group)
        die("usage: sse_load --port P --streams N --mode hold|closed|paced [--path …] [--publish-path …] …");
    if (!options.publish_ports.count) options.publish_ports = options.ports;
    if (options.marker_topics && (!options.marker || options.burst != 1 || options.first_number))
        die("--marker-topics needs --marker, and counts requests from 0");
    if ((size_t)options.threads > options.streams) options.threads = (int)options.streams;
    if (!options.expect) options.expect = options.streams * options.burst;
    if (!options.publishers)
        options.publishers = options.mode == MODE_PACED ? 8 : options.group > options.window ? options.group : options.window;
    if (options.publishers > PUBLISHERS_MAX) die("at most %d events on their way", PUBLISHERS_MAX);
    if (!headers || !strcasestr(headers, "accept:")) headers_append(&headers, "Accept: text/event-stream");
    options.open_request = request_template("GET", path, headers, NULL, users);
    options.publish_request = request_template(publish_method, publish_path, publish_headers, publish_body, users);
}

static Reader *start_readers(void) {
    Reader *readers = must(calloc((size_t)options.threads, sizeof *readers));
    for (int t = 0; t < options.threads; t++) {
        Reader *reader = &readers[t];
        reader->index = t;
        reader->epoll = epoll_create1(EPOLL_CLOEXEC);
        reader->mine = options.streams / (size_t)options.threads + ((size_t)t < options.streams % (size_t)options.threads);
        reader->buffer = must(malloc(CARRY_MAX + READ_BYTES));
        if (options.mode == MODE_PACED || options.expect == 1) reader->samples = must(malloc(SAMPLES_MAX * sizeof *reader->samples));
        if (t > 0 && pthread_create(&reader->thread, NULL, read_streams, reader)) die("cannot start a thread");
    }
    return readers;
}

/* Waits until the initial events are over before counting starts: 300 ms without a byte, or 2 s, because heartbeats of
 * many streams never pause that long. */
static void settle(Reader *readers, struct epoll_event *events) {
    uint64_t quiet_since = now_ns(), give_up = quiet_since + 2000000000u, before = 0;
    while (now_ns() - quiet_since < 300000000u && now_ns() < give_up) {
        read_round(readers, events, 256, 10);
        uint64_t bytes = 0;
        for (int t = 0; t < options.threads; t++) bytes += *(volatile uint64_t *)&readers[t].bytes;
        if (bytes != before) before = bytes, quiet_since = now_ns();
    }
}

int main(int argc, char **argv) {
    parse(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit(options.streams + 128);
    streams = must(calloc(options.streams, sizeof *streams));
    for (size_t i = 0; i < options.streams; i++) streams[i].fd = -1;
    if (options.marker_topics)
        seen_of_topic = must(calloc(options.streams * options.publish_request.users, sizeof *seen_of_topic));
    wake_event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (options.until_input_ends) fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK);
    uint64_t begin = now_ns(), client = cpu_of_this_process_ns(), server = cpu_of_process_ns(options.server_pid);
    Reader *readers = start_readers();
    open_streams(readers);
    double opening = (double)(now_ns() - begin) / 1e9;
    client = cpu_of_this_process_ns() - client;
    server = cpu_of_process_ns(options.server_pid) - server;
    Outcome outcome = {0};
    unsigned long open_count = atomic_load(&opened);
    bool usable = open_count == options.streams;
    double subscribing = usable && options.subscriptions ? subscribe() : 0;
    if (usable) {
        struct epoll_event event = {.events = EPOLLIN, .data.u64 = options.streams + PUBLISHERS_MAX};
        epoll_ctl(readers->epoll, EPOLL_CTL_ADD, wake_event, &event);
        struct epoll_event events[256];
        settle(readers, events);
        atomic_store(&counting, true);
        if (options.mode == MODE_HOLD || options.until_input_ends) {
            printf("{\"ready\":%lu,\"openSeconds\":%.3f,\"subscribeSeconds\":%.3f,\"clientCpu\":%.3f,\"serverCpu\":%.3f}\n",
                   open_count, opening, subscribing, (double)client / 1e9 / opening / options.threads,
                   (double)server / 1e9 / opening);
            fflush(stdout);
        }
        if (options.mode == MODE_HOLD) {
            while (!input_ended()) read_round(readers, events, 256, 20);
            outcome.delivered = atomic_load(&delivered);
        } else {
            publishers = must(calloc(options.publishers, sizeof *publishers));
            for (size_t i = 0; i < options.publishers; i++) publisher_connect(readers, i);
            outcome = options.mode == MODE_CLOSED ? run_closed(readers) : run_paced(readers);
        }
    }
    atomic_store(&stopping, true);
    for (int t = 1; t < options.threads; t++) pthread_join(readers[t].thread, NULL);
    print_outcome(readers, &outcome, opening);
    for (size_t i = 0; i < options.streams; i++)
        if (streams[i].fd >= 0) close_now(streams[i].fd);
    return usable ? 0 : 3;
}
