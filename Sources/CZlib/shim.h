#ifndef BELLHOP_CZLIB_SHIM_H
#define BELLHOP_CZLIB_SHIM_H

#include <stddef.h>
#include <zlib.h>

// Swift does not import macros with arguments, such as deflateInit2.

// The largest size of the compressed form of `count` bytes, with the header and the trailer of gzip.
static inline size_t czlib_gzip_bytes_max(size_t count) { return compressBound((uLong)count) + 32; }

// Compresses bytes as gzip, as small as possible. Returns the number of written bytes, or 0 if they do not fit.
static inline size_t czlib_gzip(const unsigned char *bytes, size_t count, unsigned char *target, size_t max) {
    z_stream stream = {0};
    // 15 is the largest window; 16 selects the format of gzip; 9 is the largest memory.
    if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK) return 0;
    stream.next_in = (unsigned char *)bytes;
    stream.avail_in = (uInt)count;
    stream.next_out = target;
    stream.avail_out = (uInt)max;
    const int result = deflate(&stream, Z_FINISH);
    const size_t written = stream.total_out;
    deflateEnd(&stream);
    return result == Z_STREAM_END ? written : 0;
}

#endif
