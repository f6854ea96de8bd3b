/* HTTP load over keep-alive connections: closed loop (one request in flight per connection) or at a given rate.
 *
 * The latency of a paced request counts from its due time, so a server that stalls cannot hide the requests that the
 * stall held back. Prints one JSON object. */
#include "load.h"

typedef struct {
    int fd;
    size_t index, sent, to_send, received;
    uint64_t started; /* 0: idle */
    char *out;
    char *in;
} Connection;

#define IN_BYTES 262144

static struct {
    int port, connections, threads, server_pid;
    double seconds, warmup, rate;
    uint64_t count, first_number;
    RequestTemplate request;
    char **tokens;
    size_t token_count;
} options = {.connections = 64, .threads = 1, .seconds = 3, .warmup = 0.3};

typedef struct {
    pthread_t thread;
    int index;
    Histogram latency;
    uint64_t statuses[600], bytes, failures, reconnects, numbers;
} Worker;

static atomic_bool measuring, stopping;
static atomic_ullong finished; /* requests answered, for --count */
static atomic_ullong next_number;

static int open_connection(Worker *worker, Connection *c, int epoll) {
    c->fd = connect_from(-1, options.port);
    if (c->fd < 0) return -1;
    c->sent = c->to_send = c->received = 0;
    c->started = 0;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    (void)worker;
    return epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event);
}

static void wait_connected(Connection *c) {
    struct timespec pause = {0, 1000000};
    for (int i = 0; i < 2000; i++) {
        struct tcp_info info;
        socklen_t length = sizeof info;
        if (getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 && info.tcpi_state == TCP_ESTABLISHED) return;
        nanosleep(&pause, NULL);
    }
    die("cannot connect to port %d", options.port);
}

static bool flush_out(Connection *c, int epoll) {
    while (c->sent < c->to_send) {
        ssize_t n = send(c->fd, c->out + c->sent, c->to_send - c->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = c};
            epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event);
            return true;
        }
        if (n < 0) return false;
        c->sent += (size_t)n;
    }
    return true;
}

static bool start_request(Worker *worker, Connection *c, int epoll, uint64_t due) {
    uint64_t n = atomic_fetch_add_explicit(&next_number, 1, memory_order_relaxed);
    if (options.count && n - options.first_number >= options.count) return true;
    worker->numbers++;
    const char *token = options.tokens ? options.tokens[n % options.token_count] : NULL;
    c->to_send = request_render(&options.request, c->out, token, n, c->index);
    c->sent = 0;
    c->started = due;
    return flush_out(c, epoll);
}

static bool reconnect(Worker *worker, Connection *c, int epoll) {
    close_now(c->fd);
    worker->reconnects++;
    if (worker->reconnects > 100000 || open_connection(worker, c, epoll) != 0) return false;
    wait_connected(c);
    return true;
}

/* Reads the available bytes; returns true when a response is complete. */
static int read_response(Worker *worker, Connection *c, uint64_t *answered_at) {
    ssize_t n = recv(c->fd, c->in + c->received, IN_BYTES - c->received, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (n <= 0) return -1;
    c->received += (size_t)n;
    int status = 0;
    bool closes = false;
    size_t length = response_length(c->in, c->received, &status, &closes);
    if (!length) return c->received == IN_BYTES ? -1 : 0;
    *answered_at = now_ns();
    if (atomic_load_explicit(&measuring, memory_order_relaxed)) {
        histogram_add(&worker->latency, *answered_at - c->started);
        worker->bytes += length;
        worker->statuses[status >= 0 && status < 600 ? status : 0]++;
    }
    c->received -= length;
    if (c->received) memmove(c->in, c->in + length, c->received);
    atomic_fetch_add_explicit(&finished, 1, memory_order_relaxed);
    c->started = 0;
    return closes ? 2 : 1;
}

static void arm(int timer, uint64_t due) {
    struct itimerspec when = {.it_value = {(time_t)(due / 1000000000u), (long)(due % 1000000000u)}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static void *work(void *argument) {
    Worker *worker = argument;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int mine = options.connections / options.threads + (worker->index < options.connections % options.threads);
    Connection *connections = must(calloc((size_t)mine, sizeof *connections));
    size_t out_max = options.request.bytes_max + (options.tokens ? 8192 : 0);
    for (int i = 0; i < mine; i++) {
        connections[i].index = (size_t)(worker->index + i * options.threads);
        connections[i].out = must(malloc(out_max));
        connections[i].in = must(malloc(IN_BYTES));
        if (open_connection(worker, &connections[i], epoll) != 0) die("cannot connect: %s", strerror(errno));
    }
    for (int i = 0; i < mine; i++) wait_connected(&connections[i]);
    double rate = options.rate / options.threads;
    uint64_t base = now_ns(), due_index = 0;
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event);
    if (rate <= 0)
        for (int i = 0; i < mine; i++)
            if (!start_request(worker, &connections[i], epoll, now_ns())) worker->failures++;
    struct epoll_event events[128];
    for (int next_idle = 0; !atomic_load_explicit(&stopping, memory_order_relaxed);) {
        if (rate > 0) {
            for (uint64_t due; (due = base + (uint64_t)((double)due_index * 1e9 / rate)) <= now_ns();) {
                int tried = 0;
                while (tried < mine && connections[next_idle].started) { next_idle = (next_idle + 1) % mine; tried++; }
                if (tried == mine) break; /* all are busy: the request stays due and is counted from its due time */
                if (!start_request(worker, &connections[next_idle], epoll, due)) worker->failures++;
                due_index++;
            }
            uint64_t next = base + (uint64_t)((double)due_index * 1e9 / rate);
            if (next > now_ns()) arm(timer, next);
        }
        int ready = epoll_wait(epoll, events, 128, 100);
        for (int i = 0; i < ready; i++) {
            Connection *c = events[i].data.ptr;
            if (!c) {
                uint64_t expirations;
                (void)!read(timer, &expirations, sizeof expirations);
                continue;
            }
            if (events[i].events & EPOLLOUT) {
                struct epoll_event in = {.events = EPOLLIN, .data.ptr = c};
                epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &in);
                if (!flush_out(c, epoll)) worker->failures++;
            }
            uint64_t answered_at = 0;
            int result = read_response(worker, c, &answered_at);
            if (result < 0) {
                if (c->started) worker->failures++;
                if (!reconnect(worker, c, epoll)) die("lost the server");
            } else if (result == 2 && !reconnect(worker, c, epoll)) die("lost the server");
            if (result != 0 && rate <= 0) {
                if (!start_request(worker, c, epoll, answered_at ? answered_at : now_ns())) worker->failures++;
            }
        }
    }
    for (int i = 0; i < mine; i++) close_now(connections[i].fd);
    return NULL;
}

static void print_result(Worker *workers, double seconds, uint64_t client_cpu, uint64_t server_cpu) {
    static Histogram latency;
    static uint64_t statuses[600];
    uint64_t bytes = 0, failures = 0, reconnects = 0, requests = 0, good = 0;
    for (int t = 0; t < options.threads; t++) {
        histogram_merge(&latency, &workers[t].latency);
        for (int s = 0; s < 600; s++) statuses[s] += workers[t].statuses[s];
        bytes += workers[t].bytes;
        failures += workers[t].failures;
        reconnects += workers[t].reconnects;
    }
    for (int s = 0; s < 600; s++) requests += statuses[s];
    for (int s = 200; s < 400; s++) good += statuses[s];
    printf("{\"requests\":%llu,\"seconds\":%.3f,\"rps\":%.1f,\"good\":%llu,\"goodRps\":%.1f,\"failures\":%llu,"
           "\"reconnects\":%llu,\"bytes\":%llu,\"clientCpu\":%.3f,\"serverCpu\":%.3f,\"serverUsPerRequest\":%.2f,\"statuses\":{",
           (unsigned long long)requests, seconds, (double)requests / seconds, (unsigned long long)good,
           (double)good / seconds, (unsigned long long)failures, (unsigned long long)reconnects,
           (unsigned long long)bytes, (double)client_cpu / 1e9 / seconds / options.threads, (double)server_cpu / 1e9 / seconds,
           requests ? (double)server_cpu / 1e3 / (double)requests : 0);
    const char *separator = "";
    for (int s = 0; s < 600; s++)
        if (statuses[s]) {
            printf("%s\"%d\":%llu", separator, s, (unsigned long long)statuses[s]);
            separator = ",";
        }
    printf("},");
    histogram_print("latencyUs", &latency);
    printf("}\n");
}

static void parse(int argc, char **argv) {
    static const struct option longs[] = {
        {"port", 1, 0, 'p'}, {"connections", 1, 0, 'c'}, {"threads", 1, 0, 't'}, {"seconds", 1, 0, 's'},
        {"warmup", 1, 0, 'w'}, {"rate", 1, 0, 'r'}, {"count", 1, 0, 'n'}, {"first-number", 1, 0, 'f'},
        {"method", 1, 0, 'm'}, {"path", 1, 0, 'P'}, {"header", 1, 0, 'H'}, {"body", 1, 0, 'b'}, {"body-file", 1, 0, 'B'},
        {"users", 1, 0, 'u'}, {"tokens", 1, 0, 'T'}, {"server-pid", 1, 0, 'i'}, {0}};
    const char *method = "GET", *path = "/", *body = NULL;
    char *headers = NULL;
    uint64_t users = 1;
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) switch (c) {
        case 'p': options.port = atoi(optarg); break;
        case 'c': options.connections = atoi(optarg); break;
        case 't': options.threads = atoi(optarg); break;
        case 's': options.seconds = atof(optarg); break;
        case 'w': options.warmup = atof(optarg); break;
        case 'r': options.rate = atof(optarg); break;
        case 'n': options.count = strtoull(optarg, NULL, 10); break;
        case 'f': options.first_number = strtoull(optarg, NULL, 10); break;
        case 'm': method = optarg; break;
        case 'P': path = optarg; break;
        case 'H': headers_append(&headers, optarg); break;
        case 'b': body = optarg; break;
        case 'B': body = file_text(optarg); break;
        case 'u': users = strtoull(optarg, NULL, 10); break;
        case 'T': options.tokens = lines_of(optarg, &options.token_count); break;
        case 'i': options.server_pid = atoi(optarg); break;
        default: die("unknown option");
        }
    if (options.port <= 0 || options.connections < 1 || options.threads < 1 || options.threads > options.connections)
        die("usage: http_load --port P [--connections C --threads T --seconds S --path P …]");
    options.request = request_template(method, path, headers, body, users);
    atomic_store(&next_number, options.first_number);
}

static void pause_for(double seconds) {
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

int main(int argc, char **argv) {
    parse(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit((size_t)options.connections + 64);
    Worker *workers = must(calloc((size_t)options.threads, sizeof *workers));
    bool counted = options.count > 0;
    if (counted) atomic_store(&measuring, true);
    uint64_t start = now_ns(), client = cpu_of_this_process_ns(), server = cpu_of_process_ns(options.server_pid);
    for (int t = 0; t < options.threads; t++) {
        workers[t].index = t;
        if (pthread_create(&workers[t].thread, NULL, work, &workers[t])) die("cannot start a thread");
    }
    if (counted) {
        uint64_t give_up = start + (uint64_t)(options.seconds * 1e9);
        while (atomic_load(&finished) < options.count && now_ns() < give_up) pause_for(0.001);
    } else {
        pause_for(options.warmup);
        start = now_ns(), client = cpu_of_this_process_ns(), server = cpu_of_process_ns(options.server_pid);
        atomic_store(&measuring, true);
        pause_for(options.seconds);
    }
    atomic_store(&measuring, false);
    double seconds = (double)(now_ns() - start) / 1e9;
    client = cpu_of_this_process_ns() - client;
    server = cpu_of_process_ns(options.server_pid) - server;
    atomic_store(&stopping, true);
    for (int t = 0; t < options.threads; t++) pthread_join(workers[t].thread, NULL);
    print_result(workers, seconds, client, server);
    return 0;
}
