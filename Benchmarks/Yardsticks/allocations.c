/* Counts the heap allocations of a process by their caller. When preloaded (LD_PRELOAD), it counts each call of malloc
 * and related functions by the object that contains the return address: the executable (the service, with the Swift
 * runtime linked into it), libmicrohttpd, the database's library (libsqlite3, libpq), or any other. A call of strdup
 * counts for its caller. Allocations of libc for its own purposes count as other.
 *
 * ALLOCATIONS_FILE names a file of at least 32 bytes, which is mapped. It contains four counters of 64 bits in that
 * order, and any process can read them while this one runs. Without the file nothing can be read.
 *
 *   gcc -O2 -shared -fPIC -o allocations.so allocations.c */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OURS, HTTP, DATABASE, OTHER, OWNERS };
enum { RANGES_MAX = 32 };

/* glibc's internal names, so that no symbol lookup is needed before the first allocation. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static struct {
    uintptr_t begin, end;
    int owner;
} ranges[RANGES_MAX];
static int range_count; /* 0 until the objects are known; earlier allocations count as other */

static uint64_t unread[OWNERS];
static uint64_t *counters = unread;

static void count(const void *caller) {
    uintptr_t address = (uintptr_t)caller;
    int owner = OTHER;
    for (int i = 0; i < range_count; i++)
        if (address >= ranges[i].begin && address < ranges[i].end) {
            owner = ranges[i].owner;
            break;
        }
    __atomic_fetch_add(&counters[owner], 1, __ATOMIC_RELAXED);
}

static int owner_of(const char *path) {
    if (!*path) return OURS;
    if (strstr(path, "libmicrohttpd")) return HTTP;
    if (strstr(path, "libsqlite3") || strstr(path, "libpq")) return DATABASE;
    return OTHER;
}

static int add_object(struct dl_phdr_info *object, size_t size, void *closure) {
    (void)size, (void)closure;
    int owner = owner_of(object->dlpi_name);
    for (int i = 0; owner != OTHER && i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) || range_count == RANGES_MAX) continue;
        ranges[range_count].begin = object->dlpi_addr + segment->p_vaddr;
        ranges[range_count].end = ranges[range_count].begin + segment->p_memsz;
        ranges[range_count].owner = owner;
        range_count++;
    }
    return 0;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("ALLOCATIONS_FILE");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof unread, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED) return;
    dl_iterate_phdr(add_object, NULL);
    counters = mapped;
}

void *malloc(size_t bytes) {
    count(__builtin_return_address(0));
    return __libc_malloc(bytes);
}

void *calloc(size_t items, size_t bytes) {
    count(__builtin_return_address(0));
    return __libc_calloc(items, bytes);
}

void *realloc(void *memory, size_t bytes) {
    count(__builtin_return_address(0));
    return __libc_realloc(memory, bytes);
}

void *reallocarray(void *memory, size_t items, size_t bytes) {
    count(__builtin_return_address(0));
    size_t total;
    if (__builtin_mul_overflow(items, bytes, &total)) return errno = ENOMEM, NULL;
    return __libc_realloc(memory, total);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
    count(__builtin_return_address(0));
    if (alignment % sizeof(void *) || !alignment || alignment & (alignment - 1)) return EINVAL;
    void *found = __libc_memalign(alignment, bytes);
    if (!found) return ENOMEM;
    *memory = found;
    return 0;
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    count(__builtin_return_address(0));
    return __libc_memalign(alignment, bytes);
}

void *memalign(size_t alignment, size_t bytes) {
    count(__builtin_return_address(0));
    return __libc_memalign(alignment, bytes);
}

static char *copy(const char *text, size_t length) {
    char *made = __libc_malloc(length + 1);
    if (!made) return NULL;
    memcpy(made, text, length);
    made[length] = 0;
    return made;
}

char *strdup(const char *text) {
    count(__builtin_return_address(0));
    return copy(text, strlen(text));
}

char *strndup(const char *text, size_t length_max) {
    count(__builtin_return_address(0));
    return copy(text, strnlen(text, length_max));
}
