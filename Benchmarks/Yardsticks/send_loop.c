/* Yardstick: fan-out as a bare loop over send(2).
 *
 * GET opens a stream (the head is sent and the socket kept). POST /publish?count=N sends the body, a complete SSE
 * event, N times to all streams: N × streams calls of send. It has no HTTP library, no queues and no authentication, so
 * it shows the cost of the kernel alone. One thread.
 *
 *   Usage: send_loop PORT */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#define DESCRIPTORS_MAX 65536
#define REQUEST_BYTES_MAX 16384

static int streams[DESCRIPTORS_MAX], stream_count, position_of[DESCRIPTORS_MAX];
static struct { char *bytes; size_t length; } inputs[DESCRIPTORS_MAX];
static unsigned long long refused;

static void forget(int fd) {
    int position = position_of[fd];
    if (position >= 0) {
        streams[position] = streams[--stream_count];
        position_of[streams[position]] = position;
        position_of[fd] = -1;
    }
    free(inputs[fd].bytes);
    inputs[fd].bytes = NULL;
    inputs[fd].length = 0;
    close(fd);
}

static void answer(int fd, const char *text) {
    if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0) refused++;
}

static void open_stream(int fd) {
    int on = 1, low_water = 16384;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &low_water, sizeof low_water);
    answer(fd, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\nretry: 1000\n\n");
    position_of[fd] = stream_count;
    streams[stream_count++] = fd;
    free(inputs[fd].bytes);
    inputs[fd].bytes = NULL;
    inputs[fd].length = 0;
}

static void publish(int fd, const char *event, size_t bytes, int count) {
    for (int i = 0; i < count; i++)
        for (int s = 0; s < stream_count; s++)
            if (send(streams[s], event, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)bytes) refused++;
    answer(fd, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
}

/* Takes one request from the input; returns 0 while it is incomplete. */
static size_t take_request(int fd) {
    char *bytes = inputs[fd].bytes;
    char *end = memmem(bytes, inputs[fd].length, "\r\n\r\n", 4);
    if (!end) return 0;
    size_t head = (size_t)(end - bytes) + 4;
    if (!strncmp(bytes, "POST", 4)) {
        char *length = strcasestr(bytes, "content-length:"), *count = strstr(bytes, "count=");
        size_t body = length ? strtoul(length + 15, NULL, 10) : 0;
        if (inputs[fd].length < head + body) return 0;
        publish(fd, end + 4, body, count && count < end ? atoi(count + 6) : 1);
        return head + body;
    }
    if (!strncmp(bytes, "GET /healthz", 12)) answer(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    else open_stream(fd);
    return head;
}

static void readable(int fd) {
    char scratch[REQUEST_BYTES_MAX];
    ssize_t n = recv(fd, scratch, sizeof scratch - 1, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0 || inputs[fd].length + (size_t)n >= REQUEST_BYTES_MAX) { forget(fd); return; }
    if (position_of[fd] >= 0) return;
    if (!inputs[fd].bytes && !(inputs[fd].bytes = malloc(REQUEST_BYTES_MAX))) { forget(fd); return; }
    memcpy(inputs[fd].bytes + inputs[fd].length, scratch, (size_t)n);
    inputs[fd].length += (size_t)n;
    inputs[fd].bytes[inputs[fd].length] = 0;
    for (size_t taken; inputs[fd].length && (taken = take_request(fd));) {
        if (!inputs[fd].bytes) return; /* it became a stream */
        inputs[fd].length -= taken;
        memmove(inputs[fd].bytes, inputs[fd].bytes + taken, inputs[fd].length + 1);
    }
}

int main(int argc, char **argv) {
    if (argc != 2) return fprintf(stderr, "usage: send_loop PORT\n"), 2;
    signal(SIGPIPE, SIG_IGN);
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    memset(position_of, -1, sizeof position_of);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096)) return perror("listen"), 1;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[256];
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int ready = epoll_wait(epoll, events, 256, -1);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd != listener) { readable(fd); continue; }
            for (int client; (client = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
                if (client >= DESCRIPTORS_MAX) { close(client); continue; }
                event = (struct epoll_event){.events = EPOLLIN | EPOLLRDHUP, .data.fd = client};
                epoll_ctl(epoll, EPOLL_CTL_ADD, client, &event);
            }
        }
    }
}
