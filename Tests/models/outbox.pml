/* Messages of one lane, such as the push messages of one conversation to one phone: outbox, lease, seen and withdrawn,
 * with two replicas that send.
 *
 * Covers: the rows of the outbox (an alert, its withdrawal, the number on the icon), the order of a device's messages,
 * leases, outcomes that arrive late or never, a token that is replaced while a request is on its way.
 *
 * Promise: once nothing is on its way, the icon shows the number of unread messages, and the alert is on the screen if
 * and only if a message is unread. Without a disturbance, nothing waits longer than the pause between two numbers, and a
 * message rings once.
 *
 * Disturbances: a process stops until its lease has ended; a process is killed with its request on its way, before or
 * after the phone got it; the provider refuses; the phone registers a new token, and the provider calls the former one
 * gone.
 *
 * Leaves out: the end of retries, several devices and users, quiet hours, browsers (whose withdrawals wait for the next
 * alert), early delivery to absent users, the length of pauses after failures.
 *
 * Stands for: Sources/Service/Outbox/Outbox+Adding.swift (add, withdraw), Outbox+Attempts.swift (begin, record),
 * OutboxSender.swift, Sources/Service/Features/Push/Push.swift (reaction) and PushChannel.swift (delivery, note). Webhooks
 * have the same lanes, without the number on the icon.
 *
 * BUG_BADGE: it is not forgotten which number the device shows while another is on its way.
 * BUG_ROW: the end of an attempt removes what took its place in the row meanwhile.
 * BUG_GONE: a former token that is gone removes the messages for the new one.
 * BUG_REST: a message that arrived during an attempt waits until the attempt's lease would have ended.
 * BUG_LATE: the outcome of an attempt that another one replaced notes the number of the device.
 * BUG_STAMP: an attempt is recognized by its message alone.
 * BUG_LEASE: an attempt may still be sent after its lease.
 * BUG_LANE: an attempt leases its message, and not its lane.
 */
#ifndef MESSAGES
#define MESSAGES 2
#endif
#ifndef READS
#define READS 2
#endif
#ifndef DISTURBANCES
#define DISTURBANCES 1
#endif
#define LEASE 3   /* ticks of the clock; a request ends before */
#define PAUSE 1   /* between two numbers alone */
#define TICKS 4

/* Rows of the outbox by type. */
#define ALERT 0
#define BADGE 1
#define WITHDRAWAL 2
#define NONE 3
bool is[3], isSent[3];
byte number[3], version[3], dueAt[3], attempts[3], stamp[3];
byte numbers, stamps, now;

/* The lane: the stamp of the running attempt, and the end of its lease or of the pause after a failure. */
byte laneStamp, laneUntil;

/* The device: the number that it was last sent (255 if unknown), and its token. */
#define UNKNOWN 255
byte deviceBadge = UNKNOWN, deviceBadgeAt, token;

/* The phone, and the user. */
byte icon, unread, arrived;
bool isShown;

/* The attempt of each replica. */
#define WAITS 1
#define ACCEPTED 2
#define FAILED 3
#define GONE 4
byte state[2], ofNumber[2], ofType[2], ofStamp[2], ofVersion[2], ofBadge[2], ofToken[2], ofLease[2], ofArrived[2];

byte reads, disturbances, rung;
bool isOver;
hidden byte i, j, x, k, rounds, ticks;
hidden byte isFirst;

inline remove(t) {
    is[t] = false; isSent[t] = false; number[t] = 0; version[t] = 0; dueAt[t] = 0; attempts[t] = 0; stamp[t] = 0
}

/* Outbox+Adding.add */
inline insert(t, at) {
    stamps++;
    if
    :: !is[t] ->
        numbers++;
        is[t] = true; isSent[t] = false; number[t] = numbers; dueAt[t] = at; attempts[t] = 0; stamp[t] = 0
    :: is[t] && !(!isSent[t] && stamp[t] == 0) -> isSent[t] = false; dueAt[t] = at
    :: else
    fi;
    version[t] = stamps
}

/* Outbox+Adding.withdraw */
inline take() {
    if
    :: is[ALERT] && attempts[ALERT] == 0 -> remove(ALERT)
    :: is[ALERT] && attempts[ALERT] > 0 ->
        stamps++;
        is[WITHDRAWAL] = true; isSent[WITHDRAWAL] = false; number[WITHDRAWAL] = number[ALERT];
        version[WITHDRAWAL] = stamps; dueAt[WITHDRAWAL] = (dueAt[ALERT] < now -> dueAt[ALERT] : now);
        attempts[WITHDRAWAL] = attempts[ALERT]; stamp[WITHDRAWAL] = stamp[ALERT];
        remove(ALERT);
        /* What failed is not sent any more. */
        if :: laneStamp == 0 -> laneUntil = 0 :: else fi
    :: else
    fi
}

inline arrive() { arrived++; unread++; insert(ALERT, now) }

inline see() {
    unread = 0;
    take();
    x = (deviceBadgeAt + PAUSE > now && deviceBadgeAt > 0 -> deviceBadgeAt + PAUSE : now);
    insert(BADGE, x)
}

/* The first waiting message of the lane. */
#define IS_BEHIND(t, q) (q != t && is[q] && !isSent[q] && \
    (dueAt[q] < dueAt[t] || (dueAt[q] == dueAt[t] && number[q] < number[t])))
#ifdef BUG_LANE
#define IS_FREE(t) (stamp[t] == 0)
#else
#define IS_FREE(t) (laneUntil <= now)
#endif
#define IS_SENDABLE(t) (is[t] && !isSent[t] && dueAt[t] <= now && IS_FREE(t) && \
    !IS_BEHIND(t, 0) && !IS_BEHIND(t, 1) && !IS_BEHIND(t, 2))

/* Outbox+Attempts.begin, PushChannel.delivery */
inline begin(r, t) {
    if
    :: (t == BADGE && deviceBadge == unread) || (t == ALERT && unread == 0) -> remove(t)
    :: else ->
        stamps++; attempts[t] = 1; stamp[t] = stamps; laneStamp = stamps; laneUntil = now + LEASE;
        state[r] = WAITS; ofNumber[r] = number[t]; ofType[r] = t; ofStamp[r] = stamps; ofVersion[r] = version[t];
        ofBadge[r] = unread; ofToken[r] = token; ofLease[r] = now + LEASE; ofArrived[r] = arrived;
        printf("Replica %d begins: type %d, number %d.\n", r, t, unread);
        assert(t != ALERT || disturbances > 0 || arrived > rung);
#ifndef BUG_BADGE
        if :: t != WITHDRAWAL -> deviceBadge = UNKNOWN :: else fi
#endif
    fi
}

/* The phone gets the message. The outcome is stored later. */
inline deliver(r) {
    if
    :: ofType[r] == ALERT -> isShown = true; icon = ofBadge[r]; rung = ofArrived[r]
    :: ofType[r] == BADGE -> icon = ofBadge[r]
    :: ofType[r] == WITHDRAWAL -> isShown = false
    fi;
    state[r] = ACCEPTED;
    printf("The phone gets type %d of replica %d. Icon %d, shown %d, unread %d.\n", ofType[r], r, icon, isShown, unread)
}

inline end(t, r) {
#ifdef BUG_ROW
    remove(t)
#else
    if
    :: version[t] == ofVersion[r] -> remove(t)
    :: else -> stamp[t] = 0
    fi
#endif
}

/* Whether the row is still that of the attempt: no later attempt was begun. */
#ifdef BUG_STAMP
#define IS_OWN(t, r) (is[t] && number[t] == ofNumber[r])
#define IS_LANE_OWN(r) true
#else
#define IS_OWN(t, r) (is[t] && number[t] == ofNumber[r] && stamp[t] == ofStamp[r])
#define IS_LANE_OWN(r) (laneStamp == ofStamp[r])
#endif

/* Outbox+Attempts.record, PushDelivery.note */
inline record(r) {
    j = 0;
    do
    :: j < 3 && IS_OWN(j, r) -> break
    :: j < 3 && !IS_OWN(j, r) -> j++
    :: else -> break
    od;
    if
#ifdef BUG_LATE
    :: state[r] == ACCEPTED && ofType[r] != WITHDRAWAL && ofToken[r] == token ->
#else
    :: j < 3 && state[r] == ACCEPTED && ofType[r] != WITHDRAWAL && ofToken[r] == token ->
#endif
        deviceBadge = ofBadge[r]; deviceBadgeAt = now
    :: else
    fi;
    if
    :: state[r] == GONE ->
#ifdef BUG_GONE
        remove(0); remove(1); remove(2)
#else
        /* The registration of the former token is not there any more. */
        if :: j < 3 -> stamp[j] = 0 :: else fi
#endif
    :: state[r] != GONE && j == 3
    :: state[r] == ACCEPTED && j < 3 ->
        if
        :: ofType[r] == ALERT ->
            stamp[j] = 0;
            if :: version[j] == ofVersion[r] -> isSent[j] = true :: else fi
        :: else -> end(j, r)
        fi
    :: state[r] == FAILED && j < 3 -> stamp[j] = 0
    fi;
    if
    :: IS_LANE_OWN(r) ->
        laneStamp = 0;
#ifndef BUG_REST
        laneUntil = (state[r] == FAILED && j < 3 && version[j] == ofVersion[r] -> now + 1 : 0)
#endif
    :: else
    fi;
    j = 0;
    forget(r)
}

inline forget(r) {
    state[r] = 0; ofNumber[r] = 0; ofType[r] = 0; ofStamp[r] = 0; ofVersion[r] = 0; ofBadge[r] = 0;
    ofToken[r] = 0; ofLease[r] = 0; ofArrived[r] = 0
}

#ifdef BUG_LEASE
#define MAY_SEND(r) true
#else
#define MAY_SEND(r) (now < ofLease[r])
#endif
#define DISTURB disturbances < DISTURBANCES -> disturbances++

#define ENDS(r) (state[r] && now + 1 >= ofLease[r])
#define REPLICA(r) \
    :: d_step { !isOver && !state[r] && IS_SENDABLE(ALERT) -> begin(r, ALERT) } \
    :: d_step { !isOver && !state[r] && IS_SENDABLE(BADGE) -> begin(r, BADGE) } \
    :: d_step { !isOver && !state[r] && IS_SENDABLE(WITHDRAWAL) -> begin(r, WITHDRAWAL) } \
    :: d_step { state[r] == WAITS && MAY_SEND(r) && ofToken[r] == token -> deliver(r) } \
    :: d_step { state[r] == WAITS && ofToken[r] != token -> state[r] = GONE; \
        printf("The token of replica %d is gone.\n", r) } \
    :: d_step { state[r] == WAITS && DISTURB; state[r] = FAILED; printf("The provider refuses replica %d.\n", r) } \
    :: d_step { state[r] > WAITS -> printf("Replica %d stores its outcome.\n", r); record(r) } \
    :: d_step { state[r] && DISTURB; printf("Replica %d is killed.\n", r); forget(r) }

/* Sends all that can be sent, by replica 0. The clock goes on only if nothing else can happen. */
inline settle() {
    rounds = 0; ticks = 0;
    do
    :: rounds < 60 ->
        rounds++;
        if
        :: state[1] == WAITS && ofToken[1] == token && MAY_SEND(1) -> deliver(1)
        :: state[1] == WAITS && ofToken[1] != token -> state[1] = GONE
        :: state[1] == WAITS && ofToken[1] == token && !MAY_SEND(1) -> state[1] = FAILED; disturbances = DISTURBANCES + 1
        :: state[1] > WAITS -> record(1)
        :: !state[1] && state[0] == WAITS && ofToken[0] == token && MAY_SEND(0) -> deliver(0)
        :: !state[1] && state[0] == WAITS && ofToken[0] != token -> state[0] = GONE
        :: !state[1] && state[0] == WAITS && ofToken[0] == token && !MAY_SEND(0) ->
            state[0] = FAILED; disturbances = DISTURBANCES + 1
        :: !state[1] && state[0] > WAITS -> record(0)
        :: !state[1] && !state[0] ->
            if
            :: IS_SENDABLE(ALERT) -> begin(0, ALERT)
            :: !IS_SENDABLE(ALERT) && IS_SENDABLE(BADGE) -> begin(0, BADGE)
            :: !IS_SENDABLE(ALERT) && !IS_SENDABLE(BADGE) && IS_SENDABLE(WITHDRAWAL) -> begin(0, WITHDRAWAL)
            :: else ->
                if
                :: ticks < 4 * LEASE && ((is[0] && !isSent[0]) || (is[1] && !isSent[1]) || (is[2] && !isSent[2])) ->
                    now++; ticks++
                :: else -> rounds = 60
                fi
            fi
        fi
    :: else -> break
    od
}

inline clear() {
    remove(0); remove(1); remove(2); forget(0); forget(1);
    numbers = 0; stamps = 0; now = 0; laneStamp = 0; laneUntil = 0; deviceBadge = 0; deviceBadgeAt = 0; token = 0; icon = 0; unread = 0;
    arrived = MESSAGES;
    isShown = false; reads = READS; disturbances = DISTURBANCES; rung = 0; isOver = true
}

active proctype world() {
    do
    :: d_step { arrived < MESSAGES -> arrive(); printf("Message %d arrives.\n", arrived) }
    :: d_step { reads < READS && unread > 0 -> reads++; see(); printf("The user reads on another device.\n") }
    :: d_step { now < TICKS && !isOver && !ENDS(0) && !ENDS(1) -> now++; printf("It is %d.\n", now) }
    :: d_step { now < TICKS && !isOver && (ENDS(0) || ENDS(1)) && DISTURB; now++;
        printf("It is %d, and a lease ends before its outcome is stored.\n", now) }
    :: d_step { DISTURB; token++; deviceBadge = UNKNOWN; printf("The phone registers a new token.\n") }
    REPLICA(0)
    REPLICA(1)
    :: d_step { !isOver ->
        settle();
        printf("At the end: icon %d, shown %d, unread %d, after %d ticks.\n", icon, isShown, unread, ticks);
        /* Nothing is left, and nothing waited longer than it must. */
        assert(!(is[0] && !isSent[0]) && !(is[1] && !isSent[1]) && !(is[2] && !isSent[2]));
        assert(disturbances > 0 || ticks <= PAUSE);
        assert(icon == unread);
        assert(isShown == (unread > 0));
        clear() }
    :: isOver -> break
    od
}
