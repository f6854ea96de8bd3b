/* The C equivalent of the service's HTTP reactor: one thread, libmicrohttpd in external-poll mode with the same flags
 * and options, its epoll nested in ours. The difference between this and the service is the service's own cost. */
#ifndef MHD_LOOP_H
#define MHD_LOOP_H

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* An additional descriptor of the loop: `ready` is called on the loop's thread when it is readable. */
typedef struct {
    int descriptor;
    void (*ready)(void);
} Waker;

static int serve_forever(
    int port, MHD_AccessHandlerCallback handler, MHD_RequestCompletedCallback completed, const Waker *waker) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct MHD_OptionItem items[] = {
        {MHD_OPTION_SOCK_ADDR, 0, &address},
        {MHD_OPTION_CONNECTION_LIMIT, 4096, NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, 60, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, 16384, NULL},
        {MHD_OPTION_LISTEN_BACKLOG_SIZE, 4096, NULL},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)completed, NULL},
        {MHD_OPTION_END, 0, NULL}};
    signal(SIGPIPE, SIG_IGN);
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_TURBO | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handler, NULL,
        MHD_OPTION_ARRAY, items, MHD_OPTION_END);
    if (!daemon) {
        fprintf(stderr, "cannot listen on port %d\n", port);
        return 1;
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = info->epoll_fd};
    epoll_ctl(epoll, EPOLL_CTL_ADD, info->epoll_fd, &event);
    if (waker) {
        event.data.fd = waker->descriptor;
        epoll_ctl(epoll, EPOLL_CTL_ADD, waker->descriptor, &event);
    }
    struct epoll_event events[2];
    for (;;) {
        MHD_UNSIGNED_LONG_LONG timeout;
        int wait = MHD_get_timeout(daemon, &timeout) == MHD_YES ? (int)(timeout < 1000 ? timeout : 1000) : 1000;
        int count = epoll_wait(epoll, events, 2, wait);
        for (int i = 0; i < count; i++)
            if (waker && events[i].data.fd == waker->descriptor) waker->ready();
        MHD_run(daemon);
    }
}

#endif
