// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension Bellhop.Problem {
    /// What a problem is about, as a word that never changes its meaning.
    public struct Code: Bellhop.Word {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        /// 409: The barber has bookings that are not over.
        public static let barberBooked = Code(rawValue: "barber.booked")

        /// 429: The bodies of the caller's requests have no room now; wait for answers, and come back after
        /// `Retry-After`.
        public static let bodyBudget = Code(rawValue: "body_budget")

        /// 403: The time is over; only staff may book it.
        public static let bookingInPast = Code(rawValue: "booking.in_past")

        /// 409: The status cannot become this one; `allowed` has those it can.
        public static let bookingInvalidTransition = Code(rawValue: "booking.invalid_transition")

        /// 409: The booking is over, or being served.
        public static let bookingNotChangeable = Code(rawValue: "booking.not_changeable")

        /// 409: Another booking of the barber has this time.
        public static let bookingOverlap = Code(rawValue: "booking.overlap")

        /// 403: Only the shop may do this to a booking.
        public static let bookingStaffOnly = Code(rawValue: "booking.staff_only")

        /// 403: The token does not claim the tier.
        public static let bookingTierNotClaimed = Code(rawValue: "booking.tier_not_claimed")

        /// 409: Scores are not taken any more.
        public static let challengeEnded = Code(rawValue: "challenge.ended")

        /// 409: As many take part as may.
        public static let challengeFull = Code(rawValue: "challenge.full")

        /// 409: A rule of the challenge cannot change once there are scores.
        public static let challengeHasScores = Code(rawValue: "challenge.has_scores")

        /// 409: Scores are not taken yet.
        public static let challengeNotStarted = Code(rawValue: "challenge.not_started")

        /// 409: There are as many challenges as may be.
        public static let challengeTooMany = Code(rawValue: "challenge.too_many")

        /// 503: Changes come faster than streams take them.
        public static let changesCongested = Code(rawValue: "changes.congested")

        /// 422: The body is of another form than the one that was named.
        public static let changesFormatContradicted = Code(rawValue: "changes.format_contradicted")

        /// 422: The body is no list of changes, and was said to be one.
        public static let changesNotABatch = Code(rawValue: "changes.not_a_batch")

        /// 422: The body is no CloudEvent, or has no change in it.
        public static let changesNotAnEvent = Code(rawValue: "changes.not_an_event")

        /// 413: The delivery has more bytes than it may have.
        public static let changesTooLarge = Code(rawValue: "changes.too_large")

        /// 413: The delivery has more items than it may have.
        public static let changesTooMany = Code(rawValue: "changes.too_many")

        /// 409: A conversation of two keeps its members and has no title.
        public static let conversationDirect = Code(rawValue: "conversation.direct")

        /// 409: The conversation has as many members as it may have.
        public static let conversationFull = Code(rawValue: "conversation.full")

        /// 409: The id is of another conversation.
        public static let conversationIdTaken = Code(rawValue: "conversation.id_taken")

        /// 403: Only who made it, or the member concerned, may do this.
        public static let conversationNotYours = Code(rawValue: "conversation.not_yours")

        /// 409: A user is in as many conversations as one may be in.
        public static let conversationTooMany = Code(rawValue: "conversation.too_many")

        /// 409: The shop is not in DJ mode.
        public static let djNotActive = Code(rawValue: "dj.not_active")

        /// 403: Must be at the shop.
        public static let djNotPresent = Code(rawValue: "dj.not_present")

        /// 409: The track is playing.
        public static let djPlaying = Code(rawValue: "dj.playing")

        /// 409: The queue has as many tracks as it may have.
        public static let djQueueFull = Code(rawValue: "dj.queue_full")

        /// 409: A guest has as many tracks in the queue as one may have.
        public static let djTooManyTracks = Code(rawValue: "dj.too_many_tracks")

        /// 429: What the user's requests send to many is more than a minute allows; `Retry-After` says when to come
        /// back.
        public static let eventBudget = Code(rawValue: "event_budget")

        /// 503: Keys are being fetched, to verify the token that was sent.
        public static let explainTokenPending = Code(rawValue: "explain.token_pending")

        /// 409: Nobody follows themselves.
        public static let followSelf = Code(rawValue: "follow.self")

        /// 409: A user follows as many as one may follow.
        public static let followTooMany = Code(rawValue: "follow.too_many")

        /// 422: The Idempotency-Key was used for another request.
        public static let idempotencyKeyReused = Code(rawValue: "idempotency.key_reused")

        /// 400: The Idempotency-Key is none.
        public static let idempotencyMalformedKey = Code(rawValue: "idempotency.malformed_key")

        /// 400: This request needs an Idempotency-Key.
        public static let idempotencyMissingKey = Code(rawValue: "idempotency.missing_key")

        /// 403: The token's role may not do this.
        public static let insufficientScope = Code(rawValue: "insufficient_scope")

        /// 500: Something went wrong here; the request id finds it in the log.
        public static let `internal` = Code(rawValue: "internal")

        /// 401: The token cannot be read, or says what cannot be.
        public static let invalidToken = Code(rawValue: "invalid_token")

        /// 401: The token has expired; a new one will do.
        public static let invalidTokenExpired = Code(rawValue: "invalid_token.expired")

        /// 401: The token is of another issuer or audience, or not signed by a key that is known.
        public static let invalidTokenNotOurs = Code(rawValue: "invalid_token.not_ours")

        /// 401: The token is for later, or the clocks differ.
        public static let invalidTokenNotYetValid = Code(rawValue: "invalid_token.not_yet_valid")

        /// 401: The token was revoked.
        public static let invalidTokenRevoked = Code(rawValue: "invalid_token.revoked")

        /// 503: The issuer's keys cannot be fetched, so that no token can be verified.
        public static let keysUnavailable = Code(rawValue: "keys.unavailable")

        /// 409: The id is of another message.
        public static let messageIdTaken = Code(rawValue: "message.id_taken")

        /// 403: Only who wrote a message may delete it.
        public static let messageNotYours = Code(rawValue: "message.not_yours")

        /// 404: There is no such thing, or the caller may not see it.
        public static let notFound = Code(rawValue: "not_found")

        /// 403: The caller may see this, and not change it.
        public static let notPermitted = Code(rawValue: "not_permitted")

        /// 503: The service cannot serve yet, or not any more; the detail says why.
        public static let notReady = Code(rawValue: "not_ready")

        /// 403: Pages of this origin may not open streams by cookie.
        public static let originNotAllowed = Code(rawValue: "origin.not_allowed")

        /// 403: Only the author, an administrator or a backend may remove a post.
        public static let postNotYours = Code(rawValue: "post.not_yours")

        /// 409: An author has as many posts as one may have.
        public static let postTooMany = Code(rawValue: "post.too_many")

        /// 428: If-Match is missing.
        public static let preconditionRequired = Code(rawValue: "precondition.required")

        /// 412: It has changed since it was read.
        public static let preconditionStale = Code(rawValue: "precondition.stale")

        /// 403: The shop asks for the code that it shows.
        public static let presenceCodeRequired = Code(rawValue: "presence.code_required")

        /// 409: The shop asks for no code.
        public static let presenceNoCode = Code(rawValue: "presence.no_code")

        /// 429: Too many wrong codes; `Retry-After` says when to come back.
        public static let presenceTooManyCodes = Code(rawValue: "presence.too_many_codes")

        /// 403: The code is not the one that the shop shows.
        public static let presenceWrongCode = Code(rawValue: "presence.wrong_code")

        /// 429: Too many requests; `Retry-After` says when to come back.
        public static let rateLimited = Code(rawValue: "rate_limited")

        /// 409: The request has been answered.
        public static let requestAnswered = Code(rawValue: "request.answered")

        /// 422: Some values are not usable; `errors` names them.
        public static let requestInvalid = Code(rawValue: "request.invalid")

        /// 400: The request could not be read.
        public static let requestMalformed = Code(rawValue: "request.malformed")

        /// 400: The body is no JSON.
        public static let requestMalformedJson = Code(rawValue: "request.malformed_json")

        /// 415: The body is of a type that is not read here.
        public static let requestMediaType = Code(rawValue: "request.media_type")

        /// 503: There is no room for the body of another request now; come back after `Retry-After`.
        public static let requestNoRoom = Code(rawValue: "request.no_room")

        /// 403: Only who asked may withdraw it, and only who was asked may answer it.
        public static let requestNotYours = Code(rawValue: "request.not_yours")

        /// 413: The body has more bytes than it may have.
        public static let requestTooLarge = Code(rawValue: "request.too_large")

        /// 409: A user has as many open requests as one may have.
        public static let requestTooMany = Code(rawValue: "request.too_many")

        /// 408: The request did not arrive in the time that it has.
        public static let requestTooSlow = Code(rawValue: "request.too_slow")

        /// 503: This replica is cut off and does not know which tokens are revoked.
        public static let revocationsUnknown = Code(rawValue: "revocations.unknown")

        /// 405: The address knows other methods, which `Allow` names.
        public static let routeMethodNotAllowed = Code(rawValue: "route.method_not_allowed")

        /// 404: There is no such address.
        public static let routeNotFound = Code(rawValue: "route.not_found")

        /// 403: Points are earned: backends and administrators post them.
        public static let scoreNotJudge = Code(rawValue: "score.not_judge")

        /// 409: The sum would be more than a score can be.
        public static let scoreOverflow = Code(rawValue: "score.overflow")

        /// 409: The shop has as many barbers as it may have.
        public static let shopFull = Code(rawValue: "shop.full")

        /// 503: The disk is full; nothing was changed.
        public static let storageFull = Code(rawValue: "storage.full")

        /// 503: The database is not where it was; an operator has to set that right.
        public static let storageMoved = Code(rawValue: "storage.moved")

        /// 503: As many streams are open as may be.
        public static let streamCapacity = Code(rawValue: "stream.capacity")

        /// 401: The ticket was used, or is too old.
        public static let streamTicketInvalid = Code(rawValue: "stream.ticket_invalid")

        /// 503: Keys are being fetched, to verify the token that was sent.
        public static let streamTokenPending = Code(rawValue: "stream.token_pending")

        /// 429: A user has as many streams as one may have.
        public static let streamTooMany = Code(rawValue: "stream.too_many")

        /// 503: The replica that has the stream could not be asked.
        public static let streamUnanswered = Code(rawValue: "stream.unanswered")

        /// 503: There is no room for more subscriptions of this kind.
        public static let subscriptionsFull = Code(rawValue: "subscriptions.full")

        /// 429: A user's streams have as many filters of a table that no index finds as one may have.
        public static let subscriptionsTooMany = Code(rawValue: "subscriptions.too_many")

        /// 403: The token holds no key by which the topic is heard.
        public static let topicForbidden = Code(rawValue: "topic.forbidden")

        /// 401: There is no token.
        public static let unauthenticated = Code(rawValue: "unauthenticated")

        /// 503: It cannot be done now; nothing was changed.
        public static let unavailable = Code(rawValue: "unavailable")

        /// 503: Nobody knows whether it was done; repeat it with the same Idempotency-Key.
        public static let unavailableUndecided = Code(rawValue: "unavailable.undecided")

        /// 422: A text holds U+0000, which cannot be stored.
        public static let validation = Code(rawValue: "validation")

        /// 409: No address is set to which webhooks are sent.
        public static let webhookOff = Code(rawValue: "webhook.off")

        /// 401: The secret or signature of a delivery is not the configured one.
        public static let webhookRefused = Code(rawValue: "webhook.refused")
    }
}
