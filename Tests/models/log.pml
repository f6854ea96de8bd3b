/* The event log with two replicas: counter, pump, epoch, resume and failover.
 *
 * Covers: how a replica follows the log to which the other replica also writes (reads, polls, doubts, terms, epochs),
 * how the log gets a new epoch, and how a client resumes with its Last-Event-ID on either replica.
 *
 * Promise: once writing goes on undisturbed, every replica has the log's epoch within two seconds. A client that was not
 * told to resync has received each event after its first position once, in order, with the content of the log. An id of
 * the log's epoch names one event. No replica passes over an erased event: it publishes the event before the erasure, or
 * catches up (reads the revocations) and restarts its streams.
 *
 * Disturbances, at any moment: a failover that loses the last events and perhaps the newest epoch, a request that fails,
 * pruning, the erasure of an event, the end and restart of a process, a new epoch without a loss (as a source of rows
 * causes it). A client may leave and resume at any moment, also in the middle of a replay.
 *
 * Leaves out: tenants, topics and audiences; collapsed events; records of several events; the queue between the pump and
 * its shards; replays that overflow; the age of what a replica publishes from memory; the time between the term that a
 * writer reads and its commit. With the client, a request of a replica and its answer are one step.
 *
 * Stands for: Sources/Realtime/LogFollower.swift, Cursor.swift (Resumption), StreamReplay.swift;
 * Sources/Service/Log/EventPump.swift, EventLog.swift (append), EventLog+Upkeep.swift (epochs);
 * Sources/Service/Streams/StreamReader.swift (start); Docs/decisions/0005-commit-order.md.
 *
 * BUG_B1: a replica polls only after a second without announcements.
 * BUG_B2: the doubt is not kept, and timelines are not compared.
 * BUG_B2_DATA: polls compare only a part of an event, and a lost event can share it with its successor; timelines are
 *   not compared.
 * BUG_TERM: an event that was appended before the log was replaced is published after it.
 * BUG_EPOCH: a client resumes by its number alone.
 * BUG_READY: the id of stream:ready is the position after the replay.
 * BUG_POSITION: a client that is ahead of its new replica receives events again.
 * BUG_ERASED: a replica that was behind takes an erased event for one that no stream needs.
 * BUG_BLANK: a client that resumes takes an erased event for one that it does not need.
 */
#ifndef COMMITS
#define COMMITS 3
#endif
#ifndef DISTURBANCES
#define DISTURBANCES 2
#endif
#ifndef JOINS
#define JOINS 2 /* of the client */
#endif
#ifndef KINDS
#define KINDS 63
#endif
#ifndef WRITERS
#define WRITERS 1 /* for each replica */
#endif
#define BEATS 4   /* of half a second, which is half the pause between polls */
#define N (COMMITS + BEATS)
/* Kinds of disturbances */
#define FAILOVER 1
#define RESTART 2
#define FAILURE 4
#define RENEWAL 8
#define PRUNING 16
#define ERASURE 32
#define LIMIT 3   /* events of one read */
#define EPOCHS 5
#define ALL (WRITERS * 2)
#define OF(x) ((x) / WRITERS)
#define AT(i, n) ((i) * (N + 1) + (n))

/* The content of an erased event, of which only the number is left. */
#define ERASED 15

/* The server. The content of an event is the timeline on which it was written, plus 1. No event is 0. */
byte log[N + 1];
byte newest, pruned, epoch, origin, timeline, names;
/* What a failover can take back: the epoch before the last renewal. */
bool renewed;
byte formerEpoch, formerOrigin, renewedAt;

/* LogFollower of each replica. */
byte head[2], myEpoch[2], term[2], lastAt[2], lastOf[2], doubtAt[2], doubtOf[2];
byte waiting[2 * (N + 1)];
bool isPollWanted[2], isReadWanted[2], isDue[2];
byte age[2];
bool isConnectionLost[2];
/* Whether the replica may lack a revocation: it passed over an erased event without catching up. */
bool isUnaware[2];

/* The step that the pump performs: the request, and what the server answered. */
mtype = { idle, reads, polls, adopts, restarts, rereads };
mtype step[2] = idle;
byte askedHead[2], askedAt[2], askedOf[2], askedEpoch[2];
byte foundNewest[2], foundEpoch[2], foundOf[2];
bool foundMoved[2], isAll[2];
byte found[2 * (N + 1)];

/* What each writer has committed and not handed over: the term, the number and the content. */
byte writerTerm[ALL], writerAt[ALL], writerOf[ALL];
/* An epoch that this process gave the log, not yet told to its follower. */
byte ownEpoch[2];

/* One client. */
mtype = { away, opening, live };
mtype client = away;
byte where, joinedAt, joinedEpoch, cursorEpoch, cursor;
bool hasCursor;
byte got[N + 1];      /* contents since the first position */
byte base;            /* the first position */
byte queued[N + 1];

/* The highest number that streams have received under each epoch, and the epochs (as bits) of which an id names an event
 * that the log does not have. */
byte told[EPOCHS];
byte broken;
byte commits, disturbances, joins;
bool isReversed, isOver;

hidden byte me, a, b, c, k, n, i, w, place, rounds;
hidden byte isOther;

inline endStreams(r) { if :: client != away && where == r -> client = away; clearQueue() :: else fi }

inline clearQueue() { n = 0; do :: n <= N -> queued[n] = 0; n++ :: else -> break od; n = 0 }

inline clearWaiting(r) { n = 0; do :: n <= N -> waiting[AT(r, n)] = 0; n++ :: else -> break od; n = 0 }

inline clearFound(r) { n = 0; do :: n <= N -> found[AT(r, n)] = 0; n++ :: else -> break od; n = 0 }

/* Delivers the event at the head of a replica. */
inline publish(r, content) {
    if :: head[r] > told[myEpoch[r]] -> told[myEpoch[r]] = head[r] :: else fi;
    if
    :: head[r] > newest || (head[r] > pruned && log[head[r]] != content && log[head[r]] != ERASED) -> broken = broken | (1 << myEpoch[r])
    :: else
    fi;
    lastAt[r] = head[r]; lastOf[r] = content;
    if :: content == ERASED -> isUnaware[r] = true :: else fi;
    if
    :: client == opening && where == r -> queued[head[r]] = content
    :: client == live && where == r && (head[r] > cursor) ->
        assert(head[r] == cursor + 1);
        cursor = head[r]; assert(!got[cursor]); got[cursor] = content
    :: else
    fi
}

inline takeNext(r) {
    do
    :: head[r] < N && waiting[AT(r, head[r] + 1)] ->
        head[r]++;
        c = waiting[AT(r, head[r])]; waiting[AT(r, head[r])] = 0;
        publish(r, c)
    :: else -> break
    od
}

inline hasWaiting(r, is) {
    is = false; n = 0;
    do :: n <= N -> is = is || waiting[AT(r, n)]; n++ :: else -> break od;
    n = 0
}

inline doubt(r) {
#if !defined(BUG_B2)
    if :: doubtAt[r] == 0 -> doubtAt[r] = lastAt[r]; doubtOf[r] = lastOf[r] :: else fi;
#endif
    isPollWanted[r] = true
}

/* LogFollower.committed */
inline handOver(r, x) {
    if
#ifndef BUG_TERM
    :: writerTerm[x] != term[r] -> isReadWanted[r] = true
#endif
    :: else ->
        if
        :: writerAt[x] > head[r] -> waiting[AT(r, writerAt[x])] = writerOf[x]
        :: writerAt[x] <= head[r] && writerAt[x] == lastAt[r] && writerOf[x] == lastOf[r]
        :: writerAt[x] <= head[r] && !(writerAt[x] == lastAt[r] && writerOf[x] == lastOf[r]) -> doubt(r)
        fi;
        takeNext(r);
        hasWaiting(r, isOther);
        isReadWanted[r] = isReadWanted[r] || isOther
    fi;
    writerTerm[x] = 0; writerAt[x] = 0; writerOf[x] = 0
}

/* LogFollower.announced */
inline hear(r) {
    if
    :: isConnectionLost[r] -> isConnectionLost[r] = false; doubt(r); isDue[r] = true
    :: else -> isReadWanted[r] = true
    fi
}

/* LogFollower.nextRequest, and the server's answer. */
inline ask(r) {
    if
#ifdef BUG_B1
    :: isReadWanted[r] && !isPollWanted[r] -> isDue[r] = false; age[r] = 0; askRead(r)
    :: isPollWanted[r] || (isDue[r] && !isReadWanted[r]) -> askPoll(r)
#else
    :: isDue[r] || isPollWanted[r] -> askPoll(r)
    :: else -> askRead(r)
#endif
    fi
}

inline askPoll(r) {
    askedHead[r] = head[r]; askedEpoch[r] = myEpoch[r];
    if
    :: doubtAt[r] -> askedAt[r] = doubtAt[r]; askedOf[r] = doubtOf[r]
    :: else -> askedAt[r] = lastAt[r]; askedOf[r] = lastOf[r]
    fi;
    foundNewest[r] = newest; foundEpoch[r] = epoch;
    place = askedAt[r];
    foundOf[r] = ((place && place > pruned && place <= newest) -> log[place] : 0);
#if !defined(BUG_B2) && !defined(BUG_B2_DATA)
    foundMoved[r] = isDue[r] && timeline != origin;
#endif
    if :: isDue[r] -> age[r] = 0 :: else fi;
    isDue[r] = false; isPollWanted[r] = false; doubtAt[r] = 0; doubtOf[r] = 0;
    step[r] = polls
}

inline askRead(r) {
    isReadWanted[r] = false;
    askedAt[r] = lastAt[r]; askedOf[r] = lastOf[r];
    n = (head[r] > pruned -> head[r] : pruned + 1); k = 0;
    if :: n == 0 -> n = 1 :: else fi;
    do
    :: n <= newest && k < LIMIT -> found[AT(r, n)] = log[n]; n++; k++
    :: else -> break
    od;
    isAll[r] = n > newest;
    n = 0; k = 0;
    step[r] = reads
}

inline forget(r) {
    askedHead[r] = 0; askedAt[r] = 0; askedOf[r] = 0; askedEpoch[r] = 0; foundNewest[r] = 0; foundEpoch[r] = 0;
    foundOf[r] = 0; foundMoved[r] = false; isAll[r] = false;
    clearFound(r);
    step[r] = idle
}

inline shorten(r) { askedHead[r] = 0; askedAt[r] = 0; askedOf[r] = 0; foundOf[r] = 0; foundMoved[r] = false }

inline renew(old) {
    if
    :: epoch == old ->
        renewed = true; formerEpoch = epoch; formerOrigin = origin; renewedAt = newest;
        names++; assert(names < EPOCHS);
        epoch = names; origin = timeline
    :: else
    fi
}

/* LogFollower.restart and the new beginning of the streams */
inline restartAfter(r, at) {
    n = 0;
    do :: n <= at -> waiting[AT(r, n)] = 0; n++ :: else -> break od;
    n = 0;
    head[r] = at; lastAt[r] = 0; lastOf[r] = 0; doubtAt[r] = 0; doubtOf[r] = 0; isReadWanted[r] = true;
    isUnaware[r] = false;
    endStreams(r);
    takeNext(r)
}

/* Processes the answer that the server gave. */
inline work(r) {
    if
    :: step[r] == reads ->
        place = askedAt[r];
        if
        :: place && found[AT(r, place)] && found[AT(r, place)] != askedOf[r] && found[AT(r, place)] != ERASED ->
#if !defined(BUG_B2)
            doubtAt[r] = askedAt[r]; doubtOf[r] = askedOf[r];
#endif
            isPollWanted[r] = true; forget(r)
        :: else ->
#ifndef BUG_ERASED
            /* The last erased event above the head is a gap. */
            n = N;
            do
            :: n > head[r] && found[AT(r, n)] != ERASED -> n--
            :: else -> break
            od;
            k = (n > head[r] -> n : 0);
#endif
            n = (k -> k : head[r]) + 1;
            do
            :: n <= N -> if :: found[AT(r, n)] -> waiting[AT(r, n)] = found[AT(r, n)] :: else fi; n++
            :: else -> break
            od;
            if :: !k -> takeNext(r) :: else fi;
            n = head[r] + 1;
            do
            :: n > N || found[AT(r, n)] -> break
            :: else -> n++
            od;
            if
            :: k -> forget(r); step[r] = restarts; foundNewest[r] = k; k = 0
            :: !k && n <= N -> k = n - 1; forget(r); step[r] = restarts; foundNewest[r] = k; k = 0
            :: !k && n > N && isAll[r] -> forget(r)
            :: else -> isReadWanted[r] = true; forget(r)
            fi;
            n = 0
        fi
    :: step[r] == polls ->
        isOther = askedAt[r] && foundOf[r] && foundOf[r] != askedOf[r] && foundOf[r] != ERASED;
#ifdef BUG_B2_DATA
        isOther = false;
#endif
        if
        :: foundMoved[r] -> renew(foundEpoch[r]); shorten(r); foundNewest[r] = 0; foundEpoch[r] = 0; step[r] = rereads
        :: !foundMoved[r] && askedEpoch[r] != myEpoch[r] -> isPollWanted[r] = true; forget(r)
        :: !foundMoved[r] && askedEpoch[r] == myEpoch[r] && foundEpoch[r] != myEpoch[r] -> shorten(r); step[r] = adopts
        :: else ->
            if
            :: isOther || foundNewest[r] < askedHead[r] ->
                renew(myEpoch[r]); shorten(r); foundNewest[r] = 0; foundEpoch[r] = 0;
                step[r] = rereads
            :: else -> if :: foundNewest[r] > head[r] -> isReadWanted[r] = true :: else fi; forget(r)
            fi
        fi;
        isOther = false
    :: step[r] == rereads -> foundNewest[r] = newest; foundEpoch[r] = epoch; step[r] = adopts
    :: step[r] == adopts ->
        if
        :: askedEpoch[r] != myEpoch[r] -> isPollWanted[r] = true
        :: else ->
            myEpoch[r] = foundEpoch[r]; term[r]++;
            clearWaiting(r);
            restartAfter(r, foundNewest[r])
        fi;
        forget(r)
    :: step[r] == restarts -> restartAfter(r, foundNewest[r]); forget(r)
    fi
}

inline tellOwnEpoch(r) { myEpoch[r] = ownEpoch[r]; ownEpoch[r] = 0; endStreams(r) }

inline commit(x) {
    newest++; log[newest] = timeline + 1;
    writerTerm[x] = term[OF(x)]; writerAt[x] = newest; writerOf[x] = timeline + 1
}

inline failOver(lost) {
    printf("A server takes over that lacks %d of %d events.\n", lost, newest);
    k = newest - lost;
    n = k + 1;
    do :: n <= newest -> log[n] = 0; n++ :: else -> break od;
    newest = k; k = 0; n = 0;
    do
    :: n < EPOCHS -> if :: told[n] > newest -> broken = broken | (1 << n) :: else fi; n++
    :: else -> break
    od;
    n = 0;
    timeline++;
    if
    :: renewed && newest <= renewedAt ->
        epoch = formerEpoch; origin = formerOrigin; renewed = false;
        printf("It lacks the newest epoch, too.\n")
    :: true
    fi;
    isConnectionLost[0] = true; isConnectionLost[1] = true
}

inline restartProcess(r) {
    printf("Replica %d ends and starts again.\n", r);
#ifndef BUG_B2
    if :: timeline != origin -> renew(epoch) :: else fi;
#endif
    forget(r); clearWaiting(r);
    head[r] = newest; myEpoch[r] = epoch; term[r] = 0; lastAt[r] = 0; lastOf[r] = 0; doubtAt[r] = 0; doubtOf[r] = 0;
    isPollWanted[r] = false; isReadWanted[r] = false; isDue[r] = false; isConnectionLost[r] = false;
    ownEpoch[r] = 0; isUnaware[r] = false;
    w = 0;
    do
    :: w < WRITERS -> writerTerm[r * WRITERS + w] = 0; writerAt[r * WRITERS + w] = 0;
        writerOf[r * WRITERS + w] = 0; w++
    :: else -> break
    od;
    w = 0;
    endStreams(r)
}

inline join(r) {
    client = opening; where = r; joinedAt = head[r]; joinedEpoch = myEpoch[r]
}

inline begin(at) {
    n = 0; do :: n <= N -> got[n] = 0; n++ :: else -> break od; n = 0;
    base = at; cursor = at; hasCursor = true; cursorEpoch = joinedEpoch
}

/* StreamReader.start: `cut` ends the connection after so many events of the replay. */
inline open(cut) {
    isOther = false;
#ifndef BUG_BLANK
    n = cursor + 1;
    do :: n <= joinedAt && n <= newest -> isOther = isOther || log[n] == ERASED; n++ :: else -> break od;
    n = 0;
#endif
    if
    :: !hasCursor -> begin(joinedAt)
#ifdef BUG_EPOCH
    :: hasCursor && (isOther || cursor > newest || cursor < pruned) -> begin(joinedAt)
#else
    :: hasCursor && (isOther || cursorEpoch != joinedEpoch || cursor > newest || cursor < pruned) -> begin(joinedAt)
#endif
    :: else ->
        cursorEpoch = joinedEpoch; k = 0;
        n = cursor + 1;
#ifdef BUG_READY
        if :: cut < N && cursor < joinedAt -> cursor = joinedAt :: else fi;
#endif
        do
        :: n <= joinedAt && k < cut ->
            got[n] = ((n <= newest && n > pruned) -> log[n] : 0); k++;
            cursor = (n > cursor -> n : cursor);
            n++
        :: else -> break
        od;
        n = 0; k = 0
    fi;
    if
    :: cut < N -> client = away
    :: else ->
        client = live; n = cursor + 1;
#ifdef BUG_POSITION
        if :: cursor > joinedAt -> cursor = joinedAt; n = joinedAt + 1 :: else fi;
#endif
        do
        :: n <= N && queued[n] -> assert(n == cursor + 1 && !got[n]); cursor = n; got[n] = queued[n]; n++
        :: else -> break
        od;
        n = 0
    fi;
    clearQueue();
    isOther = false; joinedAt = 0; joinedEpoch = 0
}

/* Performs all that waits at a replica. */
inline settle(r) {
    if :: ownEpoch[r] -> tellOwnEpoch(r) :: else fi;
    w = 0;
    do
    :: w < WRITERS ->
        if :: writerAt[r * WRITERS + w] -> handOver(r, (r * WRITERS + w)) :: else fi;
        w++
    :: else -> break
    od;
    w = 0;
    if :: isConnectionLost[r] || newest > head[r] -> hear(r) :: else fi;
    rounds = 0;
    do
    :: rounds < 16 && step[r] != idle -> work(r); rounds++
    :: rounds < 16 && step[r] == idle && (isDue[r] || isPollWanted[r] || isReadWanted[r]) -> ask(r); rounds++
    :: else -> break
    od
}

inline beat(isWriting) {
    if
    :: isWriting -> commit(0)
    :: else
    fi;
    i = 0;
    do
    :: i < 2 ->
        me = (isReversed -> 1 - i : i);
        age[me]++;
        if :: age[me] >= 2 -> isDue[me] = true :: else fi;
        i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < 2 -> me = (isReversed -> 1 - i : i); settle(me); i++
    :: else -> break
    od;
    i = 0
}

inline check() {
    i = 0;
    do
    :: i < 2 ->
        /* Every replica has published all, and its pump is at rest. */
        assert(myEpoch[i] == epoch); assert(head[i] == newest);
        assert(step[i] == idle && !isPollWanted[i] && !isReadWanted[i]);
        assert(!isUnaware[i]);
        i++
    :: else -> break
    od;
    i = 0;
    assert(!(broken & (1 << epoch)));
#ifdef CLIENT
    if :: client == away && !isReversed -> join(0) :: client == away && isReversed -> join(1) :: else fi;
    if :: client == opening -> open(N) :: else fi;
    assert(cursorEpoch == epoch && cursor == newest);
    n = base + 1;
    do
    :: n <= newest -> assert(got[n] == log[n] || log[n] == ERASED); assert(got[n] && got[n] != ERASED); n++
    :: else -> break
    od;
#endif
    n = 0
}

inline calm() {
    printf("From here on, replica 0 writes, and nothing is disturbed.\n");
    age[0] = 0; age[1] = 0; k = 0; b = 0;
    do
    :: b < BEATS + 2 ->
        beat((b < BEATS));
        b++;
        if
        :: b == BEATS ->
            /* Two seconds: the new epoch has reached all. */
            printf("Epochs: log %d, replicas %d and %d.\n", epoch, myEpoch[0], myEpoch[1]);
            assert(myEpoch[0] == epoch && myEpoch[1] == epoch);
#if !defined(BUG_B2) && !defined(BUG_B2_DATA)
            assert(origin == timeline)
#endif
        :: else
        fi
    :: else -> break
    od;
    b = 0;
    check()
}

/* Leaves one final state. */
inline clear() {
    i = 0;
    do
    :: i < 2 ->
        clearWaiting(i);
        isUnaware[i] = false;
        head[i] = 0; myEpoch[i] = 0; term[i] = 0; lastAt[i] = 0; lastOf[i] = 0; age[i] = 0;
        i++
    :: else -> break
    od;
    i = 0;
    do :: i <= N -> log[i] = 0; got[i] = 0; i++ :: else -> break od;
    i = 0;
    do :: i < EPOCHS -> told[i] = 0; i++ :: else -> break od;
    i = 0;
    newest = 0; pruned = 0; epoch = 0; origin = 0; timeline = 0; names = 0;
    renewed = false; formerEpoch = 0; formerOrigin = 0; renewedAt = 0;
    client = away; where = 0; cursorEpoch = 0; cursor = 0; hasCursor = false; base = 0; broken = 0;
    commits = COMMITS; joins = JOINS; disturbances = DISTURBANCES; isReversed = false; isOver = true
}

/* With the client, a request and its answer are one step. Without it, all may happen between them. */
#ifdef CLIENT
#define PROMPTLY(r) work(r);
#else
#define PROMPTLY(r)
#endif
#define DISTURB(kind) ((KINDS) & (kind)) && disturbances < DISTURBANCES -> disturbances++

#define WRITER(x) \
    :: d_step { commits < COMMITS && writerAt[x] == 0 -> commit(x); commits++; \
        printf("Writer %d of replica %d commits event %d.\n", x, OF(x), newest) } \
    :: d_step { writerAt[x] -> printf("Writer %d hands event %d over.\n", x, writerAt[x]); handOver(OF(x), x) }

active proctype world() {
    do
    WRITER(0)
    WRITER(1)
#if WRITERS == 2
    WRITER(2)
    WRITER(3)
#endif
    :: d_step { isConnectionLost[0] || (newest > head[0] && !isReadWanted[0]) ->
        printf("Replica 0 hears the server.\n"); hear(0) }
    :: d_step { isConnectionLost[1] || (newest > head[1] && !isReadWanted[1]) ->
        printf("Replica 1 hears the server.\n"); hear(1) }
    :: d_step { !isOver && step[0] == idle -> isDue[0] = true; ask(0); PROMPTLY(0)
        printf("Replica 0 asks the server, as its pause ends.\n") }
    :: d_step { !isOver && step[1] == idle -> isDue[1] = true; ask(1); PROMPTLY(1)
        printf("Replica 1 asks the server, as its pause ends.\n") }
    :: d_step { step[0] == idle && !isDue[0] && (isPollWanted[0] || isReadWanted[0]) -> ask(0); PROMPTLY(0)
        printf("Replica 0 asks the server: %e.\n", step[0]) }
    :: d_step { step[1] == idle && !isDue[1] && (isPollWanted[1] || isReadWanted[1]) -> ask(1); PROMPTLY(1)
        printf("Replica 1 asks the server: %e.\n", step[1]) }
    :: d_step { step[0] != idle -> printf("Replica 0 goes on: %e.\n", step[0]); work(0) }
    :: d_step { step[1] != idle -> printf("Replica 1 goes on: %e.\n", step[1]); work(1) }
    :: d_step { ownEpoch[0] -> tellOwnEpoch(0) }
    :: d_step { ownEpoch[1] -> tellOwnEpoch(1) }

#ifdef CLIENT
    :: d_step { client != away -> client = away; clearQueue(); joinedAt = 0; joinedEpoch = 0;
        printf("The client leaves.\n") }
    :: atomic { !isOver && client == away && joins < JOINS -> joins++; if :: join(0) :: join(1) fi;
        printf("The client joins replica %d, behind event %d.\n", where, joinedAt) }
    :: atomic { client == opening ->
        if
        :: true -> open(N); printf("The client's stream opens. Its cursor is %d of epoch %d.\n", cursor, cursorEpoch)
        :: hasCursor -> open(0); printf("The client leaves before the replay.\n")
        :: hasCursor && joinedAt > cursor + 1 -> open(1); printf("The client leaves in the replay.\n")
        fi }
#endif

    :: atomic { DISTURB(FAILOVER);
        a = 0;
        do :: a < newest - pruned -> a++ :: break od;
        failOver(a); a = 0 }
    :: atomic { newest > pruned + 1 && DISTURB(PRUNING);
        pruned = newest - 1; printf("The log is pruned through %d.\n", pruned) }
    :: atomic { newest > pruned && DISTURB(ERASURE);
        a = pruned + 1;
        do :: a < newest -> a++ :: break od;
        log[a] = ERASED; printf("Event %d is erased.\n", a); a = 0 }
    :: atomic { DISTURB(RESTART); if :: true -> restartProcess(0) :: true -> restartProcess(1) fi }
    :: d_step { step[0] == idle && DISTURB(FAILURE);
        isPollWanted[0] = true;
        printf("A poll of replica 0 fails.\n");
        ask(0); doubtAt[0] = askedAt[0]; doubtOf[0] = askedOf[0];
        isPollWanted[0] = true; isDue[0] = true; forget(0) }
    :: atomic { myEpoch[0] == epoch && !ownEpoch[0] && DISTURB(RENEWAL); renew(epoch); ownEpoch[0] = epoch;
        printf("Replica 0 gives the log a new epoch.\n") }
    /* From any moment on, replica 0 writes, and nothing is disturbed. */
    :: atomic { !isOver; if :: true :: isReversed = true fi; d_step { calm(); clear() } }
    :: isOver -> break
    od
}
