// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension Bellhop {
    /// An event of a stream, read. Where a newer service sends one that is not known here, or of another form, it stays
    /// as it came.
    public enum StreamEvent: Sendable, Hashable {
        /// `badges:update`
        case badgesUpdate(Badges)
        /// `notification:created`
        case notificationCreated(Notification)
        /// `notification:updated`
        case notificationUpdated(NotificationUpdated)
        /// `notification:removed`
        case notificationRemoved(NotificationRemoved)
        /// `preferences:update`
        case preferencesUpdate(Preferences)
        /// `stream:ready`
        case streamReady(StreamReady)
        /// `stream:resync`
        case streamResync(StreamResync)
        /// `stream:scope`
        case streamScope(StreamScope)
        /// `stream:expiring`
        case streamExpiring(StreamExpiring)
        /// `stream:closing`
        case streamClosing(StreamClosing)
        /// `query:invalidate`
        case queryInvalidate(QueryInvalidate)
        /// `table:change`
        case tableChange(TableChange)
        /// `message:created`
        case messageCreated(MessageCreated)
        /// `message:deleted`
        case messageDeleted(MessageDeleted)
        /// `conversation:read`
        case conversationRead(ReadPosition)
        /// `conversation:updated`
        case conversationUpdated(ConversationUpdated)
        /// `conversation:removed`
        case conversationRemoved(ConversationRemoved)
        /// `request:created`
        case requestCreated(UserRequest)
        /// `request:updated`
        case requestUpdated(UserRequest)
        /// `request:removed`
        case requestRemoved(UserRequest)
        /// `engagement_update`
        case engagementUpdate(EngagementUpdate)
        /// `feed:new_post`
        case feedNewPost(FeedNewPost)
        /// `feed:post_removed`
        case feedPostRemoved(FeedPostRemoved)
        /// `follow:changed`
        case followChanged(FollowChanged)
        /// `queue:update`
        case queueUpdate(QueueStatus)
        /// `booking:status_change`
        case bookingStatusChange(BookingStatusChange)
        /// `dj:session`
        case djSession(DJSession)
        /// `dj:queue_update`
        case djQueueUpdate(DjQueueUpdate)
        /// `track:added`
        case trackAdded(TrackAdded)
        /// `track:playing`
        case trackPlaying(TrackPlaying)
        /// `track:removed`
        case trackRemoved(TrackRemoved)
        /// `leaderboard:update`
        case leaderboardUpdate(LeaderboardUpdate)
        case other(ServerSentEvent)

        public init(_ event: ServerSentEvent) {
            self = (try? StreamEvent.read(event)) ?? .other(event)
        }

        private static func read(_ event: ServerSentEvent) throws -> StreamEvent {
            switch event.name {
            case "badges:update": .badgesUpdate(try event.model())
            case "notification:created": .notificationCreated(try event.model())
            case "notification:updated": .notificationUpdated(try event.model())
            case "notification:removed": .notificationRemoved(try event.model())
            case "preferences:update": .preferencesUpdate(try event.model())
            case "stream:ready": .streamReady(try event.model())
            case "stream:resync": .streamResync(try event.model())
            case "stream:scope": .streamScope(try event.model())
            case "stream:expiring": .streamExpiring(try event.model())
            case "stream:closing": .streamClosing(try event.model())
            case "query:invalidate": .queryInvalidate(try event.model())
            case "table:change": .tableChange(try event.model())
            case "message:created": .messageCreated(try event.model())
            case "message:deleted": .messageDeleted(try event.model())
            case "conversation:read": .conversationRead(try event.model())
            case "conversation:updated": .conversationUpdated(try event.model())
            case "conversation:removed": .conversationRemoved(try event.model())
            case "request:created": .requestCreated(try event.model())
            case "request:updated": .requestUpdated(try event.model())
            case "request:removed": .requestRemoved(try event.model())
            case "engagement_update": .engagementUpdate(try event.model())
            case "feed:new_post": .feedNewPost(try event.model())
            case "feed:post_removed": .feedPostRemoved(try event.model())
            case "follow:changed": .followChanged(try event.model())
            case "queue:update": .queueUpdate(try event.model())
            case "booking:status_change": .bookingStatusChange(try event.model())
            case "dj:session": .djSession(try event.model())
            case "dj:queue_update": .djQueueUpdate(try event.model())
            case "track:added": .trackAdded(try event.model())
            case "track:playing": .trackPlaying(try event.model())
            case "track:removed": .trackRemoved(try event.model())
            case "leaderboard:update": .leaderboardUpdate(try event.model())
            default: .other(event)
            }
        }
    }
}
