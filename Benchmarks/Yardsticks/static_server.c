/* Yardstick: a bare libmicrohttpd server with one static response of the size of GET /v1/badges.
 *
 *   Usage: static_server PORT. Any path returns 200; with an If-None-Match header 304. */
#include "mhd_loop.h"

static struct MHD_Response *found, *unchanged;

static enum MHD_Result answer(void *closure, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *upload, size_t *upload_bytes, void **slot) {
    (void)closure, (void)url, (void)method, (void)version, (void)upload, (void)upload_bytes;
    static int seen;
    if (!*slot) { /* a response in the first call would force Connection: close */
        *slot = &seen;
        return MHD_YES;
    }
    if (MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "If-None-Match"))
        return MHD_queue_response(connection, 304, unchanged);
    return MHD_queue_response(connection, 200, found);
}

int main(int argc, char **argv) {
    if (argc != 2) return fprintf(stderr, "usage: static_server PORT\n"), 2;
    static char body[] = "{\"messages\":0,\"requests\":0,\"bell\":1,\"total\":1,\"version\":7,\"asOf\":\"2026-01-01T00:00:00.000Z\"}";
    found = MHD_create_response_from_buffer(sizeof body - 1, body, MHD_RESPMEM_PERSISTENT);
    MHD_add_response_header(found, "Content-Type", "application/json");
    MHD_add_response_header(found, "ETag", "\"7\"");
    unchanged = MHD_create_response_from_buffer(0, body, MHD_RESPMEM_PERSISTENT);
    MHD_add_response_header(unchanged, "ETag", "\"7\"");
    return serve_forever(atoi(argv[1]), answer, NULL, NULL);
}
