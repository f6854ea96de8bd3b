#ifndef BELLHOP_CPOSTGRESQL_SHIM_H
#define BELLHOP_CPOSTGRESQL_SHIM_H

#include <libpq-fe.h>

// Swift does not import macros that expand to characters.

static inline int cpostgresql_field_sqlstate(void) { return PG_DIAG_SQLSTATE; }
static inline int cpostgresql_field_message(void) { return PG_DIAG_MESSAGE_PRIMARY; }

#endif
