#ifndef BELLHOP_CRESOURCES_H
#define BELLHOP_CRESOURCES_H

#include <stddef.h>

// Returns the bytes of a file that is embedded in the binary; NULL if there is no file of this name.
const unsigned char *cresources_find(const char *name, size_t *count);

#endif
