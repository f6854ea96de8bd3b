import Foundation

/// Push messages to this device.
extension Bell {
    /// The storage key of the device's id. It is the same for all users, and stays when they sign out.
    private static let deviceKey = "bellhop device"

    /// The registration of this device for push messages.
    public var push: Store<PushMachine> {
        let store = features.push ?? Store(PushMachine(), of: self)
        features.push = store
        return store
    }

    /// The id under which the service knows this device, made at its first use.
    func deviceID() async -> String {
        if let device { return await device.value }
        let storage = storage
        let task = Task {
            if let known = try? await storage.get(Bell.deviceKey) { return String(decoding: known, as: UTF8.self) }
            let id = UUID().uuidString.lowercased()
            try? await storage.set(Bell.deviceKey, Data(id.utf8))
            return id
        }
        device = task
        return await task.value
    }

    /// The id of this device; nil if no user has used push messages here.
    func knownDeviceID() async -> String? {
        if let device { return await device.value }
        return (try? await storage.get(Bell.deviceKey)).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Changes what the device shows, in the order of the calls.
    func changeScreen(_ change: @escaping @Sendable (any NotificationScreen) async -> Void) {
        guard let screen = options.screen else { return }
        let before = showing
        showing = Task {
            await before?.value
            await change(screen)
        }
    }
}

extension Store where Machine == PushMachine {
    /// Registers this device with its token of APNs. Call it at each start of the app, and after each sign-in.
    ///
    /// - Parameters:
    ///   - token: As `didRegisterForRemoteNotificationsWithDeviceToken` receives it.
    ///   - app: The bundle id; nil for the one of the service's settings.
    ///   - environment: `sandbox` for development builds.
    @discardableResult public func register(
        token: Data, app: String? = nil, environment: Bellhop.PushDeviceDraft.Environment? = nil
    ) -> Task<Void, Never> {
        let digits = token.map { String(format: "%02x", $0) }.joined()
        return register(.init(platform: .apns, token: digits, app: app, environment: environment))
    }

    /// Registers this device, such as with a token of FCM. The store's `status` has the result.
    @discardableResult public func register(_ device: Bellhop.PushDeviceDraft) -> Task<Void, Never> {
        let session = bell.session
        return Task {
            let id = await bell.deviceID()
            // Another user has not asked for it.
            guard session == bell.session else { return }
            run(.device(id: id))
            run(.register(draft: JSON(model: device)))
        }
    }

    /// Ends the push messages to this device. Signing out does the same.
    @discardableResult public func unregister() -> Command { run(.unregister) }

    /// Reports that there will be no token: the user has refused the permission, or the device has no push messages.
    public func report(_ status: PushMachine.Status) { run(.status(status: status)) }

    /// Has the service send a test message to this device.
    public func test() async throws { try await bell.client.testDevice(id: snapshot.deviceId) }

    /// Does what a push message asks for: removes the messages that were seen elsewhere, and sets the number on the
    /// icon.
    ///
    /// ```swift
    /// func application(_: UIApplication, didReceiveRemoteNotification userInfo: [AnyHashable: Any]) async
    ///     -> UIBackgroundFetchResult
    /// {
    ///     await bell.push.receive(PushPayload(userInfo: userInfo))
    ///     return .newData
    /// }
    /// ```
    public func receive(_ payload: PushPayload) async {
        bell.changeScreen { await payload.apply(to: $0) }
        await bell.showing?.value
    }
}
