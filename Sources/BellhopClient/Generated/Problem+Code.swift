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

        /// 409: The status cannot change to this value; `allowed` lists the possible values.
        public static let bookingInvalidTransition = Code(rawValue: "booking.invalid_transition")

        /// 409: The booking is over or in progress.
        public static let bookingNotChangeable = Code(rawValue: "booking.not_changeable")

        /// 409: The barber has another booking at this time.
        public static let bookingOverlap = Code(rawValue: "booking.overlap")

        /// 403: Only the staff of the shop can do this to a booking.
        public static let bookingStaffOnly = Code(rawValue: "booking.staff_only")

        /// 403: The token does not contain the tier.
        public static let bookingTierNotClaimed = Code(rawValue: "booking.tier_not_claimed")

        /// 409: The challenge has ended and accepts no more scores.
        public static let challengeEnded = Code(rawValue: "challenge.ended")

        /// 409: The leaderboard has the maximum number of entries.
        public static let challengeFull = Code(rawValue: "challenge.full")

        /// 409: The rule of the challenge cannot change because it has scores.
        public static let challengeHasScores = Code(rawValue: "challenge.has_scores")

        /// 409: The challenge has not started and accepts no scores yet.
        public static let challengeNotStarted = Code(rawValue: "challenge.not_started")

        /// 409: The maximum number of challenges exists.
        public static let challengeTooMany = Code(rawValue: "challenge.too_many")

        /// 503: Changes arrive faster than streams can deliver them.
        public static let changesCongested = Code(rawValue: "changes.congested")

        /// 422: The body does not have the requested format.
        public static let changesFormatContradicted = Code(rawValue: "changes.format_contradicted")

        /// 422: The body was declared as a batch but is not a list of changes.
        public static let changesNotABatch = Code(rawValue: "changes.not_a_batch")

        /// 422: The body is not a CloudEvent, or contains no change.
        public static let changesNotAnEvent = Code(rawValue: "changes.not_an_event")

        /// 413: The delivery exceeds the maximum number of bytes.
        public static let changesTooLarge = Code(rawValue: "changes.too_large")

        /// 413: The delivery exceeds the maximum number of items.
        public static let changesTooMany = Code(rawValue: "changes.too_many")

        /// 409: The members and the title of a direct conversation cannot change.
        public static let conversationDirect = Code(rawValue: "conversation.direct")

        /// 409: The conversation has the maximum number of members.
        public static let conversationFull = Code(rawValue: "conversation.full")

        /// 409: Another conversation has this id.
        public static let conversationIdTaken = Code(rawValue: "conversation.id_taken")

        /// 403: Members can remove only themselves; only a backend can remove others.
        public static let conversationNotYours = Code(rawValue: "conversation.not_yours")

        /// 409: A user is in the maximum number of conversations.
        public static let conversationTooMany = Code(rawValue: "conversation.too_many")

        /// 409: The shop has no active DJ session.
        public static let djNotActive = Code(rawValue: "dj.not_active")

        /// 403: The caller is not at the shop.
        public static let djNotPresent = Code(rawValue: "dj.not_present")

        /// 409: The track is playing.
        public static let djPlaying = Code(rawValue: "dj.playing")

        /// 409: The queue has the maximum number of tracks.
        public static let djQueueFull = Code(rawValue: "dj.queue_full")

        /// 409: The guest has the maximum number of tracks in the queue.
        public static let djTooManyTracks = Code(rawValue: "dj.too_many_tracks")

        /// 429: The user's requests publish more events than a minute allows; `Retry-After` says when to try again.
        public static let eventBudget = Code(rawValue: "event_budget")

        /// 503: The keys to verify the token in the body are being fetched; try again.
        public static let explainTokenPending = Code(rawValue: "explain.token_pending")

        /// 409: Users cannot follow themselves.
        public static let followSelf = Code(rawValue: "follow.self")

        /// 409: The user follows the maximum number of others.
        public static let followTooMany = Code(rawValue: "follow.too_many")

        /// 422: The Idempotency-Key was used for a different request.
        public static let idempotencyKeyReused = Code(rawValue: "idempotency.key_reused")

        /// 400: The Idempotency-Key is malformed.
        public static let idempotencyMalformedKey = Code(rawValue: "idempotency.malformed_key")

        /// 400: This request requires an Idempotency-Key.
        public static let idempotencyMissingKey = Code(rawValue: "idempotency.missing_key")

        /// 403: The role of the token does not permit this.
        public static let insufficientScope = Code(rawValue: "insufficient_scope")

        /// 500: Internal error; the log entry has the request id.
        public static let `internal` = Code(rawValue: "internal")

        /// 401: The token cannot be read, or has invalid claims.
        public static let invalidToken = Code(rawValue: "invalid_token")

        /// 401: The token has expired; get a new one.
        public static let invalidTokenExpired = Code(rawValue: "invalid_token.expired")

        /// 401: The token has another issuer or audience, or is not signed with a known key.
        public static let invalidTokenNotOurs = Code(rawValue: "invalid_token.not_ours")

        /// 401: The token is not valid yet, or the clocks differ.
        public static let invalidTokenNotYetValid = Code(rawValue: "invalid_token.not_yet_valid")

        /// 401: The token has been revoked.
        public static let invalidTokenRevoked = Code(rawValue: "invalid_token.revoked")

        /// 503: The keys of the issuer cannot be fetched, so tokens cannot be verified.
        public static let keysUnavailable = Code(rawValue: "keys.unavailable")

        /// 409: Another message has this id.
        public static let messageIdTaken = Code(rawValue: "message.id_taken")

        /// 403: Only the sender or a backend can delete a message.
        public static let messageNotYours = Code(rawValue: "message.not_yours")

        /// 404: The resource does not exist, or the caller cannot see it.
        public static let notFound = Code(rawValue: "not_found")

        /// 403: The caller can see this but not change it.
        public static let notPermitted = Code(rawValue: "not_permitted")

        /// 503: The service is starting or stopping; `detail` gives the reason.
        public static let notReady = Code(rawValue: "not_ready")

        /// 403: Pages of this origin cannot open streams with the cookie.
        public static let originNotAllowed = Code(rawValue: "origin.not_allowed")

        /// 403: Only the author, an administrator or a backend can delete a post.
        public static let postNotYours = Code(rawValue: "post.not_yours")

        /// 409: The author has the maximum number of posts.
        public static let postTooMany = Code(rawValue: "post.too_many")

        /// 428: The header If-Match is missing.
        public static let preconditionRequired = Code(rawValue: "precondition.required")

        /// 412: The resource has changed since the client read it.
        public static let preconditionStale = Code(rawValue: "precondition.stale")

        /// 403: The shop requires the code that it displays.
        public static let presenceCodeRequired = Code(rawValue: "presence.code_required")

        /// 409: The shop does not use a code.
        public static let presenceNoCode = Code(rawValue: "presence.no_code")

        /// 429: Too many wrong codes; `Retry-After` says when to try again.
        public static let presenceTooManyCodes = Code(rawValue: "presence.too_many_codes")

        /// 403: The code is not the one that the shop displays.
        public static let presenceWrongCode = Code(rawValue: "presence.wrong_code")

        /// 429: Too many requests; `Retry-After` says when to try again.
        public static let rateLimited = Code(rawValue: "rate_limited")

        /// 409: The request already has an answer.
        public static let requestAnswered = Code(rawValue: "request.answered")

        /// 422: Some values are invalid; `errors` lists them.
        public static let requestInvalid = Code(rawValue: "request.invalid")

        /// 400: The request is malformed.
        public static let requestMalformed = Code(rawValue: "request.malformed")

        /// 400: The body is not valid JSON.
        public static let requestMalformedJson = Code(rawValue: "request.malformed_json")

        /// 415: This operation does not accept the media type of the body.
        public static let requestMediaType = Code(rawValue: "request.media_type")

        /// 503: There is no room for the body of another request now; come back after `Retry-After`.
        public static let requestNoRoom = Code(rawValue: "request.no_room")

        /// 403: Only who asked may withdraw it, and only who was asked may answer it.
        public static let requestNotYours = Code(rawValue: "request.not_yours")

        /// 413: The body exceeds the maximum number of bytes.
        public static let requestTooLarge = Code(rawValue: "request.too_large")

        /// 409: The requester has the maximum number of open requests.
        public static let requestTooMany = Code(rawValue: "request.too_many")

        /// 408: The request did not arrive within the time limit.
        public static let requestTooSlow = Code(rawValue: "request.too_slow")

        /// 503: This replica is disconnected and cannot check whether tokens are revoked.
        public static let revocationsUnknown = Code(rawValue: "revocations.unknown")

        /// 405: The address does not support this method; `Allow` lists the supported ones.
        public static let routeMethodNotAllowed = Code(rawValue: "route.method_not_allowed")

        /// 404: The address does not exist.
        public static let routeNotFound = Code(rawValue: "route.not_found")

        /// 403: Only backends and administrators can add scores.
        public static let scoreNotJudge = Code(rawValue: "score.not_judge")

        /// 409: The sum exceeds the range of a score.
        public static let scoreOverflow = Code(rawValue: "score.overflow")

        /// 409: The shop has the maximum number of barbers.
        public static let shopFull = Code(rawValue: "shop.full")

        /// 503: The disk is full; nothing was changed.
        public static let storageFull = Code(rawValue: "storage.full")

        /// 503: The database is no longer where it was; an operator must repair this.
        public static let storageMoved = Code(rawValue: "storage.moved")

        /// 503: The maximum number of streams is open.
        public static let streamCapacity = Code(rawValue: "stream.capacity")

        /// 401: The ticket has been used or has expired.
        public static let streamTicketInvalid = Code(rawValue: "stream.ticket_invalid")

        /// 503: The keys to verify the token in the body are being fetched; try again.
        public static let streamTokenPending = Code(rawValue: "stream.token_pending")

        /// 429: The user has the maximum number of open streams.
        public static let streamTooMany = Code(rawValue: "stream.too_many")

        /// 503: The replica that serves the stream did not answer.
        public static let streamUnanswered = Code(rawValue: "stream.unanswered")

        /// 503: The service has no room for more subscriptions of this kind.
        public static let subscriptionsFull = Code(rawValue: "subscriptions.full")

        /// 429: The user's streams have the maximum number of filters on this table that no index supports.
        public static let subscriptionsTooMany = Code(rawValue: "subscriptions.too_many")

        /// 403: The token has no key that allows the topic.
        public static let topicForbidden = Code(rawValue: "topic.forbidden")

        /// 401: The token is missing.
        public static let unauthenticated = Code(rawValue: "unauthenticated")

        /// 503: The service cannot do this now; nothing was changed.
        public static let unavailable = Code(rawValue: "unavailable")

        /// 503: The outcome is unknown; repeat the request with the same Idempotency-Key.
        public static let unavailableUndecided = Code(rawValue: "unavailable.undecided")

        /// 422: A text contains U+0000, which cannot be stored.
        public static let validation = Code(rawValue: "validation")

        /// 409: No webhook address is configured.
        public static let webhookOff = Code(rawValue: "webhook.off")

        /// 401: The secret or the signature of the delivery is wrong.
        public static let webhookRefused = Code(rawValue: "webhook.refused")
    }
}
