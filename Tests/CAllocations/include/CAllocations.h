/* Counts the heap allocations of a thread. */
#pragma once
#include <stdint.h>

/* Returns the number of allocations that the calling thread has made. */
uint64_t callocations_count(void);

/* Returns the number of bytes that the calling thread has allocated. */
uint64_t callocations_bytes(void);
