#ifndef BELLHOP_CCURL_SHIM_H
#define BELLHOP_CCURL_SHIM_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

// Swift imports neither variadic functions nor curl's compound macros.

static inline CURLcode ccurl_global_init(void) { return curl_global_init(CURL_GLOBAL_DEFAULT); }

static inline CURLcode ccurl_set_long(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLMcode ccurl_set_multi_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

static inline CURLcode ccurl_set_text(CURL *handle, CURLoption option, const char *value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode ccurl_set_headers(CURL *handle, struct curl_slist *headers) {
    return curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
}

// With a null pointer, curl would read the body from standard input.
static inline CURLcode ccurl_set_body(CURL *handle, const void *bytes, long count) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE, count);
    return code != CURLE_OK ? code : curl_easy_setopt(handle, CURLOPT_COPYPOSTFIELDS, bytes ? bytes : "");
}

typedef size_t (*ccurl_receive)(char *bytes, size_t size, size_t count, void *context);
typedef int (*ccurl_progress)(void *context, curl_off_t, curl_off_t, curl_off_t, curl_off_t);
typedef curl_socket_t (*ccurl_open_socket)(void *context, curlsocktype purpose, struct curl_sockaddr *address);

static inline void ccurl_set_callbacks(CURL *handle, void *context, ccurl_receive header, ccurl_receive body,
                                       ccurl_progress progress, ccurl_open_socket open_socket) {
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, header);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, context);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, body);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, context);
    curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, progress);
    curl_easy_setopt(handle, CURLOPT_XFERINFODATA, context);
    curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(handle, CURLOPT_OPENSOCKETDATA, context);
}

static inline CURLcode ccurl_set_receivers(CURL *handle, void *context, ccurl_receive header, ccurl_receive body) {
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, header);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, context);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, body);
    return curl_easy_setopt(handle, CURLOPT_WRITEDATA, context);
}

typedef int (*ccurl_close_socket)(void *context, curl_socket_t socket);

// The connection keeps the context, and may outlive the request.
static inline void ccurl_set_close_socket(CURL *handle, void *context, ccurl_close_socket close_socket) {
    curl_easy_setopt(handle, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    curl_easy_setopt(handle, CURLOPT_CLOSESOCKETDATA, context);
}

// Returns the port of this machine by which the last connection of a request leaves; 0 if there was none.
static inline long ccurl_local_port(CURL *handle) {
    long port = 0;
    curl_easy_getinfo(handle, CURLINFO_LOCAL_PORT, &port);
    return port;
}

typedef int (*ccurl_leave)(void *context, char *, char *, int, int);

// Calls a function when the connection of a request is ready. A result other than 0 ends the request.
static inline void ccurl_set_leave(CURL *handle, void *context, ccurl_leave leave) {
    curl_easy_setopt(handle, CURLOPT_PREREQFUNCTION, leave);
    curl_easy_setopt(handle, CURLOPT_PREREQDATA, context);
}

// Returns a request that has ended, and its result; NULL if there is none.
static inline CURL *ccurl_take_ended(CURLM *multi, CURLcode *code) {
    int left;
    CURLMsg *message;
    while ((message = curl_multi_info_read(multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE) continue;
        *code = message->data.result;
        return message->easy_handle;
    }
    return NULL;
}

static inline long ccurl_status(CURL *handle) {
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static inline long long ccurl_retry_after(CURL *handle) {
    curl_off_t seconds = 0;
    curl_easy_getinfo(handle, CURLINFO_RETRY_AFTER, &seconds);
    return seconds;
}

static inline curl_socket_t ccurl_bad_socket(void) { return CURL_SOCKET_BAD; }

#endif
