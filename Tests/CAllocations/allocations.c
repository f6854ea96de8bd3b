/* The functions of libc are replaced for the whole test process, so that a test can count the work of the code under
 * test. Under a sanitizer, which replaces them itself, a hook counts. */
#define _GNU_SOURCE
#include "CAllocations.h"

#include <errno.h>
#include <stddef.h>

/* In the executable's own storage, because the usual storage of threads may be allocated at the first access. */
static __thread uint64_t count __attribute__((tls_model("initial-exec")));
static __thread uint64_t bytes __attribute__((tls_model("initial-exec")));

uint64_t callocations_count(void) { return count; }
uint64_t callocations_bytes(void) { return bytes; }

static void note(size_t size) {
    count++;
    bytes += size;
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif

#if IS_SANITIZED
int __sanitizer_install_malloc_and_free_hooks(
    void (*allocated)(const volatile void *, size_t), void (*released)(const volatile void *));

static void allocated(const volatile void *memory, size_t size) {
    (void)memory;
    note(size);
}

static void released(const volatile void *memory) { (void)memory; }

__attribute__((constructor)) static void begin(void) { __sanitizer_install_malloc_and_free_hooks(allocated, released); }
#elif defined(__GLIBC__)
/* The names by which glibc calls its own functions. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t size) {
    note(size);
    return __libc_malloc(size);
}

void *calloc(size_t items, size_t size) {
    note(items * size);
    return __libc_calloc(items, size);
}

void *realloc(void *memory, size_t size) {
    note(size);
    return __libc_realloc(memory, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    if (alignment % sizeof(void *) || !alignment || alignment & (alignment - 1)) return EINVAL;
    note(size);
    void *found = __libc_memalign(alignment, size);
    if (!found) return ENOMEM;
    *memory = found;
    return 0;
}

void *aligned_alloc(size_t alignment, size_t size) {
    note(size);
    return __libc_memalign(alignment, size);
}
#endif
