/// Signing out, after which the device has nothing of the user.
extension Bell {
    /// How long a sign-out waits until the service has removed the device.
    private static let removalMilliseconds = 3000

    /// Signs the user out: empties the stores and deletes everything that the device keeps of the user.
    ///
    /// Unsent writes are deleted from the storage too, and the task returns them in order. A write whose
    /// ``OutboxItem/tried`` is not nil may have been executed. If writes wait, ``Options/confirmSignOut`` is asked first;
    /// if it returns false, the user stays signed in and the task returns no writes.
    @discardableResult public func signOut() -> Task<[OutboxItem], Never> {
        let isKnown = !isSignedIn || outbox?.isStarted == true
        guard let confirm = options.confirmSignOut, !isKnown || outbox?.items.isEmpty == false else {
            return forgetUser()
        }
        let session = session
        return Task {
            let waiting = await unsentWrites()
            let isConfirmed = waiting.isEmpty ? true : await confirm(waiting)
            // Another user may have signed in meanwhile.
            guard isConfirmed, session == self.session else { return [] }
            return await forgetUser().value
        }
    }

    /// Returns the queued writes, in order, with the writes of an earlier start that are not read yet.
    private func unsentWrites() async -> [OutboxItem] {
        var writes: [OutboxItem] = []
        for earlier in await earlierOutboxes(of: user, current.holder, besides: identity) {
            writes += await earlier.stored()
        }
        return writes + (await outbox?.unsent() ?? []) + early.map(\.item)
    }

    private func forgetUser() -> Task<[OutboxItem], Never> {
        let (outbox, lastState, user, early) = (outbox, lastState, user, early.map(\.item))
        let (token, holder, registering) = (current.last, current.holder, registering)
        let known = identity
        leave(nil)
        let forgetting = Task { [keeping] in
            var unsent: [OutboxItem] = []
            for earlier in await earlierOutboxes(of: user, holder, besides: known) { unsent += await earlier.forget() }
            unsent += (await outbox?.forget() ?? []) + early
            await lastState?.forget()
            await keeping?.value
            await deleteState(of: user, holder)
            return unsent
        }
        keeping = Task { _ = await forgetting.value }
        show(Connection(status: .closed, reason: .init(code: "signed_out")))
        input(.user(nil, isSignedIn: false))
        pollReceive(.user)
        return Task {
            let unsent = await forgetting.value
            await endPush(token, after: registering)
            return unsent
        }
    }

    /// Ends the push messages to this device, also if an earlier start has registered it: a signed-out device must not
    /// show messages of its former user. Waits a little for the service, which the device may not reach.
    ///
    /// - Parameters:
    ///   - token: of the former user.
    ///   - registering: The last call about the device. If it arrived later, it would register the device again.
    private func endPush(
        _ token: String?, after registering: Promise<Result<ServiceAnswer, any Error>>?
    ) async {
        guard let id = await knownDeviceID() else { return }
        changeScreen { await $0.clear() }
        await showing?.value
        guard let token else { return }
        let end = Promise<Void>()
        Task { [client] in
            _ = await registering?.value
            _ = await client.with(token: token).attempt("DELETE", PushMachine.path(of: id))
            end.fulfil(())
        }
        let waiting = Task { [clock] in
            try? await clock.sleep(clock.now() + Bell.removalMilliseconds)
            end.fulfil(())
        }
        await end.value
        waiting.cancel()
    }
}
