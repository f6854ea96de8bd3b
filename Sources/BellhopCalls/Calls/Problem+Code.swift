// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension Bellhop.Problem {
    /// What a problem is about, as a word that never changes its meaning.
    public struct Code: Bellhop.Word {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        /// 409: The barber still has bookings.
        public static let barberBooked = Code(rawValue: "barber.booked")

        /// 429: The caller's concurrent request bodies are too large in total. Wait for responses, and retry after
        /// `Retry-After`.
        public static let bodyBudget = Code(rawValue: "body_budget")

        /// 403: The time has passed. Only staff may create a booking in the past.
        public static let bookingInPast = Code(rawValue: "booking.in_past")

        /// 409: The booking cannot change to this status. `allowed` lists the possible ones.
        public static let bookingInvalidTransition = Code(rawValue: "booking.invalid_transition")

        /// 409: The booking is over or in progress.
        public static let bookingNotChangeable = Code(rawValue: "booking.not_changeable")

        /// 409: The time overlaps another booking of the barber.
        public static let bookingOverlap = Code(rawValue: "booking.overlap")

        /// 403: Only the shop may make this change to a booking.
        public static let bookingStaffOnly = Code(rawValue: "booking.staff_only")

        /// 403: The token has no claim for the tier.
        public static let bookingTierNotClaimed = Code(rawValue: "booking.tier_not_claimed")

        /// 409: The challenge has ended, so it accepts no more scores.
        public static let challengeEnded = Code(rawValue: "challenge.ended")

        /// 409: The challenge has the maximum number of participants.
        public static let challengeFull = Code(rawValue: "challenge.full")

        /// 409: Mode and order cannot change after the first score.
        public static let challengeHasScores = Code(rawValue: "challenge.has_scores")

        /// 409: The challenge has not started, so it accepts no scores yet.
        public static let challengeNotStarted = Code(rawValue: "challenge.not_started")

        /// 409: The maximum number of challenges is reached.
        public static let challengeTooMany = Code(rawValue: "challenge.too_many")

        /// 503: Changes arrive faster than streams receive them.
        public static let changesCongested = Code(rawValue: "changes.congested")

        /// 422: The body has another format than the declared one.
        public static let changesFormatContradicted = Code(rawValue: "changes.format_contradicted")

        /// 422: The body is declared as a list of changes, but is not a list.
        public static let changesNotABatch = Code(rawValue: "changes.not_a_batch")

        /// 422: The body is not a CloudEvent with a change.
        public static let changesNotAnEvent = Code(rawValue: "changes.not_an_event")

        /// 413: The delivery has too many bytes.
        public static let changesTooLarge = Code(rawValue: "changes.too_large")

        /// 413: The delivery has too many items.
        public static let changesTooMany = Code(rawValue: "changes.too_many")

        /// 403: The rules about contacts do not let the user write to, add, ask or follow this user. The answer is the
        /// same for a user who does not exist.
        public static let contactRefused = Code(rawValue: "contact.refused")

        /// 429: The user has reached too many other users in this minute. Retry after `Retry-After`.
        public static let contactBudget = Code(rawValue: "contact_budget")

        /// 409: A direct conversation has no title, and its members cannot change.
        public static let conversationDirect = Code(rawValue: "conversation.direct")

        /// 409: The conversation has the maximum number of members.
        public static let conversationFull = Code(rawValue: "conversation.full")

        /// 409: Another conversation has this id.
        public static let conversationIdTaken = Code(rawValue: "conversation.id_taken")

        /// 403: Only a backend or the affected member may do this.
        public static let conversationNotYours = Code(rawValue: "conversation.not_yours")

        /// 409: The user is in the maximum number of conversations.
        public static let conversationTooMany = Code(rawValue: "conversation.too_many")

        /// 409: The user has the maximum number of devices.
        public static let deviceTooMany = Code(rawValue: "device.too_many")

        /// 409: The shop's guests cannot choose the music at the moment.
        public static let djNotActive = Code(rawValue: "dj.not_active")

        /// 403: The user must be at the shop.
        public static let djNotPresent = Code(rawValue: "dj.not_present")

        /// 409: The track is playing.
        public static let djPlaying = Code(rawValue: "dj.playing")

        /// 409: The queue has the maximum number of tracks.
        public static let djQueueFull = Code(rawValue: "dj.queue_full")

        /// 409: The guest has the maximum number of tracks in the queue.
        public static let djTooManyTracks = Code(rawValue: "dj.too_many_tracks")

        /// 503: The request names a user whose erasure ends in some seconds. Retry after `Retry-After`.
        public static let erasureClosing = Code(rawValue: "erasure.closing")

        /// 429: The tenant has the maximum number of erasures that are not done. Retry after `Retry-After`.
        public static let erasureTooMany = Code(rawValue: "erasure.too_many")

        /// 429: The user's requests published to too many receivers in this minute. Retry after `Retry-After`.
        public static let eventBudget = Code(rawValue: "event_budget")

        /// 503: The keys to verify the submitted token are being fetched.
        public static let explainTokenPending = Code(rawValue: "explain.token_pending")

        /// 404: The feature set is off on this server (`BELLHOP_FEATURES`). A topic or table of such a set gets 422.
        public static let featureOff = Code(rawValue: "feature.off")

        /// 409: Users cannot follow themselves.
        public static let followSelf = Code(rawValue: "follow.self")

        /// 409: The user follows the maximum number of users.
        public static let followTooMany = Code(rawValue: "follow.too_many")

        /// 422: The Idempotency-Key was already used for a different request.
        public static let idempotencyKeyReused = Code(rawValue: "idempotency.key_reused")

        /// 400: The Idempotency-Key is invalid.
        public static let idempotencyMalformedKey = Code(rawValue: "idempotency.malformed_key")

        /// 400: This request requires an Idempotency-Key.
        public static let idempotencyMissingKey = Code(rawValue: "idempotency.missing_key")

        /// 403: The role of the token, or the capabilities of the backend, do not permit this.
        public static let insufficientScope = Code(rawValue: "insufficient_scope")

        /// 500: An internal error occurred. The service's log contains it under the request id.
        public static let `internal` = Code(rawValue: "internal")

        /// 401: The token is malformed or has an invalid claim.
        public static let invalidToken = Code(rawValue: "invalid_token")

        /// 401: The token has expired. Send a new one.
        public static let invalidTokenExpired = Code(rawValue: "invalid_token.expired")

        /// 401: The token has the wrong issuer or audience, or an unknown key signed it.
        public static let invalidTokenNotOurs = Code(rawValue: "invalid_token.not_ours")

        /// 401: The token is not valid yet, or the clocks differ.
        public static let invalidTokenNotYetValid = Code(rawValue: "invalid_token.not_yet_valid")

        /// 401: The token has been revoked.
        public static let invalidTokenRevoked = Code(rawValue: "invalid_token.revoked")

        /// 503: The issuer's keys cannot be fetched, so no token can be verified.
        public static let keysUnavailable = Code(rawValue: "keys.unavailable")

        /// 409: Another message has this id.
        public static let messageIdTaken = Code(rawValue: "message.id_taken")

        /// 403: Only the sender or a backend may delete a message.
        public static let messageNotYours = Code(rawValue: "message.not_yours")

        /// 404: The resource does not exist, or the caller may not see it.
        public static let notFound = Code(rawValue: "not_found")

        /// 403: The caller may read this resource, but not change it.
        public static let notPermitted = Code(rawValue: "not_permitted")

        /// 503: The service is starting, stopping or impaired. The detail gives the reason.
        public static let notReady = Code(rawValue: "not_ready")

        /// 403: Pages of this origin may not open streams by cookie.
        public static let originNotAllowed = Code(rawValue: "origin.not_allowed")

        /// 403: Only the author, an administrator or a backend may remove a post.
        public static let postNotYours = Code(rawValue: "post.not_yours")

        /// 409: The author has the maximum number of posts.
        public static let postTooMany = Code(rawValue: "post.too_many")

        /// 428: If-Match is missing.
        public static let preconditionRequired = Code(rawValue: "precondition.required")

        /// 412: The resource has changed since it was read.
        public static let preconditionStale = Code(rawValue: "precondition.stale")

        /// 403: The shop requires the code that it displays.
        public static let presenceCodeRequired = Code(rawValue: "presence.code_required")

        /// 409: The shop does not require a code.
        public static let presenceNoCode = Code(rawValue: "presence.no_code")

        /// 429: Too many wrong codes were entered. Retry after `Retry-After`.
        public static let presenceTooManyCodes = Code(rawValue: "presence.too_many_codes")

        /// 403: The code is wrong.
        public static let presenceWrongCode = Code(rawValue: "presence.wrong_code")

        /// 404: The service sends no push messages.
        public static let pushOff = Code(rawValue: "push.off")

        /// 429: Too many requests were sent. Retry after `Retry-After`.
        public static let rateLimited = Code(rawValue: "rate_limited")

        /// 409: The request has already been answered.
        public static let requestAnswered = Code(rawValue: "request.answered")

        /// 415: The body is compressed. Send it as it is.
        public static let requestContentEncoding = Code(rawValue: "request.content_encoding")

        /// 422: Some values are invalid. `errors` lists them.
        public static let requestInvalid = Code(rawValue: "request.invalid")

        /// 400: The request is malformed.
        public static let requestMalformed = Code(rawValue: "request.malformed")

        /// 400: The body is not valid JSON.
        public static let requestMalformedJson = Code(rawValue: "request.malformed_json")

        /// 415: The content type of the body is not supported.
        public static let requestMediaType = Code(rawValue: "request.media_type")

        /// 503: The service has no memory for another request body at the moment. Retry after `Retry-After`.
        public static let requestNoRoom = Code(rawValue: "request.no_room")

        /// 403: Only the sender may withdraw a request, and only the recipient may answer it.
        public static let requestNotYours = Code(rawValue: "request.not_yours")

        /// 413: The body has too many bytes.
        public static let requestTooLarge = Code(rawValue: "request.too_large")

        /// 409: The user has the maximum number of open requests.
        public static let requestTooMany = Code(rawValue: "request.too_many")

        /// 413: The request would change too much at once. Divide it.
        public static let requestTooManyEffects = Code(rawValue: "request.too_many_effects")

        /// 408: The request did not arrive within its time limit.
        public static let requestTooSlow = Code(rawValue: "request.too_slow")

        /// 503: This replica cannot reach the database, so it does not know the revoked tokens.
        public static let revocationsUnknown = Code(rawValue: "revocations.unknown")

        /// 405: The address does not support this method. `Allow` lists the supported ones.
        public static let routeMethodNotAllowed = Code(rawValue: "route.method_not_allowed")

        /// 404: The address does not exist.
        public static let routeNotFound = Code(rawValue: "route.not_found")

        /// 403: Only a backend or an administrator may post scores.
        public static let scoreNotJudge = Code(rawValue: "score.not_judge")

        /// 409: The sum exceeds the maximum score.
        public static let scoreOverflow = Code(rawValue: "score.overflow")

        /// 409: The shop has the maximum number of barbers.
        public static let shopFull = Code(rawValue: "shop.full")

        /// 503: The disk is full. The request changed nothing.
        public static let storageFull = Code(rawValue: "storage.full")

        /// 503: The database was moved or removed. An operator must restore it.
        public static let storageMoved = Code(rawValue: "storage.moved")

        /// 503: The service has the maximum number of open streams.
        public static let streamCapacity = Code(rawValue: "stream.capacity")

        /// 401: The ticket is unknown, already used or expired.
        public static let streamTicketInvalid = Code(rawValue: "stream.ticket_invalid")

        /// 503: The keys to verify the new token are being fetched.
        public static let streamTokenPending = Code(rawValue: "stream.token_pending")

        /// 429: The user has the maximum number of open streams.
        public static let streamTooMany = Code(rawValue: "stream.too_many")

        /// 503: The replica that has the stream did not answer.
        public static let streamUnanswered = Code(rawValue: "stream.unanswered")

        /// 503: The service has the maximum number of subscriptions of this kind.
        public static let subscriptionsFull = Code(rawValue: "subscriptions.full")

        /// 429: The user's streams have too many filters, or filters without an `eq` or `in` condition.
        public static let subscriptionsTooMany = Code(rawValue: "subscriptions.too_many")

        /// 429: The users and backends of the tenant together sent too many requests. Retry after `Retry-After`.
        public static let tenantRateLimited = Code(rawValue: "tenant.rate_limited")

        /// 507: The tenant stores as many rows as it may. Delete rows, and retry after `Retry-After`.
        public static let tenantStorageFull = Code(rawValue: "tenant.storage_full")

        /// 429: The users of the tenant have the maximum number of open streams.
        public static let tenantTooManyStreams = Code(rawValue: "tenant.too_many_streams")

        /// 403: The token has no key that permits subscribing to the topic.
        public static let topicForbidden = Code(rawValue: "topic.forbidden")

        /// 401: The request has no token.
        public static let unauthenticated = Code(rawValue: "unauthenticated")

        /// 503: The request cannot be served at the moment. It changed nothing.
        public static let unavailable = Code(rawValue: "unavailable")

        /// 503: It is unknown whether the change was made. Repeat the request with the same Idempotency-Key.
        public static let unavailableUndecided = Code(rawValue: "unavailable.undecided")

        /// 403: A backend or the service acts by this id. Its access does not end like that of a user.
        public static let userIsService = Code(rawValue: "user.is_service")

        /// 422: A string contains U+0000, which cannot be stored.
        public static let validation = Code(rawValue: "validation")

        /// 409: Webhooks are disabled, because no URL is set.
        public static let webhookOff = Code(rawValue: "webhook.off")

        /// 401: The secret or signature of the delivery is wrong.
        public static let webhookRefused = Code(rawValue: "webhook.refused")
    }
}
