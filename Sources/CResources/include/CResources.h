#ifndef BELLHOP_CRESOURCES_H
#define BELLHOP_CRESOURCES_H

#include <stddef.h>

// A file that is part of the binary; null where none has the name.
const unsigned char *cresources_find(const char *name, size_t *count);

#endif
