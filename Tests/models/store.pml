/* A store of a client: a snapshot that is fetched, merged with the events of a stream.
 *
 * Covers: when a store fetches its state (at the start, when the stream opens, after a gap), the events that arrive
 * during a fetch, answers that are older than events, streams that break and resume, and the three ways to merge: a list
 * without versions, a state with versions, and rows that the app loads by itself.
 *
 * Promise: once the stream is open and nothing is on its way, the store shows the state of the service.
 *
 * Disturbances: the stream breaks, and resumes where it was or with a gap; a fetch fails. Before a fetch is answered,
 * its snapshot may be taken at any moment, and any number of events may arrive.
 *
 * Leaves out: changes by the user that wait for their answer, several items, epochs of versions, the pauses before a
 * retry.
 *
 * Stands for: Sources/BellhopClient/Machines/Loading.swift, NotificationsMachine.swift (list), BookingMachine.swift
 * (versions), RowsMachine.swift (rows), and their twins in Sources/bellhop.js/machines.
 *
 * BUG_SINCE: events that arrive during a fetch are not applied to its answer.
 * BUG_COVERED: the state is not fetched again when the stream opens.
 * BUG_AGAIN: a gap during a fetch does not cause another one.
 * BUG_OVERFLOW: events beyond the limit of a fetch are dropped without another fetch.
 * BUG_VERSION: an answer replaces a newer state.
 * BUG_HEARD: rows that the app loads replace rows of events.
 * BUG_CLEARED: after a gap, rows of events before it win over loaded rows.
 * LIMIT_PUT: the app fetches its rows before the service has accepted the filter.
 * LIMIT_FETCH: the app loads the answer of a fetch that began before a gap.
 */
#define LIST 0
#define VERSIONS 1
#define ROWS 2
#ifndef MODE
#define MODE LIST
#endif
#ifndef CHANGES
#define CHANGES 4
#endif
#ifndef DISTURBANCES
#define DISTURBANCES 3
#endif
#define KEPT_MAX 1 /* events that a fetch keeps */
#define NOTHING 255

/* The service: the number of the last change is the state, and its version. */
byte state;

/* The stream: its position is the last event that it delivered. */
bool isOpen, wasOpen, isGap;
byte position;

/* The store. */
bool isLoading, isAgain, isCovered, hasStarted;
byte shown = NOTHING, kept, keptCount;
/* The fetch: its snapshot, once it is taken. */
byte snapshot = NOTHING;
/* Rows: whether an event has changed the row since the last gap. */
bool isHeard;

byte disturbances;
bool isOver;
hidden byte rounds;

inline begin() {
    if
    :: isLoading ->
#ifndef BUG_AGAIN
        isAgain = true
#endif
    :: else -> isLoading = true; isAgain = false; kept = 0; keptCount = 0; snapshot = NOTHING
    fi
}

/* Loading.answered, and the merge */
inline answer() {
    printf("The answer of %d arrives.\n", snapshot);
    if
    :: MODE == LIST ->
        shown = snapshot;
#ifndef BUG_SINCE
        if :: kept -> shown = kept :: else fi
#endif
    :: MODE == VERSIONS ->
#ifdef BUG_VERSION
        shown = snapshot
#else
        if :: shown == NOTHING || snapshot > shown -> shown = snapshot :: else fi
#endif
    :: MODE == ROWS ->
#ifdef BUG_HEARD
        shown = snapshot
#else
        if :: !isHeard || shown == NOTHING -> shown = snapshot :: else fi
#endif
    fi;
    kept = 0; keptCount = 0; snapshot = NOTHING;
    isLoading = isAgain; isAgain = false
}

inline fail() {
    printf("The fetch fails.\n");
    kept = 0; keptCount = 0; snapshot = NOTHING;
    if :: !isOpen -> isCovered = false :: else fi;
    /* It is repeated after a pause; a store that is not covered fetches when the stream opens, too. */
    isLoading = true; isAgain = false
}

inline hear() {
    position++;
    printf("Event %d arrives.\n", position);
    if
    :: MODE != ROWS && isLoading ->
        if
        :: keptCount < KEPT_MAX -> kept = position; keptCount++
        :: else ->
#ifndef BUG_OVERFLOW
            isAgain = true;
#endif
            kept = 0; keptCount = KEPT_MAX
        fi
    :: else
    fi;
    if
    :: MODE == LIST && shown != NOTHING -> shown = position
    :: MODE == VERSIONS -> if :: shown == NOTHING || position > shown -> shown = position :: else fi
    :: MODE == ROWS -> shown = position; isHeard = true
    :: else
    fi
}

inline open() {
    isOpen = true;
    if
    :: !wasOpen || isGap ->
        position = state;
        if
        :: isGap ->
            printf("The stream opens with a gap.\n");
            isCovered = true; isGap = false;
#ifndef BUG_CLEARED
            isHeard = false;
#endif
#ifdef LIMIT_FETCH
            if :: !isLoading -> begin() :: else fi
#else
            if :: MODE == ROWS -> isLoading = false :: else fi;
            begin()
#endif
        :: else ->
            printf("The stream opens.\n");
#ifndef BUG_COVERED
            if :: MODE != ROWS && hasStarted && !isCovered -> begin() :: else fi;
#endif
            isCovered = true
        fi;
        wasOpen = true
    :: else ->
        printf("The stream resumes.\n");
        if :: MODE != ROWS && !isCovered -> isCovered = true; begin() :: else fi
    fi
}

inline start() {
    hasStarted = true; isCovered = isOpen;
    printf("The store starts.\n");
    begin()
}

#ifdef LIMIT_PUT
#define MAY_START true
#else
/* The app fetches its rows once the service has accepted the filter. */
#define MAY_START (MODE != ROWS || isOpen)
#endif
#define DISTURB disturbances < DISTURBANCES -> disturbances++

active proctype world() {
    do
    :: d_step { state < CHANGES && !isOver -> state++; printf("The service changes to %d.\n", state) }
    :: d_step { !hasStarted && MAY_START && !isOver -> start() }
    :: d_step { !isOpen && !isOver -> open() }
    :: d_step { isOpen && position < state && hasStarted -> hear() }
    :: d_step { isOpen && position < state && !hasStarted -> position++ }
    :: d_step { isLoading && snapshot == NOTHING -> snapshot = state; printf("The service reads %d.\n", snapshot) }
    :: d_step { isLoading && snapshot != NOTHING -> answer() }
    :: d_step { isLoading && DISTURB; fail() }
    :: d_step { isOpen && DISTURB; isOpen = false; printf("The stream breaks.\n") }
    :: d_step { !isOpen && wasOpen && !isGap && DISTURB; isGap = true }
    :: d_step { !isOver && hasStarted ->
        if :: !isOpen -> open() :: else fi;
        rounds = 0;
        do
        :: rounds < 20 && position < state -> hear(); rounds++
        :: rounds < 20 && position == state && isLoading ->
            if :: snapshot == NOTHING -> snapshot = state :: else fi;
            answer(); rounds++
        :: else -> break
        od;
        printf("At the end: the service has %d, the store shows %d.\n", state, shown);
        assert(shown == state);
        state = CHANGES; isOpen = true; wasOpen = true; isGap = false; position = CHANGES; shown = 0; isHeard = false;
        isCovered = false; disturbances = DISTURBANCES; isOver = true; isLoading = false }
    :: isOver -> break
    od
}
