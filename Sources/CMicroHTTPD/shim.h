/* Wrappers for what Swift cannot import of libmicrohttpd: variadic functions, macros with casts, unions of results. */
#ifndef CMICROHTTPD_SHIM_H
#define CMICROHTTPD_SHIM_H

#include <fcntl.h>
#include <linux/filter.h>
#include <malloc.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline struct MHD_Daemon *cmhd_start(
    unsigned int flags, MHD_AccessHandlerCallback handler, void *context, struct MHD_OptionItem *options) {
    return MHD_start_daemon(flags, 0, NULL, NULL, handler, context, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
}

static inline int cmhd_epoll_descriptor(struct MHD_Daemon *daemon) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info == NULL ? -1 : info->epoll_fd;
}

static inline unsigned int cmhd_connection_count(struct MHD_Daemon *daemon) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    return info == NULL ? 0 : info->num_connections;
}

static inline int cmhd_connection_descriptor(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info == NULL ? -1 : info->connect_fd;
}

/* Returns the context that the MHD_OPTION_NOTIFY_CONNECTION callback set for the connection. */
static inline void *cmhd_connection_context(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

/* Whether the client has sent a byte. The C library's tcp_info is shorter than the kernel's. */
static inline int cmhd_has_received(int descriptor) {
    struct {
        struct tcp_info known;
        uint64_t pacing_rates[2], bytes_acked, bytes_received;
    } info = {0};
    _Static_assert(sizeof info.known == 104, "linux/tcp.h has tcpi_pacing_rate behind tcpi_total_retrans");
    socklen_t size = sizeof info;
    return getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || size < sizeof info || info.bytes_received > 0;
}

/* Returns the bytes from the method to the end of the empty line after the headers. */
static inline size_t cmhd_head_bytes(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info == NULL ? 0 : info->header_size;
}

/* Makes the kernel drop packets that would open a connection; handshakes in progress complete. If the listening socket were
   simply closed, its half-open connections would be reset, and a client could not know whether its request was processed. A
   client whose first packet was dropped retries on its own, and finds the socket closed. */
static inline int cmhd_refuse_new_connections(int listening) {
    struct sock_filter drop_syn[] = {
        {BPF_LD | BPF_B | BPF_ABS, 0, 0, 13}, /* TCP flags */
        {BPF_JMP | BPF_JSET | BPF_K, 0, 1, 2}, /* SYN */
        {BPF_RET | BPF_K, 0, 0, 0},
        {BPF_RET | BPF_K, 0, 0, 0xFFFFFFFF},
    };
    struct sock_fprog program = {sizeof drop_syn / sizeof drop_syn[0], drop_syn};
    return setsockopt(listening, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

static inline int cmhd_is_start(enum MHD_ConnectionNotificationCode code) {
    return code == MHD_CONNECTION_NOTIFY_STARTED;
}

/* Returns a response with a body of unknown length that ends when the connection closes, as in HTTP/1.0, without chunks. */
static inline struct MHD_Response *cmhd_stream_response(
    MHD_ContentReaderCallback reader, void *context, MHD_ContentReaderFreeCallback release) {
    struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 1, reader, context, release);
    if (response != NULL) {
        MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
    }
    return response;
}

/* Returns a response with a body of unknown length, which is sent in chunks. */
static inline struct MHD_Response *cmhd_pieces_response(
    size_t block, MHD_ContentReaderCallback reader, void *context, MHD_ContentReaderFreeCallback release) {
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, block, reader, context, release);
}

static inline ssize_t cmhd_no_bytes(void *context, uint64_t position, char *buffer, size_t max) {
    (void)context, (void)position, (void)buffer, (void)max;
    return MHD_CONTENT_READER_END_OF_STREAM;
}

/* Returns the response to HEAD for a body of unknown length. libmicrohttpd 0.9.75 would end a chunked answer to HEAD
 * with the last chunk, which the client takes for its next answer. So this one is not chunked, and the connection ends. */
static inline struct MHD_Response *cmhd_unsized_response(void) {
    struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 64, cmhd_no_bytes, 0, 0);
    if (response) MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
    return response;
}

static inline ssize_t cmhd_end_of_stream(void) { return MHD_CONTENT_READER_END_OF_STREAM; }

static inline ssize_t cmhd_end_with_error(void) { return MHD_CONTENT_READER_END_WITH_ERROR; }

/* Duplicates the descriptor of a socket, above the standard ones and with close-on-exec. */
static inline int cmhd_duplicate(int descriptor) { return fcntl(descriptor, F_DUPFD_CLOEXEC, 3); }

static inline int cmhd_set_integer(int descriptor, int level, int name, int value) {
    return setsockopt(descriptor, level, name, &value, sizeof value);
}

static inline uint64_t cmhd_monotonic_nanoseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Raises the soft limit of descriptors to the hard limit, and returns the resulting limit. */
static inline uint64_t cmhd_raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
    if (limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        getrlimit(RLIMIT_NOFILE, &limit);
    }
    return (uint64_t)limit.rlim_cur;
}

/* Returns the bytes that the process has allocated and not freed, without the allocator's reserves. */
static inline uint64_t cmhd_allocated_bytes(void) {
    struct mallinfo2 info = mallinfo2();
    return (uint64_t)info.uordblks + (uint64_t)info.hblkhd;
}

/* Pins the calling thread to one core: place 0 is the last core that it may use, place 1 the one before, and so on. It
 * makes the system calls directly, because their wrappers are hidden from Swift. */
static inline void cmhd_keep_on_core(unsigned int place) {
    enum { BITS = 8 * sizeof(unsigned long), WORDS = 8192 / BITS };
    unsigned long allowed[WORDS] = {0}, chosen[WORDS] = {0};
    if (syscall(SYS_sched_getaffinity, 0, sizeof allowed, allowed) < 0) return;
    unsigned int count = 0;
    for (unsigned int core = 0; core < WORDS * BITS; core++) count += allowed[core / BITS] >> core % BITS & 1;
    if (count == 0) return;
    unsigned int skipped = place % count;
    for (unsigned int core = WORDS * BITS; core-- > 0;) {
        if (!(allowed[core / BITS] >> core % BITS & 1) || skipped-- > 0) continue;
        chosen[core / BITS] = 1ul << core % BITS;
        break;
    }
    syscall(SYS_sched_setaffinity, 0, sizeof chosen, chosen);
}

#endif
