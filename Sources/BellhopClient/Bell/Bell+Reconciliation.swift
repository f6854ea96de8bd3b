/// Fetches of the counts beside the stream.
extension Bell {
    /// Starts polling the counts. An app that shows no counts does not poll.
    func poll() {
        guard !isPolling else { return }
        isPolling = true
        pollReceive(.connection(isLive: connection.status == .live, isReconnected: false))
        pollReceive(.lifecycle(isForeground: options.lifecycle.isForeground))
        pollReceive(.start)
    }

    func pollReceive(_ input: ReconciliationMachine.Input) {
        guard !isClosed, isPolling else { return }
        for action in reconciliation.receive(input, now: clock.now()) {
            switch action {
            case .timer(let name, let at):
                timers.set(name, at: at, clock) { [weak self] number in await self?.pollTimer(name, number) }
            case .fetch(let path, let headers, let asked): ask(path, headers, asked)
            case .reconciled(let status, let body):
                self.input(.answer(as: "reconcile", status: status, body: body, retryAfterSeconds: nil))
            }
        }
    }

    private func pollTimer(_ name: String, _ number: Int) {
        if timers.take(name, number) { pollReceive(.timer) }
    }

    private func ask(_ path: String, _ headers: [String: String], _ asked: Int) {
        // Without a signed-in user there are no counts.
        guard isSignedIn else { return pollReceive(.answer(asked: asked, status: 0)) }
        let session = session
        Task { [weak self, client] in
            let answer = await client.attempt("GET", path, headers: headers)
            guard let self, session == self.session else { return }
            pollReceive(
                .answer(
                    asked: asked, status: answer.status, etag: answer[header: "ETag"], body: answer.json,
                    retryAfterMilliseconds: answer.waitMilliseconds(clock)))
        }
    }
}
