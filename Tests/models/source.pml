/* Reading an app's log: slot, position, timeline and snapshot, with two replicas that may read.
 *
 * Covers: who has the slot, the position that is stored with the data, the mark before a slot is created, the snapshot
 * of the tables with memberships, and how a loss ends in a new epoch.
 *
 * Promise: once reading goes on undisturbed, each change that the app's server has was taken in once, or the streams
 * were told to resync and the tables were read again after it. Each change that the server does not have and that was
 * taken in is followed by a resync. The known memberships are those of the server.
 *
 * Disturbances, at any moment: a process is killed, also between creating the slot and storing the position; a standby
 * takes over, with the slot or without, and without the last changes; the server's disk is restored with its slot,
 * perhaps to an earlier state; someone drops the slot; a paused reader goes on.
 *
 * Leaves out: transactions of several changes, the publication, tables that are added later, the limits of the log that
 * is kept, the other reader's foreign slots.
 *
 * Stands for: Sources/Rows/Source/SourceContinuity.swift; Sources/Service/Features/Changes/Source/SourceReader.swift,
 * SourceSession.swift, SourcePosition.swift, SourceIntake.swift; Docs/decisions/0022-who-has-the-slot.md.
 *
 * BUG_B3: a server that lies behind the position counts as usable, whatever its timeline, and a slot without a mark is
 *   used.
 * BUG_TIMELINE: the timeline is not compared.
 * BUG_END: the end of the server's log is not compared.
 * BUG_MARK: no mark is stored before a slot is created.
 * BUG_MOVED: a paused reader stores its part over the position of another one.
 * BUG_SLOT: a slot that was recreated by someone else is used.
 * LIMIT_REGROWN: a restored log on the same timeline has grown past the position before a reader has stored its mark.
 *   The service does not notice this.
 * LIMIT_PAUSED: a paused reader holds a change that a restored log on the same timeline does not have, and stores it
 *   after another reader has begun. The service does not notice this.
 */
#ifndef CHANGES
#define CHANGES 3
#endif
#ifndef DISTURBANCES
#define DISTURBANCES 2
#endif
#define LAST CHANGES

/* The app's server. Change number n has the content `log[n]`: the life of the server in which it was written, plus 1. A
 * restored disk begins another life on the same timeline; a promotion begins another timeline, too. */
byte log[LAST + 1];
byte end, life, timeline;
/* The slot: everything before `confirmed` was confirmed. What it will send begins after it. */
bool hasSlot;
byte confirmed, owner = 2; /* the replica that has the slot; 2 for none */

/* The service's database. */
mtype = { none, marked, remade, stored };
mtype place = none;      /* the position: none; a mark for the first slot; a mark for another slot; a position */
byte at, ofTimeline, mark;
byte marks;
/* What was taken in since the last resync: the content of each change. Read in a snapshot: the same. */
byte taken[LAST + 1];
byte known;              /* changes that the tables with memberships show; with `ofLife`, their content */
byte ofLife[LAST + 1];
bool isDoubled;

/* The readers. */
mtype = { resting, remaking, creating, reading };
mtype reader[2] = resting;
byte readerAt[2], readerMark[2], readerTimeline[2], snapshotEnd[2], nextAt[2];
/* The content of the next change, received and not stored. */
byte received[2];
byte snapshot[2 * (LAST + 1)];
#define CELL(r, n) ((r) * (LAST + 1) + (n))
/* The mark of the position from which a reader read it, so that it notices another reader's. */
byte version, readerVersion[2];

byte changes, disturbances;
/* The log of a restored server ends before a position, and no reader has stored its mark yet. */
bool isUnseen;
bool isOver;
hidden byte n, me, rounds;

/* SourceContinuity */
#ifdef BUG_B3
#define IS_OTHER_TIMELINE(r) false
#define ENDS_EARLIER false
#else
#ifdef BUG_TIMELINE
#define IS_OTHER_TIMELINE(r) false
#else
#define IS_OTHER_TIMELINE(r) (readerTimeline[r] != ofTimeline)
#endif
#ifdef BUG_END
#define ENDS_EARLIER false
#else
#define ENDS_EARLIER (at > end)
#endif
#endif
#ifdef BUG_SLOT
#define IS_MADE_AGAIN false
#else
#define IS_MADE_AGAIN (confirmed > at)
#endif
#define RESUMES(r) (place == stored && !IS_OTHER_TIMELINE(r) && hasSlot && !ENDS_EARLIER && !IS_MADE_AGAIN)
/* Whether a new slot is the first one, so that no stream must resync. */
#define BEGINS (place == none || place == marked)

inline rest(r) {
    if :: owner == r -> owner = 2 :: else fi;
    reader[r] = resting; readerAt[r] = 0; readerMark[r] = 0; readerTimeline[r] = 0; snapshotEnd[r] = 0; nextAt[r] = 0;
    received[r] = 0;
    readerVersion[r] = 0;
    n = 0;
    do :: n <= LAST -> snapshot[CELL(r, n)] = 0; n++ :: else -> break od;
    n = 0
}

inline storePosition(p, lsn, line) { place = p; at = lsn; ofTimeline = line; version++ }

/* Forgets what was taken in: all streams resync, and read again what the server has now. */
inline resync() {
    n = 0;
    do :: n <= LAST -> taken[n] = 0; n++ :: else -> break od;
    n = 0;
    isDoubled = false
}

/* SourceReader.begin: the identity was read before the slot and the position. */
inline beginReading(r) {
    readerTimeline[r] = timeline;
    if
    :: owner != 2 -> rest(r)
    :: else ->
        if
        :: RESUMES(r) ->
            owner = r; reader[r] = reading; readerVersion[r] = version;
            /* The server sends what follows the slot's own position, if that is further. */
            nextAt[r] = (confirmed > at -> confirmed : at);
            printf("Replica %d reads from %d.\n", r, at)
        :: else ->
#ifdef BUG_B3
            if
            :: hasSlot && place == none ->
                /* The slot of an unfinished attempt is used from its start. */
                storePosition(stored, confirmed, timeline)
            :: else -> reader[r] = remaking; readerVersion[r] = version
            fi
#else
            reader[r] = remaking; readerVersion[r] = version
#endif
        fi
    fi
}

/* SourceReader.remake: the mark is stored, then the slot is created with its snapshot, then the position is stored. */
inline storeMark(r) {
    if
    :: version != readerVersion[r] || owner != 2 -> rest(r)
    :: else ->
#if !defined(BUG_MARK) && !defined(BUG_B3)
        marks++;
        readerMark[r] = (BEGINS -> 1 : 2);
        storePosition((readerMark[r] == 1 -> marked : remade), 0, 0);
#else
        readerMark[r] = (BEGINS -> 1 : 2);
#endif
        readerVersion[r] = version;
        reader[r] = creating; isUnseen = false;
        hasSlot = true; confirmed = end; owner = r;
        snapshotEnd[r] = end;
        n = 0;
        do :: n <= end -> snapshot[CELL(r, n)] = log[n]; n++ :: else -> break od;
        n = 0;
        printf("Replica %d creates the slot at %d.\n", r, end)
    fi
}

inline storeRemade(r) {
    if
    :: version != readerVersion[r] -> rest(r)
    :: else ->
        if :: readerMark[r] == 2 -> resync(); printf("All streams resync.\n") :: else fi;
        storePosition(stored, snapshotEnd[r], readerTimeline[r]);
        n = 0;
        do
        :: n <= LAST -> ofLife[n] = snapshot[CELL(r, n)];
            if :: taken[n] == 0 && n <= snapshotEnd[r] -> taken[n] = snapshot[CELL(r, n)] :: else fi; n++
        :: else -> break
        od;
        n = 0;
        rest(r)
    fi
}

inline receive(r) { received[r] = log[nextAt[r] + 1] }

/* SourceSession: takes the next change in, together with the position. */
inline takeIn(r) {
    if
#ifndef BUG_MOVED
    :: version != readerVersion[r] -> printf("Replica %d finds another position.\n", r); rest(r)
#endif
    :: else ->
        n = nextAt[r] + 1;
        if :: taken[n] -> isDoubled = true :: else fi;
        taken[n] = received[r]; ofLife[n] = received[r]; received[r] = 0;
        storePosition(stored, n, ofTimeline); readerVersion[r] = version; nextAt[r] = n;
        n = 0;
        printf("Replica %d takes change %d in.\n", r, at)
    fi
}

/* The server has the slot for as long as the connection lasts. */
inline loseConnections() { owner = 2; isCut[0] = reader[0] != resting; isCut[1] = reader[1] != resting }
bool isCut[2];

inline cut(r) { isCut[r] = false; rest(r) }

inline loseChanges(lost) {
    n = end - lost + 1;
    do :: n <= end -> log[n] = 0; n++ :: else -> break od;
    n = 0;
    end = end - lost;
    life++
}

inline clear() {
    rest(0); rest(1); resync();
    n = 0;
    do :: n <= LAST -> log[n] = 0; ofLife[n] = 0; n++ :: else -> break od;
    n = 0;
    end = 0; life = 0; timeline = 0; hasSlot = false; confirmed = 0; owner = 2; place = none; at = 0; ofTimeline = 0;
    marks = 0; version = 0; isUnseen = false; isCut[0] = false; isCut[1] = false; changes = CHANGES;
    disturbances = DISTURBANCES; isOver = true
}

#ifdef LIMIT_REGROWN
#define MAY_REGROW true
#else
#define MAY_REGROW false
#endif
#define DISTURB disturbances < DISTURBANCES -> disturbances++

#define REPLICA(r) \
    :: d_step { !isOver && reader[r] == resting && owner == 2 -> beginReading(r) } \
    :: d_step { reader[r] == remaking && !isCut[r] -> storeMark(r) } \
    :: d_step { reader[r] == creating && !isCut[r] -> printf("Replica %d stores the slot's start.\n", r); storeRemade(r) } \
    :: d_step { reader[r] == reading && !isCut[r] && !received[r] && nextAt[r] < end -> receive(r) } \
    /* Also after the connection was lost. */ \
    :: d_step { reader[r] == reading && received[r] -> takeIn(r) } \
    :: d_step { reader[r] == reading && !isCut[r] && owner == r && confirmed < at && version == readerVersion[r] -> \
        confirmed = at } \
    :: d_step { isCut[r] && reader[r] != creating -> cut(r) } \
    /* A reader whose connection is lost while it stores: the store succeeds all the same. */ \
    :: d_step { isCut[r] && reader[r] == creating -> storeRemade(r); isCut[r] = false } \
    :: d_step { isCut[r] && reader[r] == creating -> cut(r) } \
    :: d_step { reader[r] != resting && DISTURB; printf("Replica %d is killed.\n", r); isCut[r] = false; rest(r) }

active proctype world() {
    do
    :: d_step { changes < CHANGES && end < LAST && (!isUnseen || MAY_REGROW) ->
        changes++; end++; log[end] = life + 1; printf("The app commits %d.\n", end) }
    REPLICA(0)
    REPLICA(1)
    :: atomic { DISTURB;
        if :: true -> me = 0 :: end > 0 -> me = 1 :: end > 1 -> me = 2 fi;
        printf("A standby takes over without %d changes.\n", me);
        loseChanges(me); me = 0; timeline++;
        if
        :: hasSlot = false; confirmed = 0
        :: hasSlot && confirmed <= end
        /* A logical slot of a standby that has been copied may be further or less far. */
        :: hasSlot -> confirmed = end
        fi;
        loseConnections() }
    :: atomic { end > 0 && DISTURB;
        if :: true -> me = 1 :: end > 1 -> me = 2 fi;
        printf("The disk is restored without %d changes.\n", me);
        loseChanges(me); me = 0;
        if :: confirmed > end -> confirmed = end :: else fi;
        #ifndef LIMIT_PAUSED
        received[0] = 0; received[1] = 0;
#endif
        isUnseen = at > end || snapshotEnd[0] > end || snapshotEnd[1] > end;
        loseConnections() }
    :: d_step { hasSlot && owner == 2 && DISTURB; hasSlot = false; confirmed = 0; printf("Someone drops the slot.\n") }
    :: d_step { hasSlot && owner == 2 && confirmed < end && DISTURB; confirmed = end;
        printf("Someone recreates the slot.\n") }
    :: d_step { !isOver ->
        rounds = 0;
        do
        :: rounds < 20 ->
            rounds++;
            if
            :: isCut[1] -> cut(1)
            :: !isCut[1] && reader[1] != resting -> rest(1)
            :: !isCut[1] && reader[1] == resting && isCut[0] -> cut(0)
            :: !isCut[1] && reader[1] == resting && !isCut[0] && reader[0] == resting -> beginReading(0)
            :: !isCut[1] && reader[1] == resting && !isCut[0] && reader[0] == remaking -> storeMark(0)
            :: !isCut[1] && reader[1] == resting && !isCut[0] && reader[0] == creating -> storeRemade(0)
            :: !isCut[1] && reader[1] == resting && !isCut[0] && reader[0] == reading ->
                if :: received[0] -> takeIn(0) :: !received[0] && nextAt[0] < end -> receive(0) :: else -> rounds = 20 fi
            fi
        :: else -> break
        od;
        printf("At the end: position %d of %d.\n", at, end);
        assert(place == stored && at == end && reader[0] == reading);
        assert(!isDoubled);
        n = 1;
        do
        :: n <= LAST ->
            printf("  change %d: server %d, streams %d, tables %d\n", n, log[n], taken[n], ofLife[n]);
            /* Memberships are those of the server, and streams know no change that it does not have. */
            assert(ofLife[n] == log[n]); assert(taken[n] == log[n]); n++
        :: else -> break
        od;
        n = 0;
        clear() }
    :: isOver -> break
    od
}
