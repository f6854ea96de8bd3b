/// The limits of webhooks, each with its reason.
enum WebhookLimits {
    /// Requests that wait for the receiver at the same time, on each replica. If the receiver never answers, this many
    /// users' webhooks wait for the timeout, but no request of the service does.
    static let slots = 20
    /// The slots of one tenant. The rest is for other tenants, whose webhooks would otherwise wait while the receiver
    /// answers one tenant slowly.
    static let tenantSlots = 16
    /// Items of a page of dead webhooks.
    static let pageMax = 100
}
