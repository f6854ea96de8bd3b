#if !os(Linux)
    import Foundation

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// A request whose response is passed on as it arrives, by URLSession.
    final class StreamTransfer: Sendable {
        private let session: URLSession

        init(_ request: URLRequest, _ receiver: Receiver) {
            let configuration = URLSessionConfiguration.ephemeral
            configuration.urlCache = nil
            configuration.httpCookieStorage = nil
            session = URLSession(configuration: configuration, delegate: Delegate(receiver), delegateQueue: nil)
            session.dataTask(with: request).resume()
        }

        func cancel() { session.invalidateAndCancel() }
    }

    private final class Delegate: NSObject, URLSessionDataDelegate, Sendable {
        private let receiver: Receiver

        init(_ receiver: Receiver) { self.receiver = receiver }

        func urlSession(
            _: URLSession, dataTask _: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) {
            if let response = response as? HTTPURLResponse {
                receiver.deliver(.head(status: response.statusCode, headers: ServiceAnswer.headers(of: response)))
            }
            completionHandler(.allow)
        }

        func urlSession(_: URLSession, dataTask _: URLSessionDataTask, didReceive data: Data) {
            receiver.deliver(.bytes(data))
        }

        func urlSession(_ session: URLSession, task _: URLSessionTask, didCompleteWithError error: (any Error)?) {
            receiver.finish(error.map { .failure(ExchangeFailure.transport($0.localizedDescription)) } ?? .success(()))
            session.finishTasksAndInvalidate()
        }
    }
#endif
