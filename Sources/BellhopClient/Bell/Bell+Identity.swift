import Foundation

/// Opens the stores of the token's identity. Stores, cursor and outbox are named by the digest that the service gives it.
extension Bell {
    /// How long a start waits for a token before it shows what the device has of a user that the app named.
    private static let patienceMilliseconds = 500

    private var kept: IdentityStorage { IdentityStorage(storage: storage, url: client.baseURL) }

    func outboxPrefix(of identity: String) -> String { kept.scope(of: identity) + IdentityStorage.outbox }

    func begin(_ tokens: Tokens, _ session: Int) async {
        await keeping?.value
        // What the device has shows before the first byte of the network.
        if tokens.identity == nil { await showKept(tokens, session) }
        guard session == self.session else { return }
        if let reason = Bell.problem(of: options.topics) { return show(Connection(status: .refused, reason: reason)) }
        var own = StreamRunner.Options()
        own.topics = subscriptions.topics
        own.limits = options.limits
        own.user = user
        own.isOnline = options.network.isOnline
        own.isForeground = options.lifecycle.isForeground
        own.begin = { [weak self] in await self?.confirm(tokens, session) }
        let line = StreamRunner(client: client.with(tokens.caller), tokens: tokens, clock: clock, options: own)
        self.line = line
        changed(topics: true, tables: true)
        let subscribed = subscribing
        reading = CancellingTask(
            Task { [weak self] in
                await subscribed?.value
                await line.open()
                while let delivery = await line.next() { self?.handle(delivery, session) }
            })
    }

    /// Opens the one identity that the device knows of the token's holder, or of the user that the app named.
    private func showKept(_ tokens: Tokens, _ session: Int) async {
        let known = await kept.all()
        guard session == self.session, !known.isEmpty else { return }
        // Offline the app may need half a minute for its token, during which the user would see nothing.
        await arrival(of: tokens, isPatient: user == nil)
        guard session == self.session else { return }
        let (holder, person) = (tokens.claims?.holder, TokenClaims.person(of: user))
        for case .open(let identity) in selves.receive(.begin(holder: holder, person: person, known: known)) {
            if tokens.assume(identity) {
                await open(identity, tokens, session)
            } else {
                // The service was faster than the storage.
                _ = selves.receive(.user)
            }
        }
    }

    /// Waits for the app's token.
    private func arrival(of tokens: Tokens, isPatient: Bool) async {
        guard !isPatient else { return await tokens.arrival() }
        guard options.network.isOnline else { return }
        let end = Promise<Void>()
        Task {
            await tokens.arrival()
            end.fulfil(())
        }
        let waiting = Task { [clock] in
            try? await clock.sleep(clock.now() + Bell.patienceMilliseconds)
            end.fulfil(())
        }
        await end.value
        waiting.cancel()
    }

    /// Opens the stores of the identity that the service has named, unless they show already, and returns the position from
    /// which its stream resumes. A token of another identity than the shown one begins another session instead.
    private func confirm(_ tokens: Tokens, _ session: Int) async -> String? {
        guard session == self.session, let named = tokens.identity else { return nil }
        noteUser(tokens.user)
        let own = SessionMachine.Known(
            identity: named, holder: tokens.claims?.holder, person: TokenClaims.person(of: user))
        // What an earlier identity of the holder has seen does not stay.
        for known in await kept.all() where known.identity != named && known.belongs(to: own.holder, own.person) {
            await kept.forgetState(of: known.identity)
        }
        guard session == self.session else { return nil }
        let actions = selves.receive(.identity(own))
        for case .keep(let known) in actions {
            let keeping = Task { [kept] in await kept.keep(known) }
            knowing = keeping
            await keeping.value
        }
        guard session == self.session else { return nil }
        for case .open(let identity) in actions { await open(identity, tokens, session) }
        guard session == self.session else { return nil }
        return await keeper?.load()
    }

    private func open(_ identity: String, _ tokens: Tokens, _ session: Int) async {
        guard session == self.session else { return }
        // A write is only sent as the identity that made it, however late.
        let outbox = makeOutbox(client.with(tokens.caller), identity, session)
        self.outbox = outbox
        for write in early { write.put(into: outbox) }
        early = []
        let scope = kept.scope(of: identity)
        let lastState = LastState(storage, key: scope + IdentityStorage.state, clock: clock) { [weak self] name in
            self?.stores.values.first { $0.name == name }?.kept
        }
        await lastState.load()
        let items = await outbox.stored()
        guard session == self.session else { return }
        self.lastState = lastState
        for store in stores.values.map(\.self) {
            // The service may have answered already.
            if let name = store.name, store.kept != nil { lastState.noteChange(of: name) }
            restore(store, items.filter { $0.identity == identity })
        }
        outbox.start(with: items)
        keeper = CursorKeeper(storage, key: scope + IdentityStorage.cursor)
    }

    // MARK: The end of a user

    /// Returns the outboxes that earlier starts of the user have left.
    ///
    /// - Parameter identity: whose outbox is open.
    func earlierOutboxes(of user: String?, _ holder: String?, besides identity: String?) async -> [Outbox] {
        await known(to: user, holder).filter { $0.identity != identity }.map { known in
            Outbox(
                client: client, storage: storage, prefix: outboxPrefix(of: known.identity), isOnline: false,
                clock: clock)
        }
    }

    /// Deletes all that the device keeps of a user.
    func deleteState(of user: String?, _ holder: String?) async {
        for known in await known(to: user, holder) { await kept.remove(known.identity) }
    }

    private func known(to user: String?, _ holder: String?) async -> [SessionMachine.Known] {
        await kept.all().filter { $0.belongs(to: holder, TokenClaims.person(of: user)) }
    }
}
